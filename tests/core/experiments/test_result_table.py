"""Result tables, as text and as files."""

from __future__ import annotations

import csv
import io
import re
import statistics

import pytest

from core.config import RunConfig
from core.experiments.result_table import cautions, findings, in_phrase, notes, table_rows, table_text
from core.store import Store
from tests.core.experiments.conftest import CE, Begun, Here, Make, shown
from tests.core.experiments.instant import InstantEngine


def test_a_table_has_means_differences_and_verdicts(begun: Begun) -> None:
    header, rows = table_rows(begun(seeds=7))
    assert header == [
        "Weight λ",
        "Seeds",
        "Test accuracy",
        "Difference",
        "Verdict",
        "Seeds needed",
        "95% interval",
        "p over seeds (Holm)",
        "Majority class",
    ]
    assert rows[0] == ["0.1", "7", "54.3 ± 4.5%", "baseline", "–", "–", "–", "–", "50.0%"]
    assert rows[1][:6] == ["0.9", "7", "74.3 ± 4.5%", "+20.0", "higher", "enough"]
    assert rows[1][7:] == ["0.016", "50.0%"]


def test_nats_are_not_percentages_and_without_a_baseline_there_are_no_columns_for_it(begun: Begun) -> None:
    header, rows = table_rows(begun(seeds=2, measure="cross_entropy"))
    assert header[2] == "Test cross-entropy, nats"
    assert rows[1][3].startswith("−0.4")
    assert "%" not in rows[1][2]
    header, rows = table_rows(begun(baseline={}))
    assert header == ["Weight λ", "Seeds", "Test accuracy", "Majority class"]
    assert {len(row) for row in rows} == {4}


