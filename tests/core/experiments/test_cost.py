"""The cost of an experiment before its start."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.advice.estimate import Estimate, assumed_flops, estimate
from core.config import RunConfig
from core.config.edit import apply_settings
from core.errors import ConfigError, EncoderError
from core.experiments.cost import cost
from core.experiments.design import axis_of
from core.experiments.surface import surface_design
from core.models import source
from core.models.source import encoder_shape
from tests.core.experiments.conftest import Here, Make
from tests.core.experiments.instant import InstantEngine
from tests.core.models.test_source import check_sentence


def estimated(engine: InstantEngine, draft: RunConfig) -> Estimate:
    """Return the estimate of one run at the assumed speed."""
    config, data = engine.prepared(draft)
    return estimate(config, data, encoder_shape(config.encoder.id), assumed_flops(False), measured=False)


def test_it_is_the_sum_over_cells_and_seeds(engine: InstantEngine, design: Make) -> None:
    made = design(seeds=3, axes=[{"setting": "steps", "values": [4, 40]}], baseline={})
    found = cost(engine, made)
    seconds = sum(estimated(engine, made.draft(cell, seed)).total_s for cell in made.cells for seed in made.seeds)
    assert found.seconds == pytest.approx(seconds, rel=0.01)
    assert (found.runs, found.known, found.measured, found.refused) == (6, 0, False, ())


def test_the_cells_of_a_surface_share_their_probe_and_score_no_test_text(engine: InstantEngine, design: Make) -> None:
    base = design().base
    made = surface_design(base, engine.prepared(base)[1], [axis_of("temperature", [0.1, 0.5], base)], (0, 1))
    one = estimated(engine, made.draft(made.cells[0], 0))
    assert one.test_s == one.weights_s == 0
    assert cost(engine, made).seconds == pytest.approx(2 * (2 * (one.steps_s + one.frames_s) + one.probe_s), rel=0.01)


def test_cells_with_other_training_rows_have_a_probe_of_their_own(engine: InstantEngine, design: Make) -> None:
    base = design().base
    data = engine.prepared(base)[1]
    noise = axis_of("task.label_noise", [0.0, 0.4], base)
    made = surface_design(base, data, [noise, axis_of("temperature", [0.1, 0.5], base)])
    one = estimated(engine, made.draft(made.cells[0], 0))
    assert cost(engine, made).seconds == pytest.approx(4 * (one.steps_s + one.frames_s) + 2 * one.probe_s, rel=0.01)


def test_runs_that_are_there_cost_nothing(experiments: Here, engine: InstantEngine, design: Make) -> None:
    experiments.begin(design(seeds=1))
    found = cost(engine, design(seeds=2))
    assert (found.runs, found.known) == (4, 2)
    assert found.seconds == pytest.approx(cost(engine, design(seeds=[5, 6])).seconds / 2, rel=0.05)


def test_frames_and_snapshots_take_room(engine: InstantEngine, design: Make) -> None:
    lean = apply_settings(design().base, {"probe.frame_steps": [], "checkpoint.snapshot_steps": []})
    assert cost(engine, design(base=lean.model_dump(mode="json"))).disk_bytes < cost(engine, design()).disk_bytes


def test_runs_that_are_over_before_they_are_compared_cannot_end_early(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    axes = [{"setting": "steps", "values": [4, 40]}]
    cost(engine, design(axes=axes, baseline={}, early_stopping={"grace_steps": 39}))  # the longer runs can
    late = design(axes=axes, baseline={}, early_stopping={"grace_steps": 40})
    for refuses in (lambda: cost(engine, late), lambda: experiments.begin(late)):
        with pytest.raises(ConfigError, match="the longest run has 40 steps, so none could end early"):
            refuses()
    assert experiments.table.experiments() == []


def test_an_experiment_whose_models_are_missing_is_refused_as_a_whole(
    experiments: Here, design: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    translated = {"axes": [{"setting": "task.back_translation", "values": [None, 0.3]}], "baseline": {}}
    encoders = {"axes": [{"setting": "encoder.id", "values": [design().base.encoder.id, "a/b"]}], "baseline": {}}
    for made, named in (
        (design(**translated), "opus-mt-en-de'.*opus-mt-de-en' are not on this machine"),
        (design(**encoders), "Encoder 'a/b' is not on this machine"),
    ):
        for refuses in (lambda made=made: cost(experiments.engine, made), lambda made=made: experiments.begin(made)):
            with pytest.raises(EncoderError, match=named) as caught:
                refuses()
            check_sentence(caught.value)
    assert experiments.table.experiments() == []
    for name in ("en-de", "de-en"):
        snapshot = tmp_path / f"models--Helsinki-NLP--opus-mt-{name}" / "snapshots" / "0"
        snapshot.mkdir(parents=True)
        (snapshot / "model.safetensors").touch()
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("0")
    assert cost(experiments.engine, design(**translated)).refused == ()
