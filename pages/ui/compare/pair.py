"""Two runs, example by example: the texts that only one of them gets right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.events import SCORED_PAIRS, TEST, VALIDATION
from core.experiments.results import pair_agreement
from core.messages import N_, _, ngettext, sentences
from core.quantities import percent
from core.representation.agreement import PairAgreement, agreement
from core.representation.examples import ExampleScores
from core.store import Status, Store
from pages.ui import state
from pages.ui.address import Compare
from pages.ui.bound import bound_choice
from pages.ui.compare.picking import Compared, Linked, RunFrames
from pages.ui.explore import run_reads
from pages.ui.parts import escaped
from pages.ui.tables import Cell, text_table

SELECTION_KEY = "compare.select"
TABLE_HEIGHT = 320
PREDICTS = (N_("A predicts"), N_("B predicts"))
COUNT_WIDTH = 150
# Names of the tests over examples; the other test is over seeds.
OVER_EXAMPLES = {
    TEST: N_("Is the difference between two runs significant on the test texts?"),
    VALIDATION: N_("Significance over validation examples, one pair of runs"),
}


def pair(runs: Sequence[RunFrames], examples: Linked) -> None:
    """Draw the section. A list to select on the maps is stored under ASKED. Raises: StoreError."""
    st.header(_("Compare examples"))
    if len(runs) < 2:
        st.caption(_("Two runs with frames can be compared by example."))
        return
    first, second = _choose({one.frames.run.id: one.name for one in runs})
    a, b = runs[first], runs[second]
    splits = a.frames.probe.splits or (VALIDATION,) * len(a.frames.probe.ids)
    # Validation texts only: training texts do not show which run is better.
    ids = [i for i, row in examples.rows[first].items() if i in examples.rows[second] and splits[row] == VALIDATION]
    if first == second or not ids:
        st.caption(
            _("Choose two different runs.") if first == second else _("These runs have no validation texts in common.")
        )
        return
    scores = [run_reads.scores(frames, frames.numbers[-1]) for frames in (a.frames, b.frames)]
    rows = [[examples.rows[number][i] for i in ids] for number in (first, second)]
    # Classes are compared by name, because two runs may number them differently.
    said = [
        [one.frames.probe.classes[label] for label in of_scores.predicted[of_run]]
        for one, of_scores, of_run in zip((a, b), scores, rows, strict=True)
    ]
    right = [of_scores.correct[of_run] for of_scores, of_run in zip(scores, rows, strict=True)]
    found = agreement(right, said)
    metrics = (
        (_("Both right"), found.both, None),
        (_("Only A right"), found.only_first, a.name),
        (_("Only B right"), found.only_second, b.name),
        # Translators: neither of two runs is right.
        (_("Neither"), found.neither, None),
    )
    with st.container(horizontal=True, gap="medium"):
        for label, value, name in metrics:
            st.metric(label, f"{value:,}", help=escaped(name) if name else None, width=COUNT_WIDTH)
        kappa = "–" if found.kappa is None else f"{found.kappa:.2f}"
        about = _("Agreement of the predictions beyond chance: 1 if they always agree, 0 at chance level.")
        st.metric(_("Cohen's κ"), kappa, help=about, width=COUNT_WIDTH)
    both = ngettext(
        "{count} common validation text; A at step {a}, B at step {b}.",
        "{count} common validation texts; A at step {a}, B at step {b}.",
        len(ids),
        a=f"{a.frames.numbers[-1]:,}",
        b=f"{b.frames.numbers[-1]:,}",
    )
    st.caption(sentences([both, mcnemar_sentence(found, "A", "B")]))
    columns = st.columns(2, gap="medium")
    for column, name, places in zip(columns, ("fixed", "broken"), (found.fixed, found.broken), strict=True):
        with column:
            _list(
                name,
                a,
                b,
                [ids[place] for place in places],
                [[rows_of[place] for place in places] for rows_of in rows],
                scores,
            )


def mcnemar_sentence(found: PairAgreement, first: str, second: str) -> str:
    """State the result of McNemar's test for two runs. Args: first, second: their names."""
    differing = found.only_first + found.only_second
    if not differing:
        return _("Both runs are right and wrong on the same texts, so there is nothing to test.")
    return _(
        "On {texts} only one of the two runs is right: “{first}” on {first_count}, “{second}” on {second_count}. "
        "If both runs were equally good, a split at least this uneven would occur with probability p = {p} "
        "(McNemar's exact test).",
        p=f"{found.mcnemar_p:.3g}",
        texts=ngettext("{count} text", "{count} texts", differing),
        first=first,
        first_count=f"{found.only_first:,}",
        second=second,
        second_count=f"{found.only_second:,}",
    )


