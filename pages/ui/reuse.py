"""Starting from the settings of a run: as launched, or as its knobs ended."""

from __future__ import annotations

import streamlit as st

from core.config import RunConfig
from core.config.compare import config_differences
from core.config.schedule import as_ended, as_launched, rate_carries_over, settings_at_end
from core.messages import N_, _, clauses, sentences
from core.store import RunRecord
from pages.ui.address import FineTune
from pages.ui.bound import bound_segments
from pages.ui.parts import escaped

CHOICES = {"ended": N_("As it ended"), "launched": N_("As launched")}


def template_settings(run: RunRecord) -> tuple[RunConfig, str]:
    """The settings that the form starts from, and a name for where they come from.

    Where the run's knobs were turned, the page asks which of the two kinds it should be.
    """
    launched, ended = as_launched(run.config), as_ended(run.effective, run.last_step)
    if ended == launched:
        return launched, run.id
    moved = config_differences([launched, ended])
    turned = clauses(f"{_(one.label)} {one.values[0]} → {one.values[1]}" for one in moved)
    # Translators: below are buttons that say which of its settings: as it ended, as launched.
    question = _(
        "Knobs of **{title}** were turned while it ran: {turned}. Use its settings:",
        title=escaped(run.title),
        turned=escaped(turned),
    )
    st.markdown(question)
    chosen = bound_segments(_("Settings"), FineTune.AS, CHOICES)
    st.caption(_about(run, chosen))
    return (ended if chosen == "ended" else launched), f"{run.id}.{chosen}"


def _about(run: RunRecord, chosen: str) -> str:
    words = [_("The last values count from the first step on.") if chosen == "ended" else _("Without the turns.")]
    ends = [(phase, settings_at_end(run.effective, i, run.last_step)) for i, phase in enumerate(run.config.phases)]
    kept = [used.rate_factor for phase, used in ends if not rate_carries_over(phase, used.rate_factor)]
    if chosen == "ended" and kept:
        no_run = _(
            "No run can be launched with its learning rate × {factor}: the rate is the one as launched.",
            factor=f"{kept[0]:g}",
        )
        words.append(no_run)
    words.append(_("A twin, made on Compare, repeats the turns at their steps."))
    return sentences(words)
