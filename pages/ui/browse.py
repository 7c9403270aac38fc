"""Browse the texts of one task: filters, class balance, lengths, duplicates, views of a text, download."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.advice.prepare import validation_size
from core.config import TaskConfig
from core.errors import PlaygroundError, quote_value
from core.figures.bars import class_balance_figure, score_figure
from core.messages import ENGLISH, N_, _, join_list, language, ngettext, pgettext, sentences
from core.models.source import BUNDLED
from core.store import LibraryTask
from core.tasks import TASKS, load_task
from core.tasks.listing import Listing, csv_file, jsonl_file, listing_of, listing_of_scores
from core.tasks.rows import is_own
from core.tasks.survey import DuplicateGroup, duplicates, search
from core.workers.machine import has_gpu
from pages.ui import reads, state
from pages.ui.address import Data
from pages.ui.changed_texts import moves
from pages.ui.controls import offer_undo
from pages.ui.experiments.surface import surface_link
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped, page_link, show_errors, task_names
from pages.ui.reads import cached
from pages.ui.tables import csv_button
from pages.ui.text_details import lengths, text_views_of
from pages.ui.visitor import owner_name, require_own, visitor

MAX_SHOWN = 2_000
CHART_HEIGHT = 260
SPLIT_LABELS = {"train": N_("Train"), "validation": N_("Validation"), "test": N_("Test"), "all": N_("All")}
SHAPES = {"pairs": N_("Pairs"), "triplets": N_("Triplets")}
TRIPLET_LABELS = {
    "premise": N_("Premise"),
    "entailment": N_("Entailment"),
    "contradiction": N_("Contradiction"),
}


def browse(head: DeltaGenerator) -> None:
    """Draw the view of one task, chosen in the page's first line."""
    own = {task.id: task for task in reads.library().tasks()}
    words = N_("Deleted {name}. Runs that used it keep their rows. You can undo this for {minutes}.")

    def restore(task_id: str) -> None:
        reads.library().restore(task_id)
        Data.TASK.put(task_id)

    offer_undo(words, reads.library().discarded(), restore)
    names, labels = [*TASKS, *own], task_names(own)
    task_id = Data.TASK.choice(names, names[0])
    picked = head.selectbox(
        _("Task"),
        names,
        index=names.index(task_id),
        format_func=labels.__getitem__,
        label_visibility="collapsed",
        # A browser keeps the label of a key, also after its task was renamed or deleted.
        key=f"data.task.{labels[task_id]}",
    )
    Data.TASK.put(picked)
    if picked != task_id:
        st.rerun()
    about = st.empty()
    _actions(task_id, own.get(task_id))
    try:
        with st.spinner(_("Reading")):
            listing = _listing(task_id, _stamp(task_id))
    except PlaygroundError as error:  # the buttons are drawn already, so that the task can be deleted
        st.error(escaped(str(error)))
        return
    about.caption(_about(task_id, own.get(task_id), listing))
    left, right = st.columns(2, gap="large")
    with left:
        if listing.classes:
            with st.container(key="head_row.classes"):
                st.markdown(f"**{_('Classes')}**")
            counts = {_(SPLIT_LABELS[split]): listing.counts(split) for split in listing.split_names}
            figure = class_balance_figure(listing.classes, counts)
            height = int(figure["layout"]["height"])
            with st.container(height=CHART_HEIGHT + 20 if height > CHART_HEIGHT else "content", border=False):
                description = _("Rows of each class in each split.")
                live_figure(figure, key="data.classes", description=description)
        else:
            st.markdown(f"**{_('Scores')}**")
            figure = score_figure([float(label) for label in listing.labels])
            live_figure(figure, key="data.scores", description=_("Number of pairs by score."))
    with right:
        lengths(listing.texts)
    _table(task_id, listing)


def _stamp(task_id: str) -> float:
    """Return a time that changes when the task does."""
    if is_own(task_id):
        return reads.library().task(task_id).changed_at
    return os.stat(TASKS[task_id].folder / "train.csv").st_mtime


@cached(6)
def _listing(task_id: str, stamp: float) -> Listing:
    """Return the rows in the default splits of a run, with a note on the origin of its validation rows.

    If the data set has validation rows, the listing has all of them.
    """
    library, task = reads.library(), TaskConfig(id=task_id)
    own = library.task(task_id) if is_own(task_id) else None
    if own is not None and own.kind == "similarity":
        return listing_of_scores(library.rows(task_id))
    natural = load_task(task, 0, library.named_rows)
    size = validation_size(natural, gpu=has_gpu())
    if own is not None and "validation" in own.splits:
        listing, note = listing_of(natural), ""
        if size < len(natural.validation):
            note = _("A run scores {count} of its validation rows by default, those on its map.", count=f"{size:,}")
    else:
        listing = listing_of(load_task(task.model_copy(update={"validation_size": size}), 0, library.named_rows))
        note = _(
            "The source has no validation split, so by default each run holds out {count} training rows for "
            "validation. The counts here are those after this split.",
            count=f"{size:,}",
        )
    return replace(listing, notes=(*([note] if note else []), *listing.notes))


