"""Starting point of the form: the launch or final settings of a run, a link, a config file, or the last draft."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from core.advice.defaults import DEFAULT_STEPS, Usual, usual
from core.config import RunConfig, TaskConfig, parse_config
from core.config.compare import config_differences
from core.config.edit import from_settings, settings_text
from core.config.plan import as_ended, as_launched, default_frame_steps, rate_carries_over, settings_at_end
from core.errors import PlaygroundError
from core.messages import N_, _, clauses, sentences
from core.store import RunRecord
from core.workers import Engine
from pages.ui import state
from pages.ui.address import FineTune
from pages.ui.bound import bound_segments, forget
from pages.ui.parts import escaped, show_errors

CHOICES = {"ended": N_("Final values"), "launched": N_("Launch values")}


def template_settings(run: RunRecord) -> tuple[RunConfig, str]:
    """Return the settings of a run that the form starts from, and a name for their source.

    If the run's knobs were turned, the page asks whether to use the launch or the final values.
    """
    launched, ended = as_launched(run.config), as_ended(run.effective, run.last_step)
    if ended == launched:
        return launched, run.id
    moved = config_differences([launched, ended])
    turned = clauses(f"{_(one.label)} {one.values[0]} → {one.values[1]}" for one in moved)
    # Translators: below are buttons that say which of its settings: as it ended, as launched.
    question = _(
        "Knobs of **{title}** were turned during the run: {turned}. Use its settings:",
        title=escaped(run.title),
        turned=escaped(turned),
    )
    st.markdown(question)
    chosen = bound_segments(_("Settings"), FineTune.AS, CHOICES)
    words = [
        _("The final values apply from the first step.")
        if chosen == "ended"
        else _("The values at launch, without the turns.")
    ]
    ends = [(phase, settings_at_end(run.effective, i, run.last_step)) for i, phase in enumerate(run.config.phases)]
    kept = [used.rate_factor for phase, used in ends if not rate_carries_over(phase, used.rate_factor)]
    if chosen == "ended" and kept:
        no_run = _(
            "The learning rate × {factor} cannot be set at launch, so the launch value is used.",
            factor=f"{kept[0]:g}",
        )
        words.append(no_run)
    words.append(_("To repeat the turns at their steps, make a twin on Compare."))
    st.caption(sentences(words))
    return (ended if chosen == "ended" else launched), f"{run.id}.{chosen}"


# Browsers and servers limit the length of an address.
LINK_CHARS_MAX = 6_000
LINK_SETTINGS_MAX = 200
CONFIG_BYTES_MAX = 2**20


def form_start(engine: Engine) -> tuple[RunConfig, str]:
    """Return the draft that fills the form, and a name for its source: another source restarts the form.

    Ignore an address that this session wrote: the second of two quick presses still carries the address from before.
    """
    given = tuple(state.texts_in_url(FineTune.SET.name))
    links = state.session_value("form.links", set[tuple[str, ...]])
    if given and given not in links:
        links.add(given)
        _begin(draft_of_link(given), f"link.{hash(given)}")
        forget([FineTune.FROM, FineTune.AS])
    origin = state.session_value("form.origin", str)
    if not given or not origin:
        template = FineTune.FROM.run(engine.store)
        if template is not None:
            state.forget("form.origin")
            return template_settings(template)
    return state.session_value("draft", RunConfig), origin


def _begin(config: RunConfig, origin: str) -> None:
    """Restart the form from a draft and discard the values of its widgets."""
    state.begin_form()
    state.remember("draft", config)
    state.remember("form.origin", origin)


def draft_of_link(texts: Sequence[str]) -> RunConfig:
    """Return the draft of a link's settings; complain about unusable ones and leave them out."""
    with suppress(PlaygroundError):  # some are valid only together, such as the weights that λ binds
        return from_settings(texts[:LINK_SETTINGS_MAX])
    used: list[str] = []
    config = RunConfig()
    for text in texts[:LINK_SETTINGS_MAX]:
        try:
            config = from_settings([*used, text])
        except PlaygroundError as error:
            state.complain_of_error(FineTune.SET.name, text, error)
        else:
            used.append(text)
    return config


def put_link(draft: RunConfig, now: Usual) -> None:
    """Write the draft's differences from the defaults to the address.

    Args:
        now: usual settings for the task. If they differ from the defaults, the link of a draft of defaults includes the
            batch size.
    """
    texts = settings_text(without_defaults(draft))
    if not texts and now != usual(0, 0):
        texts = [f"phases.0.batch_size={draft.phases[0].batch_size}"]
    if sum(map(len, texts)) > LINK_CHARS_MAX:
        texts = []
    state.session_value("form.links", set[tuple[str, ...]]).add(tuple(texts))
    FineTune.SET.say(texts)


def without_defaults(draft: RunConfig) -> RunConfig:
    """Return the draft with default steps and frames left open; the form always fills them in."""
    steps = [phase.steps or DEFAULT_STEPS for phase in draft.phases]
    phases = [
        phase.model_copy(update={"steps": None if phase.steps == DEFAULT_STEPS else phase.steps})
        for phase in draft.phases
    ]
    usual = draft.probe.frame_steps == default_frame_steps(sum(steps))
    probe = draft.probe.model_copy(update={"frame_steps": None}) if usual else draft.probe
    return draft.model_copy(update={"phases": tuple(phases), "probe": probe})


def forget_links() -> None:
    """Forget the links that this session has used, so that following one again restarts the form."""
    state.forget("form.links")


def forget_start() -> None:
    """Clear the form's source after a launch, when the address names the run."""
    forget([FineTune.FROM, FineTune.AS, FineTune.TASK, FineTune.GRID, FineTune.SET])
    state.forget("form.origin")


def open_config() -> None:
    """Draw a small form that fills the run's form from a config file."""
    with st.popover(_("Open a config"), icon=":material/upload_file:", type="tertiary"):
        st.caption(
            _(
                "A JSON file, as exported from a run's page or by `python -m core export`. It fills in the "
                "form and starts no run."
            )
        )
        file = st.file_uploader(
            _("Config"), ["json"], label_visibility="collapsed", max_upload_size=1, key="config.file"
        )
        if file is None or not st.button(_("Use it"), type="primary", key="config.use"):
            return
        with show_errors():
            config = as_launched(parse_config(file.getvalue()[: CONFIG_BYTES_MAX + 1]))
            task = TaskConfig.model_validate(config.task.model_dump() | {"content_hash": None})
            _begin(config.model_copy(update={"task": task}), f"file.{hash(file.getvalue())}")
            forget([FineTune.FROM, FineTune.AS, FineTune.TASK, FineTune.SET])
            st.toast(_("The form now has the settings of {file}.", file=escaped(file.name)))
            st.rerun()
