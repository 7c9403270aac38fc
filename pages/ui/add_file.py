"""Add a file: show the detected format, map the columns, list rows with problems, then add or discard the file."""

from __future__ import annotations

from pathlib import PurePath

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.advice.prepare import validation_size
from core.config import ReadingConfig, TaskConfig
from core.config.describe import value_text
from core.config.fields import build, fields_of
from core.errors import PlaygroundError, TaskError
from core.messages import N_, Message, _, ngettext, pgettext, sentences
from core.settings import settings
from core.store import LibraryTask
from core.store.names import NAME_CHARS
from core.tasks.files.columns import guess_columns
from core.tasks.files.problems import PROBLEMS
from core.tasks.files.reading import CombinedFiles, read_upload
from core.tasks.files.tables import Table
from core.tasks.load import join_rows, split_rows
from core.tasks.rows import Rows
from core.workers.machine import has_gpu
from core.workers.run_rows import read_apart
from pages.ui import reads, state
from pages.ui.address import Data
from pages.ui.bound import forget
from pages.ui.experiments.surface import surface_link
from pages.ui.parameter_widget import parameter_field, segmented_field
from pages.ui.parts import escaped, page_link
from pages.ui.reads import cached
from pages.ui.visitor import visitor

TYPES = ["csv", "tsv", "txt", "jsonl", "ndjson", "json", "parquet"]
READING = fields_of(ReadingConfig)
# Fields of ReadingConfig that the form offers.
HOW_READ = ("encoding", "delimiter", "header")
MAX_LISTED = 1_000
PREVIEWED = 5
# An upload that the user neither adds nor cancels leaves the cache after this time.
KEPT_S = 1800
NONE = ""
NEEDED = ("text", "label")
MAPPED = ("text", "text_b", "label", "split", "kind")


def add_file() -> None:
    """Draw the view that adds a file."""
    show_added()
    round_number: int = state.session_value("upload.round", lambda: 0)
    left, right = st.columns([2, 1])
    most = settings().max_file_mb
    train = left.file_uploader(
        _("Your file"), TYPES, max_upload_size=most, key=f"upload.train.{round_number}", help=_accepted()
    )
    test = right.file_uploader(
        _("Test file (optional)"),
        TYPES,
        max_upload_size=most,
        key=f"upload.test.{round_number}",
        help=_("Rows that are scored once, at the end. Without a test file, some rows are held out."),
    )
    if train is None:
        st.caption(_accepted())
        st.markdown(
            _(
                "The file needs a column of texts and a column of labels. Columns, encoding and delimiter are "
                "detected, and you can change them. For pairs of texts, choose a second text column. Nothing leaves "
                "this machine."
            )
        )
        st.code("text,label\nIt never gets going.,negative\nI laughed all the way home.,positive", language=None)
        return
    files = (train, *([test] if test is not None else []))
    try:
        options = _options(files)
        _table, together = _read(files, options)
        if isinstance(together, Message):
            raise TaskError(together)
        for reading in together.readings:
            st.caption(escaped(reading.source.sentence))
        rows = _rows(together, files, options, tuple(_problems(together)))
    except PlaygroundError as error:
        st.error(escaped(str(error)))
        _cancel_button(_("Choose another file"))
        return
    _add(rows, together, train.name)


def _accepted() -> str:
    limits = settings()
    rows = f"{limits.max_rows:,}"
    if limits.excess_rows == "sample":
        excess = _("If a file has more than {rows} rows, a fixed random sample of that size is used.", rows=rows)
    else:
        excess = _("A file with more than {rows} rows is refused.", rows=rows)
    said = [
        _(
            "CSV, TSV, JSON Lines or Parquet, up to {size} MB and {columns} columns.",
            size=limits.max_file_mb,
            columns=limits.max_columns,
        ),
        excess,
        _("Rows with a text of more than {count} characters cannot be used.", count=f"{limits.max_text_chars:,}"),
    ]
    return sentences(said)


