"""Surfaces: their design, their cells in one process, and what they say about the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.advice.prepare import prepare
from core.artifacts.cache import write
from core.artifacts.measures import FrameMeasures, measures_path
from core.config import RunConfig, peak_rates
from core.config.edit import LAMBDA, TEMPERATURE, apply_settings
from core.errors import ConfigError
from core.events import BASELINE, VALIDATION, Predictions, Step
from core.experiments.design import Axis, Design, Level, axis_of, parse_design
from core.experiments.lifecycle import Experiments, make_runs
from core.experiments.surface import (
    Correct,
    correct_rows,
    effects,
    full_draft,
    full_runs,
    gains,
    main_sentences,
    rank_correlations,
    reference_level,
    summarise,
    surface_design,
    trains_every_block,
)
from core.messages import clauses
from core.models.source import encoder_shape
from core.store import ExperimentRun, Status, Store
from core.store.attempt import Attempt
from core.store.liveness import liveness_of
from core.tasks import TaskData
from core.workers import LocalEngine
from core.workers.run_rows import TaskSource
from core.workers.run_worker import work
from tests.core.experiments.conftest import CE
from tests.core.experiments.instant import InstantEngine, ScoredEngine

Drafts = Callable[..., RunConfig]
Rows = dict[int, dict[int, Correct]]


@pytest.fixture
def data(draft: Drafts, tmp_path: Path) -> TaskData:
    return TaskSource(tmp_path)(draft().task, 0)


@pytest.fixture
def surface(draft: Drafts, data: TaskData) -> Design:
    """Two values of τ by two of λ."""
    base = apply_settings(draft(), {"preset": "ce-scl", "batch_size": 8})
    return surface_design(
        base, data, [axis_of(TEMPERATURE, [0.1, 0.5], base), axis_of(LAMBDA, [0.2, 0.8], base)], (0, 1)
    )


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiments:
    """Return experiments whose runs wait for `train`."""
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    return Experiments(LocalEngine(Store(tmp_path / "runs")))


def train(experiments: Experiments) -> int:
    """Train the next queued run, with the cells of its seed, as a worker does. Returns: the exit status."""
    store = experiments.engine.store
    claim = store.claim_next([0], liveness_of())
    assert claim is not None
    return work(store.folder, claim)


@pytest.fixture
def held(tmp_path: Path) -> Experiments:
    """Return experiments whose runs stay queued until they are ended by `end`."""
    engine = InstantEngine(Store(tmp_path / "runs"))
    engine.holding = True
    return Experiments(engine)


def end(store: Store, run: ExperimentRun, status: Status = Status.FINISHED) -> None:
    """End a queued run; a finished one has predictions of three rows, two of them right."""
    claim = store.claim_next([0], liveness_of(), among={str(run.run_id)})
    assert claim is not None
    attempt = store.attempt(claim.id, claim.attempt)
    attempt.register()
    for split in (VALIDATION, BASELINE) if status == Status.FINISHED else ():
        attempt.predictions(Predictions(split, np.eye(2, dtype=np.float32)[[0, 1, 1]], (0, 1, 0)))
    attempt.end(status)


def test_cells_are_small_and_never_taken_for_full_runs(surface: Design, draft: Drafts) -> None:
    cell = surface.draft(surface.cells[3], 1)
    assert cell.executor == "surface"
    assert cell.phases[0].trainable.part == "last_blocks"
    assert (cell.phases[0].objective.temperature, cell.phases[0].objective.weight, cell.seed) == (0.5, 0.8, 1)
    full = full_draft(surface, surface.cells[3], 1)
    assert full.executor == "full"
    assert full.phases[0].steps == draft().phases[0].steps
    assert full.phases[0].objective == cell.phases[0].objective
    assert parse_design(surface.to_json()) == surface
    # The field is left out of other configs, whose hashes stay as they were.
    assert "executor" not in draft().to_json()
    assert '"executor": "surface"' in cell.to_json()


def test_where_layers_vary_every_block_learns_at_the_rate_of_a_whole_fine_tune(draft: Drafts, data: TaskData) -> None:
    base = apply_settings(draft(), {"preset": "multi-layer-sentence"})
    axis = axis_of("objective.terms.0.layers", ["first_third", "last_third"])
    made = surface_design(base, data, [axis], reference=Level.model_validate(CE))
    whole, _data = prepare(base, gpu=False)
    prepared = [prepare(made.draft(cell, 0), gpu=False)[0] for cell in made.cells]
    assert len(prepared) == 3
    for config in prepared:
        assert config.phases[0].trainable.frozen(encoder_shape(config.encoder.id).blocks) == 0
        assert peak_rates(config.phases[0].optimiser) == peak_rates(whole.phases[0].optimiser)


VIEWS: list[dict[str, Any]] = [{"view": "layers"}]


@pytest.mark.parametrize(
    ("axis", "every"),
    [
        (axis_of(TEMPERATURE, [0.1, 0.5]), False),
        (axis_of("objective.terms.0.layers", ["first_third"]), True),
        (Axis(name="Objective", levels=(Level(label="tokens", settings={"preset": "multi-layer-token"}),)), True),
        (Axis(name="Views", levels=(Level(label="layers", settings={"objective.terms.0.views": VIEWS}),)), True),
        (Axis(name="Objective", levels=(Level(label="tokens", settings={"preset": "token-scl"}),)), False),
    ],
)
def test_every_block_is_trained_where_a_contrast_reads_lower_layers(draft: Drafts, axis: Axis, every: bool) -> None:
    base = apply_settings(draft(), {"preset": "ce-scl", "encoder.id": "all-MiniLM-L6-v2"})
    assert trains_every_block(base, [axis]) == every


def test_each_optimiser_of_a_surface_over_layers_has_its_own_rate(draft: Drafts, data: TaskData) -> None:
    base = apply_settings(draft(), {"preset": "multi-layer-sentence"})
    made = surface_design(base, data, [axis_of("optimiser.name", ["adamw", "sgd"], base)])
    adamw, sgd = (prepare(made.draft(cell, 0), gpu=False)[0].phases[0].optimiser for cell in made.cells)
    assert peak_rates(sgd)[0] == pytest.approx(300 * peak_rates(adamw)[0])


def test_each_cell_is_compared_with_its_own_probe(surface: Design) -> None:
    """Cells with other training rows have another probe."""
    ours = {0: {cell: np.full(200, 0.8) for cell in range(4)}}
    probes = {0: {cell: np.full(200, 0.5 if cell < 2 else 0.7) for cell in range(4)}}
    found = {(one.axis, one.level): one.difference for one in gains(surface, ours, probes)}
    assert found == pytest.approx({(0, 0): 0.3, (0, 1): 0.1, (1, 0): 0.2, (1, 1): 0.2})


@pytest.mark.parametrize(
    ("setting", "values"),
    [("steps", [10, 20]), ("trainable.blocks", [1, 2]), ("task.id", ["nli"]), ("encoder.id", ["all-MiniLM-L6-v2"])],
)
def test_what_all_cells_share_cannot_be_varied(draft: Drafts, data: TaskData, setting: str, values: list[Any]) -> None:
    with pytest.raises(ConfigError, match="cells that train at once share it"):
        surface_design(draft(), data, [axis_of(setting, values, draft())])


def test_without_contrast_the_temperature_is_inert(draft: Drafts, data: TaskData) -> None:
    base = apply_settings(draft(), {"preset": "ce-scl"})
    axes = [axis_of(TEMPERATURE, [0.1, 0.5], base), axis_of(LAMBDA, [0.0, 0.8], base)]
    made = surface_design(base, data, axes)
    drafts = [made.draft(cell, 0).model_copy(update={"name": ""}) for cell in made.cells]
    assert drafts[0] == drafts[2]
    assert drafts[1] != drafts[3]


def test_cells_appear_all_at_once(surface: Design, held: Experiments, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that dispatches meanwhile would give the first ones to a worker of their own."""
    elsewhere, seen, queue = Store(held.engine.store.folder), [], held.engine.queue

    def queue_and_look(*arguments: Any) -> str:
        made = queue(*arguments)
        seen.append(len(elsewhere.runs()))
        return made

    monkeypatch.setattr(held.engine, "queue", queue_and_look)
    held.begin(surface)
    assert seen == [0] * 8
    assert len(elsewhere.runs()) == 8


