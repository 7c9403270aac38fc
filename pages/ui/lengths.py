"""How long texts are, in the tokens of an encoder that one chooses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from core.advice.counting import TokenCounts, token_counter
from core.catalogue.encoders import LISTED
from core.config import EncoderConfig
from core.errors import PlaygroundError
from core.figures.bars import LengthMark, histogram_figure
from core.messages import N_, Message, _, sentences
from core.models.source import BUNDLED, tokenizer_file
from core.quantities import percent
from core.store import Status
from core.tasks.dataset import Input
from core.tasks.survey import length_summary, word_counts
from core.workers import JobRecord
from core.workers.limits import check_model
from pages.ui import reads
from pages.ui.caching import cached
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped

JOB = "tokens"
POLL_S = 1.0
COUNTED = 2_000
DEFAULT_LENGTH = EncoderConfig().max_length


def lengths(texts: Sequence[Input]) -> str:
    """Draw the histogram and a sentence; returns the encoder that was chosen."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{_('Lengths in tokens')}**", width="content")
        picked = st.selectbox(
            _("Tokens of"), list(LISTED), accept_new_options=True, label_visibility="collapsed", key="data.encoder"
        )
    encoder = picked or BUNDLED
    chosen = [texts[i] for i in _spread(len(texts), COUNTED)]
    try:
        counted = _counts(encoder, chosen)
    except PlaygroundError as error:
        st.caption(sentences([escaped(str(error)), _("Showing words instead.")]))
        counted = None
    found = list(counted.counts) if counted else word_counts(chosen)
    # Translators: of the tokens of a text.
    mark = LengthMark(DEFAULT_LENGTH, _("{count} are read by default", count=DEFAULT_LENGTH)) if counted else None
    figure = histogram_figure(found, _("tokens") if counted else _("words"), mark)
    height = int(figure["layout"]["height"])
    about = _("How many texts have how many tokens.") if counted else _("How many texts have how many words.")
    live_figure(figure, key="data.lengths", height=height, description=about)
    if found:
        st.caption(_sentence(found, counted, all_texts=len(texts)))
    return encoder


def _spread(rows: int, most: int) -> list[int]:
    return list(range(rows)) if rows <= most else [i * rows // most for i in range(most)]


def _sentence(found: Sequence[int], counted: TokenCounts | None, *, all_texts: int) -> str:
    said = _middle(found, of_tokens=counted is not None)
    if counted and counted.unknown_share:
        share = percent(counted.unknown_share)
        # Translators: {said} is the sentence so far; "it" is the tokenizer.
        said = _("{said}; {share} of the tokens are unknown to it", said=said, share=share)
    if len(found) < all_texts:
        # Translators: {said} is the sentence so far.
        said = _("{said}; {count} texts spread over all were counted", said=said, count=f"{len(found):,}")
    # Translators: {said} is a sentence without its full stop.
    return _("{said}.", said=said)


def _middle(found: Sequence[int], *, of_tokens: bool) -> str:
    """Between which lengths most are, as a sentence that may go on."""
    summary = length_summary(found)
    assert summary is not None
    numbers = {
        "low": f"{summary.quartile_1:.0f}",
        "high": f"{summary.quartile_3:.0f}",
        "median": f"{summary.median:.0f}",
        "longest": f"{summary.longest:,}",
    }
    if of_tokens:
        return _("The middle half has {low} to {high} tokens, the median is {median}, the longest {longest}", **numbers)
    return _("The middle half has {low} to {high} words, the median is {median}, the longest {longest}", **numbers)


def _counts(encoder: str, texts: list[Input]) -> TokenCounts | None:
    """At once where the tokenizer is here; else from a job, once somebody asks for it. None while there are none."""
    check_model("encoder", encoder)
    file = tokenizer_file(encoder)
    if file is not None:
        return _counted(encoder, str(file), Path(file).stat().st_mtime_ns, texts)
    request = json.loads(json.dumps({"encoder": encoder, "texts": texts}))
    job = next((job for job in reads.jobs().jobs() if job.kind == JOB and job.request == request), None)
    if job is None:
        st.caption(_("The tokenizer of this encoder is not here yet, so these are words."))
        if st.button(_("Fetch it and count"), icon=":material/download:"):
            reads.jobs().start(JOB, request, Message("Tokens of {encoder}", encoder=encoder))
            st.rerun()
        return None
    if job.status == Status.FINISHED:
        return TokenCounts(tuple(job.result["counts"]), float(job.result["unknown_share"]))
    _pending(job)
    return None


def _pending(job: JobRecord) -> None:
    if job.active:
        st.fragment(_wait, run_every=POLL_S)(job.id)
        return
    st.caption(escaped(job.message or _("Counting was {status}.", status=_(str(job.status)))))
    if st.button(_("Try again"), icon=":material/refresh:", key="lengths.again"):
        reads.jobs().dismiss(job.id)
        st.rerun()


def _wait(job_id: str) -> None:
    job = reads.jobs().job(job_id)
    if not job.active:
        st.rerun()
    st.caption(f"{escaped(job.message or _('Starting'))} …")
    if st.button(_("Cancel"), icon=":material/close:", key="lengths.cancel"):
        reads.jobs().cancel(job_id)
        st.rerun()


@cached(16, spinner=N_("Counting tokens"))
def _counted(encoder: str, file: str, changed_ns: int, texts: list[Input]) -> TokenCounts:
    return token_counter(encoder)(texts)
