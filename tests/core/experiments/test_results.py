"""What an experiment shows, against scores that the test decided."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from core.config import RunConfig
from core.experiments.results import Results, results
from core.representation.paired import holm, paired_difference, seeds_needed
from core.store import Status, Store
from tests.core.experiments.conftest import Here, Make
from tests.core.experiments.instant import LABELS, InstantEngine


def right(config: RunConfig) -> int:
    """λ 0.9 gets four more right than λ 0.1 under every seed, and seeds differ."""
    weight = config.phases[0].objective.weight or 0.0
    return 10 + (4 if weight > 0.5 else 0) + config.seed % 3


def shown(experiments: Here, made: object, measure: str = "accuracy", split: str = "test") -> Results:
    experiment = experiments.table.experiments()[0]
    return results(
        experiments.engine.store, experiment.id, experiments.design(experiment.id), measure=measure, split=split
    )


@pytest.fixture
def engine(store: Store) -> InstantEngine:
    return InstantEngine(store, right)


def test_a_cell_is_the_mean_over_its_seeds(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=5))
    first, second = shown(experiments, design).cells
    expected = [(10 + seed % 3) / 20 for seed in range(5)]
    assert first.scores == dict(enumerate(expected))
    assert first.mean == pytest.approx(statistics.mean(expected))
    assert first.std == pytest.approx(statistics.stdev(expected))
    assert (first.title, second.title, first.seeds) == ("λ 0.1", "λ 0.9", 5)


def test_the_difference_is_paired_by_seed_and_by_example(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=5))
    found = shown(experiments, design)
    baseline, ours = found.cells
    assert baseline.comparison is None
    assert ours.comparison is not None
    table = [[float(place < 10 + add + seed % 3) for place in range(20)] for add in (0, 4) for seed in range(5)]
    assert ours.comparison.difference == paired_difference(table[5:], table[:5])
    assert ours.comparison.difference.examples == len(LABELS)
    assert found.by_example
    assert ours.comparison.baseline == 0


def test_runs_that_kept_no_predictions_are_paired_by_seed(store: Store, design: Make) -> None:
    experiments = Here(InstantEngine(store, right, predicts=False))
    experiments.begin(design(seeds=3))
    found = shown(experiments, design)
    assert found.cells[1].comparison is not None
    assert found.cells[1].comparison.difference.examples == 0
    assert not found.by_example


def test_a_score_that_is_no_mean_is_paired_by_seed(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=3))
    comparison = shown(experiments, design, "macro_f1").cells[1].comparison
    assert comparison is not None
    assert comparison.difference.examples == 0


def test_cross_entropy_is_that_of_the_examples(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=2))
    comparison = shown(experiments, design, "cross_entropy").cells[1].comparison
    assert comparison is not None
    right_nats, wrong_nats = np.log1p(np.exp(-2.0)), np.log1p(np.exp(2.0))
    assert comparison.difference.mean == pytest.approx(4 * (right_nats - wrong_nats) / 20)
    assert comparison.difference.examples == 20


def test_p_is_corrected_over_the_table(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=7, axes=[{"setting": "lambda", "values": [0.1, 0.2, 0.9]}]))
    comparisons = shown(experiments, design).comparisons
    assert [one.corrected_p for one in comparisons] == list(holm([one.difference.p or 0.0 for one in comparisons]))
    assert [one.verdict for one in comparisons] == ["no difference shown", "higher"]
    assert [one.seeds_needed for one in comparisons] == [
        seeds_needed(one.difference, 0.05 / len(comparisons)) for one in comparisons
    ]


def test_what_is_lower_is_called_lower(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=7, baseline={"Weight λ": "0.9"}))
    assert [one.verdict for one in shown(experiments, design).comparisons] == ["lower"]


def test_five_seeds_can_show_nothing(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=5))
    [comparison] = shown(experiments, design).comparisons
    assert comparison.difference.p == comparison.difference.least_p == 0.0625
    assert comparison.verdict == "no difference shown"


def test_one_seed_compares_and_concludes_nothing(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=1))
    [comparison] = shown(experiments, design).comparisons
    assert comparison.difference.mean == pytest.approx(0.2)
    assert (comparison.corrected_p, comparison.seeds_needed, comparison.verdict) == (None, None, "no difference shown")


def test_only_seeds_that_both_have_are_compared(experiments: Here, engine: InstantEngine, design: Make) -> None:
    experiments.begin(design(seeds=3))
    experiment = experiments.table.experiments()[0]
    engine.store.discard(experiments.table.runs(experiment.id)[0].run_id or "")
    baseline, ours = shown(experiments, design).cells
    assert (baseline.seeds, ours.seeds) == (2, 3)
    assert ours.comparison is not None
    assert ours.comparison.difference.seeds == 2


def test_while_runs_are_going_on_the_table_fills(experiments: Here, engine: InstantEngine, design: Make) -> None:
    engine.holding = True
    experiments.begin(design(seeds=2))
    found = shown(experiments, design)
    assert [cell.mean for cell in found.cells] == [None, None]
    assert found.comparisons == []
    assert {run.status for cell in found.cells for run in cell.runs} == {Status.QUEUED}
    claim = engine.store.claim_next(range(1))
    assert claim is not None
    engine._carry_out(claim[0], claim[1])
    assert [cell.seeds for cell in shown(experiments, design).cells] == [1, 0]


def test_a_damaged_file_of_predictions_costs_the_examples_alone(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    experiments.begin(design(seeds=2))
    experiment = experiments.table.experiments()[0]
    run_id = experiments.table.runs(experiment.id)[0].run_id or ""
    (engine.store.run_folder(run_id) / "predictions-test.safetensors").write_bytes(b"nonsense")
    [comparison] = shown(experiments, design).comparisons
    assert comparison.difference.examples == 0
