"""A grid: one setting against another under several seeds, and what is compared with what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from core.config import FILE_TASK, RunConfig
from core.config.describe import value_text
from core.config.edit import settings_text
from core.config.fields import build
from core.config.vary import TwinSetting, sweepable
from core.errors import ConfigError
from core.experiments.design import MOST_LEVELS, Axis, Design, axis_of, axis_title, grid_name
from core.experiments.shared_settings import shared_settings
from core.messages import _, called
from core.parameters import Parameter, Value
from pages.ui import state
from pages.ui.address import Experiments, FineTune, Item, split
from pages.ui.bound import bound
from pages.ui.experiments.base_form import USUAL_SEEDS, chosen_base, early_stopping_fields, seeds_field, with_frames
from pages.ui.form_start import draft_of_link
from pages.ui.parameter_widget import report_problem
from pages.ui.parts import escaped

NOTHING = "none"
# A cell outside the grid, to compare with.
AGAINST_CE = "ce"
CE = {"label": "CE", "settings": {"preset": "ce"}}
Values = Sequence[Value | None]


def grid_form() -> Design:
    """Draw the form and read it. Raises: ConfigError for what cannot be a grid."""
    st.header(_("A grid, or seeds alone"))
    about = st.container()
    base = chosen_base(_from_address(), "grid")
    offered = sweepable(base)
    axes: list[Axis] = []
    first = _axis(offered, base, Experiments.FIRST, Experiments.FIRST_VALUES, _("Vary"))
    if first is not None:
        axes.append(first)
        second = _axis(
            {path: one for path, one in offered.items() if path != Experiments.FIRST.text},
            base,
            Experiments.SECOND,
            Experiments.SECOND_VALUES,
            # Translators: a second setting, against which the first is varied.
            _("Against"),
        )
        axes += [second] if second is not None else []
    shared = shared_settings(base, axes)
    about.caption(
        _(
            "{settings}. What is not varied here is as on Fine-tune.",
            settings=escaped(" · ".join([*shared.rows, *shared.objective])),
        )
    )
    seeds = seeds_field(USUAL_SEEDS, "grid")
    compared = _against(axes, base)
    given = {
        "name": grid_name(base, axes),
        "base": with_frames(base).model_dump(mode="json"),
        "axes": [axis.model_dump(mode="json") for axis in axes],
        "seeds": seeds,
        "early_stopping": early_stopping_fields(),
    }
    # After every control has written into the address, which the link carries.
    about.page_link(
        "pages/fine_tune.py",
        label=_("Change the other settings"),
        icon=":material/tune:",
        query_params=_query(base),
    )
    return build(Design, given | compared)


def _axis(
    offered: Mapping[str, TwinSetting], base: RunConfig, item: Item[str], values: Item[list[str]], label: str
) -> Axis | None:
    """One setting and its values; None where nothing is to be varied."""
    names = {NOTHING: _("Nothing: seeds alone") if item is Experiments.FIRST else _("Nothing else")}
    names |= {path: _(one.label) for path, one in offered.items()}
    left, right = st.columns([2, 3], vertical_alignment="top")
    with left:
        path, tied = bound(item, names, NOTHING, labels=names.values())
        st.selectbox(label, list(names), format_func=names.__getitem__, **tied.by_index)
    if path == NOTHING:
        values.forget()
        return None
    setting = offered[path]
    with right:
        chosen = _values(setting, path, values)
    return axis_of(path, chosen, base)


def _values(setting: TwinSetting, path: str, item: Item[list[str]]) -> Values:
    """The values of an axis: those that are suggested, or typed."""
    parameter = setting.parameter
    known: dict[str, Value | None] = {}
    given: Values = [setting.value, *(one.value for one in setting.suggestions)]
    if parameter.kind == "choice":
        given = parameter.options
    elif parameter.kind == "switch":
        given = [True, False]
    elif setting.value is None and not setting.suggestions:
        given = [parameter.default]
    for value in sorted({value for value in given if value is not None}, key=_order):
        known[_text(value)] = value
    if None in given and None in parameter.words:
        known[_text(None)] = None
    asked = [text for text in split(item.text or "") if text]
    usual = [text for text in known if parameter.kind != "choice" or len(known) <= 3] or list(known)[:2]
    typed = st.multiselect(
        _("Values"),
        [*known, *(text for text in asked if text not in known)],
        default=asked or usual,
        format_func=lambda text: value_text(known[text], parameter) if text in known else text,
        accept_new_options=parameter.kind in ("number", "integer", "name"),
        max_selections=MOST_LEVELS,
        placeholder=_("Type a value and press Enter"),
        help=_(parameter.help) or None,
        key=f"experiment.values.{path}",
    )
    item.put(list(typed))
    found = []
    for text in typed:
        try:
            found.append(known[text] if text in known else _parsed(parameter, text))
        except ConfigError as problem:
            report_problem(st, problem)
    if not typed:
        report_problem(st, ConfigError(_(setting.label), _("an empty list"), "give at least one value."))
    found = list(dict.fromkeys(found)) or [known[text] for text in usual]
    numbers = all(isinstance(value, int | float) for value in found)
    return sorted(found, key=lambda value: _order(value or 0)) if numbers else found


def _order(value: Value) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _text(value: Value | None) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _parsed(parameter: Parameter, text: str) -> Value:
    """What was typed, checked. Raises: ConfigError."""
    if parameter.kind == "name":
        return parameter.check(_(parameter.label), text)
    try:
        value = json.loads(text.replace(",", "."))
    except ValueError:
        raise ConfigError(_(parameter.label), text, parameter.remedy) from None
    return parameter.check(_(parameter.label), value)


def _against(axes: Sequence[Axis], base: RunConfig) -> dict[str, Any]:
    """What every cell is compared with: nothing, a level of an axis, or plain cross-entropy."""
    labels = {NOTHING: _("Nothing")}
    for place, axis in enumerate(axes):
        title = axis_title(axis, base)
        labels |= {f"{place}.{number}": called(title, level.title) for number, level in enumerate(axis.levels)}
    if base.phases[0].objective.contrastive and not any(axis.name == "Objective" for axis in axes):
        labels[AGAINST_CE] = _("Cross-entropy alone, as one more cell")
    if len(labels) == 1:
        return {}
    chosen, tied = bound(Experiments.AGAINST, labels, NOTHING, labels=labels.values())
    st.selectbox(
        _("Compared with"),
        list(labels),
        format_func=labels.__getitem__,
        help=_("Differences are paired: the same seeds, and where they were kept the same test examples."),
        **tied.by_index,
    )
    if chosen == AGAINST_CE:
        return {"reference": CE}
    if chosen == NOTHING:
        return {}
    of_axis, _dot, of_level = chosen.partition(".")
    against = axes[int(of_axis)]
    return {"baseline": {against.name: against.levels[int(of_level)].label}}


def _from_address() -> RunConfig:
    """The draft of a link, or that of Fine-tune's form."""
    texts = state.texts_in_url(Experiments.SET.name)
    return draft_of_link(Experiments.SET.name, texts) if texts else state.remembered("draft", RunConfig)


def _query(base: RunConfig) -> dict[str, Any]:
    """The query of Fine-tune's form with this draft, and with the grid."""
    of_draft = (Experiments.TASK, Experiments.STEPS)
    grid = {item.name: item.text for item in Experiments.of("design") if item.text and item not in of_draft}
    query: dict[str, Any] = {FineTune.GRID.name: urlencode(grid)} if grid else {}
    return query if base.task.id == FILE_TASK else query | {"set": settings_text(base), "task": base.task.id}
