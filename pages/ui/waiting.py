"""Long jobs: started once, reported while they are active, and not restarted after a cancel."""

from __future__ import annotations

import bisect
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import streamlit as st

from core.errors import PlaygroundError
from core.messages import Message, Text, _, join_label
from core.store import RunSummary, Status
from core.workers import JobRecord
from pages.ui import reads, state
from pages.ui.parts import UI, component, duration, escaped
from pages.ui.visitor import visitor

POLLING, POLL_S = "explore.polling", 1.0
# Interval on a page that otherwise reruns only on input.
FOLLOW_S = 0.7
# All pages together may take this share of a core from training. A poll takes 25 ms of a core or more.
SHARE_OF_CORE, BETWEEN_LOOKS_S = 1 / 3, 1 / 13
# Weight of the newest poll in the mean of their cost.
NEWEST_SHARE = 0.1

_mount = component("beat", '<span class="beat" hidden></span>', [UI / "beat.js"])


def job_of(kind: str, request: dict[str, Any]) -> JobRecord | None:
    """Return the newest job for this request, None if there is none."""
    return next((job for job in reads.jobs().jobs() if job.kind == kind and job.request == request), None)


def ensure_job(kind: str, request: dict[str, Any], label: str, *, since: float = 0.0) -> bool:
    """Start a job whose result is missing, and show its progress.

    Args:
        label: marked with `N_`, and translated here.
        since: seconds since the epoch; a job that was created before and has finished is incomplete and runs again.
    Returns: whether the job is active, or has ended since the page read its result; the page then polls.
    """
    job = job_of(kind, request)
    if job is None or (job.status == Status.FINISHED and job.created_at < since):
        if not _started(kind, request, label):
            return False
        job = job_of(kind, request)
    if job is None:
        return False
    if job.status == Status.FINISHED:  # possibly since the page read the results
        seen = state.session_value("waiting.seen", set[str])
        new = job.id not in seen
        seen.add(job.id)
        return new
    if job.active:
        _draw_active_job(job, _(label))
        return True
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(join_label(escaped(_(label)), escaped(job.message)), width="stretch")
        if st.button(_("Try again"), key=f"again.{job.id}", icon=":material/refresh:"):
            retry(job)
    return False


def start_job(kind: str, request: dict[str, Any], label: str, **values: object) -> None:
    """Start the job of a button and rerun the page; show why if the job cannot start.

    Args:
        label: marked with `N_`; values: values of its placeholders.
    """
    if _started(kind, request, Message(label, **values)):
        st.rerun()


def draw_job(kind: str, request: dict[str, Any]) -> bool:
    """Return whether a requested job is active; draw its progress, or the reason why it did not finish.

    The page reruns when the job ends.
    """
    job = job_of(kind, request)
    if job is None:
        return False
    if job.active:
        st.fragment(follow_job, run_every=FOLLOW_S)(job.id)
        return True
    if job.status != Status.FINISHED:
        st.warning(escaped(job.message or _("The job was {status}.", status=_(str(job.status)))))
    return False


def _started(kind: str, request: dict[str, Any], label: Text) -> bool:
    try:
        reads.jobs().start(kind, request, label, owner=visitor().id)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
        return False
    return True


def retry(job: JobRecord) -> None:
    """Start a job again and rerun the page; show why if it cannot start. The old job of another visitor is kept."""
    if visitor().may_change(job.owner):
        reads.jobs().dismiss(job.id)
    if _started(job.kind, job.request, job.label):
        st.rerun()


def cancel_button(job: JobRecord, key: str) -> None:
    """Draw the button that cancels a job of this visitor."""
    if visitor().may_change(job.owner) and st.button(_("Cancel"), key=key, icon=":material/close:"):
        reads.jobs().cancel(job.id)
        st.rerun()


def follow_job(job_id: str) -> None:
    """Draw an active job. It is a fragment, which reruns the page once the job has ended or was removed."""
    try:
        job = reads.jobs().job(job_id)
    except PlaygroundError:
        st.rerun()
    if not job.active:
        st.rerun()
    _draw_active_job(job, job.label)


def _draw_active_job(job: JobRecord, label: Text) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        share = min(1.0, job.done / job.total) if job.total else 0.0
        at, label = escaped(job.message or _("starting")), escaped(label)
        said = [join_label(label, at) if label else at]
        if job.total:
            # Translators: how far a job is.
            said.append(_("{done} of {total}", done=f"{job.done:,}", total=f"{job.total:,}"))
        said.append(duration(time.time() - job.created_at))
        st.progress(share, " · ".join(said), width="stretch")
        cancel_button(job, f"cancel.{job.id}")


def complete_since(run: RunSummary) -> float:
    """Return the moment when a run had all its frames; results made before it are incomplete."""
    return math.inf if run.status.active else run.ended_at or 0.0


def draw_fragment(draw: Callable[..., None], at_first: bool, *given: Any) -> None:
    """Draw a fragment that polls as its last `poll_while` asked. Args: at_first: whether it polls before that."""
    polling = state.session_value(POLLING, lambda: at_first)
    st.fragment(draw, run_every=POLL_S if polling else None)(*given)


def poll_while(busy: bool) -> None:
    """Poll only while `busy`; rerun the page when that changes, so that it creates a new fragment."""
    if state.session_value(POLLING, lambda: False) != busy:
        state.remember(POLLING, busy)
        st.rerun()


class PollSchedule:
    """Schedule of the pages that poll: they take turns, so that many pages do not poll at once."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._between_s = BETWEEN_LOOKS_S
        self._lock = threading.Lock()

    def next_s(self, after_s: float, now: float, cost_s: float = 0.0) -> float:
        """Return the seconds until a page's next turn: `after_s`, or more if turns are taken.

        Args:
            now: in seconds.
            cost_s: CPU time of this poll. The slower the machine, the larger the distance between turns.
        """
        with self._lock:
            wanted = max(BETWEEN_LOOKS_S, cost_s / SHARE_OF_CORE)
            self._between_s += NEWEST_SHARE * (wanted - self._between_s)
            self._taken = [at for at in self._taken if at > now - self._between_s]
            turn = now + after_s
            for at in self._taken:
                if abs(at - turn) < self._between_s:
                    turn = at + self._between_s
            bisect.insort(self._taken, turn)
            return turn - now


_turns = st.cache_resource(show_spinner=False)(PollSchedule)


def rerun_later(after_s: float, *, key: str, cost_s: float) -> None:
    """Rerun the calling fragment `after_s` seconds after its response has reached the browser.

    It reruns only while its page is visible, and later if many pages poll: a class should not take the machine from
    the run that it watches. `st.fragment(run_every=…)` also reruns in hidden tabs, and always at the same pace.

    Args:
        cost_s: CPU time that drawing the fragment took.
    """
    after_s = _turns().next_s(after_s, time.monotonic(), cost_s)
    # A new number each time: without a change, the browser would not restart its timer.
    data = {"after_ms": round(1000 * after_s), "number": time.monotonic_ns() // 1000}
    _mount(key=key, data=data, on_beat_change=lambda: None)
