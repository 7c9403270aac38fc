"""Work that takes a while: asked for once, told while it goes on, and not asked for again once it was cancelled."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.errors import PlaygroundError
from core.jobs import JobRecord
from pages.ui import reads, state
from pages.ui.parts import escaped

POLLING = "explore.polling"


def job_of(kind: str, request: dict[str, Any]) -> JobRecord | None:
    """The newest job that does this, None when nobody asked for it."""
    return next((job for job in reads.jobs().jobs() if job.kind == kind and job.request == request), None)


def see_done(kind: str, request: dict[str, Any], label: str, *, again: bool = False) -> bool:
    """Have it done, and say how far it is.

    Args:
        again: ask anew where it was done before, for there is more to do by now.
    Returns: whether it is still going on; then the page looks again by itself.
    """
    job = job_of(kind, request)
    if job is None or (again and job.status == "done"):
        try:
            reads.jobs().start(kind, request, label)
        except PlaygroundError as error:
            st.warning(escaped(str(error)))
            return False
        job = job_of(kind, request)
    if job is None or job.status == "done":
        return False
    if job.active:
        _going_on(job, label)
        return True
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{escaped(label)}: {escaped(job.message)}", width="stretch")
        if st.button("Try again", key=f"again.{job.id}", icon=":material/refresh:"):
            reads.jobs().dismiss(job.id)
            st.rerun()
    return False


def _going_on(job: JobRecord, label: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        share = min(1.0, job.done / job.total) if job.total else 0.0
        count = f" · {job.done:,} of {job.total:,}" if job.total else ""
        st.progress(share, f"{escaped(label)}: {escaped(job.message)}{count}", width="stretch")
        if st.button("Cancel", key=f"cancel.{job.id}", icon=":material/close:"):
            reads.jobs().cancel(job.id)
            st.rerun()


def poll_while(busy: bool) -> None:
    """Look again by itself while something goes on, and not otherwise; the fragment is made anew for a change."""
    if state.remembered(POLLING, lambda: False) != busy:
        state.remember(POLLING, busy)
        st.rerun()
