"""What each view makes of one text, drawn so that one sees what changed."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from core.advice.counting import token_strings
from core.catalogue.views import VIEWS
from core.errors import PlaygroundError, shown
from core.messages import N_, _, sentences
from core.models.source import tokenizer_file
from core.parameters import Value
from core.store import Status
from core.tasks.dataset import Input
from core.texts.preview import text_views
from core.texts.segments import Mark, Segment, ViewPreview, segments_of
from core.workers import JobRecord
from core.workers.limits import check_model
from pages.ui import reads, state
from pages.ui.parameter_widget import parameter_widget
from pages.ui.parts import escaped

POLL_S = 1.0
TRANSLATE = "back_translation"
# Tags say to a screen reader what colour and line say to the eye.
TAGS = {"same": "span", "removed": "del", "added": "ins", "changed": "mark", "moved": "em"}
# Of the words of a text, as the legend has them.
MARKS: Mapping[Mark, str] = {
    "changed": N_("changed"),
    "added": N_("added"),
    "removed": N_("removed"),
    "moved": N_("moved"),
}


def text_views_of(text: Input, encoder: str) -> None:
    """Draw the views of one text or pair under the encoder whose tokens some of them need."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    rate = left.slider(_("Share of words or tokens changed"), 0.0, 0.9, 0.2, 0.05, key="views.rate")
    draw: int = state.remembered("views.draw", lambda: 0)
    about = _("Other random words, the same rate.")
    if right.button(_("Draw again"), icon=":material/casino:", width="stretch", help=about):
        draw += 1
        state.remember("views.draw", draw)
    st.html(_legend())
    previews = text_views(text, seed=draw, rate=rate, tokens=_tokens(text, encoder))
    as_it_is = ViewPreview("", N_("As it is"), "", "text", tuple(segments_of(side, side) for side in _sides(text)))
    st.html(_table([as_it_is, *(preview for preview in previews if preview.unit is not None)]))
    for preview in previews:
        if preview.on_request:
            _round_trip(text, preview)
    rest = [preview for preview in previews if preview.unit is None and not preview.on_request]
    if rest:
        with st.expander(_("Views that change no word")):
            for preview in rest:
                label = _("{said}.", said=escaped(_(preview.label)))
                st.markdown(sentences([f"**{label}**", escaped(_(preview.sentence))]))


def _sides(text: Input) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _tokens(text: Input, encoder: str) -> list[str] | None:
    try:
        check_model("encoder", encoder)
        if tokenizer_file(encoder) is not None:
            return token_strings(encoder, text)
        st.caption(_("The tokenizer of this encoder is not here, so views of tokens are only described."))
        return None
    except PlaygroundError as error:
        st.caption(sentences([escaped(str(error)), _("Views of tokens are only described.")]))
        return None


def _legend() -> str:
    pieces = [_piece(Segment(_(word), mark)) for mark, word in MARKS.items()]
    return f'<p class="view-legend">{" · ".join(pieces)}</p>'


def _table(previews: Sequence[ViewPreview]) -> str:
    rows = "".join(
        f"<tr><th scope='row' title='{html.escape(_(preview.sentence), quote=True)}'>{html.escape(_(preview.label))}"
        f"</th><td>{_drawn(preview)}</td></tr>"
        for preview in previews
    )
    return f'<table class="views">{rows}</table>'


def _drawn(preview: ViewPreview) -> str:
    between = " " if preview.unit == "tokens" else ""
    sides = [between.join(_piece(segment) for segment in segments) for segments in preview.segments]
    note = ""
    if preview.name and not preview.changed:
        note = f' <small class="view-note">{html.escape(_("nothing here that it could change"))}</small>'
    return "<br>↔ ".join(sides) + note


def _piece(segment: Segment) -> str:
    tag = TAGS[segment.mark]
    return f"<{tag}>{html.escape(segment.text)}</{tag}>"


def _round_trip(text: Input, preview: ViewPreview) -> None:
    """Back-translation needs two models, so it is asked for and made in a process of its own."""
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
        request = {**settings, "texts": texts, "seed": state.remembered("views.draw", lambda: 0)}
        job = next((job for job in reads.jobs().jobs() if job.kind == "translate" and job.request == request), None)
        if job is None:
            if st.button(_("Translate there and back"), icon=":material/translate:"):
                reads.jobs().start("translate", request, f"Back-translation of {shown(texts[0])}")
                st.rerun()
            return
        st.fragment(_follow, run_every=POLL_S if job.active else None)(job.id, texts)


def _follow(job_id: str, texts: Sequence[str]) -> None:
    try:
        job: JobRecord = reads.jobs().job(job_id)
    except PlaygroundError:
        st.rerun()  # it ended long ago and was forgotten: it is offered again
    if job.active:
        st.caption(f"{escaped(job.message or _('Starting'))} …")
        if st.button(_("Cancel"), key="views.cancel"):
            reads.jobs().cancel(job_id)
            st.rerun()
        return
    if job.status == Status.FINISHED:
        sides = [segments_of(*both) for both in zip(texts, job.result["texts"], strict=True)]
        st.html("<br>↔ ".join("".join(map(_piece, side)) for side in sides))
        return
    st.warning(escaped(job.message or _("The translation was {status}.", status=_(str(job.status)))))
    if st.button(_("Try again"), key="views.again"):
        reads.jobs().dismiss(job_id)
        st.rerun()
