"""Translation of experiments on the screen, while stored and exported words stay English."""

from __future__ import annotations

import re

import pytest

from core import messages
from core.config import RunConfig
from core.experiments.cost import cost
from core.experiments.design import Axis, Level, axis_of, axis_title
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import report_html
from core.experiments.result_table import SUFFIXES, cautions, findings, notes, table_rows, table_text
from core.messages import ENGLISH, Message, in_language, join_list
from tests.catalogues import TRANSLATED
from tests.core.experiments.conftest import Begun, Here, Make, shown


@pytest.mark.usefixtures("foreign")
def test_a_design_is_stored_in_english() -> None:
    axis = axis_of("encoder.pooling", ["mean", "cls"])
    with in_language("en"):
        assert axis == axis_of("encoder.pooling", ["mean", "cls"])
    for protocol in PROTOCOLS.values():
        assert "«" not in protocol.design().to_json()


@pytest.mark.usefixtures("foreign")
def test_a_run_is_called_in_english_and_its_cell_in_the_language_that_is_spoken(design: Make) -> None:
    made = design(axes=[{"setting": "lambda", "values": [0.1, 0.9]}, {"setting": "batch_size", "values": [4, 8]}])
    cell = made.cells[0]
    assert made.draft(cell, 3).name == f"{made.title_of(cell)}, seed 3" == "λ 0.1, Batch size 4, seed 3"
    assert made.spoken_title(cell) == join_list(["λ «0.1»", "«Batch size» «4»"])
    assert design(axes=[], baseline={}).spoken_title(cell._replace(levels=())) == "«all runs»"


def test_in_english_a_cell_is_called_as_it_is_stored() -> None:
    for protocol in PROTOCOLS.values():
        made = protocol.design()
        for cell in (*made.source_cells, *made.cells):
            assert made.spoken_title(cell) == made.title_of(cell)
            assert cell.levels is None or all(one.title == one.label for one in made.levels_of(cell))
        assert [axis_title(axis, made.base) for axis in made.axes] == [axis.name for axis in made.axes]


@pytest.mark.usefixtures("foreign")
def test_names_that_people_gave_stay() -> None:
    assert Level(label="Accuracy").title == "Accuracy"
    assert Level(label="row", settings={"steps": 3}).title == "row"


def test_an_axis_over_one_setting_is_called_as_the_setting_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with a phase or a loss in them have no catalogue entry as a whole."""

    def name(setting: str, base: RunConfig) -> str:
        return f"Phase 1: {setting}" if messages.language() == "en" else f"1: {setting}"

    monkeypatch.setattr("core.experiments.design._name_of", name)
    levels = (Level(label="4", settings={"batch_size": 4}), Level(label="8", settings={"batch_size": 8}))
    with in_language("zh"):
        assert axis_title(Axis(name="Phase 1: batch_size", levels=levels), RunConfig()) == "1: batch_size"
        assert axis_title(Axis(name="Something else", levels=levels), RunConfig()) == "Something else"


@pytest.mark.usefixtures("foreign")
def test_a_baseline_is_named_by_its_value_in_every_language(design: Make) -> None:
    axis = {"setting": "encoder.pooling", "values": ["mean", "cls"]}
    label = axis_of("encoder.pooling", ["mean"]).levels[0].label
    assert design(axes=[axis], baseline={axis_of("encoder.pooling", ["mean"]).name: label}).compares


def test_tables_for_papers_are_english_and_the_page_and_the_report_are_not(
    experiments: Here, begun: Begun, request: pytest.FixtureRequest
) -> None:
    found = begun(seeds=3)
    experiment = experiments.table.experiments()[0]
    english = {form: table_text(found, form) for form in SUFFIXES}
    request.getfixturevalue("foreign")
    found = shown(experiments)
    assert {form: table_text(found, form) for form in SUFFIXES} == english
    header, rows = table_rows(found)
    assert header[:3] == ["«Weight λ»", "«Seeds»", "«Test «Accuracy»»"]
    assert (rows[0][3], rows[1][4]) == ("«baseline»", "«no difference shown»")
    said = (*findings(found), *cautions(found), *notes(found))
    assert all(sentence.startswith("«") and sentence.endswith("»") for sentence in said)
    report = report_html(experiment, found)
    assert '<html lang="zh">' in report
    assert "<h2>«Runs»</h2>" in report
    assert re.search(r"\d{4}年", report)


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_reason_for_a_missing_run_is_kept_as_a_message(experiments: Here, design: Make, code: str) -> None:
    axes = [{"setting": "preset", "values": ["ce", "ce-scl"]}, {"setting": "temperature", "values": [0.1]}]
    made = design(axes=axes, baseline={}, seeds=1)
    with in_language(code):
        [(title, reason)] = cost(experiments.engine, made).refused
        assert cost(experiments.engine, made.revised(seeds=2)).runs == 2  # a refused cell is not counted
        assert title == made.spoken_title(made.cells[0])
        experiments.begin(made)
    experiment = experiments.table.experiments()[0]
    [problem] = [run.problem for run in experiments.table.runs(experiment.id) if run.problem]
    assert isinstance(problem, Message)
    english = "temperature = 0.1 cannot be used: this objective has no contrastive loss; leave it out."
    assert problem.render(ENGLISH) == english
    with in_language(code):
        assert str(problem) == reason != english
