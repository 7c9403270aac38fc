"""Every preset from its first step to its last: overfitted, stopped and resumed, and on the bundled encoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.advice.prepare import prepare
from core.config import RunConfig
from core.config.edit import apply_settings
from core.config.plan import plan_phase
from core.config.presets import PRESETS
from core.errors import TrainingError
from core.events import Evaluation, Finished, Step
from core.tasks import TaskData
from core.training.loop import train
from core.training.untrained import VectorCache
from tests.cases import slow_but
from tests.core.training.made import (
    NO_FRAMES,
    Draft,
    assert_same_run,
    curve,
    nli_csv,
    preset_phases,
    run_in_attempts,
    scored_csv,
)
from tests.core.views.test_back_translation import make_marian

Prepared = tuple[RunConfig, TaskData]
PreparedPreset = Callable[..., Prepared]
# One preset for each kind of loss, view and phase. `make test-slow` has all of them.
LEARNT = ("ce-scl", "mixup", "dscl", "simcse-supervised", "rdrop-two-stage", "consert", "clustered-tokens", "cosent")
RESUMED = ("ce-scl", "cosent", "mixup", "rdrop-two-stage", "multi-layer-token", "hard-negatives")


@pytest.fixture(scope="session")
def translators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return tiny translation models under the model names that CERT uses."""
    folder = tmp_path_factory.mktemp("marian")
    return {
        f"Helsinki-NLP/opus-mt-{name}": str(make_marian(folder / name, seed))
        for seed, name in enumerate(("en-de", "de-en", "en-zh", "zh-en"))
    }


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the tasks of the presets that need triplets or scores."""
    folder = tmp_path_factory.mktemp("pairs")
    scored = scored_csv(folder / "scored.csv")
    return {"simcse-supervised": nli_csv(folder / "nli.csv"), "cosent": scored, "cosine-mse": scored}


@pytest.fixture
def prepared_preset(draft: Draft, pairs: dict[str, Path], translators: dict[str, str]) -> Callable[..., Prepared]:
    def make(name: str, *, task: dict[str, Any] | None = None, encoder: Path | None = None, **phase: Any) -> Prepared:
        source: dict[str, Any] = {"path": str(pairs[name])} if name in pairs else {}
        if name == "cert-paraphrases":
            source = {"id": "film_reviews", "path": None, "train_size": 40}
        text = json.dumps(preset_phases(name, **phase))
        for hub, folder in translators.items():
            text = text.replace(json.dumps(hub), json.dumps(folder))
        more = NO_FRAMES | {"phases": json.loads(text)}
        more |= {"encoder": {"id": str(encoder), "max_length": 32}} if encoder else {}
        return prepare(draft(task={**source, "validation_size": 4} | (task or {}), more=more), gpu=False)

    return make


def expected_losses(config: RunConfig, number: int, blocks: int) -> set[str]:
    """Return the names of the losses that a phase has to record."""
    keys = {term.key for term in plan_phase(config.phases[number].objective, blocks).terms}
    assert keys == set(config.phases[number].objective.keys)
    return {f"loss.{key}" for key in keys} | ({"loss.rdrop.ce", "loss.rdrop.kl"} if "rdrop" in keys else set())


@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
@pytest.mark.parametrize("name", slow_but(LEARNT, [name for name in PRESETS if name != "explosion"]))
def test_every_phase_overfits_its_rows(prepared_preset: PreparedPreset, still_encoder: Path, name: str) -> None:
    phases = len(PRESETS[name].objectives)
    # Triplets need many rows, and pairs are harder to learn. Eight scored pairs are sixteen rows.
    task, length, rate = {"train_size": 16 if name in ("cosent", "cosine-mse") else 8}, 60, 1e-2
    if name == "simcse-supervised":
        task, length, rate = {}, 100, 5e-3
    config, data = prepared_preset(
        name,
        encoder=still_encoder,
        task=task,
        steps=length * phases,
        optimiser={"learning_rate": rate, "classifier_learning_rate": rate},
    )
    events = list(train(config, data))
    assert events[-1] == Finished(length * phases, "finished")
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.step for step in steps] == list(range(1, length * phases + 1))
    for number in range(phases):
        reported = [step.values for step in steps if step.values["phase"] == number + 1]
        assert len(reported) == length
        for values in reported:  # a non-finite loss would have ended the run
            assert {key for key in values if key.startswith("loss.")} == expected_losses(config, number, 2)
        losses = [values["loss"] for values in reported]
        # Round trips through random models make texts nearly equal. In sixteen dimensions, a feature cut-off
        # changes a vector more than another text does.
        hard = number == 0 and name in ("cert", "consert")
        assert sum(losses[-8:]) < (0.97 if hard else 0.85) * sum(losses[:8])
    scores = {event.split: event.values for event in events if isinstance(event, Evaluation)}
    assert set(scores) == {"validation", "baseline", "baseline_test", "test"}


@pytest.mark.slow  # a tiny encoder's vectors stay short
@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
def test_an_exploding_run_ends_with_its_message_and_a_normalised_one_does_not() -> None:
    settings = {"preset": "explosion", "steps": 40, "task.train_size": 200, "probe.size": 2, "probe.frame_steps": []}
    draft = apply_settings(RunConfig(), settings)
    with pytest.raises(
        TrainingError, match=r"^The (loss|gradient norm) of step \d+ is (nan|inf): .* turn on normalisation"
    ):
        list(train(*prepare(draft, gpu=False)))
    normalised = apply_settings(draft, {"objective.terms.0.normalize": True})
    assert list(train(*prepare(normalised, gpu=False)))[-1] == Finished(40, "finished")


@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
@pytest.mark.parametrize("name", slow_but(RESUMED, PRESETS))
def test_a_run_stopped_in_each_phase_and_between_them_goes_on_bit_for_bit(
    prepared_preset: PreparedPreset, tmp_path: Path, name: str
) -> None:
    config, data = prepared_preset(name)
    cache: VectorCache = {}
    translations = tmp_path / "translations.db"
    whole = list(train(config, data, cache=cache, translations=translations))
    parts = run_in_attempts(config, data, tmp_path, (3, 4, 6), cache=cache, translations=translations)
    assert_same_run(parts, whole)
    assert len(curve(whole)) == 8
