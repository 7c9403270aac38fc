"""The phases of a fine-tune in the form: preset, objective, what learns, optimiser; in tabs where there are two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.advice.defaults import DEFAULT_STEPS, Rates, Usual, default_rates, usual
from core.catalogue.losses import LOSSES
from core.config import OptimiserConfig, PhaseConfig, TrainableConfig
from core.config.describe import number_text, part_label
from core.config.fields import build, fields_of
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS, SHOWING
from core.errors import PlaygroundError
from core.messages import N_, _, called, ngettext
from core.models.source import EncoderShape, encoder_shape
from core.workers.limits import check_model
from pages.ui import phases_state, state
from pages.ui.objective_form import objective_form, structure
from pages.ui.parameter_widget import choice_field, number_field, segmented_field
from pages.ui.parts import summarised
from pages.ui.phases_state import JSON, key

# The settings of what learns that belong to one way of it, and what a press of a field's buttons adds.
OF_PART: Mapping[str, Mapping[str, float | None]] = {
    "last_blocks": {"blocks": 1},
    "lora": {"lora_rank": 1, "lora_alpha": None, "lora_dropout": 0.05},
}
CUSTOM = N_("Your own")


def phases_form(
    start: list[PhaseConfig], origin: str, encoder_id: str, now: Usual, preset_place: DeltaGenerator
) -> list[JSON]:
    """Draw the phases and read them, in the JSON form of PhaseConfig.

    Args:
        encoder_id: the encoder that learns, whose size decides the default rates.
        now: what is usual for the task.
        origin: where `start` comes from; the form begins again when it changes.
        preset_place: where the choice of a preset is drawn.
    Raises: ConfigError for a mix that cannot go together.
    """
    phases_state.start_from([_editable(phase) for phase in start], origin)
    phases = phases_state.take_usual(now, origin)
    _preset(phases, preset_place)
    if now != usual(0, 0):
        st.caption(
            _(
                "With more than six classes τ begins at {temperature:g} and a batch has {batch} texts.",
                temperature=now.temperature,
                batch=now.batch_size,
            )
        )
    shape = _shape(encoder_id)
    if len(phases) == 1:
        return [_phase(0, phases[0], shape, single=True)]
    read = []
    # Translators: the tab of a phase, such as "Phase 1 · contrast".
    tabs = [_("Phase {number} · {kind}", number=i + 1, kind=_kind(phase)) for i, phase in enumerate(phases)]
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


def _editable(phase: PhaseConfig) -> JSON:
    given = phase.model_dump(mode="json")
    return given | {"steps": phase.steps or DEFAULT_STEPS, "epochs": None}


def _kind(phase: JSON) -> str:
    read = {LOSSES.entry(term["loss"]).reads for term in phase["objective"]["terms"]}
    return _("classifier") if "logits" in read else _("contrast")


def _preset(phases: list[JSON], place: DeltaGenerator) -> None:
    picked = _recognised(phases)
    options = [*PRESETS, *([] if picked else [CUSTOM])]
    widget = key(0, "preset")
    chosen = place.selectbox(
        _("Preset"),
        options,
        index=options.index(picked or CUSTOM),
        format_func=_called,
        on_change=phases_state.apply_preset,
        args=(widget,),
        key=widget,
    )
    if chosen in PRESETS:
        preset = PRESETS[chosen]
        st.caption(_("{summary} Source: {source}.", summary=_(preset.summary), source=_(preset.source)))


def _called(name: str) -> str:
    """What people read for a preset, or for a mix that is none."""
    preset = PRESETS.get(name)
    return _(name) if preset is None else called(_(preset.group), _(preset.label))


def _recognised(phases: list[JSON]) -> str | None:
    """The preset whose kind of objective this is, whatever its knobs say."""
    shown = [_structure(phase["objective"]) for phase in phases]
    alike = [name for name, p in PRESETS.items() if [_structure(o) for o in p.objectives] == shown]
    picked = phases_state.picked_preset()
    return picked if picked in alike else next((name for name in alike if PRESETS[name].group != SHOWING), None)


def _structure(objective: JSON) -> Any:
    try:
        return structure(build(ObjectiveConfig, objective))
    except ValueError:
        return None  # not valid at the moment, so no preset


def _shape(encoder_id: str) -> EncoderShape | None:
    """None for an encoder that cannot be had now, which the launch card explains."""
    try:
        check_model("encoder.id", encoder_id)
        return encoder_shape(encoder_id)
    except PlaygroundError:
        return None


def _phase(number: int, phase: JSON, shape: EncoderShape | None, *, single: bool = False) -> JSON:
    objective = objective_form(number, phase["objective"])
    with summarised(_training_summary(number, phase, shape), key(number, "training")):
        st.markdown(f"**{_('What learns')}**")
        trainable = _trainable(number, phase["trainable"])
        st.markdown(f"**{_('Optimiser')}**")
        default = default_rates(build(TrainableConfig, trainable), shape) if shape else None
        lengths, rate = _optimiser(number, phase, default)
        more, memory, drawn = _more(number, phase, str(trainable["part"]), default)
        if single:
            st.button(
                _("Train in two phases"),
                icon=":material/add:",
                type="tertiary",
                help=_("A contrastive phase first, then the classifier, each with its own steps and rate."),
                on_click=phases_state.add_phase,
                key=key(0, "add_phase"),
            )
    optimiser = phase["optimiser"] | rate | more
    changed = {"objective": objective, "trainable": trainable | drawn, "optimiser": optimiser}
    read = phase | lengths | memory | changed
    phases_state.keep(number, read)
    return read


def _training_summary(number: int, phase: JSON, shape: EncoderShape | None) -> list[str]:
    def now(name: str, start: Any) -> Any:
        return state.widget_value(key(number, name)) or start

    trainable = phase["trainable"] | {"part": now("trainable", phase["trainable"]["part"])}
    trainable |= {name: now(name, trainable[name]) for name in OF_PART.get(trainable["part"], {})}
    learning = TrainableConfig.model_construct(**trainable)  # what was typed may be out of bounds
    rate = state.widget_value(key(number, "learning_rate"), phase["optimiser"]["learning_rate"])
    if rate is None and shape is not None:
        rate = default_rates(learning, shape).encoder
    steps = ngettext("{count} step", "{count} steps", now("steps", phase["steps"]))
    part = part_label(learning)
    return [
        f"{part[0].upper()}{part[1:]}",
        # Translators: how long a run is, such as "120 steps of 16": so many texts in each.
        _("{steps} of {batch}", steps=steps, batch=now("batch_size", phase["batch_size"])),
        *([] if rate is None else [number_text(rate).replace("e-0", "e-")]),
    ]


def _trainable(number: int, start: JSON) -> JSON:
    fields = fields_of(TrainableConfig)
    part = segmented_field(
        st,
        fields["part"],
        start["part"],
        label_visibility="collapsed",
        key=key(number, "trainable"),
    )
    columns = st.columns(3)
    read = {
        name: number_field(column, fields[name], start[name], step=step, key=key(number, name))
        for column, (name, step) in zip(columns, OF_PART.get(part, {}).items(), strict=False)
    }
    return start | {"part": part} | read


def _optimiser(number: int, phase: JSON, default: Rates | None) -> tuple[JSON, JSON]:
    fields = fields_of(PhaseConfig)
    left, middle, right = st.columns(3)
    steps = number_field(left, fields["steps"], phase["steps"], key=key(number, "steps"))
    batch = number_field(middle, fields["batch_size"], phase["batch_size"], key=key(number, "batch_size"))
    rate = _rate(right, "learning_rate", phase, default.encoder if default else None, key(number, "learning_rate"))
    return {"steps": steps or DEFAULT_STEPS, "batch_size": batch}, {"learning_rate": rate}


def _rate(place: DeltaGenerator, name: str, phase: JSON, default: float | None, widget: str) -> float | None:
    """A learning rate, empty for the default, which the empty field shows where it is known."""
    field = fields_of(OptimiserConfig)[name]
    known = {} if default is None else {"placeholder": f"{default:.1e}"}
    return number_field(place, field, phase["optimiser"][name], step=1e-5, format="%.1e", key=widget, **known)


def _more(number: int, phase: JSON, part: str, default: Rates | None) -> tuple[JSON, JSON, JSON]:
    """Of the optimiser, of memory, and how many top blocks are drawn again."""
    start, fields = phase["optimiser"], fields_of(OptimiserConfig)
    left, middle, right = st.columns(3)
    name = choice_field(left, fields["name"], start["name"], key=key(number, "optimiser"))
    classifier = _rate(
        middle,
        "classifier_learning_rate",
        phase,
        default.classifier if default else None,
        key(number, "classifier_rate"),
    )
    decay = number_field(right, fields["layer_decay"], start["layer_decay"], step=0.05, key=key(number, "layer_decay"))
    correction = left.toggle(
        _(fields["bias_correction"].label),
        start["bias_correction"],
        disabled=name != "adamw",
        help=_(fields["bias_correction"].help),
        key=key(number, "bias_correction"),
    )
    of_phase = fields_of(PhaseConfig)
    micro = number_field(middle, of_phase["micro_batch"], phase["micro_batch"], key=key(number, "micro_batch"))
    checkpointing = right.toggle(
        _(of_phase["gradient_checkpointing"].label),
        phase["gradient_checkpointing"],
        help=_(of_phase["gradient_checkpointing"].help),
        key=key(number, "checkpointing"),
    )
    learns = part in ("all", "last_blocks") and number == 0
    drawn = number_field(
        left,
        fields_of(TrainableConfig)["reinitialised_blocks"],
        phase["trainable"]["reinitialised_blocks"] if learns else 0,
        disabled=not learns,
        key=key(number, f"reinitialised.{learns}"),
    )
    more = {
        "name": name,
        "classifier_learning_rate": classifier,
        "layer_decay": decay,
        "bias_correction": correction,
    }
    return more, {"micro_batch": micro, "gradient_checkpointing": checkpointing}, {"reinitialised_blocks": drawn}
