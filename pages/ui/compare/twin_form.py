"""A twin of a run: the same config and seed, one setting changed, launched with one click."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import streamlit as st

from core.config import LARGEST_SEED
from core.config.compare import SEED, config_differences
from core.config.edit import twin, twin_name
from core.config.plan import as_launched
from core.config.vary import Suggestion, TwinSetting, twin_settings
from core.errors import ConfigError
from core.figures.run_curves import MOST_RUNS
from core.messages import N_, _, clauses, join_label
from core.parameters import Parameter, Value
from core.workers import Engine
from pages.ui.address import Compare
from pages.ui.bound import bound, bound_choice, forget
from pages.ui.compare.picking import Compared, put_runs
from pages.ui.parameter_widget import begin_fields, field_problem, number_field, parameter_widget
from pages.ui.parts import escaped, show_errors
from pages.ui.visitor import visitor

OTHER = "other"
SEED_FIELD = Parameter(
    SEED,
    N_("Seed (repetition)"),
    0,
    N_("Other batches, dropout masks and classifier weights. Several seeds show how much is chance."),
    kind="integer",
    low=0,
    high=LARGEST_SEED,
)


def twin_form(engine: Engine, runs: Sequence[Compared]) -> None:
    """Draw the form. When the user launches the twin, add it to the compared runs."""
    st.caption(
        _(
            "A twin has the same settings and seed as its original except for one setting, so the maps show the "
            "effect of that setting."
        )
    )
    begin_fields()
    original, change, value = _choose(runs)
    try:
        made = twin(original.config, change.path, value)
        title = original.name if original.run.name else f"Run {original.run.number}"  # in English, as names are stored
        name = twin_name(title, original.config, made)
        made = twin(original.config, change.path, value, name=name)
    except ConfigError as error:
        st.error(escaped(str(error)))
        return
    different = config_differences([as_launched(original.config), as_launched(made)])
    if different:
        changes = [(_(one.label), *map(escaped, one.values)) for one in different]
        lines = [f"- {join_label(escaped(label), f'{before} → **{after}**')}" for label, before, after in changes]
        st.markdown("\n".join([_("Differences:"), "", *lines]))
    else:
        st.markdown(_("Nothing would differ. Choose another value."))
    repeated = config_differences([made, as_launched(made)])
    if original.config.knob_turns and not repeated:
        st.caption(
            _("The original's knobs were turned. The twin does not repeat turns of the setting that you change.")
        )
    elif repeated:
        turned = escaped(clauses(f"{_(one.label)} {one.values[0]}" for one in repeated))
        st.caption(_("The twin repeats these knob turns of its original at the same steps: {turns}.", turns=turned))
        if len(made.knob_turns) < len(original.config.knob_turns):
            st.caption(_("Knob turns of the changed setting are left out, because they would undo the change."))
    full = len(runs) >= MOST_RUNS
    if full:
        st.caption(_("{most} runs are compared already. Remove one to add the twin.", most=MOST_RUNS))
    if st.button(
        _("Launch the twin"),
        type="primary",
        icon=":material/rocket_launch:",
        key="compare.launch",
        disabled=full or not different or field_problem() is not None,
    ):
        with show_errors():
            with st.spinner(_("Starting")):
                run_id = engine.submit(made, visitor().id)
            put_runs([*(one.run.id for one in runs), run_id])
            forget([Compare.TWIN, *Compare.of("twin"), Compare.SHOW])
            Compare.SHOW.put("curves")
            st.rerun()


def _choose(runs: Sequence[Compared]) -> tuple[Compared, TwinSetting, Value | None]:
    """Draw the choices of the original, of the setting to change, and of its value: a suggestion, or any other."""
    left, right = st.columns(2)
    original = runs[0]
    if len(runs) == 1:
        left.text_input(_("Twin of"), original.name, disabled=True, key="compare.only")
    else:
        with left:
            chosen = bound_choice(_("Twin of"), Compare.TWIN, {one.run.id: one.name for one in runs}, original.run.id)
        original = next(one for one in runs if one.run.id == chosen)
    config = original.config
    following = [(config.seed + more) % (LARGEST_SEED + 1) for more in (1, 2, 3)]
    suggestions = tuple(Suggestion(number, str(number)) for number in following)
    # Last, because repetitions separate luck from effect.
    repetition = TwinSetting(SEED, SEED_FIELD, config.seed, str(config.seed), suggestions)
    changes = {setting.path: setting for setting in (*twin_settings(config), repetition)}
    labels = {path: join_label(_(one.label), one.text) for path, one in changes.items()}
    if Compare.CHANGE.text not in changes:  # the address has a setting of another run
        Compare.CHANGE.forget()
    with right:
        path = bound_choice(_("Setting to change"), Compare.CHANGE, labels, next(iter(changes)))
    change = changes[path]
    suggested: Mapping[str, Suggestion] = {json.dumps(one.value): one for one in change.suggestions}
    names = {**{text: one.text for text, one in suggested.items()}, OTHER: _("Another value")}
    if Compare.TO.text not in names:  # the address has a value of another setting
        Compare.TO.forget()
        Compare.VALUE.forget()
    chosen, tied = bound(Compare.TO, names, next(iter(names)))
    st.segmented_control(
        _("New value"), list(names), format_func=lambda text: names[text], required=True, **tied.by_default
    )
    if chosen != OTHER:
        return original, change, suggested[chosen].value
    parameter = change.parameter
    try:
        value = parameter.check("value", json.loads(Compare.VALUE.text or "null"))
    except (ConfigError, ValueError):  # the address holds no valid value
        known = (change.value, *(one.value for one in change.suggestions), parameter.default)
        value = next(value for value in known if value is not None)
    key = f"compare.value.{original.run.id}.{change.path}"
    if parameter.kind != "number" or parameter.slider is not None:
        value = parameter_widget(st, parameter, value, key)
    else:
        size = float(value)  # type: ignore[arg-type]
        step = float(f"{size / 10 or 0.1:.0e}")
        value = float(number_field(st, parameter, size, step=step, format="%g", key=key))
    Compare.VALUE.put(json.dumps(value))
    return original, change, value
