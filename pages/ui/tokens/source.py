"""The choice of a text, and the row of controls that all views of the Tokens page share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core.artifacts.sentence import check_text, read_inspected, takes_pairs
from core.artifacts.weights import all_known, weight_stamps
from core.errors import PlaygroundError, quote_value
from core.messages import N_, _, join_list, ngettext, sentences, with_more
from core.representation.attention import punctuation
from core.settings import settings
from pages.ui import state
from pages.ui.address import Tokens
from pages.ui.bound import Control, bound, bound_nearest, bound_segments, bound_switch
from pages.ui.parts import distinct, escaped, missing_weights
from pages.ui.tables import truncate
from pages.ui.tokens import reads
from pages.ui.tokens.reads import Reading, TokenRun
from pages.ui.waiting import draw_job, job_of, start_job

# By default k is a third of the words, but no more than a reader can see at a glance.
K_SHARE, K_LEAST, K_GLANCE, K_MAX = 1 / 3, 2, 8, 90
MEAN = "mean"
# Two controls fit side by side on a phone.
CONTROL_PX = 160
# A visitor's text is part of the address, whose length browsers and servers limit.
OWN_CHARS_MAX = 4_000
OPTION_CHARS = 200
EXAMPLE, OWN = "example", "own"
SOURCES = {EXAMPLE: N_("An example"), OWN: N_("Your own text")}
NOT_KEPT = N_(
    "This run stored no attention for its examples: it is a cell of a grid that trained at once, it predates this "
    "feature, or its encoder's tokenizer does not report word positions."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the Tokens page.

    Attributes:
        layer: 1 to `layers`.
        head: 0 to `heads` − 1, as an array index; None for the mean over heads.
        k: number of selected words.
        before, after: the two steps.
        punctuation: whether punctuation can be selected.
    """

    layers: int
    heads: int
    layer: int
    head: int | None
    k: int
    before: int
    after: int
    punctuation: bool

    def skipped(self, words: Sequence[str]) -> tuple[int, ...]:
        """Return the positions that the selection leaves out."""
        return () if self.punctuation else punctuation(words)

    @property
    def sentence(self) -> str:
        """The settings in words, shown beside numbers."""
        if self.punctuation:
            return _("{where}, k {k}", where=self.where, k=self.k)
        return _("{where}, k {k}, without punctuation", where=self.where, k=self.k)

    @property
    def where(self) -> str:
        return _("layer {layer} of {layers}, {head}", layer=self.layer, layers=self.layers, head=self.which_head)

    @property
    def which_head(self) -> str:
        if self.head is None:
            return _mean_of(self.heads)
        return _("head {head} of {heads}", head=self.head + 1, heads=self.heads)


def choose(
    known: TokenRun, shape: tuple[int, ...], steps: Sequence[int], *, longest: int, with_before: bool = True
) -> Settings:
    """Draw the controls and read them.

    Args:
        shape: numbers of layers, of heads and of tokens.
        steps: steps with known attention, at least one.
        longest: number of words in the longest text, which limits the range of k.
        with_before: whether two steps are compared.
    """
    layers, heads, _tokens = shape
    first = min(K_GLANCE, max(K_LEAST, round(K_SHARE * known.usual))) if known.usual else K_GLANCE
    most = min(K_MAX, max(longest, first))
    known_steps = {*known.frames, *steps}  # the address may name a step at which this text has no attention
    head_names = {MEAN: _mean_of(heads).capitalize()}
    if heads > 1:
        head_names |= {str(number): _("Head {head}", head=number) for number in range(1, heads + 1)}
    # All are read before any is drawn, so that address errors appear above the row.
    problem = _("this encoder has layers 1 to {layers}", layers=layers)
    layer, to_layer = bound(Tokens.LAYER, range(1, layers + 1), layers, problem)
    head, to_head = bound(Tokens.HEAD, head_names, problem=_("this encoder has heads 1 to {heads}", heads=heads))
    problem = _("k is 1 to {most} here", most=most)
    k, to_k = bound_nearest(Tokens.K, range(1, most + 1), first, problem, range(1, K_MAX + 1))
    before, to_before = steps[0], None
    if with_before:
        before, to_before = bound_nearest(Tokens.BEFORE, steps, before, known=known_steps)
    after, to_after = bound_nearest(Tokens.AFTER, steps, steps[-1], known=known_steps)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if layers > 1:
            _slider(_("Layer"), layers, _("Block whose attention is shown; the last by default."), to_layer)
        st.selectbox(
            _("Head"), list(head_names), format_func=head_names.__getitem__, width=CONTROL_PX, **to_head.by_index
        )
        _slider(_("Top k words"), most, _("Number of words to select."), to_k)
        if to_before is not None:
            step_slider(_("Before (step)"), steps, to_before)
        step_slider(_("After (step)") if with_before else _("Step"), steps, to_after)
        about = _("Include punctuation. Special tokens are never included.")
        marks = bound_switch(_("Punctuation"), Tokens.PUNCTUATION, help=about)
    if len(steps) == 1:
        only = f"{steps[0]:,}"
        if with_before:
            st.caption(_("Step {step} is the only one so far, so before and after are equal.", step=only))
        else:
            st.caption(_("Step {step} is the only one so far.", step=only))
    return Settings(layers, heads, layer, None if head == MEAN else int(head) - 1, k, before, after, marks)


def _mean_of(heads: int) -> str:
    """Name the mean over heads. A replay holds only this mean, without the number of heads."""
    return _("mean of {heads} heads", heads=heads) if heads > 1 else _("mean of all heads")


