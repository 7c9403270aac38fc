"""The row of controls that all parts of the Tokens page share: layer, head, k and two steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import streamlit as st

from core.messages import _
from core.representation.attention import punctuation
from pages.ui.address import Item, Tokens
from pages.ui.bound import Tied, bound, bound_nearest, bound_switch

# A third of the words, but no more than can be taken in at a glance.
K_SHARE, K_LEAST, K_GLANCE, K_MAX = 1 / 3, 2, 8, 90
MEAN = "mean"
# Two stand side by side on a phone.
CONTROL_PX = 160


@dataclass(frozen=True, slots=True)
class Settings:
    """What is looked at.

    Attributes:
        layer: 1 to `layers`.
        head: 0 to `heads` − 1 as arrays count; None is the mean over heads.
        k: how many words are selected.
        before, after: steps.
        punctuation: whether marks can be selected like words.
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
        """Positions that the selection leaves out."""
        return () if self.punctuation else punctuation(words)

    @property
    def sentence(self) -> str:
        """As it is shown beside numbers."""
        if self.punctuation:
            return _("{where}, k {k}", where=self.where, k=self.k)
        return _("{where}, k {k}, punctuation left out", where=self.where, k=self.k)

    @property
    def where(self) -> str:
        return _("layer {layer} of {layers}, {head}", layer=self.layer, layers=self.layers, head=self.which_head)

    @property
    def which_head(self) -> str:
        if self.head is None:
            return _mean_of(self.heads)
        return _("head {head} of {heads}", head=self.head + 1, heads=self.heads)


def choose(
    shape: tuple[int, int],
    steps: Sequence[int],
    *,
    longest: int,
    usual: float,
    known_steps: Collection[int],
    with_before: bool = True,
) -> Settings:
    """Draw the controls and read them.

    Args:
        shape: layers and heads.
        steps: of which attention is known, at least one.
        longest: words of the longest text; k reaches no farther than it has to.
        usual: words of the run's middle text, which k begins with a third of; 0 where that is not known.
        known_steps: steps that the address may name although this text knows them not.
        with_before: whether there is something to compare with.
    """
    layers, heads = shape
    first = min(K_GLANCE, max(K_LEAST, round(K_SHARE * usual))) if usual else K_GLANCE
    most = min(K_MAX, max(longest, first))
    head_names = [MEAN, *(str(number) for number in range(1, heads + 1) if heads > 1)]
    # All are read before any is drawn: what the address has wrong is said above the row.
    problem = _("this encoder has layers 1 to {layers}", layers=layers)
    layer, to_layer = bound(Tokens.LAYER, range(1, layers + 1), layers, problem)
    head, to_head = bound(Tokens.HEAD, head_names, problem=_("this encoder has heads 1 to {heads}", heads=heads))
    problem = _("k goes from 1 to {most} here", most=most)
    k, to_k = bound_nearest(Tokens.K, range(1, most + 1), first, problem, range(1, K_MAX + 1))
    before, to_before = _step(Tokens.BEFORE, steps, steps[0], known_steps) if with_before else (steps[0], None)
    after, to_after = _step(Tokens.AFTER, steps, steps[-1], known_steps)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if layers > 1:
            _slider(_("Layer"), layers, _("The output of that block, the last by default."), to_layer)
        st.selectbox(
            _("Head"), head_names, format_func=lambda n: _head_label(n, heads), width=CONTROL_PX, **to_head.by_index
        )
        _slider(_("Top k words"), most, _("How many words the selection takes."), to_k)
        if to_before is not None:
            _step_slider(_("Before, step"), steps, to_before)
        _step_slider(_("After, step") if with_before else _("Step"), steps, to_after)
        marks, to_marks = bound_switch(Tokens.PUNCTUATION)
        st.toggle(
            _("Punctuation"),
            help=_("Let the selection take marks, too. Special tokens never count."),
            **to_marks.by_value,
        )
    if len(steps) == 1:
        only = f"{steps[0]:,}"
        if with_before:
            st.caption(_("Step {step} is the only one so far, so before and after are the same.", step=only))
        else:
            st.caption(_("Step {step} is the only one so far.", step=only))
    return Settings(layers, heads, layer, None if head == MEAN else int(head) - 1, k, before, after, marks)


def _step(item: Item[int], steps: Sequence[int], default: int, known: Collection[int]) -> tuple[int, Tied]:
    return bound_nearest(item, steps, default, known=known)


def _head_label(name: str, heads: int) -> str:
    return _mean_of(heads).capitalize() if name == MEAN else _("Head {head}", head=name)


def _mean_of(heads: int) -> str:
    """A replay holds the mean alone, and no longer of how many it is."""
    return _("mean of {heads} heads", heads=heads) if heads > 1 else _("mean of all heads")


def _slider(label: str, most: int, about: str, tied: Tied) -> None:
    st.slider(label, 1, most, width=CONTROL_PX, help=about, **tied.by_value)


def _step_slider(label: str, steps: Sequence[int], tied: Tied) -> None:
    if len(steps) > 1:
        st.select_slider(label, steps, format_func=lambda step: f"{step:,}", width=CONTROL_PX, **tied.by_value)
