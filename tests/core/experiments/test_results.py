"""Results of an experiment, against given scores."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from core.config import RunConfig
from core.experiments.report import chart
from core.experiments.result_table import findings
from core.experiments.results import measures_of
from core.figures.interval_chart import WORSE
from core.representation.paired import holm, paired_difference, seeds_needed
from core.store import Status, Store
from tests.core.experiments.conftest import CE, Begun, Here, Make, shown
from tests.core.experiments.instant import LABELS, InstantEngine


def test_a_cell_is_the_mean_over_its_seeds(begun: Begun) -> None:
    first, second = begun(seeds=5).cells
    expected = [(10 + seed % 3) / 20 for seed in range(5)]
    assert first.scores == dict(enumerate(expected))
    assert first.mean == pytest.approx(statistics.mean(expected))
    assert first.std == pytest.approx(statistics.stdev(expected))
    assert (first.title, second.title, first.seeds) == ("λ 0.1", "λ 0.9", 5)


def test_the_difference_is_paired_by_seed_and_by_example(begun: Begun) -> None:
    found = begun(seeds=5)
    baseline, ours = found.cells
    assert baseline.comparison is None
    table = [[float(place < 10 + add + seed % 3) for place in range(20)] for add in (0, 4) for seed in range(5)]
    assert ours.comparison.difference == paired_difference(table[5:], table[:5])
    assert ours.comparison.difference.examples == len(LABELS)
    assert ours.comparison.baseline == 0


@pytest.mark.parametrize(("predicts", "measure"), [(False, "accuracy"), (True, "macro_f1")])
def test_without_predictions_or_scores_of_examples_seeds_are_paired(
    store: Store, design: Make, predicts: bool, measure: str
) -> None:
    experiments = Here(InstantEngine(store, predicts=predicts))
    experiments.begin(design(seeds=3))
    found = shown(experiments, measure)
    assert found.cells[1].comparison.difference.examples == 0


def test_cross_entropy_is_that_of_the_examples(begun: Begun) -> None:
    comparison = begun(seeds=2, measure="cross_entropy").cells[1].comparison
    right_nats, wrong_nats = np.log1p(np.exp(-2.0)), np.log1p(np.exp(2.0))
    assert comparison.difference.mean == pytest.approx(4 * (right_nats - wrong_nats) / 20)
    assert comparison.difference.examples == 20


def test_recall_of_head_and_tail_is_paired_over_the_examples_of_their_classes(
    experiments: Here, begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Class 1 has more training rows. Labels alternate, and the first 10, 11 or 12 of 20 are predicted right."""
    monkeypatch.setattr("core.experiments.results.train_counts", lambda *_: (4, 16))
    begun(seeds=3)
    for measure, expected in (("head_recall", [0.5, 0.5, 0.6]), ("tail_recall", [0.5, 0.6, 0.6])):
        found = shown(experiments, measure)
        assert found.cells[0].scores == dict(enumerate(expected))
        comparison = found.cells[1].comparison
        assert comparison.difference.mean == pytest.approx(0.2)  # four more, two of each class
        assert comparison.difference.examples == 10