def test_costs_are_compared_without_a_split_or_baselines_of_scores(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    experiments.begin(design(seeds=2))
    for place, run in enumerate(engine.store.runs()):
        memory = None if place == 0 else (100 + place) * 2**20
        engine.store.write("UPDATE runs SET peak_memory = ?, worked_s = ? WHERE id = ?", (memory, 3 * place, run.id))
    found = shown(experiments, "peak_memory")
    memories = {run.run_id: run.peak_memory for cell in found.cells for run in cell.runs}
    assert [cell.mean for cell in found.cells] == [
        statistics.fmean(memories[run.run_id] / 2**20 for run in cell.runs if memories[run.run_id] is not None)
        for cell in found.cells
    ]
    header, rows = table_rows(found)
    assert header[:4] == ["Weight λ", "Seeds", "Peak memory, MB", "Difference"]
    assert sorted(row[1] for row in rows) == ["1", "2"]
    assert "Differences are in MB" in " ".join(notes(found))
    assert "On a GPU: peak of the tensors there." in " ".join(notes(found))
    assert table_rows(shown(experiments, "seconds"))[0][2] == "Duration, seconds"


def test_a_reference_is_a_row_of_its_own(begun: Begun) -> None:
    axes = [{"setting": "lambda", "values": [0.1]}, {"setting": "temperature", "values": [0.3]}]
    _, rows = table_rows(begun(baseline={}, reference=CE, axes=axes))
    assert rows[-1][:4] == ["CE", "–", "2", "52.5 ± 3.5%"]
    assert rows[-1][4] == "baseline"
    assert rows[0][4] == "0.0"


def test_rank_correlations_are_compared_over_seeds_with_the_untrained_encoder_as_the_floor(
    experiments: Here, engine: InstantEngine, design: Make
) -> None:
    engine.probe_right = 13
    experiments.begin(design(seeds=7))
    # The accuracy of every run and of its probe, halved.
    engine.store.write(
        "UPDATE evaluations SET measures = json_set(measures, '$.spearman', json_extract(measures, '$.accuracy') / 2)"
    )
    found = shown(experiments, "spearman")
    header, rows = table_rows(found)
    assert header[2] == "Test rank correlation (Spearman's ρ)"
    assert [row[2] for row in rows] == ["0.271 ± 0.022", "0.371 ± 0.022"]
    assert rows[1][3:5] == ["+0.100", "higher"]
    assert [row[header.index("Encoder before training")] for row in rows] == ["0.325", "0.325"]
    assert "Intervals are 95% percentile bootstraps over seeds;" in " ".join(notes(found))
    said = " ".join([*findings(found), *notes(found)])
    assert "Test rank correlation (Spearman's ρ) of the encoder before training: 0.325." in said
    assert "Cells whose mean is below the encoder before training: λ 0.1." in said
    assert "probe" not in said


def test_every_table_has_the_probe_and_the_majority_class_of_its_split(
    experiments: Here, engine: InstantEngine, begun: Begun
) -> None:
    engine.probe_right = 13  # of 20: more than with λ 0.1, fewer than with λ 0.9
    found = begun(seeds=3)
    header, rows = table_rows(found)
    columns = slice(header.index("Probe before training"), header.index("Majority class") + 1)
    assert [row[columns] for row in rows] == [["65.0%", "50.0%"], ["65.0%", "50.0%"]]
    assert "| Probe before training   | Majority class   |" in table_text(found, "markdown")
    assert "Probe before training & Majority class" in table_text(found, "latex").replace("  ", "")
    for row in csv.DictReader(io.StringIO(table_text(found, "csv"))):
        assert (row["linear_probe"], row["majority_rate"]) == ("0.65", "0.5")
    said = " ".join(findings(found))
    assert "Test accuracy of the linear probe of the encoder before training, mean over seeds: 65.0%." in said
    assert "Test accuracy of the majority class: 50.0%." in said
    assert "Cells whose mean is below the probe before training: λ 0.1 (55.0 ± 5.0% against 65.0%)." in said
    of_nats = " ".join(findings(shown(experiments, "cross_entropy")))
    assert "Cells whose mean is above the probe before training: λ 0.1 (" in of_nats
    of_validation = " ".join(findings(shown(experiments, split="validation")))
    assert "65.0%" not in of_validation  # 65 % is the probe's test accuracy


def test_main_effects_are_means_over_the_other_axis_and_seeds(begun: Begun) -> None:
    axes = [{"setting": "lambda", "values": [0.1, 0.9]}, {"setting": "temperature", "values": [0.1, 0.3]}]
    found = begun(seeds=3, axes=axes, baseline={})
    assert [effect.means for effect in found.main_effects] == [pytest.approx((0.55, 0.75)), pytest.approx((0.65, 0.65))]
    first, second = [text for text in findings(found) if "Means by" in text]
    assert first == "Means by weight λ: 55.0% for 0.1; 75.0% for 0.9 (over temperature τ and seeds)."
    assert second.startswith("Means by temperature τ: 65.0% for 0.1; 65.0% for 0.3 (over weight λ")


@pytest.mark.parametrize(
    ("label", "inside"),
    [("Weight λ", "weight λ"), ("Macro-F1", "macro-F1"), ("LoRA rank", "LoRA rank"), ("λ", "λ"), (" ", " ")],
)
def test_a_label_is_lower_case_inside_a_phrase_unless_it_is_a_name(label: str, inside: str) -> None:
    assert in_phrase(label) == inside


def test_main_effects_leave_out_levels_that_not_all_have(begun: Begun) -> None:
    axes = [{"setting": "preset", "values": ["ce", "ce-scl"]}, {"setting": "temperature", "values": [0.1, 0.3]}]
    found = begun(axes=axes, baseline={})  # cross-entropy has no temperature
    [effect] = [text for text in findings(found) if "Means by" in text]
    assert effect.startswith("Means by temperature τ: 72.5% for 0.1; 72.5% for 0.3 (over seeds and 1 of 2 ")


def test_csv_has_every_digit(begun: Begun) -> None:
    found = begun(seeds=3)
    first, second = csv.DictReader(io.StringIO(table_text(found, "csv")))
    assert float(second["mean"]) == found.cells[1].mean
    assert float(second["p_holm"]) == found.comparisons[0].corrected_p
    assert second["values"] == "0:0.7 1:0.75 2:0.8"
    assert first["difference"] == ""


def test_markdown_and_latex_hold_what_labels_hold(begun: Begun) -> None:
    levels = [{"label": "a|b", "settings": {"lambda": 0.1}}, {"label": "50% & more_", "settings": {"lambda": 0.9}}]
    found = begun(axes=[{"name": "λ", "levels": levels}], baseline={"λ": "a|b"})
    markdown = table_text(found, "markdown")
    assert "a\\|b" in markdown
    assert len({line.replace("\\|", "").count("|") for line in markdown.splitlines()}) == 1
    latex = table_text(found, "latex")
    assert "50\\% \\& more\\_" in latex
    assert "$\\lambda$" in latex
    assert latex.isascii()


def test_few_seeds_are_said_to_show_nothing_or_to_have_intervals_that_are_too_narrow(begun: Begun) -> None:
    warned = {seeds: " ".join(cautions(begun(seeds=seeds))) for seeds in (5, 6, 7, 8)}
    assert "With 5 seeds and 1 comparison, p cannot fall below 0.0625" in warned[5]
    assert "Significance needs at least 6 seeds." in warned[5]
    assert "p cannot fall below" not in warned[6]
    assert "rely on p" in warned[7]
    assert warned[8] == ""
    assert "paired over seeds and examples" in " ".join(notes(begun(seeds=8)))


def test_one_seed_has_a_difference_and_no_statistics(begun: Begun) -> None:
    found = begun(seeds=1)
    header, rows = table_rows(found)
    assert header == ["Weight λ", "Seeds", "Test accuracy", "Difference", "Majority class"]
    assert [row[3] for row in rows] == ["baseline", "+20.0"]
    assert [*cautions(found)] == [
        "With one seed, a difference may be chance. A significance test needs at least 6 seeds."
    ]
    assert not re.search(r"±|\bp\b|seeds|Holm", " ".join([*notes(found), *findings(found)]))


def test_no_seeds_are_needed_for_a_difference_of_zero(store: Store, design: Make) -> None:
    def uneven(config: RunConfig) -> int:
        weight = config.phases[0].objective.weight or 0.0
        return 12 + (2 if (weight > 0.5) == (config.seed == 0) else 0)

    experiments = Here(InstantEngine(store, uneven))
    experiments.begin(design(seeds=2))
    _, rows = table_rows(shown(experiments))
    assert (rows[1][3], rows[1][5]) == ("0.0", "–")
    assert " to " in rows[1][6]  # seeds differ, so an interval exists


def test_pairs_are_counted_where_a_cell_has_more_seeds(experiments: Here, engine: InstantEngine, design: Make) -> None:
    experiments.begin(design(seeds=3))
    experiment = experiments.table.experiments()[0]
    engine.store.discard(experiments.table.runs(experiment.id)[0].run_id or "")
    found = shown(experiments)
    _, rows = table_rows(found)
    assert rows[1][3] == "+20.0 (2 pairs)"
    assert "1 run has no score yet" in " ".join(cautions(found))


def test_a_table_of_nothing_yet_is_dashes(engine: InstantEngine, begun: Begun) -> None:
    engine.holding = True
    found = begun()
    assert table_rows(found)[1][1] == ["0.9", "0", "–", "–", "–", "–", "–", "–"]
    assert [*cautions(found)] == []
