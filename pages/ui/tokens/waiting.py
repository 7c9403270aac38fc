"""Looking into a run's model takes a process of its own: asked for by a press, told while it goes on."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.errors import PlaygroundError
from core.jobs import JobRecord
from pages.ui import reads
from pages.ui.parts import escaped

KIND = "inspect"
POLL_S = 0.7


def job_of(request: dict[str, Any]) -> JobRecord | None:
    """The newest job that does this, None when nobody asked for it of late."""
    return next((job for job in reads.jobs().jobs() if job.kind == KIND and job.request == request), None)


def ask(request: dict[str, Any], label: str) -> None:
    """Have it done, and draw the page anew; a sentence where it cannot be started."""
    try:
        reads.jobs().start(KIND, request, label)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
        return
    st.rerun()


def is_going_on(request: dict[str, Any]) -> bool:
    """Whether it is being done; how far it is, or why it was not done, is drawn."""
    job = job_of(request)
    if job is None:
        return False
    if job.active:
        st.fragment(_follow, run_every=POLL_S)(job.id)
        return True
    if job.status != "done":
        st.warning(escaped(job.message or f"This was {job.status}."))
    return False


def _follow(job_id: str) -> None:
    try:
        job = reads.jobs().job(job_id)
    except PlaygroundError:
        st.rerun()  # it ended and was forgotten: the page says what there is
    if not job.active:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        share = min(1.0, job.done / job.total) if job.total else 0.0
        count = f" · {job.done:,} of {job.total:,}" if job.total else ""
        message = job.message or "starting"
        st.progress(share, f"{escaped(message[:1].upper() + message[1:])}{count}", width="stretch")
        if st.button("Cancel", key=f"tokens.cancel.{job_id}", icon=":material/close:"):
            reads.jobs().cancel(job_id)
            st.rerun()