def test_without_training_rows_there_is_no_recall_of_the_tail(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.experiments.results.train_counts", lambda *_: None)
    assert begun(seeds=1, measure="tail_recall").cells[0].mean is None


def test_head_and_tail_are_compared_only_where_classes_are_imbalanced(design: Make) -> None:
    axis = {"setting": "task.imbalance", "values": [1, 4]}
    thinned = design().base.model_dump(mode="json")
    thinned["task"]["imbalance"] = 4.0
    for given, offered in (({}, False), ({"axes": [axis], "baseline": {}}, True), ({"base": thinned}, True)):
        assert ("tail_recall" in measures_of(design(**given))) == offered
        assert "accuracy" in measures_of(design(**given))


def test_p_is_corrected_over_the_table(begun: Begun) -> None:
    comparisons = begun(seeds=7, axes=[{"setting": "lambda", "values": [0.1, 0.2, 0.9]}]).comparisons
    assert [one.corrected_p for one in comparisons] == list(holm([one.difference.p or 0.0 for one in comparisons]))
    assert [one.verdict for one in comparisons] == ["no difference shown", "higher"]
    assert [one.seeds_needed for one in comparisons] == [
        seeds_needed(one.difference, 0.05 / len(comparisons)) for one in comparisons
    ]


def test_what_is_lower_is_called_lower(begun: Begun) -> None:
    assert [one.verdict for one in begun(seeds=7, baseline={"Weight λ": "0.9"}).comparisons] == ["lower"]


def test_a_lower_cross_entropy_is_no_worse_in_chart_and_heat_map(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=2))
    for measure, is_worse in (("accuracy", True), ("cross_entropy", False)):
        found = shown(experiments, measure)
        assert [found.is_worse(sign * 0.1) for sign in (-1, 1)] == [is_worse, not is_worse]
        assert WORSE not in chart(found)  # λ 0.9 is better in both measures


@pytest.mark.parametrize(("seeds", "p"), [(1, None), (5, 0.0625)])
def test_few_seeds_compare_and_conclude_nothing(begun: Begun, seeds: int, p: float | None) -> None:
    [comparison] = begun(seeds=seeds).comparisons
    assert comparison.difference.mean == pytest.approx(0.2)
    assert (comparison.difference.p, comparison.corrected_p) == (p, p)
    assert (comparison.seeds_needed is None) == (seeds == 1)
    assert comparison.verdict == "no difference shown"


def test_only_seeds_that_both_have_are_compared_and_a_damaged_file_costs_the_examples_alone(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    experiment_id = experiments.begin(design(seeds=3))
    first, second, *_ = (run.run_id or "" for run in experiments.table.runs(experiment_id))
    engine.store.discard(first)
    (engine.store.run_folder(second) / "predictions-test.safetensors").write_bytes(b"nonsense")
    baseline, ours = shown(experiments).cells
    assert (baseline.seeds, ours.seeds) == (2, 3)
    assert (ours.comparison.difference.seeds, ours.comparison.difference.examples) == (2, 0)


def test_while_runs_are_going_on_the_table_fills(experiments: Here, engine: InstantEngine, begun: Begun) -> None:
    engine.holding = True
    found = begun(seeds=2)
    assert [cell.mean for cell in found.cells] == [None, None]
    assert found.comparisons == []
    assert {run.status for cell in found.cells for run in cell.runs} == {Status.QUEUED}
    claim = engine.store.claim_next(range(1))
    engine._carry_out(claim[0], claim[1])
    assert [cell.seeds for cell in shown(experiments).cells] == [1, 0]


def test_settings_are_chosen_on_validation_and_scored_once_on_test(store: Store, design: Make) -> None:
    def validation(config: RunConfig) -> int:
        """λ 0.1 is better for even seeds, λ 0.9 for odd ones."""
        return 15 if (config.phases[0].objective.weight == 0.9) == (config.seed % 2 == 1) else 12

    experiments = Here(InstantEngine(store, validation=validation))
    experiments.begin(design(seeds=5, baseline={}, reference=CE))
    test = shown(experiments)
    low, high, reference = (cell.scores for cell in test.cells)
    found = test.tuned
    assert found.scores == {seed: (high if seed % 2 else low)[seed] for seed in range(5)}
    assert list(found.chosen.items()) == [("λ 0.1", 3), ("λ 0.9", 2)]
    assert found.difference.differences == pytest.approx([found.scores[seed] - reference[seed] for seed in range(5)])
    [sentence] = [one for one in findings(test) if "best on its validation rows" in one]
    assert "(λ 0.1 × 3, λ 0.9 × 2)" in sentence
    assert "Difference from CE: +" in sentence
    assert shown(experiments, split="validation").tuned is None


def test_without_validation_scores_of_all_cells_nothing_is_chosen(begun: Begun) -> None:
    assert begun(seeds=2, baseline={}, reference=CE).tuned is None