def _slider(label: str, most: int, about: str, tied: Control) -> None:
    st.slider(label, 1, most, width=CONTROL_PX, help=about, **tied.by_value)


def step_slider(label: str, steps: Sequence[int], tied: Control) -> None:
    """Draw the choice of a step, unless there is only one."""
    if len(steps) > 1:
        st.select_slider(label, steps, format_func=lambda step: f"{step:,}", width=CONTROL_PX, **tied.by_value)


def choose_text(known: TokenRun) -> Reading | None:
    """Draw the choice of a text. Return the text, or None while there is nothing to show. Raises: PlaygroundError."""
    if not known.texts:
        own = _("Your own texts can be shown at steps with stored weights.")
        st.info(sentences([_(NOT_KEPT), own]))
        return _own(known)
    default = OWN if Tokens.TEXT.text is not None else EXAMPLE
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        source = bound_segments(_("Text"), Tokens.SOURCE, SOURCES, default)
        if source == EXAMPLE:
            labels = []
            for read, label in zip(known.texts, known.labels, strict=True):
                text = " ↔ ".join(" ".join(side.split()) for side in read.sides)
                labels.append(with_more(truncate(text, OPTION_CHARS), known.probe.classes[label]))
            options = distinct(labels, [_("example {number}", number=example) for example in known.ids])
            example, tied = bound(Tokens.EXAMPLE, known.ids, known.ids[0])
            about = [_("Type to search.")]
            if left_out := len(known.probe.ids) - len(known.ids):
                about.append(_("Attention was not stored for {examples} more.", examples=f"{left_out:,}"))
            st.selectbox(
                _("Example ({examples} with stored attention)", examples=f"{len(known.ids):,}"),
                known.ids,
                format_func=dict(zip(known.ids, options, strict=True)).__getitem__,
                help=sentences(about),
                **tied.by_index,
            )
    if source != EXAMPLE:
        return _own(known)
    reading, problem = reads.example_reading(known, known.ids.index(example))
    if problem is not None:
        st.warning(escaped(problem))
    if reading is None and problem is None:
        st.info(_("The frames so far have no attention for this example."))
    return reading


def _own(known: TokenRun) -> Reading | None:
    stamps = weight_stamps(known.store, known.run)
    asked = _read_address_text(known, takes_pairs(known.store, known.run), stamps)
    if asked is None:
        return None
    request = {"run": known.run.id, "what": "sentence", "text": asked[0], "second": asked[1]}
    if draw_job("inspect", request):
        return None
    found = read_inspected(known.store.run_folder(known.run.id), *asked)
    if found is None:
        return None
    if not all_known(known.run, stamps, found.weights):
        st.caption(_("Weights of more steps have been stored since."))
        if st.button(_("Analyse the text with these weights too"), icon=":material/refresh:", key="tokens.more_steps"):
            start_job("inspect", request, N_("Analysing {text}"), text=quote_value(asked[0]))
    if not found.read.words:
        st.info(_("This encoder's tokenizer does not report word positions, so attention cannot be shown by word."))
        return None
    key = hashlib.sha256(repr(asked).encode()).hexdigest()[:12]
    return Reading(f"{known.run.id}.own.{key}", found.read, found.steps, tuple(found.attention), found.logits, None)


def _read_address_text(known: TokenRun, pair: bool, stamps: Mapping[int, int]) -> tuple[str, str | None] | None:
    """Draw the form. Return the text of the address, or None if it is not valid; the button replaces it."""
    most = min(OWN_CHARS_MAX // (2 if pair else 1), settings().max_text_chars)
    items = (Tokens.TEXT, Tokens.SECOND) if pair else (Tokens.TEXT,)
    with st.form("tokens.own", border=False):
        typed = [
            st.text_area(
                _("Second text") if item is Tokens.SECOND else _("First text") if pair else _("Your text"),
                item.text or "",
                max_chars=most,
                height=90,
                key=f"tokens.{item.name}.{known.run.id}",
            )
            for item in items
        ]
        with st.container(horizontal=True, vertical_alignment="center"):
            pressed = st.form_submit_button(_("Analyse"), icon=":material/visibility:", type="primary")
            about = ngettext(
                "Computed with the stored weights of step {steps}.",
                "Computed with the stored weights of steps {steps}.",
                len(stamps),
                steps=join_list(f"{step:,}" for step in stamps),
            )
            st.caption(about, width="stretch")
    missing_weights(known.run)
    # The session stores the request too, because a click right after it still carries the previous address.
    asked: list[str | None] = state.session_value(f"tokens.asked.{known.run.id}", list)
    given = asked if Tokens.TEXT.text is None else [item.text for item in items]
    if not pressed and not given:
        return None
    try:
        first, *rest = typed if pressed else given
        checked = check_text(first, (rest[0] or "") if pair else None, pair=pair, most_chars=most)
    except PlaygroundError as error:
        st.error(escaped(str(error)))
        return None
    sides = (checked, None) if isinstance(checked, str) else checked
    Tokens.TEXT.put(sides[0])
    Tokens.SECOND.put(sides[1])
    state.remember(f"tokens.asked.{known.run.id}", list(sides))
    if pressed:
        request = {"run": known.run.id, "what": "sentence", "text": sides[0], "second": sides[1]}
        job = job_of("inspect", request)
        if job is None or not job.active:
            start_job("inspect", request, N_("Analysing {text}"), text=quote_value(sides[0]))
    return sides