def _options(files: tuple[UploadedFile, ...]) -> ReadingConfig:
    """Draw the reading settings; return the guessed ones with the user's changes."""
    key = f"reading.{files[0].file_id}"
    with st.container(border=True):
        st.markdown(f"**{_('Format')}**")
        place = st.container(horizontal=True)
        with st.expander(_("Encoding, delimiter, header")):
            chosen = {
                name: parameter_field(column, READING[name], None, key=f"{key}.{name}")
                for column, name in zip(st.columns(3), HOW_READ, strict=True)
            }
        form = build(ReadingConfig, chosen)
        table, _rows_of_table = _read(files[:1], form)
        if table.encoding:
            place.badge(
                _(READING["encoding"].values_in_words[table.encoding]), icon=":material/translate:", color="gray"
            )
        if table.dialect:
            words = value_text(table.dialect.delimiter, READING["delimiter"]).lower()
            place.badge(words, icon=":material/view_column:", color="gray")
            place.badge(_("first line is the header") if table.header else _("no header line"), color="gray")
        place.badge(table.format, color="gray")
        mapping, guessed = _mapping(key, table, form)
        preview = [[cell[:300] for cell in record] for record in table.preview[:PREVIEWED]]
        width = len(table.columns)
        whole = [record[:width] + [""] * (width - len(record)) for record in preview]
        st.dataframe(pd.DataFrame(whole, columns=list(table.columns)), hide_index=True)
    # Without a test file, the rows were read with the table, unless the user picked other columns.
    return form if guessed and len(files) == 1 else mapping


def _mapping(key: str, table: Table, form: ReadingConfig) -> tuple[ReadingConfig, bool]:
    """Draw the guessed columns, which the user can edit; return the settings with them, and if they are as guessed."""
    columns = list(table.columns)
    guess: ReadingConfig | None = None
    try:
        guess = guess_columns(table.columns, table.preview)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
    key = f"{key}.{table.header}.{table.dialect}.{table.encoding}"  # a different header needs new widgets
    labels = {
        "text": _("Text"),
        "text_b": _("Second text"),
        "label": pgettext("noun", "Label"),
        "split": pgettext("noun", "Split"),
    }
    chosen = {}
    for place, (name, label) in zip(st.columns(4), labels.items(), strict=True):
        needed, guessed = name in NEEDED, getattr(guess, name, None)
        options = columns if needed else [NONE, *columns]
        picked = place.selectbox(
            label,
            options,
            index=options.index(guessed) if guessed in options else (None if needed else 0),
            format_func=lambda one: one or _("None"),
            placeholder=_("choose a column"),
            key=f"{key}.{name}",
        )
        chosen[name] = picked or NONE
    kind = "classes"
    if chosen["text_b"]:
        offered = [value for value in READING["kind"].options if value is not None]
        kind = segmented_field(st, READING["kind"], guess.kind if guess else kind, options=offered, key=f"{key}.kind")
    if not (chosen["text"] and chosen["label"]):
        if chosen["text"]:
            st.info(_("Choose the label column to continue."))
        elif chosen["label"]:
            st.info(_("Choose the text column to continue."))
        else:
            st.info(_("Choose the text and the label column to continue."))
        _cancel_button(_("Cancel"))
        st.stop()
    mapping = build(ReadingConfig, form.model_dump() | chosen | {"kind": kind})
    guessed = guess is not None and all((getattr(guess, name) or NONE) == getattr(mapping, name) for name in MAPPED)
    return mapping, guessed


@cached(4, spinner=N_("Reading every row"), kept_s=KEPT_S)
def _read(files: tuple[UploadedFile, ...], options: ReadingConfig) -> tuple[Table, CombinedFiles | Message]:
    given = [(file.getvalue(), file.name) for file in files]
    return read_apart(files[0].name, sum(file.size for file in files), read_upload, given, options)


@cached(4, kept_s=KEPT_S)
def _rows(
    _together: CombinedFiles, files: tuple[UploadedFile, ...], options: ReadingConfig, dropped: tuple[str, ...]
) -> Rows:
    """Return the rows to add, as the same object until something changes, so that they are split only once."""
    return join_rows(_together.dropping(dropped), [file.name for file in files])


def _problems(together: CombinedFiles) -> list[str]:
    """List the problems; return the kinds of optional problems whose rows the user drops."""
    counts = together.counts
    if not counts:
        st.success(_("Every row can be used."), icon=":material/check:")
        return []
    st.markdown(f"**{_('Some rows have problems')}**")
    dropped = []
    for name, count in counts.items():
        kind = PROBLEMS[name]
        left, right = st.columns([3, 1], vertical_alignment="center")
        headline = _("{problem}: {count}.", problem=_(kind.label).capitalize(), count=f"{count:,}")
        left.markdown(sentences([f"**{headline}**", _(kind.sentence)]))
        if kind.must_drop:
            right.caption(_("left out"))
        elif right.toggle(_("Drop these rows"), name == "duplicate", key=f"drop.{name}"):
            dropped.append(name)
    listed = [
        {"File": problem.file, "Line": problem.line, "Problem": str(problem.message)}
        for problem in sorted(together.problems, key=lambda problem: not PROBLEMS[problem.kind].must_drop)[:MAX_LISTED]
    ]
    with st.expander(_("Rows with problems"), expanded=len(listed) <= PREVIEWED):
        total = sum(counts.values())
        if total > len(listed):
            st.caption(_("The first {count} of {total}.", count=f"{len(listed):,}", total=f"{total:,}"))
        st.dataframe(
            listed,
            hide_index=True,
            column_config={
                "File": st.column_config.TextColumn(_("File"), width="small"),
                "Line": st.column_config.NumberColumn(_("Line"), width="small"),
                "Problem": st.column_config.TextColumn(_("Problem"), width="large"),
            },
        )
    return dropped