def _about(task_id: str, own: LibraryTask | None, listing: Listing) -> str:
    counts = Counter(listing.splits)
    parts = [
        # Translators: how many rows a split has, such as: 400 train.
        _("{count} {split}", count=f"{counts[split]:,}", split=_(SPLIT_LABELS[split]).lower())
        for split in listing.split_names
    ]
    said = [
        f"{escaped(own.source.rstrip('.'))}." if own else _(TASKS[task_id].summary),
        _(
            "{rows}: {splits}; {labels}.",
            rows=ngettext("{count} pair", "{count} pairs", len(listing.texts))
            if listing.pairs
            else ngettext("{count} text", "{count} texts", len(listing.texts)),
            splits=join_list(parts),
            labels=ngettext("{count} class", "{count} classes", len(listing.classes))
            if listing.classes
            else _("similarity scores"),
        ),
        *(escaped(note) for note in listing.notes),
    ]
    if own and not visitor().may_change(own.owner):
        owner = escaped(owner_name(reads.open_engine().store, own.owner))
        said.append(_("Added by {owner}; only they or an admin can rename or delete it.", owner=owner))
    return sentences(said)


def _actions(task_id: str, own: LibraryTask | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        page_link("fine_tune", _("Fine-tune on it"), "rocket_launch", {"task": task_id})
        if own is None or own.kind == "classes":
            surface_link(task_id)
        if own and visitor().may_change(own.owner):
            with st.popover(_("Rename"), icon=":material/edit:"), st.form(f"rename.{own.id}", border=False):
                name = st.text_input(_("Name"), own.name, max_chars=80)
                if st.form_submit_button(_("Rename"), type="primary"):
                    with show_errors():
                        require_own(reads.library().task(own.id).owner)
                        reads.library().rename(own.id, name)
                        st.rerun()
            if st.button(_("Delete"), icon=":material/delete:", key="data.delete"):
                with show_errors():
                    require_own(reads.library().task(own.id).owner)
                    reads.library().discard(own.id)
                    Data.TASK.forget()
                    st.rerun()
    if own is None:
        with st.expander(_("Data card: origin, label definitions, baselines")):
            card = re.sub("<!--.*?-->", "", (TASKS[task_id].folder / "README.md").read_text(encoding="utf-8"))
            if language() != ENGLISH:
                st.caption(_("The data card is in English."))
            with st.container(key="data_card"):
                st.markdown(re.sub("^#", "##", card, flags=re.MULTILINE))  # one level below the page's heading


def _table(task_id: str, listing: Listing) -> None:
    st.header(_("Rows"))
    if listing.triplets:
        shape = st.segmented_control(
            _("Show rows as"),
            list(SHAPES),
            format_func=lambda one: _(SHAPES[one]),
            default="pairs",
            required=True,
            label_visibility="collapsed",
            key="data.as",
        )
        if shape == "triplets":
            st.caption(
                _(
                    "{triplets} from the training rows, as in supervised SimCSE: a premise, a sentence that "
                    "follows from it, and one that contradicts it.",
                    triplets=ngettext("{count} triplet", "{count} triplets", len(listing.triplets)),
                )
            )
            few = listing.triplets[:MAX_SHOWN]
            columns = {label: [getattr(one, name) for one in few] for name, label in TRIPLET_LABELS.items()}
            headings = {label: st.column_config.TextColumn(_(label)) for label in columns}
            st.dataframe(pd.DataFrame(columns), hide_index=True, height=420, column_config=headings)
            return
    _rows(task_id, listing)


def _rows(task_id: str, listing: Listing) -> None:
    rows = _filtered(task_id, listing)
    found, total = len(rows), len(listing.texts)
    values = {"found": f"{found:,}", "rows": ngettext("{count} row", "{count} rows", total), "shown": f"{MAX_SHOWN:,}"}
    if found > MAX_SHOWN:
        st.caption(
            _("{found} of {rows}; the table shows the first {shown}, a download has all.", **values)
            if found < total
            else _("All {rows}; the table shows the first {shown}, a download has all.", **values)
        )
    else:
        st.caption(_("{found} of {rows}.", **values) if found < total else _("All {rows}.", **values))
    if not rows:
        st.info(_("No row matches. Remove a search word or a filter."))
        return
    shown = rows[:MAX_SHOWN]
    texts = [listing.texts[row] for row in shown]
    columns: dict[str, list[object]] = {"Row": [row + 1 for row in shown]}
    if listing.classes:
        columns["Label"] = [listing.labels[row] for row in shown]
    else:
        columns["Score"] = [float(listing.labels[row]) for row in shown]
    columns["Text"] = [text if isinstance(text, str) else text[0] for text in texts]
    if listing.pairs:
        columns["Second text"] = [text[1] for text in texts]
    if len(listing.split_names) > 1:
        columns["Split"] = [_(SPLIT_LABELS[listing.splits[row]]) for row in shown]
    picked = st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        height=420,
        on_select="rerun",
        selection_mode="single-row",
        key=f"data.rows.{hash((task_id, tuple(shown)))}",  # other rows start without a selection
        column_config={
            "Row": st.column_config.NumberColumn(pgettext("noun", "Row"), width="small"),
            "Label": st.column_config.TextColumn(pgettext("noun", "Label"), width="small"),
            "Score": st.column_config.NumberColumn(pgettext("noun", "Score")),
            "Text": st.column_config.TextColumn(_("Text")),
            "Second text": st.column_config.TextColumn(_("Second text")),
            "Split": st.column_config.TextColumn(pgettext("noun", "Split"), width="small"),
        },
    )
    name, records = quote_value(task_id).strip("'"), partial(listing.records, rows)
    with st.container(horizontal=True):
        csv_button(
            "CSV",
            lambda: csv_file(records()),
            f"{name}.csv",
            key="data.csv",
            help=_("For a spreadsheet. Cells that look like a formula are prefixed with an apostrophe."),
            on_click="ignore",
        )
        st.download_button(
            "JSONL",
            lambda: jsonl_file(records()),
            file_name=f"{name}.jsonl",
            mime="application/jsonl",
            icon=":material/download:",
            help=_("One row per line, with every text unchanged."),
            on_click="ignore",
        )
    chosen = picked.selection.rows
    st.header(_("Views of a text"))
    encoder = state.widget_value("data.encoder") or BUNDLED
    if not chosen:
        st.caption(_("Select a row to see altered copies of its text, as contrastive losses use them."))
    else:
        text_views_of(listing.texts[rows[chosen[0]]], encoder)
    moves(listing.texts, encoder)


