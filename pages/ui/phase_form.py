"""The phases of a fine-tune in the form: preset, objective, trained weights and optimiser; two phases are in tabs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st
from pydantic import BaseModel
from streamlit.delta_generator import DeltaGenerator

from core.advice.defaults import DEFAULT_STEPS, Usual, default_rates, usual
from core.catalogue.losses import LOSSES
from core.config import OptimiserConfig, PhaseConfig, TrainableConfig
from core.config.describe import number_text, part_label
from core.config.fields import build, fields_of
from core.config.objective import ObjectiveConfig, TermConfig
from core.config.presets import PRESETS, SHOWING
from core.errors import PlaygroundError
from core.messages import N_, _, join_label, ngettext
from core.models.source import EncoderShape, encoder_shape
from core.workers.limits import check_model
from pages.ui import phases_state, state
from pages.ui.objective_form import objective_form
from pages.ui.parameter_widget import number_field, parameter_field, segmented_field
from pages.ui.parts import summarised
from pages.ui.phases_state import JSON, key

# Settings of each choice of trained weights, with the increment of their fields.
OF_PART: Mapping[str, Mapping[str, float | None]] = {
    "last_blocks": {"blocks": 1},
    "lora": {"lora_rank": 1, "lora_alpha": None, "lora_dropout": 0.05},
}
# Settings of a term that change its structure when they are above 0.
EXTRAS = ("label_smoothing", "margin", "mixup", "cutmix", "clusters", "queue")
CUSTOM = N_("Custom")


def phases_form(
    start: list[PhaseConfig], origin: str, encoder_id: str, now: Usual, preset_place: DeltaGenerator
) -> list[JSON]:
    """Draw the phases and read them, in the JSON form of PhaseConfig.

    Args:
        encoder_id: the encoder, whose size decides the default learning rates.
        now: usual settings for the task.
        origin: source of `start`; the form restarts when it changes.
        preset_place: container in which the choice of a preset is drawn.
    Raises: ConfigError for incompatible settings.
    """
    editable = [
        phase.model_dump(mode="json") | {"steps": phase.steps or DEFAULT_STEPS, "epochs": None} for phase in start
    ]
    phases = phases_state.current_phases(editable, origin, now)
    _preset(phases, preset_place)
    if now != usual(0, 0):
        st.caption(
            _(
                "With more than six classes, τ defaults to {temperature:g} and the batch size to {batch} texts.",
                temperature=now.temperature,
                batch=now.batch_size,
            )
        )
    shape = None
    with suppress(PlaygroundError):  # the launch card explains an unavailable encoder
        check_model("encoder.id", encoder_id)
        shape = encoder_shape(encoder_id)
    if len(phases) == 1:
        return [_phase(0, phases[0], shape, single=True)]
    read, tabs = [], []
    for number, phase in enumerate(phases, 1):
        reads = {LOSSES.entry(term["loss"]).reads for term in phase["objective"]["terms"]}
        kind = _("classifier") if "logits" in reads else _("contrast")
        # Translators: the tab of a phase, such as "Phase 1 · contrast".
        tabs.append(_("Phase {number} · {kind}", number=number, kind=kind))
    for number, tab in enumerate(st.tabs(tabs)):
        with tab:
            read.append(_phase(number, phases[number], shape))
            st.button(
                _("Remove this phase"),
                icon=":material/delete:",
                type="tertiary",
                on_click=phases_state.remove_phase,
                args=(number,),
                key=key(number, "remove_phase"),
            )
    return read


def _preset(phases: list[JSON], place: DeltaGenerator) -> None:
    # Presets with the structure of these objectives, regardless of the values of knobs.
    now = [_structure(phase["objective"]) for phase in phases]
    alike = [name for name, p in PRESETS.items() if [_structure(o) for o in p.objectives] == now]
    picked: str | None = phases_state.picked_preset()
    if picked not in alike:
        picked = next((name for name in alike if PRESETS[name].group != SHOWING), None)
    labels = {name: join_label(_(preset.group), _(preset.label)) for name, preset in PRESETS.items()}
    options = [*PRESETS, *([] if picked else [CUSTOM])]
    widget = key(0, "preset")
    chosen = place.selectbox(
        _("Preset"),
        options,
        index=options.index(picked or CUSTOM),
        format_func=lambda name: labels.get(name) or _(name),
        on_change=phases_state.apply_preset,
        args=(widget,),
        key=widget,
    )
    if chosen in PRESETS:
        preset = PRESETS[chosen]
        st.caption(_("{summary} Source: {source}.", summary=_(preset.summary), source=_(preset.source)))


def _structure(given: JSON) -> Any:
    """Return the structure of an objective, regardless of the values of its knobs; None if it is invalid."""
    try:
        objective = build(ObjectiveConfig, given)
    except ValueError:
        return None

    def of_term(term: TermConfig) -> tuple[Any, ...]:
        extras = [bool(term.parameters.get(name)) for name in EXTRAS]
        extras.append(term.parameters.get("angle_margin", 1) != 1)
        views = tuple(view.view for view in term.views)
        projection = term.parameters.get("projection")
        return (term.loss, views, term.level, term.layers, term.original, projection, *extras)

    return (objective.combine, *map(of_term, objective.terms))


def _phase(number: int, phase: JSON, shape: EncoderShape | None, *, single: bool = False) -> JSON:
    def now(name: str, start: Any) -> Any:
        return state.widget_value(key(number, name)) or start

    objective, trainable = objective_form(number, phase["objective"]), phase["trainable"]
    picked = trainable | {"part": now("trainable", trainable["part"])}
    picked |= {name: now(name, trainable[name]) for name in OF_PART.get(picked["part"], {})}
    learning = TrainableConfig.model_construct(**picked)  # a typed value may be out of bounds
    rate = state.widget_value(key(number, "learning_rate"), phase["optimiser"]["learning_rate"])
    if rate is None and shape is not None:
        rate = default_rates(learning, shape, now("name", phase["optimiser"]["name"])).encoder
    steps = ngettext("{count} step", "{count} steps", now("steps", phase["steps"]))
    summary = [
        _("Training: {part}", part=part_label(learning)),
        # Translators: such as "120 steps, batch size 16".
        _("{steps}, batch size {batch}", steps=steps, batch=now("batch_size", phase["batch_size"])),
        *([] if rate is None else [_("learning rate {rate}", rate=number_text(rate).replace("e-0", "e-"))]),
    ]
    with summarised(summary, key(number, "training")):
        st.markdown(f"**{_('Trained weights')}**")
        fields = fields_of(TrainableConfig)
        part = segmented_field(
            st, fields["part"], trainable["part"], label_visibility="collapsed", key=key(number, "trainable")
        )
        of_part = {
            name: number_field(column, fields[name], trainable[name], step=step, key=key(number, name))
            for column, (name, step) in zip(st.columns(3), OF_PART.get(part, {}).items(), strict=False)
        }
        trainable = trainable | {"part": part} | of_part
        st.markdown(f"**{_('Optimiser')}**")
        read = _optimiser(number, phase | {"objective": objective, "trainable": trainable}, shape)
        if single:
            st.button(
                _("Train in two phases"),
                icon=":material/add:",
                type="tertiary",
                help=_("First a contrastive phase, then the classifier, each with its own steps and learning rate."),
                on_click=phases_state.add_phase,
                key=key(0, "add_phase"),
            )
    phases_state.keep(number, read)
    return read


def _optimiser(number: int, phase: JSON, shape: EncoderShape | None) -> JSON:
    """Draw the optimiser settings of a phase and read them; return the phase with them."""
    start, trainable = phase["optimiser"], phase["trainable"]
    name = state.widget_value(key(number, "name")) or start["name"]
    default = default_rates(build(TrainableConfig, trainable), shape, name) if shape else None

    def field(place: DeltaGenerator, section: type[BaseModel], values: JSON, name: str, **more: Any) -> JSON:
        return {name: parameter_field(place, fields_of(section)[name], values[name], key=key(number, name), **more)}

    def rate(place: DeltaGenerator, name: str, usual: float | None) -> JSON:
        """Draw a learning rate and read it. An empty field means the default, its placeholder if known."""
        known = {} if usual is None else {"placeholder": f"{usual:.1e}"}
        return field(place, OptimiserConfig, start, name, step=1e-5, format="%.1e", **known)

    left, middle, right = st.columns(3)
    lengths = field(left, PhaseConfig, phase, "steps") | field(middle, PhaseConfig, phase, "batch_size")
    lengths["steps"] = lengths["steps"] or DEFAULT_STEPS
    optimiser = rate(right, "learning_rate", default.encoder if default else None)
    left, middle, right = st.columns(3)
    optimiser |= field(left, OptimiserConfig, start, "name")
    optimiser |= rate(middle, "classifier_learning_rate", default.classifier if default else None)
    optimiser |= field(right, OptimiserConfig, start, "layer_decay", step=0.05)
    without = optimiser["name"] != "adamw"
    optimiser |= field(left, OptimiserConfig, start, "bias_correction", disabled=without)
    memory = field(middle, PhaseConfig, phase, "micro_batch")
    memory |= field(right, PhaseConfig, phase, "gradient_checkpointing")
    learns = trainable["part"] in ("all", "last_blocks") and number == 0
    drawn = number_field(
        left,
        fields_of(TrainableConfig)["reinitialised_blocks"],
        trainable["reinitialised_blocks"] if learns else 0,
        disabled=not learns,
        key=key(number, f"reinitialised.{learns}"),
    )
    trainable = trainable | {"reinitialised_blocks": drawn}
    return phase | lengths | memory | {"trainable": trainable, "optimiser": start | optimiser}
