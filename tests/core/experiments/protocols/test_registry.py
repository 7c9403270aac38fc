"""Protocols: each can be run unchanged and describes its comparison. Others can be added from outside."""

from __future__ import annotations

import pytest

from core.advice.prepare import prepare
from core.config.fields import build
from core.errors import ConfigError
from core.experiments.design import Design, parse_design
from core.experiments.protocols.entry import SEEDS, Protocol, setting_axis
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.results import SPLITS, measures_of
from core.representation.paired import LEVEL
from core.store.names import new_id
from tests.cases import each


def test_the_protocols_of_the_papers_and_notes_are_there() -> None:
    papers = {"few-shot", "label-noise", "text-noise", "back-translation", "transfer", "batch-size"}
    assert set(PROTOCOLS) >= {*papers, "rdrop-stages", "views", "tokens", "layers", "representation", "long-tail"}


@each("name", PROTOCOLS)
def test_every_cell_can_be_prepared_and_is_another_run(name: str) -> None:
    design = PROTOCOLS.entry(name).design()
    assert parse_design(design.to_json()) == design
    sources = {design.title_of(cell): new_id() for cell in design.source_cells}
    cells = (*design.source_cells, *design.cells)
    for cell in cells:
        config, data = prepare(design.draft(cell, 0), gpu=False)
        assert config.steps > 0
        assert len(data.train) >= max(phase.batch_size for phase in config.phases)
    texts = {design.draft(cell, seed, sources).to_json() for cell in cells for seed in design.seeds}
    assert len(texts) == design.runs


@each("name", PROTOCOLS)
def test_every_protocol_compares_and_says_how_it_differs(name: str) -> None:
    entry = PROTOCOLS.entry(name)
    design = entry.design()
    assert design.compares
    compared = sum(design.baseline_of(cell) is not None for cell in design.cells)
    assert len(design.seeds) >= SEEDS
    assert compared * 2.0 ** (1 - len(design.seeds)) <= LEVEL  # enough to show a difference
    assert entry.question.endswith("?")
    assert entry.differs.endswith(".")
    assert entry.split in SPLITS
    for table in entry.published:
        assert {len(row) for row in table.rows} == {len(table.header)}
        assert table.source


@each("name", ["layers", "representation"])
def test_what_the_notes_leave_open_about_their_layers_is_left_open(name: str) -> None:
    differs = PROTOCOLS.entry(name).differs
    assert "do not say whether 0 is the embeddings or the first block" in differs
    assert "hidden_states" not in differs


def test_the_long_tail_keeps_the_rows_that_it_names_and_compares_the_tail() -> None:
    entry = PROTOCOLS.entry("long-tail")
    design = entry.design()
    rows = {}
    for cell in design.cells:
        config, data = prepare(design.draft(cell, 3), gpu=False)
        rows[config.task.imbalance] = tuple(data.train.labels.count(label) for label in range(len(data.classes)))
        (term,) = [term for term in config.phases[0].objective.terms if term.loss == "dscl"] or [None]
        baseline = design.baseline_of(cell)
        if baseline is not None:
            assert design.levels_of(baseline)[1].label == "CE + SCL"
        if term is not None:
            assert (design.levels_of(cell)[1].label == "CE + SCL") == term.parameters["uniform"]
    assert rows == {1.0: (540, 540), 10.0: (540, 54), 50.0: (540, 10)}
    assert "540 negative rows, and 540, 54 or 10 positive ones" in entry.differs
    assert entry.measure in measures_of(design)


def test_a_protocol_keeps_what_people_chose() -> None:
    entry = PROTOCOLS.entry("few-shot")
    base = entry.base.model_copy(update={"encoder": entry.base.encoder.model_copy(update={"max_length": 64})})
    design = entry.design(base, seeds=range(7))
    assert design.draft(design.cells[0], 0).encoder.max_length == 64
    assert design.seeds == tuple(range(7))


def test_a_protocol_from_outside_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Protocol(
        "own",
        99,
        "Own",
        "Does it help?",
        "a test",
        lambda _: (setting_axis("lambda", 0.1, 0.9),),
        differs="It is ours.",
    )
    monkeypatch.setitem(PROTOCOLS, "own", own)
    assert PROTOCOLS.entry("own").design().runs == 2 * SEEDS
    assert build(Design, {"protocol": "own"}).protocol == "own"
    with pytest.raises(ConfigError, match="choose one of few-shot"):
        PROTOCOLS.entry("nonsense")
