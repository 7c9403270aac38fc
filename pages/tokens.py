"""Tokens: attention of [CLS] before and after training, tokens that a loss contrasts, deleted words, words by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.advice.score_source import classifier_learned
from core.messages import N_, _, join_list, ngettext, sentences
from core.representation.word_statistics import AT_LEAST, PRIOR_EXAMPLES, WordChange, WordStatistics
from core.store import Store
from core.tasks.listing import csv_file
from pages.ui import reads, state
from pages.ui.address import Tokens
from pages.ui.bound import bound, bound_segments, forget, pick_run
from pages.ui.parts import escaped, first_steps, page_head, show_errors, tab_title
from pages.ui.tables import csv_button, truncate
from pages.ui.tokens import reads as token_reads
from pages.ui.tokens.deletion import delete_a_word
from pages.ui.tokens.one_text import contrasts_tokens, draw_contrasted, one_text
from pages.ui.tokens.reads import TokenRun, token_run
from pages.ui.tokens.source import NOT_KEPT, Settings, choose, choose_text

VIEWS = {"text": N_("One text"), "delete": N_("Delete a word"), "classes": N_("By class")}
CONTRASTED = {"contrasted": N_("Contrasted tokens")}
MEAN_POOLING = N_(
    "The page shows attention from [CLS] to each word. This run classifies the mean of all token vectors, so "
    "the attention of [CLS] says little about its predictions."
)
UNTRAINED = N_(
    "At step {step:,} the classifier had learned nothing. Predictions for examples come from a linear probe if the "
    "run has one; those for your own texts and for deletions mean nothing."
)
TABLE_PX = 460
ROWS_MAX = 500
WORD_CHARS = 60
# Number of words named below the table of changes, of those that entered and of those that left.
NAMED = 5
ALL = "all"
# Column names of both tables, those of counts first.
# Translators: of a word, in how many texts it was selected, and in how many it occurs at all
COUNTS = (N_("Selected"), N_("Occurs"), N_("In all classes"), N_("Before"), N_("After"))
WORD, LIFT, CLASS, CHANGE = N_("Word"), N_("Lift"), N_("Class"), N_("Change")


def page() -> None:
    store = reads.open_engine().store
    head = page_head(_("Tokens"))
    named = Tokens.RUN.run(store)
    runs = [run for run in store.runs() if run.probe_known]
    if not runs:
        st.info(_("There is nothing to show yet. A run shows its attention from its first frame."))
        first_steps()
        return
    with head:
        run = pick_run(store, runs, named, key="tokens.run")
    if named is not None and named.id != run.id:
        forget(Tokens.of("run"))
    Tokens.RUN.put(run.id)
    tab_title(run.title, _("Tokens"))
    frames = tuple(store.frame_steps(run.id))
    with head:
        more = CONTRASTED if contrasts_tokens(run.effective) else {}
        view = bound_segments(_("Section"), Tokens.VIEW, VIEWS | more)
    if run.probe is None or not frames:
        st.info(_("This run has no frames yet. The first appears right after the first step."))
    else:
        known = token_run(store, run, run.probe, frames)
        with show_errors(st.warning):
            if view == "classes":
                attention = token_reads.attention_at(known, known.frames[-1]) if known.texts else None
                if attention is None:
                    st.info(sentences([_(NOT_KEPT), _("Open “One text” to enter a text of your own.")]))
                else:
                    draw_classes(known, choose(known, attention.shape, known.frames, longest=known.longest))
            else:
                _text(known, view)
    if run.status.active:
        st.fragment(_watch, run_every=2.0)(store, run.id, frames)


def _text(known: TokenRun, view: str) -> None:
    reading = choose_text(known)
    if reading is None:
        return
    if view == "contrasted":
        draw_contrasted(known, reading)
        return
    compares = view == "text"
    longest = max(known.longest, len(reading.words))
    chosen = choose(known, reading.attention[0].shape, reading.steps, longest=longest, with_before=compares)
    if known.run.config.encoder.pooling == "mean":
        st.caption(_(MEAN_POOLING))
    step = min(chosen.before, chosen.after) if compares else chosen.after
    if not classifier_learned(known.store.run(known.run.id).effective, step):
        st.caption(_(UNTRAINED, step=step))
    if compares:
        one_text(reading, chosen, known.probe.classes, known.run.id)
    else:
        delete_a_word(known, reading, chosen)


def _watch(store: Store, run_id: str, frames: tuple[int, ...]) -> None:
    """Tell the visitor that the run is still training; rerun the page once a frame is added or the run ends."""
    if tuple(store.frame_steps(run_id)) != frames or not store.run(run_id).status.active:
        st.rerun()
    known = ngettext("{count} frame", "{count} frames", len(frames))
    st.caption(_("This run is still training. {frames} so far; new ones appear by themselves.", frames=known))


def draw_classes(known: TokenRun, chosen: Settings) -> None:
    """Draw both tables. Raises: StoreError for a damaged frame."""
    rule = token_reads.Rule(chosen.layer, chosen.head, chosen.k, chosen.punctuation)
    steps = (chosen.before, chosen.after)
    without = next((step for step in steps if token_reads.selected(known, step, rule) is None), None)
    if without is not None:
        st.info(_("The frame of step {step} has no attention. Choose another step.", step=f"{without:,}"))
        return
    classes = known.probe.classes
    most = max(2, min(30, len(known.ids)))
    problem = _("use 1 to {most} here", most=most)
    least, to_least = bound(Tokens.LEAST, range(1, most + 1), min(AT_LEAST, most), problem)
    options = {ALL: _("All (each word under the class with its highest lift)")}
    for label, name in enumerate(classes):
        count = ngettext("{count} text", "{count} texts", known.labels.count(label))
        options[str(label)] = f"{name} · {count}"
    of_class, to_class = bound(Tokens.CLASS, options)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        help_text = _(
            "Leaves out words that are selected in fewer texts, because the lift of rare words is unreliable."
        )
        st.slider(_("Minimum number of texts"), 1, most, width=240, help=help_text, **to_least.by_value)
        st.selectbox(_("Class"), list(options), format_func=options.__getitem__, width=420, **to_class.by_index)
    all_in = sum(len(of_text) - len(chosen.skipped(of_text)) <= chosen.k for of_text in known.words)
    texts = ngettext("{count} text", "{count} texts", len(known.ids))
    about = [
        _("{texts}, {settings}; upper and lower case are counted together.", texts=texts, settings=chosen.sentence)
    ]
    if all_in:
        count = f"{all_in:,}"
        about.append(_("{texts} of them have at most k words, so all their words are selected.", texts=count))
    st.caption(sentences(about))
    left, right = st.columns(2, gap="large")
    with left:
        found = token_reads.statistics(known, chosen.after, rule, at_least=least)
        _selected(known, chosen, None if of_class == ALL else int(of_class), found)
    with right:
        _changes(known, chosen, token_reads.changes(known, steps, rule, at_least=least))


def _selected(known: TokenRun, chosen: Settings, label: int | None, found: WordStatistics) -> None:
    st.markdown(_("**Selected words by class, step {step}**", step=f"{chosen.after:,}"))
    classes = known.probe.classes
    rows = found.rows if label is None else found.of_class(label)
    if rows:
        table: dict[str, list[Any]] = {
            WORD: [truncate(row.word, WORD_CHARS) for row in rows],
            LIFT: [row.lift if label is None else row.lifts[label] for row in rows],
            "Selected": [row.count if label is None else row.counts[label] for row in rows],
            "Occurs": [row.occurs if label is None else row.occurrences[label] for row in rows],
        }
        if label is None:
            table[CLASS] = [classes[row.label] for row in rows]
        else:
            table["In all classes"] = [row.count for row in rows]
        lift = st.column_config.NumberColumn(_(LIFT), format="%.2f", width="small")
        _table(table, f"tokens.selected.{label}", {LIFT: lift})
    else:
        texts = ngettext("{count} text", "{count} texts", found.at_least)
        st.info(_("No word is selected in {texts} or more. Lower this number or raise k.", texts=texts))
    about = [
        _(
            "Lift: the share of this label among texts where the word is selected, divided by its share among all "
            "texts; 1 means no relation. Counts are smoothed with {prior:g} extra example. Occurs: texts that contain "
            "the word.",
            prior=PRIOR_EXAMPLES,
        )
    ]
    if found.left_out:
        about.append(ngettext("{count} rarer word is left out.", "{count} rarer words are left out.", found.left_out))
    st.caption(sentences(about))
    records = []
    for row in found.rows:
        record = {"word": row.word, "class": classes[row.label], "lift": f"{row.lift:.4f}"}
        record |= {"selected": str(row.count), "occurs": str(row.occurs)}
        for c in range(len(classes)):
            record[f"selected in class {c + 1}"] = str(row.counts[c])
            record[f"occurs in class {c + 1}"] = str(row.occurrences[c])
            record[f"lift in class {c + 1}"] = f"{row.lifts[c]:.4f}"
        records.append(record)
    _csv("words", _("Words as CSV"), records, f"{known.run.id}-words-step-{chosen.after}")


def _table(columns_of: dict[str, list[Any]], key: str, columns: dict[str, Any]) -> None:
    table = pd.DataFrame(columns_of)
    counts = {name: st.column_config.NumberColumn(_(name), width="small") for name in COUNTS if name in table}
    st.dataframe(
        table.head(ROWS_MAX),
        hide_index=True,
        height=min(TABLE_PX, 38 + 35 * len(table)),
        key=key,
        column_config={
            WORD: st.column_config.TextColumn(_(WORD), width="medium"),
            CLASS: _(CLASS),
            **counts,
            **columns,
        },
    )


def _changes(known: TokenRun, chosen: Settings, moved: Sequence[WordChange]) -> None:
    first, last = f"{chosen.before:,}", f"{chosen.after:,}"
    st.markdown(_("**Entered and left, step {first} to {last}**", first=first, last=last))
    changed = [change for change in moved if change.change]
    if changed:
        table: dict[str, list[Any]] = {
            WORD: [truncate(change.word, WORD_CHARS) for change in changed],
            CHANGE: [change.change for change in changed],
            "Before": [change.before for change in changed],
            "After": [change.after for change in changed],
            "Occurs": [change.occurs for change in changed],
        }
        signed = st.column_config.NumberColumn(_(CHANGE), format="%+d", width="small")
        _table(table, "tokens.changes", {CHANGE: signed})
        entered = [f"“{escaped(word)}”" for word, change in zip(table[WORD], table[CHANGE], strict=True) if change > 0]
        left = [f"“{escaped(word)}”" for word, change in zip(table[WORD], table[CHANGE], strict=True) if change < 0]
        said = []
        if entered:
            said.append(_("Selected in more texts: {words}.", words=join_list(entered[:NAMED])))
        if left:
            # Translators: words that are no longer among the top k of more texts than before
            said.append(_("Selected in fewer texts: {words}.", words=join_list(left[:NAMED])))
        st.caption(sentences(said))
    else:
        st.info(_("The same words are selected equally often at both steps. Choose steps that are farther apart."))
    columns = ("word", "change", "before", "after", "occurs")
    records = [{name: str(getattr(change, name)) for name in columns} for change in moved]
    _csv("changes", _("Changes as CSV"), records, f"{known.run.id}-changes-{chosen.before}-{chosen.after}")


def _csv(what: str, label: str, records: list[dict[str, str]], name: str) -> None:
    key, empty = f"tokens.csv.{what}", not records
    csv_button(label, lambda: csv_file(records), f"{name}.csv", key=key, disabled=empty, on_click="ignore")


state.require_app()
page()
