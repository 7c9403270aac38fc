"""Details of a task's texts: their lengths in an encoder's tokens, and the views of one text."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from core.advice.counting import TokenCounts, token_counts, token_strings
from core.catalogue.encoders import LISTED
from core.catalogue.views import VIEWS
from core.config import EncoderConfig
from core.errors import PlaygroundError, quote_value
from core.figures.bars import histogram_figure
from core.messages import N_, _, ngettext, sentences
from core.models.source import BUNDLED, tokenizer_file
from core.parameters import Value
from core.quantities import percent
from core.store import Status
from core.tasks.dataset import Input
from core.tasks.survey import word_counts
from core.texts.preview import text_views
from core.texts.segments import Mark, Segment, ViewPreview, segments_of
from core.workers.limits import check_model
from pages.ui import state
from pages.ui.live_figure import live_figure
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped
from pages.ui.reads import cached
from pages.ui.waiting import draw_job, job_of, start_job

JOB = "tokens"
DEFAULT_LENGTH = EncoderConfig().max_length


def lengths(texts: Sequence[Input]) -> None:
    """Draw the choice of an encoder, the histogram of lengths in its tokens, and a summary."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{_('Lengths in tokens')}**", width="content")
        picked = st.selectbox(
            _("Tokens of"), list(LISTED), accept_new_options=True, label_visibility="collapsed", key="data.encoder"
        )
    encoder = picked or BUNDLED
    count = min(len(texts), 2_000)  # sampled evenly from all texts
    chosen = [texts[i * len(texts) // count] for i in range(count)]
    try:
        counted = _counts(encoder, chosen)
    except PlaygroundError as error:
        st.caption(sentences([escaped(str(error)), _("Showing words instead.")]))
        counted = None
    found = list(counted.counts) if counted else word_counts(chosen)
    figure = histogram_figure(found, _("tokens") if counted else _("words"))
    about = _("Number of texts by length in tokens.") if counted else _("Number of texts by length in words.")
    live_figure(figure, key="data.lengths", description=about)
    if found:
        st.caption(_sentence(found, counted, all_texts=len(texts)))


def _sentence(found: Sequence[int], counted: TokenCounts | None, *, all_texts: int) -> str:
    low, median, high = np.percentile(found, [25, 50, 75])
    numbers = {"low": f"{low:.0f}", "high": f"{high:.0f}", "median": f"{median:.0f}", "longest": f"{max(found):,}"}
    if counted:
        said = _(
            "The middle half of the texts have {low} to {high} tokens; the median is {median}, and the longest "
            "has {longest}",
            **numbers,
        )
    else:
        said = _(
            "The middle half of the texts have {low} to {high} words; the median is {median}, and the longest "
            "has {longest}",
            **numbers,
        )
    if counted and counted.unknown_share:
        share = percent(counted.unknown_share)
        # Translators: {said} is the sentence so far; "it" is the tokenizer.
        said = _("{said}; {share} of the tokens are unknown to the tokenizer", said=said, share=share)
    if len(found) < all_texts:
        # Translators: {said} is the sentence so far.
        said = _("{said}; counted on {count} texts spread over all rows", said=said, count=f"{len(found):,}")
    # Translators: {said} is a sentence without its full stop.
    about = [_("{said}.", said=said)]
    if counted and (cut := sum(length > DEFAULT_LENGTH for length in found)):
        about.append(
            ngettext(
                "{count} text has more than {most} tokens and is cut there by default.",
                "{count} texts have more than {most} tokens and are cut there by default.",
                cut,
                most=DEFAULT_LENGTH,
            )
        )
    return sentences(about)


def _counts(encoder: str, texts: list[Input]) -> TokenCounts | None:
    """Return the token counts, None while there are none.

    They are counted at once if the tokenizer is downloaded, otherwise in a job that the user starts.
    """
    check_model("encoder", encoder)
    file = tokenizer_file(encoder)
    if file is not None:
        return _counted(encoder, str(file), Path(file).stat().st_mtime_ns, texts)
    request = json.loads(json.dumps({"encoder": encoder, "texts": texts}))
    job = job_of(JOB, request)
    if job is not None and job.status == Status.FINISHED:
        return TokenCounts(tuple(job.result["counts"]), float(job.result["unknown_share"]))
    if not draw_job(JOB, request):
        st.caption(_("The tokenizer of this encoder is not downloaded yet, so lengths are in words."))
        if st.button(_("Download it and count"), icon=":material/download:"):
            start_job(JOB, request, N_("Tokens of {encoder}"), encoder=encoder)
    return None


@cached(16, spinner=N_("Counting tokens"))
def _counted(encoder: str, file: str, changed_ns: int, texts: list[Input]) -> TokenCounts:
    return token_counts(encoder, texts)


TRANSLATE = "back_translation"
# Tags tell a screen reader what colours and lines show.
TAGS = {"same": "span", "removed": "del", "added": "ins", "changed": "mark", "moved": "em"}
# Legend of the marks on the words of a text.
MARKS: Mapping[Mark, str] = {
    "changed": N_("changed"),
    "added": N_("added"),
    "removed": N_("removed"),
    "moved": N_("moved"),
}


def text_views_of(text: Input, encoder: str) -> None:
    """Draw the views of one text or pair; some of them need the tokens of the encoder."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    rate = left.slider(_("Fraction of words or tokens changed"), 0.0, 0.9, 0.2, 0.05, key="views.rate")
    draw: int = state.session_value("views.draw", lambda: 0)
    about = _("Changes other words at the same rate.")
    if right.button(_("Draw again"), icon=":material/casino:", width="stretch", help=about):
        draw += 1
        state.remember("views.draw", draw)
    legend = " · ".join(_piece(Segment(_(word), mark)) for mark, word in MARKS.items())
    st.html(f'<p class="view-legend">{legend}</p>')
    tokens = None
    try:
        check_model("encoder", encoder)
        if tokenizer_file(encoder) is not None:
            tokens = token_strings(encoder, text)
        else:
            st.caption(_("The tokenizer of this encoder is not downloaded, so token views are only described."))
    except PlaygroundError as error:
        st.caption(sentences([escaped(str(error)), _("Token views are only described.")]))
    previews = text_views(text, seed=draw, rate=rate, tokens=tokens)
    as_it_is = ViewPreview("", N_("Unchanged"), "", "text", tuple(segments_of(side, side) for side in _sides(text)))
    rows = ""
    for preview in (as_it_is, *(preview for preview in previews if preview.unit is not None)):
        title, label = html.escape(_(preview.sentence), quote=True), html.escape(_(preview.label))
        between = " " if preview.unit == "tokens" else ""
        sides = [between.join(map(_piece, segments)) for segments in preview.segments]
        note = ""
        if preview.name and not preview.changed:
            note = f' <small class="view-note">{html.escape(_("nothing to change in this text"))}</small>'
        rows += f"<tr><th scope='row' title='{title}'>{label}</th><td>{'<br>↔ '.join(sides)}{note}</td></tr>"
    st.html(f'<table class="views">{rows}</table>')
    for preview in previews:
        if preview.on_request:
            _round_trip(text, preview)
    rest = [preview for preview in previews if preview.unit is None and not preview.on_request]
    if rest:
        with st.expander(_("Views that change no words")):
            for preview in rest:
                label = _("{said}.", said=escaped(_(preview.label)))
                st.markdown(sentences([f"**{label}**", escaped(_(preview.sentence))]))


def _sides(text: Input) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _piece(segment: Segment) -> str:
    tag = TAGS[segment.mark]
    return f"<{tag}>{html.escape(segment.text)}</{tag}>"


def _round_trip(text: Input, preview: ViewPreview) -> None:
    """Draw back-translation, which needs two models and therefore runs on request in a separate process."""
    with st.expander(_(preview.label)):
        st.caption(_(preview.sentence))
        settings: dict[str, Value] = {
            p.name: parameter_widget(column, p, p.default, f"views.{p.name}")
            for column, p in zip(st.columns(3), VIEWS.entry(TRANSLATE).parameters, strict=True)
        }
        try:
            for p in VIEWS.entry(TRANSLATE).parameters:
                if p.kind == "name":
                    check_model(p.name, str(settings[p.name]))
        except PlaygroundError as error:
            st.error(escaped(str(error)))
            return
        texts = _sides(text)
        request = {**settings, "texts": texts, "seed": state.session_value("views.draw", lambda: 0)}
        job = job_of("translate", request)
        if job is not None and job.status == Status.FINISHED:
            sides = [segments_of(*both) for both in zip(texts, job.result["texts"], strict=True)]
            st.html("<br>↔ ".join("".join(map(_piece, side)) for side in sides))
        elif not draw_job("translate", request) and st.button(
            _("Translate there and back"), icon=":material/translate:"
        ):
            start_job("translate", request, N_("Back-translation of {text}"), text=quote_value(texts[0]))