def test_the_cells_of_a_seed_train_in_one_process(surface: Design, local: Experiments) -> None:
    store, experiment_id = local.engine.store, local.begin(surface)
    assert [run.status for run in local.table.runs(experiment_id)] == [Status.QUEUED] * 8
    assert train(local) == 0
    runs = local.table.runs(experiment_id)
    assert [run.status for run in runs] == [Status.FINISHED] * 8
    for run in runs:
        record = store.run(str(run.run_id))
        assert record.last_step == surface.base.steps
        assert store.predictions(record.id, VALIDATION) is not None
        assert store.predictions(record.id, "test") is None
        assert {one.split for one in store.evaluations(record.id)} == {BASELINE, VALIDATION}
    # Cells of a seed start from equal weights on equal batches.
    firsts = {(run.seed, store.steps(str(run.run_id))[0].values["loss.cross_entropy"]) for run in runs}
    assert len(firsts) == 2
    summary = summarise(store, surface, runs)
    assert len(summary.scores) == 4
    assert summary.sentences


def test_a_stopped_cell_starts_again_and_ends_where_it_would_have(surface: Design, local: Experiments) -> None:
    store, experiment_id = local.engine.store, local.begin(surface.revised(seeds=[0]))
    first = str(local.table.runs(experiment_id)[0].run_id)
    store.send(first, "stop")
    train(local)
    assert {run.status for run in local.table.runs(experiment_id)} == {Status.STOPPED, Status.FINISHED}
    local.engine.resume(first)
    train(local)
    assert {len(store.steps(str(run.run_id))) for run in local.table.runs(experiment_id)} == {surface.base.steps}
    assert store.run(first).status == Status.FINISHED


