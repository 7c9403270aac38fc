"""The training loop as a stream of events, on the tiny encoder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.edit import apply_settings
from core.config.objective import ObjectiveConfig
from core.config.plan import learning_rate_factor
from core.encoders.model import Encoder, load_encoder
from core.errors import StaleAttemptError, TrainingError
from core.events import (
    Checkpointed,
    Evaluation,
    Event,
    Finished,
    KnobTurned,
    Notice,
    Predictions,
    Started,
    Step,
    TurnRefused,
)
from core.training import loop, row_cache
from core.training.checkpoints import Checkpoints, load_learned
from core.training.encode import encode
from core.training.loop import train
from core.training.untrained import FolderCache, VectorCache
from tests.core.training.made import (
    NO_FRAMES,
    Draft,
    Script,
    Trained,
    additive,
    assert_same_run,
    curve,
    evaluations,
    frames_of,
    run_draft,
    run_in_attempts,
    steps_of,
    two_phases,
)

# Shared by these tests, so the untrained encoder encodes the rows only once.
UNTRAINED: VectorCache = {}


def events_of(draft: RunConfig, **arguments: Any) -> list[Event]:
    return run_draft(draft, **{"cache": UNTRAINED} | arguments)[2]


def test_a_run_at_dropout_rate_0_is_that_of_an_encoder_without_dropout(draft: Draft, still_encoder: Path) -> None:
    """The head, whose dropout the rate leaves alone, is not read."""
    contrast = {"loss": "simcse", "views": [{"view": "dropout"}]}
    given: dict[str, Any] = {"objective": {"terms": [contrast]}, "steps": 3}
    still = draft(**given, more=NO_FRAMES | {"encoder": {"id": str(still_encoder), "max_length": 32}})
    plain = draft(**given, more=NO_FRAMES)
    cells = [plain, apply_settings(plain, {"encoder.dropout": 0.0}), apply_settings(plain, {"encoder.dropout": 0.3})]
    own, none, high = (curve(events_of(one)) for one in cells)
    assert none == curve(events_of(still))
    assert none != own != high


@pytest.fixture(scope="module")
def plain(draft: Draft, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    checkpoints = Checkpoints(tmp_path_factory.mktemp("plain"))
    return Trained(*run_draft(draft(), checkpoints=checkpoints, cache=UNTRAINED), checkpoints.path)


def test_a_run_starts_steps_and_finishes_with_one_test_score(plain: Trained) -> None:
    events = plain.events
    assert isinstance(events[0], Started)
    assert [step.step for step in steps_of(events)] == list(range(1, 9))
    assert events[-2:] == [Checkpointed(8), Finished(8, "finished")]
    assert [*evaluations(events, "test")] == [8]


def test_frames_come_at_the_steps_of_the_config_with_an_evaluation_each(draft: Draft) -> None:
    events = events_of(draft(more={"probe": {"size": 10, "train_size": 0, "frame_steps": [3, 5]}}))
    frames = frames_of(events)
    assert [*frames] == [*evaluations(events, "validation")] == [0, 3, 5, 8]
    assert all(frame.embeddings.shape == (10, 16) and frame.logits.shape == (10, 2) for frame in frames.values())


def test_the_untrained_frame_never_delays_the_first_step(draft: Draft) -> None:
    cache: VectorCache = {}
    kinds = [type(event).__name__ for event in events_of(draft(), cache=cache)]
    assert kinds[:4] == ["Started", "Tokens", "Step", "Frame"]
    again = [type(event).__name__ for event in events_of(draft(), cache=cache)]
    assert again[:6] == ["Started", "Tokens", "Frame", "Evaluation", "Step", "Evaluation"]


def test_lambda_zero_is_cross_entropy_and_still_reports_the_contrastive_part(draft: Draft) -> None:
    for step in steps_of(events_of(draft(objective=ObjectiveConfig().with_knob("lambda", 0.0).model_dump()))):
        assert step.values["loss"] == step.values["loss.cross_entropy"]
        assert step.values["loss.supcon"] > 0
        assert "shared_cosine" not in step.values


# Resuming


@pytest.mark.parametrize("trainable", [{"part": "all"}, {"part": "last_blocks", "blocks": 1}, {"part": "classifier"}])
def test_a_resumed_run_goes_on_bit_for_bit(draft: Draft, tmp_path: Path, trainable: dict[str, Any]) -> None:
    made = draft(steps=10, trainable=trainable)
    whole = events_of(made)
    killed = train(*prepare(made, gpu=False), checkpoints=Checkpoints(tmp_path, every_steps=3), cache=UNTRAINED)
    next(event for event in killed if isinstance(event, Step) and event.step == 8)
    killed.close()  # type: ignore[attr-defined]
    rest = events_of(made, checkpoints=Checkpoints(tmp_path, every_steps=3), resume=True)
    assert isinstance(rest[0], Started)
    assert rest[0].step == 6
    assert curve(rest) == curve(whole)[6:]
    np.testing.assert_array_equal(frames_of(rest)[10].embeddings, frames_of(whole)[10].embeddings)
    np.testing.assert_array_equal(frames_of(rest)[10].logits, frames_of(whole)[10].logits)


def test_a_stop_during_a_frame_costs_no_frame(draft: Draft, tmp_path: Path) -> None:
    made = draft(more={"probe": {"frame_steps": [4, 6]}})
    # The stop comes during the frame of step 4, which is abandoned.
    stopped = events_of(made, checkpoints=Checkpoints(tmp_path), controls=Script(stop_after=4))
    rest = events_of(made, checkpoints=Checkpoints(tmp_path), resume=True)
    frames = [frames_of(events) for events in (stopped, rest, events_of(made))]
    assert 4 not in frames[0]
    assert set(frames[1]) == {0, 4, 6, 8}
    for step, frame in frames[1].items():
        np.testing.assert_array_equal(frame.embeddings, frames[2][step].embeddings)
        np.testing.assert_array_equal(frame.logits, frames[2][step].logits)


def test_a_run_that_died_after_its_last_checkpoint_finishes(draft: Draft, tmp_path: Path, plain: Trained) -> None:
    whole = plain.events
    shutil.copy(plain.checkpoint, tmp_path)
    again = events_of(draft(), checkpoints=Checkpoints(tmp_path), resume=True)
    assert steps_of(again) == []
    assert again[-1] == Finished(8, "finished")
    assert evaluations(again, "test") == evaluations(whole, "test")


def test_a_dead_attempt_does_not_overwrite_a_checkpoint(draft: Draft, tmp_path: Path) -> None:
    def refuse() -> None:
        raise StaleAttemptError("a later attempt has the run")

    stopped = events_of(draft(), checkpoints=Checkpoints(tmp_path), controls=Script(stop_after=3))
    assert stopped[-2:] == [Checkpointed(3), Finished(3, "stopped")]
    kept = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(StaleAttemptError):
        events_of(draft(), checkpoints=Checkpoints(tmp_path, every_steps=1, guard=refuse), resume=True)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == kept


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(draft: Draft, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert events_of(draft(), cache=FolderCache(tmp_path / "file"))[-1] == Finished(8, "finished")


def test_turns_apply_in_the_order_of_their_steps(draft: Draft) -> None:
    later_first = [{"step": 6, "name": "temperature", "value": 0.1}]
    events = events_of(draft(more={"knob_turns": later_first}), controls=Script({3: ("temperature", 0.7)}))
    assert [s.values["temperature"] for s in steps_of(events)] == [0.3] * 2 + [0.7] * 3 + [0.1] * 3


def test_a_missing_device_raises(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(TrainingError, match="device = 'cuda' is not available to torch"):
        events_of(draft(more={"device": "cuda"}))


def test_a_damaged_checkpoint_is_a_plain_message(draft: Draft, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.raises(TrainingError, match="checkpoint cannot be read"):
        events_of(draft(), checkpoints=Checkpoints(tmp_path), resume=True)


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    more = {"checkpoint": {"snapshot_steps": [2]}}
    events = events_of(draft(more=more), checkpoints=Checkpoints(tmp_path, every_steps=4))
    notices = [event for event in events if isinstance(event, Notice)]
    assert [notice.step for notice in notices] == [2, 4, 8]
    assert "free some space" in str(notices[0].message)
    assert events[-1] == Finished(8, "finished")
    assert not list(tmp_path.iterdir())


# Two phases


CE = {"loss": "cross_entropy"}
CE_SCL = {"terms": [{"loss": "cross_entropy", "weight": 0.5}, {"loss": "supcon", "weight": 0.5}]}


@pytest.fixture(scope="module")
def plain_phases(draft: Draft) -> list[Event]:
    """Return the run of `two_phases(draft)`, trained once."""
    return events_of(two_phases(draft, **NO_FRAMES))


def test_each_phase_reports_its_own_reference_lines_and_learning_rate(draft: Draft) -> None:
    slow = {"optimiser": {"learning_rate": 1e-3, "warmup_fraction": 0.5}}
    steps = steps_of(events_of(two_phases(draft, {}, slow)))
    assert ["collapse_line.simcse" in step.values for step in steps] == [True] * 4 + [False] * 4
    # The schedule counts steps from the start of a phase.
    assert [s.values["learning_rate"] for s in steps[4:]] == [
        1e-3 * learning_rate_factor(n, 4, 0.5) for n in range(1, 5)
    ]


HEAD = {"part": "classifier"}
LORA = {"part": "lora", "lora_rank": 2, "lora_alpha": 16.0}


@pytest.mark.parametrize(
    ("first", "second"),
    [({"part": "all"}, LORA), ({"part": "last_blocks", "blocks": 1}, HEAD), (LORA, HEAD), (LORA, LORA)],
    ids=lambda t: t["part"],
)
def test_what_the_first_phase_learned_is_in_the_last_checkpoint(
    draft: Draft, tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Also check a second phase that trains only the classifier, and a first phase whose adapters are merged."""
    made = two_phases(draft, {"trainable": first}, {"trainable": second}, **NO_FRAMES)
    config, data, events = run_draft(made, checkpoints=Checkpoints(tmp_path), cache=UNTRAINED)
    encoder, tokenizer = load_encoder(config.encoder.id, classes=data.classes, max_length=32)
    untrained = {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}
    load_learned(tmp_path / "checkpoint.safetensors", encoder.eval())
    changed = {n for n, p in encoder.named_parameters() if not torch.equal(p, untrained[n])}
    assert any("layer.1.attention.self.query.weight" in name for name in changed)
    assert any("embeddings" in name for name in changed) == (first["part"] == "all")
    frame = frames_of(events)[8]
    with torch.inference_mode():
        pooled = encoder.pooled(tokenizer(data.validation.texts[:5]))
        logits = encoder.logits(pooled)
    torch.testing.assert_close(pooled, torch.from_numpy(frame.embeddings[:5]), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(logits, torch.from_numpy(frame.logits[:5]), atol=1e-5, rtol=1e-4)
    stored = load_file(tmp_path / "checkpoint.safetensors")
    assert not any("lora" in name or "projections" in name or "moment/" in name for name in stored)


def test_projection_heads_are_dropped_after_their_phase(draft: Draft, tmp_path: Path) -> None:
    simcse = {"loss": "simcse", "projection": "mlp", "views": [{"view": "dropout"}]}
    config, data = prepare(two_phases(draft, {"objective": {"terms": [simcse]}}, {}, **NO_FRAMES), gpu=False)
    checkpoints = Checkpoints(tmp_path, every_steps=1)
    names = []
    for event in train(config, data, checkpoints=checkpoints, cache=UNTRAINED):
        if isinstance(event, Checkpointed):
            names.append(any("projections" in name for name in load_file(checkpoints.path)))
    assert names == [True] * 4 + [False] * 4


PHASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "adapters": ({"trainable": LORA}, {"trainable": LORA}),
    "adapters, then all": ({"trainable": LORA}, {"trainable": {"part": "all"}}),
    "all, then classifier": ({}, {"trainable": {"part": "classifier"}}),
    "all, then last block with a queue": (
        {},
        {
            "trainable": {"part": "last_blocks", "blocks": 1},
            "objective": additive(CE, {"loss": "supcon", "queue": 20, "momentum": 0.5}),
        },
    ),
    "projections": (
        {"objective": additive({"loss": "simcse", "projection": "mlp", "views": [{"view": "dropout"}]})},
        {"objective": additive(CE, {"loss": "supcon", "projection": "linear", "queue": 12})},
    ),
    "parts of a batch": ({"micro_batch": 3}, {"micro_batch": 5, "objective": CE_SCL}),
    "checkpointing": ({"gradient_checkpointing": True}, {"gradient_checkpointing": True, "objective": CE_SCL}),
    "adafactor": ({"optimiser": {"name": "adafactor"}}, {"optimiser": {"name": "adafactor", "learning_rate": 1e-2}}),
    "layer decay": ({"optimiser": {"layer_decay": 0.5, "classifier_learning_rate": 1e-2}},) * 2,
    "adversarial": (
        {"objective": {"terms": [{"loss": "simcse", "views": [{"view": "adversarial"}]}]}},
        {"objective": {"terms": [{"loss": "cross_entropy", "views": [{"view": "embedding_dropout"}]}]}},
    ),
}