def _add(rows: Rows, together: CombinedFiles, file_name: str) -> None:
    """Draw the last step: a summary of the data, the name and the Add button."""
    problem = ""
    try:
        if rows.kind == "classes":
            with st.spinner(_("Splitting")):
                natural = split_rows(rows, file_name)
                size = validation_size(natural, gpu=has_gpu())
                data = split_rows(rows, file_name, TaskConfig(validation_size=size))
            st.caption(
                _(
                    "{classes} classes; {train} training, {validation} validation and {test} test rows ({how}). Runs "
                    "can hold out another number of validation rows.",
                    classes=len(data.classes),
                    train=f"{len(data.train):,}",
                    validation=f"{len(data.validation):,}",
                    test=f"{len(data.test):,}",
                    # Translators: how rows are split into training, validation and test rows.
                    how=_("as in the file") if rows.splits else _("stratified, with a fixed seed"),
                )
            )
            for note in data.notes:
                st.warning(escaped(note))
    except PlaygroundError as error:
        problem = str(error)
        st.error(escaped(problem))
    here = reads.library().find_rows(rows)
    if here is not None:
        st.info(_("These rows were added before, under the name “{name}”.", name=escaped(here.name)))
    name = st.text_input(
        _("Name"), PurePath(file_name).stem[:NAME_CHARS], max_chars=NAME_CHARS, key=f"upload.name.{file_name}"
    )
    unusable = sum(sum(reading.counts.values()) for reading in together.readings)
    dropping = unusable + sum(len(reading.rows) for reading in together.readings) - len(rows)
    if dropping:
        label = _(
            "Drop {rows} and add {count}",
            rows=ngettext("{count} row", "{count} rows", dropping),
            count=f"{len(rows):,}",
        )
    else:
        label = _("Add {rows}", rows=ngettext("{count} row", "{count} rows", len(rows)))
    if any(reading.source.sampled for reading in together.readings):
        most = f"{settings().max_rows:,}"
        st.warning(_("The file has more rows than the limit ({most}), so a seeded sample of them is added.", most=most))
    with st.container(horizontal=True):
        if st.button(label, type="primary", disabled=bool(problem), icon=":material/add:"):
            try:
                task = reads.library().add(rows, name=name, source=together.source, owner=visitor().id)
            except PlaygroundError as error:
                st.error(escaped(str(error)))
                return
            state.remember("added", task)
            _forget_files()
            st.rerun()
        _cancel_button(_("Cancel"))


def _cancel_button(label: str) -> None:
    if st.button(label, key="upload.cancel"):
        _forget_files()
        st.rerun()


def _forget_files() -> None:
    """Empty the uploaders by changing their keys."""
    state.remember("upload.round", state.session_value("upload.round", lambda: 0) + 1)


def show_added() -> None:
    """Show the task that was just added, with links to browse it and to fine-tune on it."""
    task: LibraryTask | None = state.session_value("added", lambda: None)
    if task is None:
        return
    state.forget("added")
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        name = f"**{escaped(task.name)}**"
        st.markdown(
            _("{name} was added, with {rows}.", name=name, rows=ngettext("{count} row", "{count} rows", task.rows)),
            width="content",
        )
        # A link to the current page would leave the address unchanged.
        icon = ":material/table_rows:"
        st.button(_("Browse it"), icon=icon, key="added.look", on_click=open_task, args=(task.id,))
        page_link("fine_tune", _("Fine-tune on it"), "rocket_launch", {"task": task.id})
        if task.kind == "classes":
            surface_link(task.id)


def open_task(task_id: str) -> None:
    """Make the page show this task."""
    forget([Data.VIEW])
    Data.TASK.put(task_id)
