"""The report: one file that says what was run and found, whatever labels hold."""

from __future__ import annotations

import re

import pytest

from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import report_html, summary
from core.experiments.results import results
from core.store import Store
from tests.core.experiments.conftest import Here, Make
from tests.core.experiments.instant import InstantEngine
from tests.core.experiments.test_results import right, shown


@pytest.fixture
def engine(store: Store) -> InstantEngine:
    return InstantEngine(store, right)


def report(experiments: Here) -> str:
    experiment = experiments.table.experiments()[0]
    return report_html(experiment, shown(experiments, None))


def test_it_has_the_table_the_seeds_the_settings_and_every_run(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=6, name="λ at work"))
    text = report(experiments)
    for part in ("λ at work", "<svg", "55.0 ± 4.5%", "0, 1, 2, 3, 4, 5", "Batch size", "higher"):
        assert part in text, part
    ids = {run.run_id for run in experiments.table.runs(experiments.table.experiments()[0].id)}
    assert len(ids) == 12
    assert all(str(run_id) in text for run_id in ids)


def test_it_opens_without_a_network_and_without_a_script(experiments: Here, design: Make) -> None:
    experiments.begin(design())
    text = report(experiments)
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


def test_no_difference_is_said_as_plainly_as_one(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=5))
    assert summary(shown(experiments, None)) == [
        "10 of 10 runs have finished.",
        "No difference is shown in 1 comparison at the 5% level (Holm).",
    ]


def test_a_difference_is_said_with_what_it_is_from(experiments: Here, design: Make) -> None:
    experiments.begin(design(seeds=7, axes=[{"setting": "lambda", "values": [0.1, 0.2, 0.9]}]))
    assert summary(shown(experiments, None))[1:] == [
        "λ 0.9 is higher than λ 0.1.",
        "The other 1 comparison shows no difference.",
    ]


def test_a_report_of_nothing_yet_can_be_read(experiments: Here, engine: InstantEngine, design: Make) -> None:
    engine.holding = True
    experiments.begin(design())
    experiment = experiments.table.experiments()[0]
    found = results(engine.store, experiment.id, design(), measure="accuracy", split="test")
    assert "0 of 4 runs have finished." in report_html(experiment, found)