def test_a_cell_that_lacks_memory_is_trained_again_in_smaller_parts(
    surface: Design, local: Experiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id = local.begin(surface.revised(seeds=[0]))
    short = str(local.table.runs(experiment_id)[1].run_id)
    write_steps = Attempt.steps

    def write_or_run_out(attempt: Attempt, steps: Sequence[Step]) -> None:
        if (attempt.run_id, attempt.number, steps[-1].step) == (short, 1, 3):
            raise MemoryError
        write_steps(attempt, steps)

    monkeypatch.setattr(Attempt, "steps", write_or_run_out)
    for statuses in ({Status.QUEUED, Status.FINISHED}, {Status.FINISHED}):
        train(local)
        assert {run.status for run in local.table.runs(experiment_id)} == statuses
    run = local.engine.store.run(short)
    assert run.config.phases[0].micro_batch == surface.base.phases[0].batch_size // 2
    assert len(local.engine.store.steps(short)) == surface.base.steps


def test_cells_are_claimed_together_past_slots_and_limits(surface: Design, held: Experiments) -> None:
    store = held.engine.store
    experiment_id = held.table.create("", surface.to_json(), "visitor")
    make_runs(held.engine, experiment_id, lambda *_: None)
    first = store.claim_next([0], liveness_of(), 1)
    assert first is not None
    assert store.claim_next([0], liveness_of(), 1) is None
    assert held.table.cells_of(first.id) == [(experiment_id, 0)]
    wanted = {str(run.run_id) for run in held.table.runs(experiment_id) if run.seed == 0}
    claimed = []
    while (claim := store.claim_next([0], liveness_of(), 1, among=wanted)) is not None:
        claimed.append(claim.id)
    assert {first.id, *claimed} == wanted


class TestFindings:
    """Invented predictions of 200 rows: τ 0.1 is wrong on 40 rows more; λ makes no difference."""

    @pytest.fixture
    def rows(self, surface: Design) -> Rows:
        def right(generator: np.random.Generator, many: int) -> Correct:
            return (generator.permutation(200) < many).astype(np.float64)

        generators = {seed: np.random.default_rng(seed) for seed in surface.seeds}
        return {
            seed: {cell: right(of, 120 if cell < 2 else 160) for cell in range(4)} for seed, of in generators.items()
        }

    def test_a_main_effect_is_the_mean_over_the_other_axis(self, surface: Design, rows: Rows) -> None:
        found = effects(surface, rows)
        assert [(one.axis, one.level) for one in found] == [(0, 1), (1, 1)]
        mean = [np.mean([of_seed[cell].mean() for of_seed in rows.values()]) for cell in range(4)]
        assert found[0].difference == pytest.approx((mean[2] - mean[0] + mean[3] - mean[1]) / 2)
        assert found[0].difference == pytest.approx(0.2)
        assert found[1].difference == pytest.approx((mean[1] - mean[0] + mean[3] - mean[2]) / 2)

    def test_levels_are_compared_with_the_reference_cell_if_there_is_one(self, surface: Design, rows: Rows) -> None:
        against_ce = surface.model_copy(update={"reference": Level.model_validate(CE)})
        outside = (np.arange(200) < 100).astype(np.float64)
        found = effects(against_ce, {seed: of_seed | {4: outside} for seed, of_seed in rows.items()})
        assert [(one.axis, one.level) for one in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        for one in found:
            cells = [cell.number for cell in surface.cells if cell.levels and cell.levels[one.axis] == one.level]
            scores = [of_seed[cell].mean() for of_seed in rows.values() for cell in cells]
            assert one.difference == pytest.approx(np.mean(scores) - 0.5)
        assert "points higher than with CE" in str(next(main_sentences(against_ce, found, found)))

    def test_the_sentences_name_what_differs_and_what_beats_the_probe(self, surface: Design, rows: Rows) -> None:
        probes = {seed: dict.fromkeys(rows[seed], (np.arange(200) < 130).astype(np.float64)) for seed in rows}
        said = [str(one) for one in main_sentences(surface, effects(surface, rows), gains(surface, rows, probes))]
        assert said[0].startswith("Temperature τ 0.5: accuracy is 20.0 points higher than with 0.1 (95% interval: ")
        assert said[1] == "Weight λ: no distinguishable difference in accuracy."
        against = surface.model_copy(update={"baseline": {surface.axes[0].name: "0.5"}})
        lower = str(next(main_sentences(against, effects(against, rows), [])))
        assert lower.startswith("Temperature τ 0.1: accuracy is 20.0 points lower than with 0.5 (95% interval: ")
        assert said[2] == "Only these beat the linear probe of the encoder before training: Temperature τ 0.5."

    def test_one_seed_has_an_interval_over_texts(self, surface: Design, rows: Rows) -> None:
        [first, _second] = effects(surface, {0: rows[0]})
        assert first.low < first.difference < first.high
        by_row = (rows[0][2] - rows[0][0] + rows[0][3] - rows[0][1]) / 2
        margin = 1.96 * np.std(by_row, ddof=1) / 200**0.5
        assert first.high - first.low == pytest.approx(2 * margin, rel=1e-6)

    def test_nothing_is_said_without_a_finished_cell_of_the_grid(self, surface: Design) -> None:
        assert list(main_sentences(surface, [], [])) == []

    def test_only_whole_seeds_count(self, surface: Design, held: Experiments) -> None:
        store, experiment_id = held.engine.store, held.begin(surface)
        runs = held.table.runs(experiment_id)
        assert correct_rows(store, surface, runs) == ({}, {})
        assert [str(one) for one in summarise(store, surface, runs).sentences] == [
            "A seed is summarised once all its cells have ended."
        ]
        for run in runs:
            if run.seed == 0:
                end(store, run)
        by_seed, probes = correct_rows(store, surface, held.table.runs(experiment_id))
        assert list(by_seed) == list(probes) == [0]
        assert {cell: rows.tolist() for cell, rows in probes[0].items()} == {key: [1.0, 1.0, 0.0] for key in range(4)}

    def test_a_failed_cell_is_left_out_and_its_counterparts_with_it(self, surface: Design, rows: Rows) -> None:
        """Cell 3 has τ 0.5 and λ 0.8; τ is compared at λ 0.2 alone, and λ at τ 0.1 alone."""
        left = {seed: {cell: one for cell, one in of_seed.items() if cell < 3} for seed, of_seed in rows.items()}
        found = {one.axis: one.difference for one in effects(surface, left)}
        reference = [reference_level(surface, axis) for axis in (0, 1)]
        assert reference == [0, 0]
        mean = {cell: np.mean([of_seed[cell].mean() for of_seed in rows.values()]) for cell in range(3)}
        assert found == pytest.approx({0: mean[2] - mean[0], 1: mean[1] - mean[0]})
        probes = {seed: dict.fromkeys(of_seed, np.zeros(200)) for seed, of_seed in left.items()}
        above = {(one.axis, one.level): one.difference for one in gains(surface, left, probes)}
        assert above[0, 1] == pytest.approx(mean[2])
        assert above[0, 0] == pytest.approx((mean[0] + mean[1]) / 2)

    def test_a_failed_cell_is_named_and_the_others_are_summarised(self, surface: Design, held: Experiments) -> None:
        experiment_id = held.begin(surface)
        for run in held.table.runs(experiment_id):
            fails = run.cell == 3 or (run.cell, run.seed) == (2, 1)
            end(held.engine.store, run, Status.FAILED if fails else Status.FINISHED)
        summary = summarise(held.engine.store, surface, held.table.runs(experiment_id))
        assert str(summary.sentences[0]) == "Left out of this summary: τ 0.5, λ 0.8, seed 1."
        assert [list(scores) for scores in summary.scores.values()] == [[0], [0], [0]]
        assert "No setting is shown to beat" in str(summary.sentences[-2])


def trained_both_ways(engine: ScoredEngine, design: Design) -> tuple[list[ExperimentRun], list[ExperimentRun]]:
    """Return the runs of a surface and those of its cells in full."""
    found = Experiments(engine)
    runs = found.table.runs(found.begin(design))
    for cell in design.cells:
        engine.submit(full_draft(design, cell, 0))
    engine.dispatch()
    return runs, full_runs(engine, design)


class TestAgainstFullRuns:
    """Three values of τ by two of λ; full runs order the cells by accuracy as the surface does, or in reverse."""

    @pytest.fixture(params=[False, True])
    def reverse(self, request: pytest.FixtureRequest) -> bool:
        return bool(request.param)

    @pytest.fixture
    def engine(self, reverse: bool, tmp_path: Path) -> ScoredEngine:
        def right(config: RunConfig) -> int:
            objective = config.phases[0].objective
            place = round(10 * (objective.temperature or 0) + 5 * (objective.weight or 0))
            return 15 - place if reverse and config.executor == "full" else 5 + place

        return ScoredEngine(Store(tmp_path / "runs"), right)

    @pytest.fixture
    def design(self, draft: Drafts, data: TaskData) -> Design:
        base = apply_settings(draft(), {"preset": "ce-scl", "batch_size": 8})
        axes = [axis_of(TEMPERATURE, [0.1, 0.3, 0.5], base), axis_of(LAMBDA, [0.2, 0.8], base)]
        return surface_design(base, data, axes)

    def test_another_order_of_accuracies_withholds_the_sentences(
        self, reverse: bool, engine: ScoredEngine, design: Design
    ) -> None:
        runs, full = trained_both_ways(engine, design)
        alone = summarise(engine.store, design, runs).sentences
        assert [run.cell for run in full] == [cell.number for cell in design.cells]
        summary = summarise(engine.store, design, runs, full)
        sign = "−" if reverse else ""
        names = ("accuracy", "macro-F1", "cross-entropy, nats")
        said = f"Rank correlation with the full runs of 6 cells: {clauses(f'{name} {sign}1.00' for name in names)}."
        if reverse:
            below = f"Below 0.5, trust the full runs: {clauses(names)}."
            assert [str(one) for one in summary.sentences] == [said, below]
            assert summary.withheld == ["accuracy", "macro_f1", "cross_entropy"]
        else:
            assert [str(one) for one in summary.sentences] == [*map(str, alone), said]
            assert summary.withheld == []
        engine.store.discard(*(str(run.run_id) for run in full[4:]))
        assert full_runs(engine, design) == []  # four are too few

    @pytest.mark.parametrize("reverse", [False], indirect=True)
    def test_a_stopped_cell_is_not_in_the_rank_correlation(self, engine: ScoredEngine, design: Design) -> None:
        runs, full = trained_both_ways(engine, design)
        stopped = [replace(run, status=Status.STOPPED) if run.cell == 5 else run for run in runs]
        summary = summarise(engine.store, design, stopped, full)
        assert "full runs of 5 cells: accuracy 1.00" in str(summary.sentences[-1])
        assert rank_correlations(engine.store, runs[:4], full) == {}  # of too few cells

    @pytest.mark.parametrize("reverse", [True], indirect=True)
    def test_each_measure_has_a_rank_correlation_of_its_own(self, engine: ScoredEngine, design: Design) -> None:
        runs, full = trained_both_ways(engine, design)
        values = {"surface": [0.3, 0.1, 0.2, 0.6, 0.5, 0.4], "full": [1.0, 0.8, 0.9, 3.0, 4.0, 2.0]}
        for these, silhouettes in zip((runs, full), values.values(), strict=True):
            for run, value in zip(these, silhouettes, strict=True):
                folder = engine.store.run_folder(str(run.run_id))
                path = measures_path(folder, run.begun_attempt, run.last_step)
                write(path, FrameMeasures({"silhouette": value, "ari": None}, np.zeros(1, np.int64)))
        ranks = rank_correlations(engine.store, runs, full)
        # Without ties, 1 − 6 Σ d² / (n (n² − 1)).
        places = [[sorted(of).index(value) for value in of] for of in values.values()]
        squares = sum((one - other) ** 2 for one, other in zip(*places, strict=True))
        assert ranks["silhouette"] == pytest.approx(1 - 6 * squares / (6 * 35))
        assert ranks["accuracy"] == pytest.approx(-1)
        assert "ari" not in ranks
        assert summarise(engine.store, design, runs, full).withheld == ["accuracy", "macro_f1", "cross_entropy"]


def test_the_middle_level_is_the_reference_unless_the_draft_has_one(draft: Drafts, data: TaskData) -> None:
    base = apply_settings(draft(), {"preset": "ce-scl", "temperature": 0.3})
    own = surface_design(base, data, [axis_of(TEMPERATURE, [0.1, 0.2, 0.3], base)])
    assert reference_level(own, 0) == 2
    other = surface_design(base, data, [axis_of(TEMPERATURE, [0.1, 0.2, 0.5], base)])
    assert reference_level(other, 0) == 1
    against = other.model_copy(update={"baseline": {other.axes[0].name: "0.5"}})
    assert reference_level(against, 0) == 2
