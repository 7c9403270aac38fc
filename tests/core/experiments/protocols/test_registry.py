"""Protocols: each can be run unchanged and describes its comparison. Others can be added from outside."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from core.advice.prepare import prepare
from core.config.edit import apply_settings
from core.config.fields import build
from core.config.plan import plan_phase
from core.errors import ConfigError
from core.experiments.design import Design, parse_design
from core.experiments.protocols.entry import SEEDS, Protocol, setting_axis
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.results import SPLITS, measures_of, usual_measure
from core.representation.paired import LEVEL
from core.store.names import new_id
from tests.cases import each
from tests.core.training.made import scored_csv


def test_the_protocols_of_the_papers_and_notes_are_there() -> None:
    papers = "few-shot label-noise text-noise back-translation paraphrase-noise transfer stability positives batch-size"
    notes = "rdrop-stages views tokens layers representation dropout-contrast long-tail clusters"
    assert set(PROTOCOLS) >= {*papers.split(), *notes.split(), "tuning", "full-data", "similarity"}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_csv(tmp_path_factory.mktemp("scored") / "scored.csv", 200)


@each("name", PROTOCOLS)
def test_every_cell_can_be_prepared_and_is_another_run(name: str, scored: Path) -> None:
    entry = PROTOCOLS.entry(name)
    base = entry.base
    if name == "similarity":
        base = apply_settings(base, {"task.id": "file", "task.path": str(scored)})
    design = entry.design(base)
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


def test_dropout_contrast_trains_on_two_passes_at_dropout_0_3_and_reports_only_what_the_notes_print() -> None:
    entry = PROTOCOLS.entry("dropout-contrast")
    design = entry.design()
    drafts = [design.draft(cell, 0) for cell in design.cells]
    assert [draft.encoder.dropout for draft in drafts] == [0.3] * 4
    objectives = [draft.phases[0].objective for draft in drafts]
    assert all(plan_phase(objective, 6).readings == 2 for objective in objectives)
    assert [[(term.loss, term.level, term.weight) for term in objective.terms] for objective in objectives] == [
        [("cross_entropy", "sentence", 1.0)],
        [("simcse", "sentence", 1.0), ("cross_entropy", "sentence", 1.0)],
        [("simcse", "logits", 1.0), ("cross_entropy", "sentence", 1.0)],
        [("rdrop", "sentence", 1.0)],
    ]
    (table,) = entry.published
    assert re.findall(r"\d[\d.,]*", " ".join(cell for row in table.rows for cell in row)) == ["0.5"]


def test_noise_by_paraphrases_has_three_strengths_on_two_tasks_beside_the_papers_figures() -> None:
    entry = PROTOCOLS.entry("paraphrase-noise")
    design = entry.design()
    drafts = [design.draft(cell, 0) for cell in design.cells]
    cells = {(draft.task.id, draft.task.paraphrases, draft.phases[0].objective.keys) for draft in drafts}
    losses = (("cross_entropy",), ("supcon", "cross_entropy"))
    assert cells == set(product(("film_reviews", "nli"), ("none", "weak", "strong"), losses))
    assert {(draft.task.train_size, draft.steps) for draft in drafts} == {(100, 60)}
    assert "up to +7" in {value for table in entry.published for row in table.rows for value in row}


def test_the_smallest_and_the_largest_batches_are_also_those_of_r_drop() -> None:
    design = PROTOCOLS.entry("batch-size").design()
    phases = [design.draft(cell, 0).phases[0] for cell in design.cells]
    sizes = {p.batch_size for p in phases if p.objective.keys == ("rdrop",)}
    assert sizes == {p.batch_size for p in phases if p.objective.keys == ("cross_entropy",)} == {16, 64, 128, 256}


@each(
    ("name", "figures"),
    [
        ("few-shot", "up to +10.7"),
        ("rdrop-stages", "0.94868 0.94884 0.95056 0.95044 0.95120"),
        ("views", "0.94636 0.94736"),
        ("similarity", "76.85 76.25 84.25 81.57"),
        ("tokens", "0.95100 0.94972 0.95124 0.95068 0.95084 0.95080"),
        ("representation", "0.95025 0.93205 0.815761 0.721010 0.9358 0.9286 0.7942 0.6957"),
    ],
)
def test_figures_of_the_papers_and_notes_stand_beside_ours(name: str, figures: str) -> None:
    known = {value for table in PROTOCOLS.entry(name).published for row in table.rows for value in row}
    assert figures in known or set(figures.split()) <= known


@each("name", ["layers", "representation"])
def test_what_the_notes_leave_open_about_their_layers_is_left_open(name: str) -> None:
    differs = PROTOCOLS.entry(name).differs
    assert "whether 0 is the embeddings or the first block" in differs
    assert "hidden_states" not in differs


def test_learning_from_scores_is_refused_on_a_task_without_them_and_compared_by_rank_correlation(scored: Path) -> None:
    entry = PROTOCOLS.entry("similarity")
    design = entry.design()
    with pytest.raises(ConfigError, match="Film reviews has no similarity scores; choose a task of scored pairs"):
        prepare(design.draft(design.cells[1], 0), gpu=False)
    assert entry.measure not in measures_of(design)
    design = entry.design(apply_settings(entry.base, {"task.id": "file", "task.path": str(scored)}))
    assert entry.measure == usual_measure(design) == "spearman"
    assert entry.measure in measures_of(design)


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
        "Own",
        "Does it help?",
        "a test",
        lambda _: (setting_axis("lambda", 0.1, 0.9),),
        differs="It is ours.",
    )
    monkeypatch.setitem(PROTOCOLS, "own", own)
    assert PROTOCOLS.entry("own").design().runs == 2 * SEEDS
    assert build(Design, {"protocol": "own"}).protocol == "own"


def test_stability_varies_the_contrastive_term_and_one_setting_of_training_at_a_time() -> None:
    design = PROTOCOLS.entry("stability").design()
    mixes = set()
    for cell in design.cells:
        [phase] = design.draft(cell, 0).phases
        weights = {term.loss: term.weight for term in phase.objective.terms}
        tau = [term.parameters["temperature"] for term in phase.objective.terms if term.loss == "supcon"]
        mixes.add((weights.get("supcon", 0.0), weights["cross_entropy"], *tau))
        rate, steps, new = phase.optimiser.learning_rate, phase.steps, phase.trainable.reinitialised_blocks
        assert (rate is not None) + (steps != 60) + (new != 0) == (cell.levels[0] != 0)
    assert mixes == {(0.0, 1.0), *((w, round(1 - w, 3), tau) for w in (0.5, 0.9) for tau in (0.1, 0.5))}