@pytest.mark.parametrize("name", PHASES)
def test_a_run_of_two_phases_goes_on_bit_for_bit_wherever_it_stopped(draft: Draft, tmp_path: Path, name: str) -> None:
    # Three steps after the last stop, because the queue's contents affect the following step.
    made = two_phases(draft, *(phase | {"steps": 5} for phase in PHASES[name]), **NO_FRAMES)
    config, data, whole = run_draft(made, cache=UNTRAINED)
    parts = run_in_attempts(config, data, tmp_path, (2, 5, 7), cache=UNTRAINED)
    assert_same_run(parts, whole)


@pytest.mark.parametrize("part", ["last_blocks", "classifier"])
def test_a_run_beyond_the_bound_of_what_is_kept_goes_on_bit_for_bit(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The cache holds only a few of the 24 rows."""
    monkeypatch.setattr(row_cache.RowCache.__init__, "__defaults__", (6000 if part == "last_blocks" else 640,))
    made = draft(task={"train_size": 24}, steps=10, trainable={"part": part, "blocks": 1}, more=NO_FRAMES)
    config, data, whole = run_draft(made, cache=UNTRAINED)
    assert_same_run(run_in_attempts(config, data, tmp_path, (2, 8), cache=UNTRAINED), whole)


def test_a_phase_of_contrast_leaves_the_classifier_and_moves_the_encoder(draft: Draft) -> None:
    made = two_phases(draft, {}, {"trainable": {"part": "classifier"}}, probe={"frame_steps": [4]})
    start, middle, end = frames_of(events_of(made)).values()
    assert np.abs(middle.embeddings - start.embeddings).max() > 1e-2
    # From here on the encoder is frozen.
    np.testing.assert_allclose(end.embeddings, middle.embeddings, atol=1e-6)
    assert np.abs(end.logits - middle.logits).max() > 1e-3


def test_knobs_turn_in_the_phase_that_has_them(draft: Draft) -> None:
    made = two_phases(draft, {}, {"objective": CE_SCL})
    events = events_of(made, controls=Script({2: ("temperature", 0.5), 6: ("lambda", 0.9), 7: ("temperature", 0.8)}))
    assert [e for e in events if isinstance(e, KnobTurned)] == [
        KnobTurned(2, "temperature", 0.5),
        KnobTurned(6, "lambda", 0.9),
        KnobTurned(7, "temperature", 0.8),
    ]
    values = [step.values for step in steps_of(events)]
    # A turn holds until the end of its phase.
    assert [v["temperature"] for v in values] == [0.05, 0.5, 0.5, 0.5, 0.3, 0.3, 0.8, 0.8]
    assert [v.get("lambda") for v in values] == [None] * 4 + [0.5, 0.9, 0.9, 0.9]


def test_the_learning_rate_is_turned_for_its_phase(draft: Draft, plain_phases: list[Event]) -> None:
    turned = steps_of(events_of(two_phases(draft, **NO_FRAMES), controls=Script({3: ("learning_rate", 0.5)})))
    pairs = zip(steps_of(plain_phases), turned, strict=True)
    factors = [b.values["learning_rate"] / a.values["learning_rate"] for a, b in pairs]
    assert factors == [1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]


def test_a_turn_for_the_phase_that_has_just_ended_is_a_notice(draft: Draft, plain_phases: list[Event]) -> None:
    events = events_of(
        two_phases(draft, **NO_FRAMES), controls=Script({5: ("temperature", 0.5), 6: ("learning_rate", 2.0)})
    )
    [notice] = [event for event in events if isinstance(event, TurnRefused)]
    assert (notice.step, notice.name, notice.value) == (4, "temperature", 0.5)
    assert "'temperature'" in str(notice.message)
    assert "learning_rate" in str(notice.message)
    assert [e for e in events if isinstance(e, KnobTurned)] == [KnobTurned(6, "learning_rate", 2.0)]
    assert curve(events)[:5] == curve(plain_phases)[:5]


def test_the_knobs_of_several_terms_are_told_apart(draft: Draft, tmp_path: Path) -> None:
    objective = additive(
        CE,
        {"loss": "supcon", "temperature": 0.3},
        {"loss": "supcon", "weight": 0.5, "temperature": 0.2, "level": "token", "k": 3},
        {"loss": "rdrop", "alpha": 1.0, "views": [{"view": "head_dropout"}]},
    )
    made = draft(objective=objective, more=NO_FRAMES)
    turns = {3: ("supcon_2.temperature", 0.9), 4: ("rdrop.alpha", 4.0), 5: ("supcon.weight", 2.0)}
    plain, live = events_of(made), events_of(made, controls=Script(turns))
    before, after = (steps_of(events)[2].values for events in (plain, live))
    assert before["loss.supcon"] == after["loss.supcon"]
    assert before["loss.supcon_2"] != after["loss.supcon_2"]
    fifth = steps_of(live)[4].values
    weights = {"cross_entropy": 1.0, "supcon": 2.0, "supcon_2": 0.5, "rdrop": 1.0}
    assert fifth["loss"] == pytest.approx(sum(w * fifth[f"loss.{key}"] for key, w in weights.items()), rel=1e-5)
    assert fifth["loss.rdrop"] == pytest.approx(fifth["loss.rdrop.ce"] + 4.0 * fifth["loss.rdrop.kl"], rel=1e-5)
    recorded = [{"step": e.step, "name": e.name, "value": e.value} for e in live if isinstance(e, KnobTurned)]
    assert len(recorded) == 3
    config, data = prepare(parse_config(made.model_dump(mode="json") | {"knob_turns": recorded}), gpu=False)
    assert curve(run_in_attempts(config, data, tmp_path, (4,), cache=UNTRAINED)) == curve(live)


@pytest.mark.parametrize(
    ("part", "start", "queue"),
    [("all", 0.5, 0), ("all", 0.0, 20), ("last_blocks", 0.5, 20), ("last_blocks", 0.0, 0)],
)
def test_lambda_goes_to_zero_and_back_and_the_run_stays_resumable(
    draft: Draft, tmp_path: Path, part: str, start: float, queue: int
) -> None:
    """The second pass runs only while its term has weight. The queue fills in any case."""
    terms = [
        {"loss": "cross_entropy", "weight": 1 - start},
        {"loss": "supcon", "weight": start, "queue": queue, "momentum": 0.5, "views": [{"view": "dropout"}]},
    ]
    turns = [(3, 0.5 - start), (5, 0.0), (7, 0.7)]
    made = draft(
        steps=9,
        objective={"terms": terms},
        trainable={"part": part, "blocks": 1},
        more=NO_FRAMES | {"knob_turns": [{"step": step, "name": "lambda", "value": value} for step, value in turns]},
    )
    config, data, whole = run_draft(made, cache=UNTRAINED)
    weights = [start] * 2 + [0.5 - start] * 2 + [0.0] * 2 + [0.7] * 3
    tokens = [step.values["tokens"] for step in steps_of(whole)]
    for weight, step in zip(weights, steps_of(whole), strict=True):
        assert step.values["lambda"] == weight
        assert ("loss.supcon" in step.values) == (weight > 0)
    once = draft(steps=9, objective={"terms": [{"loss": "cross_entropy"}]}, more=NO_FRAMES)
    same_batch = steps_of(events_of(once))
    passes = [both / one.values["tokens"] for both, one in zip(tokens, same_batch, strict=True)]
    assert passes == [2.0 if weight > 0 else 1.0 for weight in weights]
    assert curve(run_in_attempts(config, data, tmp_path, (2, 5, 7), cache=UNTRAINED)) == curve(whole)


def test_a_failure_in_the_second_phase_names_its_step(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = Encoder.logits
    monkeypatch.setattr(Encoder, "logits", lambda self, pooled: logits(self, pooled) * float("nan"))
    events = train(*prepare(two_phases(draft), gpu=False))
    assert next(event for event in events if isinstance(event, Step) and event.step == 4)
    with pytest.raises(TrainingError, match="loss of step 5 is nan: lower the learning rate"):
        list(events)


@pytest.mark.parametrize("vectors", ["pooled", "logits"])
def test_a_frame_whose_vectors_overflow_ends_the_run(
    draft: Draft, monkeypatch: pytest.MonkeyPatch, vectors: str
) -> None:
    def long(*texts: Any, **settings: Any) -> Any:
        found = encode(*texts, **settings)
        return found._replace(**{vectors: getattr(found, vectors) * 1e25})

    monkeypatch.setattr("core.training.loop.encode", long)
    with pytest.raises(TrainingError, match=r"vectors after step \d+ overflow: lower the learning rate"):
        list(train(*prepare(draft(), gpu=False)))


# Failure


@pytest.mark.slow
def test_the_bundled_encoder_learns_the_bundled_task() -> None:
    """Train the real encoder on real text. In 40 steps it is far above the majority class."""
    draft = parse_config(
        {
            "phases": [{"steps": 40, "optimiser": {"learning_rate": 2e-4}}],
            "probe": {"frame_steps": []},
            "device": "cpu",
        }
    )
    events = events_of(draft)
    scores = {event.split: event.values for event in events if isinstance(event, Evaluation)}
    assert scores["test"]["accuracy"] > 0.65
    assert scores["test"]["rows"] == 400
    assert scores["baseline"]["accuracy"] > 0.55
    losses = [step.values["loss"] for step in steps_of(events)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def test_a_term_without_trainable_weights_gives_a_notice(draft: Draft) -> None:
    """A contrastive term on a frozen encoder changes nothing, and a notice explains it."""

    def reported(weight: float) -> tuple[list[str], list[float]]:
        objective = additive({"loss": "supcon", "weight": weight}, CE)
        made = draft(objective=objective, trainable={"part": "classifier"}, more=NO_FRAMES)
        events = events_of(made)
        notices = [str(e.message) for e in events if isinstance(e, Notice)]
        return notices, [e.values["loss.cross_entropy"] for e in events if isinstance(e, Step)]

    (first, light), (second, heavy) = reported(0.1), reported(5.0)
    assert any("has no effect" in message for message in first)
    assert first == second
    assert light == pytest.approx(heavy, rel=1e-6)


def test_the_predictions_of_the_test_are_those_that_are_scored(plain: Trained) -> None:
    data, events = plain.data, plain.events
    [predictions] = [event for event in events if isinstance(event, Predictions)]
    [scored] = evaluations(events, "test").values()
    assert predictions.labels == data.test.labels
    assert predictions.logits.shape == (len(data.test), len(data.classes))
    right = sum(int(row.argmax()) == label for row, label in zip(predictions.logits, data.test.labels, strict=True))
    assert scored.values["accuracy"] == right / len(data.test)
    assert events.index(predictions) < events.index(scored)


def test_where_no_classifier_learned_the_probes_predictions_are_kept(draft: Draft) -> None:
    events = events_of(draft(objective=additive({"loss": "supcon"}), more=NO_FRAMES))
    [predictions] = [event for event in events if isinstance(event, Predictions)]
    [scored] = evaluations(events, "test").values()
    assert scored.probe_rows is not None
    np.testing.assert_allclose(np.exp(predictions.logits).sum(1), 1.0, rtol=1e-4)
    assert scored.values["accuracy"] == np.mean(predictions.logits.argmax(1) == np.asarray(predictions.labels))


@pytest.fixture(scope="module")
def follower(plain: Trained) -> list[Event]:
    """Return the events of a run that starts from the plain one and shares its cache of untrained vectors."""
    config = plain.config.model_copy(update={"start": "abcdefghijkm"})
    return list(train(config, plain.data, start=plain.checkpoint, cache=UNTRAINED))


def test_a_run_that_starts_from_another_has_its_encoder_and_a_new_classifier(
    plain: Trained, follower: list[Event]
) -> None:
    last, first = frames_of(plain.events)[8], frames_of(follower)[0]
    np.testing.assert_allclose(first.embeddings, last.embeddings, atol=1e-5)
    assert not np.allclose(first.logits, last.logits, atol=1e-3)


def test_a_start_is_not_taken_from_the_cache_of_the_pre_trained_encoder(plain: Trained, follower: list[Event]) -> None:
    assert not np.allclose(frames_of(plain.events)[0].embeddings, frames_of(follower)[0].embeddings)
    # The baseline is still the pre-trained encoder.
    assert evaluations(plain.events, "baseline") == evaluations(follower, "baseline")


def test_unreadable_start_weights_raise(draft: Draft, tmp_path: Path) -> None:
    config, data = prepare(draft(), gpu=False)
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(TrainingError, match="starts from cannot be read"):
        list(train(config, data, start=path))


def test_frames_and_snapshots_change_no_bit_of_what_is_learned_and_scored(draft: Draft, tmp_path: Path) -> None:
    """`core.config.compare` treats runs that differ only in these settings as equal."""
    found = []
    for number, more in enumerate(({}, {"probe": {"frame_steps": []}, "checkpoint": {"snapshot_steps": []}})):
        events = events_of(draft(more=more), checkpoints=Checkpoints(tmp_path / str(number)))
        [predictions] = [event for event in events if isinstance(event, Predictions)]
        [scored] = evaluations(events, "test").values()
        found.append((curve(events), predictions.logits.tobytes(), scored.values))
    assert found[0] == found[1]


def test_states_of_frames_are_kept_within_a_limit(
    draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = {"probe": {"frame_steps": [2, 4, 6]}}
    size = 0
    for limit, kept in (("STATES_BYTES_MAX", [2, 4, 6]), ("STATES_BYTES_MAX", [4]), ("STATE_BYTES_MAX", [])):
        if size:
            monkeypatch.setattr(loop, limit, 2.5 * size if kept else size / 2)  # of five frames, every second one
        folder = tmp_path / str(kept)
        events_of(draft(more=frames), checkpoints=Checkpoints(folder))
        found = sorted(folder.glob("state-*"))
        assert [int(path.stem.removeprefix("state-")) for path in found] == kept
        size = size or sum(tensor.nbytes for tensor in load_file(found[0]).values())
    few = apply_settings(draft(more=frames), {"trainable.part": "last_blocks", "trainable.blocks": 1})
    events_of(few, checkpoints=Checkpoints(tmp_path / "few"))
    assert len(list((tmp_path / "few").glob("state-*"))) == 3  # also above the limit of a state
