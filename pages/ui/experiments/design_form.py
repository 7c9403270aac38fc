"""The form of a design: a protocol's levels, or a grid of settings under several seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from core.advice.defaults import DEFAULT_STEPS
from core.config import FILE_TASK, PhaseConfig, RunConfig
from core.config.describe import value_text
from core.config.edit import apply_settings, settings_text
from core.config.fields import build, fields_of
from core.config.vary import TwinSetting, sweepable
from core.errors import ConfigError, PlaygroundError
from core.experiments.design import (
    LEAN,
    MOST_LEVELS,
    MOST_SEEDS,
    Axis,
    Design,
    EarlyStopping,
    axis_of,
    axis_title,
    grid_name,
)
from core.experiments.protocols.entry import Protocol
from core.experiments.shared_settings import shared_settings
from core.experiments.surface import STEPS as SURFACE_STEPS
from core.experiments.surface import TRAIN_ROWS, surface_design, trains_every_block
from core.messages import N_, _, join_label
from core.models.source import encoder_shape
from core.parameters import RELATIVE_LAYERS, Parameter, Value
from core.tasks import TaskData
from core.workers.run_rows import TaskSource
from pages.ui import reads, state
from pages.ui.address import Experiments, FineTune, Item, positive_number, split
from pages.ui.bound import bound_choice, bound_switch
from pages.ui.experiments.surface import blocks_trained
from pages.ui.form import encoder_field
from pages.ui.form_start import draft_of_link
from pages.ui.parameter_widget import number_field, report_problem
from pages.ui.parts import escaped, page_link, task_names

USUAL_SEEDS = 5
SEEDS = Parameter(
    "seeds",
    N_("Seeds"),
    USUAL_SEEDS,
    N_("Runs per cell, which differ only in the seed."),
    kind="integer",
    low=1,
    high=MOST_SEEDS,
)
STEPS = replace(fields_of(PhaseConfig)["steps"], words={})
NOTHING = "none"
# A reference cell outside the grid.
AGAINST_CE = "ce"
CE = {"label": "CE", "settings": {"preset": "ce"}}
Values = Sequence[Value | None]


def chosen_base(base: RunConfig, key: str) -> RunConfig:
    """Draw the fields for task, encoder and steps. Return the draft with their values."""
    own = reads.own_tasks()
    labels = task_names(own, base.task)
    if any(term.entry.reads == "scores" for term in base.phases[0].objective.terms):
        labels = {
            name: label for name, label in labels.items() if name in own and own[name].kind == "similarity"
        } or labels
    left, middle, right = st.columns([5, 5, 3])
    with left:
        usual = base.task.id if base.task.id in labels else next(iter(labels))
        task = bound_choice(_("Task"), Experiments.TASK, labels, usual)
    encoder = encoder_field(middle, base.encoder.id, f"experiment.{key}.encoder")
    settings: dict[str, Any] = {"encoder.id": encoder or base.encoder.id}
    if task != base.task.id:
        settings |= {"task.id": task, "task.path": None, "task.name": None}
    if len(base.phases) == 1 and base.phases[0].epochs is None:
        steps = base.phases[0].steps or DEFAULT_STEPS
        settings["steps"] = number_field(
            right, STEPS, Experiments.STEPS.read(positive_number, steps), key=f"experiment.{key}.steps.{steps}"
        )
        Experiments.STEPS.put(settings["steps"], steps)
    chosen = apply_settings(base, settings)
    return chosen.model_copy(update={"task": reads.library().with_current_name(chosen.task)})


def seeds_field(usual: int, key: str) -> int:
    """Draw the field for the number of seeds. Args: usual: the default; key: of the form."""
    start = min(Experiments.SEEDS.read(positive_number, usual), MOST_SEEDS)
    seeds = int(number_field(st, SEEDS, start, key=f"experiment.seeds.{key}"))
    Experiments.SEEDS.put(seeds, usual)
    return seeds


def early_stopping_fields() -> dict[str, int] | None:
    """Draw the early-stopping fields. Return their values, or None if no run is stopped early."""
    about = _(
        "For a search: at a few steps runs are compared by validation accuracy, and only the best continue "
        "(ASHA, Li et al. 2020). This finds good cells, but the comparison of cells is biased."
    )
    if not bound_switch(_("Stop poor runs early"), Experiments.EARLY, help=about):
        return None
    usual = EarlyStopping()
    return {
        name: int(number_field(column, field, getattr(usual, name), key=f"experiment.{name}"))
        for column, (name, field) in zip(st.columns(3), fields_of(EarlyStopping).items(), strict=False)
    }


def with_frames(base: RunConfig) -> RunConfig:
    """Draw the switch for maps over the steps. Return the draft with or without them."""
    about = _(
        "Stores as many frames as a single run. Otherwise a run has frames only at its start and end, which is "
        "faster and takes a third of the disk space."
    )
    wanted = bound_switch(_("Keep all frames"), Experiments.FRAMES, help=about)
    return apply_settings(base, {name: None if wanted else value for name, value in LEAN.items()})


def grid_form() -> Design:
    """Draw the form of a grid and return its design. Raises: ConfigError for an invalid grid."""
    st.header(_("Grid or seeds"))
    about = st.container()
    # The draft comes from a link or from Fine-tune's form.
    texts = state.texts_in_url(Experiments.SET.name)
    draft = draft_of_link(texts) if texts else state.session_value("draft", RunConfig)
    base = chosen_base(draft, "grid")
    offered = sweepable(base)
    axes: list[Axis] = []
    first = _axis(offered, base, Experiments.FIRST, Experiments.FIRST_VALUES, _("First setting"))
    if first is not None:
        axes.append(first)
        second = _axis(
            {path: one for path, one in offered.items() if path != Experiments.FIRST.text},
            base,
            Experiments.SECOND,
            Experiments.SECOND_VALUES,
            _("Second setting"),
        )
        axes += [second] if second is not None else []
    shared = shared_settings(base, axes)
    about.caption(
        _(
            "{settings}. Other settings are taken from Fine-tune.",
            settings=escaped(" · ".join([*shared.rows, *shared.objective])),
        )
    )
    at_once = bool(axes) and _at_once_switch(base, axes)
    seeds = seeds_field(1, "at_once") if at_once else seeds_field(USUAL_SEEDS, "grid")
    if at_once:
        return surface_design(base, _rows(base), axes, range(seeds))
    compared = _against(axes, base)
    given = {
        "name": grid_name(base, axes),
        "base": with_frames(base).model_dump(mode="json"),
        "axes": [axis.model_dump(mode="json") for axis in axes],
        "seeds": seeds,
        "early_stopping": early_stopping_fields(),
    }
    # The link contains the grid, so it is drawn after every control has updated the address.
    of_draft = (Experiments.TASK, Experiments.STEPS)
    grid = {item.name: item.text for item in Experiments.of("design") if item.text and item not in of_draft}
    query: dict[str, Any] = {FineTune.GRID.name: urlencode(grid)} if grid else {}
    if base.task.id != FILE_TASK:
        query |= {"set": settings_text(base), "task": base.task.id}
    with about:
        page_link("fine_tune", _("Change the other settings"), "tune", query)
    return build(Design, given | compared)


def _at_once_switch(base: RunConfig, axes: Sequence[Axis], problem: str = "") -> bool:
    """Draw the switch that trains all cells of a grid at once, and return its value.

    Args:
        problem: why it is disabled; "" if it is not.
    """
    about = escaped(problem) or _("A first answer in a minute or two, with a live map of every cell.")
    at_once = bound_switch(_("Train all cells at once"), Experiments.AT_ONCE, help=about, disabled=bool(problem))
    if not at_once or problem:
        return False
    st.caption(
        _(
            "A cell is one combination of settings. With this switch on, each cell gets a short run that trains "
            "{blocks} for {steps} steps on up to {rows} texts. The length set above applies only if you later "
            "train a cell in full.",
            blocks=blocks_trained(every=trains_every_block(base, axes)),
            steps=SURFACE_STEPS,
            rows=TRAIN_ROWS,
        )
    )
    return True


def _rows(base: RunConfig) -> TaskData:
    return TaskSource(reads.open_engine().store.folder)(base.task, base.seed)


def _axis(
    offered: Mapping[str, TwinSetting], base: RunConfig, item: Item[str], values: Item[list[str]], label: str
) -> Axis | None:
    """Draw the choice of a setting and its values. Return the axis, or None if nothing is varied."""
    names = {NOTHING: _("None: seeds only") if item is Experiments.FIRST else _("None")}
    names |= {path: _(one.label) for path, one in offered.items()}
    # A grid opens on the temperature, or on the first knob of an objective without one.
    usual = next((path for path in offered if path.endswith("temperature")), next(iter(offered)))
    left, right = st.columns([2, 3])
    with left:
        path = bound_choice(label, item, names, usual if item is Experiments.FIRST else NOTHING)
    if path == NOTHING:
        values.forget()
        return None
    setting = offered[path]
    with right:
        chosen = _values(setting, path, values, base.encoder.id)
    return axis_of(path, chosen, base)


def _values(setting: TwinSetting, path: str, item: Item[list[str]], encoder: str) -> Values:
    """Draw the values of an axis, suggested or typed, and return them."""
    parameter = setting.parameter
    known, usual = _suggested(setting, encoder)
    asked = [text for text in split(item.text or "") if text]
    free = parameter.kind in ("number", "integer", "name", "layers")
    typed = st.multiselect(
        _("Values (type to add one)") if free else _("Values"),
        [*known, *(text for text in asked if text not in known)],
        default=asked or usual,
        format_func=lambda text: value_text(known[text], parameter) if text in known else text,
        accept_new_options=free,
        max_selections=MOST_LEVELS,
        placeholder=_("Type a value and press Enter"),
        help=_(parameter.help) or None,
        key=f"experiment.values.{path}",
    )
    item.put(list(typed))
    found = []
    for text in typed:
        if text in known:
            found.append(known[text])
            continue
        given: Any = text
        try:
            if parameter.kind == "layers" and text.replace(" ", "").isdecimal():
                given = [int(block) for block in text.split()]
            elif parameter.kind not in ("name", "layers"):
                given = json.loads(text.replace(",", "."))
            found.append(parameter.check(_(parameter.label), given))
        except ConfigError as problem:
            report_problem(st, problem)
        except ValueError:  # not a number
            report_problem(st, ConfigError(_(parameter.label), text, parameter.remedy))
    if not typed:
        report_problem(st, ConfigError(_(setting.label), _("an empty list"), "give at least one value."))
    found = list(dict.fromkeys(found)) or [known[text] for text in usual]
    numbers = all(isinstance(value, int | float) for value in found)
    return sorted(found, key=lambda value: _order(value or 0)) if numbers else found


def _suggested(setting: TwinSetting, encoder: str) -> tuple[dict[str, Value | None], list[str]]:
    """Return the suggested values of a setting by their texts, and the texts of those that are chosen at first."""
    parameter = setting.parameter
    given: Values = [setting.value, *(one.value for one in setting.suggestions)]
    if parameter.kind == "layers":
        named: dict[str, Value | None] = {name: name for name in RELATIVE_LAYERS}
        blocks = [(number,) for number in range(encoder_shape(encoder).blocks + 1)]
        return named | {_text(one): one for one in blocks}, ["first_third", "middle_third", "last_third"]
    if parameter.kind == "choice":
        given = parameter.options
    elif parameter.kind == "switch":
        given = [True, False]
    elif setting.value is None and not setting.suggestions:
        given = [parameter.default]
    known: dict[str, Value | None] = {}
    for value in sorted({value for value in given if value is not None}, key=_order):
        known[_text(value)] = value
    if None in given and None in parameter.words:
        known[_text(None)] = None
    return known, [text for text in known if parameter.kind != "choice" or len(known) <= 3] or list(known)[:2]


def _order(value: Value) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _text(value: Value | None) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _against(axes: Sequence[Axis], base: RunConfig) -> dict[str, Any]:
    """Draw the choice of a baseline: nothing, a level of an axis, or plain cross-entropy. Return its design fields."""
    labels = {NOTHING: _("None")}
    for place, axis in enumerate(axes):
        title = axis_title(axis, base)
        labels |= {f"{place}.{number}": join_label(title, level.title) for number, level in enumerate(axis.levels)}
    if base.phases[0].objective.contrastive and not any(axis.name == "Objective" for axis in axes):
        labels[AGAINST_CE] = _("Cross-entropy alone, as an extra cell")
    if len(labels) == 1:
        return {}
    about = _("Differences are paired: the same seeds and, where stored, the same test examples.")
    chosen = bound_choice(_("Baseline"), Experiments.AGAINST, labels, NOTHING, help=about)
    if chosen == AGAINST_CE:
        return {"reference": CE}
    if chosen == NOTHING:
        return {}
    of_axis, _dot, of_level = chosen.partition(".")
    against = axes[int(of_axis)]
    return {"baseline": {against.name: against.levels[int(of_level)].label}}


def protocol_form(protocol: Protocol) -> Design:
    """Draw the form of a protocol, whose levels may be left out, and return its design. Raises: ConfigError."""
    st.header(_(protocol.label))
    source = _("Source: {source}.", source=_(protocol.source))
    st.markdown(f"**{escaped(_(protocol.question))}** :gray[{escaped(source)}]")
    base = chosen_base(protocol.base, f"protocol.{protocol.name}")
    whole = protocol.design(base)
    problem = ""
    try:
        surface_design(whole.base, _rows(whole.base), whole.axes)
    except PlaygroundError as error:
        problem = str(error)
    at_once = _at_once_switch(base, whole.axes, problem)
    seeds = seeds_field(1, "at_once") if at_once else seeds_field(len(whole.seeds), protocol.name)
    axes = list[Axis]()
    for axis in whole.axes:
        against = whole.baseline.get(axis.name)
        titles = {level.label: level.title for level in axis.levels}
        labels = list(titles)
        picked = st.pills(
            axis_title(axis, base),
            labels,
            format_func=titles.__getitem__,
            selection_mode="multi",
            default=labels,
            key=f"experiment.{protocol.name}.{axis.name}",
            help=_("All cells are compared with {level}.", level=titles[against]) if against else None,
        )
        kept = [level for level in axis.levels if level.label in picked or level.label == against]
        axes.append(build(Axis, {"name": axis.name, "levels": [level.model_dump() for level in kept]}))
    base = base if at_once else with_frames(base)
    if at_once:
        return surface_design(
            base,
            _rows(base),
            axes,
            range(seeds),
            protocol=protocol.name,
            baseline=whole.baseline,
            reference=whole.reference,
        )
    chosen = {"axes": [axis.model_dump() for axis in axes], "seeds": seeds, "base": base.model_dump(mode="json")}
    return build(Design, whole.model_dump(mode="json") | chosen)
