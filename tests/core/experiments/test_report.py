"""The report: one file with settings and results, whatever the labels contain."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import levels_figure, report_html, summary
from core.experiments.results import Reference
from tests.core.experiments.conftest import CE, Begun, Here, Make, shown
from tests.core.experiments.instant import InstantEngine


def report(experiments: Here) -> str:
    experiment = experiments.table.experiments()[0]
    return report_html(experiment, shown(experiments))


def test_it_has_the_table_the_seeds_the_settings_and_every_run_and_needs_no_network_or_script(
    experiments: Here, design: Make
) -> None:
    experiment_id = experiments.begin(design(seeds=6, name="λ at work"))
    text = report(experiments)
    for part in ("λ at work", "<svg", "55.0 ± 4.5%", "0, 1, 2, 3, 4, 5", "Batch size", "higher"):
        assert part in text, part
    assert all(str(run.run_id) in text for run in experiments.table.runs(experiment_id))
    assert "<script" not in text
    assert not re.findall(r'(?:src|href)="', text)
    assert "default-src 'none'" in text


def test_hostile_names_and_labels_are_text(experiments: Here, design: Make) -> None:
    hostile = '<img src=x onerror="alert(1)">'
    levels = [{"label": hostile, "settings": {"lambda": 0.1}}, {"label": "{{ 7*7 }}", "settings": {"lambda": 0.9}}]
    experiments.begin(design(name="<script>alert(1)</script>", axes=[{"name": "<b>", "levels": levels}], baseline={}))
    text = report(experiments)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "{{ 7*7 }}" in text


def test_a_protocol_brings_its_question_and_its_published_figures(experiments: Here, design: Make) -> None:
    entry = PROTOCOLS.entry("tokens")
    experiments.begin(design(protocol="tokens"))
    text = report(experiments)
    assert entry.question in text
    for table in entry.published:
        assert all(value in text for row in table.rows for value in row)


@pytest.mark.parametrize(
    ("seeds", "values", "said"),
    [
        (5, [0.1, 0.9], ["1 comparison: no difference is significant at the 5% level (Holm)."]),
        (7, [0.1, 0.2, 0.9], ["λ 0.9 is higher than λ 0.1.", "The other 1 comparison is not significant."]),
    ],
)
def test_no_difference_is_said_as_plainly_as_one(
    experiments: Here, design: Make, seeds: int, values: list[float], said: list[str]
) -> None:
    experiments.begin(design(seeds=seeds, axes=[{"setting": "lambda", "values": values}]))
    runs = seeds * len(values)
    assert [*summary(shown(experiments))] == [f"{runs} of {runs} runs have finished.", *said]


def test_a_report_of_nothing_yet_can_be_read(experiments: Here, engine: InstantEngine, design: Make) -> None:
    engine.holding = True
    experiments.begin(design())
    assert "0 of 4 runs have finished." in report(experiments)


class TestLevels:
    def test_the_numeric_setting_is_the_axis_and_the_other_one_names_the_lines(self, begun: Begun) -> None:
        axes = [{"setting": "preset", "values": ["ce-scl", "dscl"]}, {"setting": "batch_size", "values": [8, 16]}]
        results = begun(axes=axes, baseline={})
        figure = levels_figure([results])
        assert [trace["name"] for trace in figure["data"]] == ["CE + SCL", "DSCL"]
        means = {cell.cell.levels: round(cell.mean or 0.0, 4) for cell in results.cells}
        for line, trace in enumerate(figure["data"]):
            assert trace["x"] == [8, 16]
            assert trace["y"] == pytest.approx([means[line, 0], means[line, 1]], abs=1e-4)
        assert figure["layout"]["xaxis"]["type"] == "linear"

    def test_temperatures_are_on_a_log_axis(self, begun: Begun) -> None:
        figure = levels_figure([begun(axes=[{"setting": "temperature", "values": [0.5, 0.1]}], baseline={})])
        assert (figure["layout"]["xaxis"]["type"], figure["data"][0]["x"]) == ("log", [0.1, 0.5])

    def test_a_cell_outside_the_grid_is_a_line(self, begun: Begun) -> None:
        axes = [{"setting": "temperature", "values": [0.1, 0.5]}]
        results = begun(axes=axes, baseline={}, reference=CE)
        figure = levels_figure([results])
        [line] = figure["layout"]["shapes"]
        assert (line["label"]["text"], line["y0"]) == ("CE", results.cells[-1].mean)

    def test_the_probe_is_a_line_where_all_cells_share_it(self, begun: Begun) -> None:
        found = begun(baseline={})
        for probes, expected in ((0.65, 0.65), [0.65]), ((0.65, 0.75), []):
            of_cells = [
                replace(cell, reference=Reference(probe)) for cell, probe in zip(found.cells, probes, strict=True)
            ]
            figure = levels_figure([replace(found, cells=tuple(of_cells))])
            assert [line["y0"] for line in figure["layout"]["shapes"]] == expected

    def test_names_alone_have_no_axis(self, begun: Begun) -> None:
        assert levels_figure([begun(axes=[{"setting": "preset", "values": ["ce", "ce-scl"]}], baseline={})]) is None

    def test_without_a_score_there_is_nothing_to_draw(self, engine: InstantEngine, begun: Begun) -> None:
        engine.holding = True
        assert levels_figure([begun()]) is None