def _filtered(task_id: str, listing: Listing) -> list[int]:
    """Draw the search, the filters and the number of repeated texts. Return the rows that match."""
    left, middle, right = st.columns([5, 3, 3], vertical_alignment="bottom")
    words = left.text_input(
        _("Search"),
        Data.SEARCH.text or "",
        max_chars=200,
        placeholder=_("words, or a phrase in quotes"),
        key="data.search",
    )
    Data.SEARCH.put(words)
    splits = middle.multiselect(
        _("Splits"),
        listing.split_names,
        format_func=lambda one: _(SPLIT_LABELS[one]),
        placeholder=_("All splits"),
        key="data.splits",
    )
    labels: list[str] = []
    if listing.classes:
        labels = right.multiselect(
            _("Labels"), listing.classes, placeholder=_("All labels"), key=f"data.labels.{task_id}"
        )
    number = {name: i for i, name in enumerate(listing.classes)}
    found = search(
        listing.texts,
        words,
        labels=[number[label] for label in listing.labels] if labels else (),
        splits=listing.splits,
        in_labels={number[label] for label in labels} or None,
        in_splits=set(splits) or None,
    )
    groups = _duplicates(task_id, _stamp(task_id))
    if not groups:
        st.caption(_("No text appears twice."))
        return found
    differing = sum(group.labels_differ for group in groups)
    crossing = sum(len({listing.splits[row] for row in group.rows}) > 1 for group in groups)
    repeated = ngettext("{count} text appears more than once", "{count} texts appear more than once", len(groups))
    values = {"repeated": repeated, "differing": f"{differing:,}", "crossing": f"{crossing:,}"}
    if differing and crossing:
        said = _("{repeated}, {differing} of them with different labels, {crossing} in more than one split.", **values)
    elif differing:
        said = _("{repeated}, {differing} of them with different labels.", **values)
    elif crossing:
        said = _("{repeated}, {crossing} in more than one split.", **values)
    else:
        said = _("{said}.", said=repeated)
    st.caption(said)
    if not st.toggle(_("Show only these"), key="data.repeated"):
        return found
    among = set(found)
    return [row for group in groups for row in group.rows if row in among]


@cached(8)
def _duplicates(task_id: str, stamp: float) -> list[DuplicateGroup]:
    listing = _listing(task_id, stamp)
    number = {label: i for i, label in enumerate(dict.fromkeys(listing.labels))}
    return duplicates(listing.texts, [number[label] for label in listing.labels])