def example_test(store: Store, runs: Sequence[Compared]) -> None:
    """Draw the paired test over the test rows of two finished runs; nothing if fewer have finished."""
    finished = {
        one.run.id: one for one in runs if one.run.status == Status.FINISHED and SCORED_PAIRS not in one.run.facts
    }
    if len(finished) < 2:
        return
    st.subheader(_(OVER_EXAMPLES[TEST]))
    a, b = (list(finished.values())[place] for place in _choose({name: one.name for name, one in finished.items()}))
    if a is b:
        st.caption(_("Choose two different runs."))
        return
    pair = [(one.run.id, one.run.begun_attempt) for one in (a, b)]
    st.caption(escaped(pair_text(pair_agreement(store, pair[0], pair[1], TEST), a.name, b.name)))


def pair_text(found: PairAgreement | None, first: str, second: str) -> str:
    """Describe the paired test of two runs in sentences. Args: first, second: the runs' names."""
    if found is None:
        return _(
            "The two runs have no predictions of the same texts. Compare runs of the same task; a run of an "
            "early version has no stored predictions, so run it again."
        )
    rows = found.both + found.only_first + found.only_second + found.neither
    right = _(
        "“{first}” is right on {first_share} of {rows}, “{second}” on {second_share}.",
        first=first,
        first_share=percent((found.both + found.only_first) / rows),
        rows=ngettext("{count} text", "{count} texts", rows),
        second=second,
        second_share=percent((found.both + found.only_second) / rows),
    )
    tested = found.only_first + found.only_second > 0
    return sentences(
        [right, mcnemar_sentence(found, first, second), _("This says nothing about other seeds.") if tested else ""]
    )


def _choose(names: Mapping[str, str]) -> tuple[int, int]:
    """Draw the choice of two runs. Return their positions. Args: names: by id."""
    ids = list(names)
    found = []
    for column, item, label, start in zip(st.columns(2), (Compare.A, Compare.B), ("A", "B"), ids[:2], strict=True):
        if item.text not in ids:
            item.forget()
        with column:
            found.append(ids.index(bound_choice(_("Run {letter}", letter=label), item, names, start)))
    return found[0], found[1]


def _list(
    name: str,
    a: RunFrames,
    b: RunFrames,
    ids: Sequence[int],
    rows: Sequence[Sequence[int]],
    scores: Sequence[ExampleScores],
) -> None:
    """Draw the examples that B fixed or broke. Args: ids: of the examples; rows: in each run's probe set."""
    said = N_("Fixed by B") if name == "fixed" else N_("Broken by B")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{_(said)}** · {len(ids):,}", width="stretch")
        st.button(
            _("Select on the maps"),
            key=f"compare.{name}.select",
            icon=":material/select_all:",
            disabled=not ids,
            on_click=state.remember,
            args=(SELECTION_KEY, tuple(ids)),
        )
    if not ids:
        return
    probe = a.frames.probe
    columns: dict[str, list[Cell]] = {N_("Label"): [probe.classes[probe.labels[row]] for row in rows[0]]}
    for says, frames, found, of_run in zip(PREDICTS, (a.frames, b.frames), scores, rows, strict=True):
        columns[says] = [
            f"{frames.probe.classes[found.predicted[row]]} {percent(found.confidence[row])}" for row in of_run
        ]
    text_table({**columns, N_("Text"): [probe.texts[row] for row in rows[0]]}, height=TABLE_HEIGHT, label=said)
