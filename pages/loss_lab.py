"""Loss lab: points that move by the exact gradient of a loss, under chosen τ, λ and learning rate. No training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.lab.choices import ABOUT_SPACES, FEWEST_POINTS, LAYOUTS, MOST_POINTS, SPACES, Stage
from core.messages import N_, _, pgettext
from pages.ui import state
from pages.ui.address import LossLab
from pages.ui.bound import bound, bound_choice, bound_switch, forget
from pages.ui.lab import forget_lab, lab
from pages.ui.parts import page_head

MOST_SEEDS = 10_000
# Situations to start from: name, description, and the values of the address.
SITUATIONS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    (
        N_("Collapse"),
        N_("All points start at almost one position, where pull and push nearly cancel."),
        {"start": "collapsed", "a": "out_1_0.1_0.5"},
    ),
    (
        N_("Exploding gradient"),
        N_("Vectors without normalisation: every step makes them longer, until the gradient explodes."),
        {"space": "plane", "a": "out_1_0.1_5"},
    ),
    (
        N_("Hard negative"),
        N_("A point of another class amid the positives of the ringed point, at a low temperature."),
        {"start": "mislabelled", "a": "out_1_0.05_0.1", "anchor": "1"},
    ),
)


def page() -> None:
    head = page_head(_("Loss lab"))
    head.caption(_("Points move down the exact gradient of a loss. Drag them, change τ, press Play."), width="content")
    with head:
        st.caption(_("Examples:"), width="content")
        for name, about, address in SITUATIONS:
            st.button(_(name), type="tertiary", help=_(about), on_click=_set_situation, args=(address,))
    state.repeat_complaints()
    left, right = st.columns([1, 4.2], gap="medium")
    with left, st.container(key="lab_stage"):
        space = bound_choice(_("Space"), LossLab.SPACE, {name: _(label) for name, label in SPACES.items()})
        st.caption(_(ABOUT_SPACES[space]))
        layouts = {name: _(label) for name, label in LAYOUTS.items()}
        layout = bound_choice(pgettext("where points lie at first", "Start"), LossLab.LAYOUT, layouts)
        points, tied = bound(LossLab.POINTS, range(FEWEST_POINTS, MOST_POINTS + 1))
        st.select_slider(_("Points"), range(FEWEST_POINTS, MOST_POINTS + 1), **tied.by_value)
        classes, tied = bound(LossLab.CLASSES, [2, 3, 4])
        st.segmented_control(_("Classes"), [2, 3, 4], required=True, **tied.by_default)
        seed, tied = bound(LossLab.SEED, range(MOST_SEEDS))
        st.number_input(
            _("Seed"), 0, MOST_SEEDS - 1, step=1, help=_("Each seed draws different starting points."), **tied.by_value
        )
        about = _("The same start under another loss, τ or learning rate.")
        beside = bound_switch(_("Compare with a second setting"), LossLab.BESIDE, help=about)
    with right:
        chosen = {"space": space, "layout": layout, "points": points, "classes": classes, "seed": seed}
        lab(Stage.model_validate(chosen), beside)


def _set_situation(address: Mapping[str, str]) -> None:
    items = LossLab.items()
    forget(items.values())
    for name, value in address.items():
        items[name].say(value)
    forget_lab()


state.require_app()
page()
