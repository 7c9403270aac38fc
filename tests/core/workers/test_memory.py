"""A run that cannot fit is refused with settings that would. One that runs out of memory continues in smaller parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.advice.estimate import phase_memory
from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import ConfigError
from core.models.source import encoder_shape
from core.store import Status, Store
from core.workers import LocalEngine, memory
from core.workers.failures import requeue_after_memory_error
from tests.core.store.claims import claimed
from tests.core.workers.test_branches import carry_out

Draft = Callable[..., RunConfig]
ADVERSARIAL = {"loss": "supcon", "views": [{"view": "adversarial"}]}


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, draft: Draft) -> float:
    """Limit memory to 100 texts of the tiny encoder at a time."""
    config, data = prepare(draft(batch_size=20), gpu=False)
    shape = encoder_shape(config.encoder.id)
    phase = config.phases[0].model_copy(update={"batch_size": 100})
    found = phase_memory(phase, data, shape, config.encoder.max_length)
    monkeypatch.setattr(memory, "limit_bytes", lambda _: found)
    return found


def test_the_largest_batch_that_fits_is_named(limit: float, draft: Draft) -> None:
    config, data = prepare(draft(batch_size=20), gpu=False)
    memory.check_memory(config, data)
    large = config.model_copy(update={"phases": (config.phases[0].model_copy(update={"batch_size": 2_000}),)})
    with pytest.raises(ConfigError) as refused:
        memory.check_memory(large, data)
    assert str(refused.value).startswith("batch_size = 2000 cannot be used: it needs about ")
    assert "100 would fit; micro_batch 100 keeps the batch" in str(refused.value)
    parts = large.phases[0].model_copy(update={"micro_batch": 100})
    memory.check_memory(large.model_copy(update={"phases": (parts,)}), data)


@pytest.mark.parametrize("texts", [1, 17])
def test_it_is_the_largest_of_all(texts: int, draft: Draft) -> None:
    config, data = prepare(draft(batch_size=20), gpu=False)
    shape, length = encoder_shape(config.encoder.id), config.encoder.max_length
    sizes = {n: config.phases[0].model_copy(update={"batch_size": n}) for n in range(1, 120)}
    room = phase_memory(sizes[texts], data, shape, length)
    wide = config.model_copy(update={"phases": (sizes[119],)})
    by_hand = max(n for n, phase in sizes.items() if phase_memory(phase, data, shape, length) <= room)
    assert memory.fitting_texts(wide, 0, data, shape, room) == by_hand == texts
    assert memory.fitting_texts(wide, 0, data, shape, 1.0) == 0


def test_where_nothing_fits_it_says_so(monkeypatch: pytest.MonkeyPatch, store: Store, draft: Draft) -> None:
    monkeypatch.setattr(memory, "limit_bytes", lambda _: 1.0)
    with pytest.raises(ConfigError, match="not even one text would fit"):
        LocalEngine(store, slots=range(1)).submit(draft())
    assert store.runs() == []


@pytest.mark.parametrize(("text", "expected"), [("1000000\n", 1e6), ("max\n", None), (None, None)])
def test_a_container_s_limit_counts(
    text: str | None, expected: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.max"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(memory, "CONTAINER_LIMIT", path)
    found = memory.limit_bytes("cpu")
    assert found is not None
    assert (found == expected) if expected else found > 1e8


class TestRetry:
    def test_a_run_is_queued_first_with_half_as_many_texts_at_a_time_once(self, store: Store, draft: Draft) -> None:
        config, _ = prepare(draft(batch_size=8), gpu=False)
        attempt, waiting = claimed(store, config), store.create(config)
        run_id = attempt.run_id
        assert requeue_after_memory_error(attempt, store.run(run_id))
        run = store.run(run_id)
        phase = run.config.phases[0]
        assert (run.status, phase.micro_batch, phase.batch_size) == (Status.QUEUED, 4, 8)
        assert str(run.message) == (
            "Not enough memory for 8 texts at a time. The run restarted with 4 at a time and the same batch."
        )
        assert store.same_as(run.config) == run_id
        assert store.claim_next(range(1)) == (run_id, 2, 0)
        assert str(store.run(run_id).message) == str(run.message)  # the message stays while the run continues
        second = store.attempt(run_id, 2)
        second.register()
        assert not requeue_after_memory_error(second, store.run(run_id))
        assert store.run(run_id).status == Status.STARTING
        assert store.run(waiting).status == Status.QUEUED

    @pytest.mark.parametrize("phase", [{"micro_batch": 1}, {"objective": {"terms": [ADVERSARIAL]}}])
    def test_one_text_cannot_be_halved_nor_a_batch_of_an_adversarial_view(
        self, store: Store, draft: Draft, phase: dict[str, Any]
    ) -> None:
        config, _ = prepare(draft(**phase), gpu=False)
        attempt = claimed(store, config)
        assert not requeue_after_memory_error(attempt, store.run(attempt.run_id))

    def test_a_run_that_really_runs_out_goes_on_by_itself(
        self, store: Store, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Carry the run out in this process, whose encoder has memory for only four texts."""
        from core.training.passes import Passes

        run = Passes.run

        def tight(self: Passes, batch: Any, start: int, end: int) -> Any:
            if end - start > 4:
                raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
            return run(self, batch, start, end)

        monkeypatch.setattr(Passes, "run", tight)
        monkeypatch.setattr(LocalEngine, "dispatch", carry_out)
        ended = store.run(LocalEngine(store, slots=range(1)).submit(draft()))
        assert (ended.status, ended.last_step, ended.attempt) == (Status.FINISHED, 8, 2)
        assert ended.config.phases[0].micro_batch == 4
