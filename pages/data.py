"""Data: browse tasks, add a file or a Hugging Face data set, and preview the views of a text."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import streamlit as st

from core.config.fields import build, fields_of
from core.errors import PlaygroundError
from core.messages import N_, _, ngettext, sentences
from core.settings import settings
from core.store import Status
from core.tasks.hub.registry import HUB_SETS, HubRequest, request_of
from core.workers import JobRecord
from pages.ui import reads, state
from pages.ui.add_file import add_file, open_task
from pages.ui.address import Data
from pages.ui.bound import bound_segments
from pages.ui.browse import browse
from pages.ui.controls import show_notice
from pages.ui.parameter_widget import number_field, segmented_field
from pages.ui.parts import ago, escaped, in_columns, page_head, show_errors
from pages.ui.visitor import visitor
from pages.ui.waiting import cancel_button, retry

VIEWS = {"browse": N_("Browse"), "file": N_("Add a file"), "hub": "Hugging Face Hub"}
JOB = "hub"
NEEDED = ("repository", "text", "label")
# Fields of the form for any other data set, row by row.
OTHER_FIELDS = (
    ("repository", "config", "revision"),
    ("text", "text_b", "label"),
    ("train", "validation", "test"),
)
# Placeholders of fields that do not define one.
EXAMPLES = {"text": N_("e.g. text"), "label": N_("e.g. label")}
# Placeholders that are the same in every language.
LITERAL = {"repository": "owner/name", "train": "train"}
LANGUAGES = {"en": N_("English"), "zh": N_("Chinese"), "ko": N_("Korean")}


def page() -> None:
    reads.open_engine()
    head = page_head(_("Data"))
    with head:
        view = bound_segments(_("Section"), Data.VIEW, VIEWS, wrap=None)
    show_notice()
    active = [job.active for job in reads.jobs().jobs() if job.kind == JOB]
    if active:
        st.fragment(_fetches, run_every=1.0 if any(active) else None)(any(active))
    match view:
        case "file":
            add_file()
        case "hub":
            add_hub()
        case _:
            browse(head)


def add_hub() -> None:
    """Draw the view that fetches from the Hub."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.write(
        _(
            "Fetch downloads a data set in the background, so you can leave this page. The code of a data set "
            "is never run. Downloads are kept."
        )
    )
    most = settings().max_rows
    rows = number_field(
        right, replace(fields_of(HubRequest)["max_rows"], high=most), min(10_000, most), step=1_000, key="hub.rows"
    )
    for language, name in LANGUAGES.items():
        st.markdown(f"**{_(name)}**")
        for card, entry in in_columns(entry for entry in HUB_SETS.values() if entry.language == language):
            with card:
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.markdown(f"**{entry.title}**", width="content")
                    st.space("stretch")
                    if st.button(_("Fetch"), key=f"hub.{entry.name}", icon=":material/download:"):
                        request = request_of(entry)
                        _start(request.model_copy(update={"max_rows": int(rows)}))
                st.caption(sentences([_(entry.about), f"{escaped(entry.source)}."]))
    st.header(_("Another data set"))
    with st.form("hub.other"):
        given, fields = {}, fields_of(HubRequest)
        for names in OTHER_FIELDS:
            for column, name in zip(st.columns(len(names)), names, strict=True):
                words = fields[name].words.get(None) or EXAMPLES.get(name, "")
                empty = LITERAL.get(name) or _(words).lower()
                given[name] = column.text_input(_(fields[name].label), placeholder=empty, key=f"hub.{name}")
        kind = segmented_field(st, fields_of(HubRequest)["kind"], "classes", key="hub.kind")
        if st.form_submit_button(_("Fetch"), icon=":material/download:", type="primary"):
            trimmed = {name: value.strip() for name, value in given.items()}
            filled = {name: value for name, value in trimmed.items() if value or name in NEEDED}
            with show_errors():
                _start(build(HubRequest, filled | {"max_rows": int(rows), "kind": kind}))


def _start(request: HubRequest) -> None:
    with show_errors():
        me = visitor().id
        reads.jobs().start(JOB, request.model_dump(mode="json") | {"owner": me}, request.shown_name, owner=me)
        st.rerun()


def _fetches(polling: bool) -> None:
    """Draw a line for each data set that is being fetched, or whose fetch has ended."""
    jobs = [job for job in reads.jobs().jobs() if job.kind == JOB]
    if polling and not any(job.active for job in jobs):
        st.rerun()  # the list of tasks has grown
    for job in jobs:
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escaped(job.label)}**", width="content")
                if not job.active:
                    _ended(job)
                else:
                    st.caption(escaped(job.message or _("Starting")), width="stretch")
                    cancel_button(job, f"cancel.{job.id}")
            if job.active and job.total:
                words = _("{done} of {total} rows", done=f"{job.done:,}", total=f"{job.total:,}")
                st.progress(min(1.0, job.done / job.total), words)
            elif job.active:
                st.caption(ngettext("{count} row", "{count} rows", job.done))
            elif job.status in (Status.FAILED, Status.INTERRUPTED):
                log = ""
                with suppress(PlaygroundError):  # another visitor has dismissed it meanwhile
                    log = reads.jobs().log(job.id).strip()
                if log:
                    with st.expander(_("Output of the download"), icon=":material/receipt_long:"):
                        st.code(log[-8_000:], language=None, wrap_lines=True)


def _ended(job: JobRecord) -> None:
    own = visitor().may_change(job.owner)
    if job.status == Status.FINISHED:
        # Translators: follows the name of a data set; {ago} is such as "2 min ago".
        here = _("was downloaded {ago}.", ago=ago(job.created_at))
        if job.result.get("was_here"):
            name = escaped(job.result["name"])
            # Translators: follows the name of a data set; {ago} is such as "2 min ago".
            here = _("was already downloaded as {name}, {ago}.", name=name, ago=ago(job.created_at))
        st.caption(here, width="stretch")
        if st.button(_("Browse it"), key=f"open.{job.id}", icon=":material/table_rows:"):
            if own:
                reads.jobs().dismiss(job.id)
            open_task(str(job.result["task"]))
            st.rerun()
    else:
        st.caption(escaped(job.message or _(str(job.status))), width="stretch")
        again = own and job.status != Status.STOPPED
        if again and st.button(_("Try again"), key=f"again.{job.id}", icon=":material/refresh:"):
            retry(job)
    if own and st.button(_("Dismiss"), key=f"dismiss.{job.id}", icon=":material/close:"):
        reads.jobs().dismiss(job.id)
        st.rerun()


state.require_app()
page()
