"""The phases of a fine-tune in the form: preset, objective, what learns, optimiser; in tabs where there are two."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.config import MAX_STEPS, PhaseConfig, TrainableConfig
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS, SHOWING
from core.config.validation import build
from core.encoders.source import EncoderShape, encoder_shape
from core.errors import PlaygroundError
from core.losses.registry import loss_entry
from core.training.defaults import DEFAULT_STEPS, Rates, default_rates
from pages.ui import phases_state
from pages.ui.number_field import number_field
from pages.ui.objective_form import objective_form, structure
from pages.ui.phases_state import JSON, key

TRAINABLE = {"all": "All weights", "last_blocks": "Last blocks", "lora": "LoRA", "classifier": "Classifier only"}
OPTIMISERS = {"adamw": "AdamW", "adafactor": "Adafactor"}
CUSTOM = "Your own"


def phases_form(start: list[PhaseConfig], origin: str, encoder_id: str) -> list[JSON]:
    """Draw the phases and read them, in the JSON form of PhaseConfig.

    Args:
        encoder_id: the encoder that learns, whose size decides the default rates.
        origin: where `start` comes from; the form begins again when it changes.
    Raises: ConfigError for a mix that cannot go together.
    """
    phases = phases_state.start_from([_editable(phase) for phase in start], origin)
    st.header("Objective")
    _preset(phases)
    shape = _shape(encoder_id)
    if len(phases) == 1:
        read = [_phase(0, phases[0], shape)]
        st.button(
            "Train in two phases",
            icon=":material/add:",
            type="tertiary",
            help="A contrastive phase first, then the classifier, each with its own steps and rate.",
            on_click=phases_state.add_phase,
            key=key(0, "add_phase"),
        )
        return read
    read = []
    for number, tab in enumerate(st.tabs([f"Phase {i + 1} · {_kind(phase)}" for i, phase in enumerate(phases)])):
        with tab:
            read.append(_phase(number, phases[number], shape))
            st.button(
                "Remove this phase",
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
    read = {loss_entry(term["loss"]).reads for term in phase["objective"]["terms"]}
    return "classifier" if "logits" in read else "contrast"


def _preset(phases: list[JSON]) -> None:
    picked = _recognised(phases)
    options = [*PRESETS, *([] if picked else [CUSTOM])]
    widget = key(0, "preset")
    chosen = st.selectbox(
        "Preset",
        options,
        index=options.index(picked or CUSTOM),
        format_func=lambda name: f"{PRESETS[name].group}: {PRESETS[name].label}" if name in PRESETS else name,
        on_change=phases_state.apply_preset,
        args=(widget,),
        key=widget,
    )
    if chosen in PRESETS:
        st.caption(f"{PRESETS[chosen].summary} Source: {PRESETS[chosen].source}.")


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
        return encoder_shape(encoder_id)
    except PlaygroundError:
        return None


def _phase(number: int, phase: JSON, shape: EncoderShape | None) -> JSON:
    objective = objective_form(number, phase["objective"])
    st.markdown("**What learns**")
    trainable = _trainable(number, phase["trainable"])
    st.markdown("**Optimiser**")
    default = default_rates(build(TrainableConfig, trainable), shape) if shape else None
    lengths, rate = _optimiser(number, phase, default)
    with st.expander("More: rates, method, memory"):
        more, memory, drawn = _more(number, phase, str(trainable["part"]), default)
    optimiser = phase["optimiser"] | rate | more
    changed = {"objective": objective, "trainable": trainable | drawn, "optimiser": optimiser}
    read = phase | lengths | memory | changed
    phases_state.keep(number, read)
    return read


def _trainable(number: int, start: JSON) -> JSON:
    part = (
        st.segmented_control(
            "What learns",
            list(TRAINABLE),
            default=start["part"],
            format_func=TRAINABLE.__getitem__,
            help="What is frozen runs without dropout, and its outputs are computed once. LoRA learns small adapters "
            "on query and value.",
            label_visibility="collapsed",
            key=key(number, "trainable"),
        )
        or "all"
    )
    read = start | {"part": part}
    columns = st.columns(3)
    if part == "last_blocks":
        read["blocks"] = number_field(columns[0], "Blocks", 1, 100, start["blocks"], key=key(number, "blocks"))
    if part == "lora":
        read["lora_rank"] = number_field(columns[0], "Rank r", 1, 512, start["lora_rank"], key=key(number, "lora_rank"))
        read["lora_alpha"] = number_field(
            columns[1],
            "Scale α",
            0.5,
            1024.0,
            start["lora_alpha"],
            help="Adapters count α/r.",
            key=key(number, "lora_alpha"),
        )
        read["lora_dropout"] = number_field(
            columns[2], "Dropout", 0.0, 0.9, start["lora_dropout"], step=0.05, key=key(number, "lora_dropout")
        )
    return read


def _optimiser(number: int, phase: JSON, default: Rates | None) -> tuple[JSON, JSON]:
    start = phase["optimiser"]
    left, middle, right = st.columns(3)
    steps = number_field(left, "Steps", 1, MAX_STEPS, phase["steps"], key=key(number, "steps"))
    batch = number_field(middle, "Batch size", 1, 4096, phase["batch_size"], key=key(number, "batch_size"))
    rate = number_field(
        right,
        "Learning rate",
        1e-7,
        1.0,
        start["learning_rate"],
        step=1e-5,
        format="%.1e",
        placeholder=_placeholder(default.encoder if default else None),
        help="The peak of a linear warm-up over a tenth of the steps and a linear decay. Empty: the default for what "
        "learns and for the encoder's size.",
        key=key(number, "learning_rate"),
    )
    return {"steps": int(steps), "batch_size": int(batch)}, {"learning_rate": rate}


def _placeholder(rate: float | None) -> str:
    return "the default" if rate is None else f"{rate:.1e}"


def _more(number: int, phase: JSON, part: str, default: Rates | None) -> tuple[JSON, JSON, JSON]:
    """Of the optimiser, of memory, and how many top blocks are drawn again."""
    start = phase["optimiser"]
    left, middle, right = st.columns(3)
    name = left.selectbox(
        "Method",
        list(OPTIMISERS),
        index=list(OPTIMISERS).index(start["name"]),
        format_func=OPTIMISERS.__getitem__,
        help="Adafactor keeps far smaller moments.",
        key=key(number, "optimiser"),
    )
    classifier = number_field(
        middle,
        "Classifier's rate",
        1e-7,
        1.0,
        start["classifier_learning_rate"],
        step=1e-5,
        format="%.1e",
        placeholder=_placeholder(default.classifier if default else None),
        help="Of the layers behind the encoder, which start from random weights. Empty: the default.",
        key=key(number, "classifier_rate"),
    )
    decay = number_field(
        right,
        "Layer-wise decay",
        0.01,
        1.0,
        start["layer_decay"],
        step=0.05,
        help="Multiplies the rate once for each block below the last; 1 is the same everywhere.",
        key=key(number, "layer_decay"),
    )
    correction = left.toggle(
        "Bias correction",
        start["bias_correction"],
        disabled=name != "adamw",
        help="Adam without it was BERT's own; short fine-tunes are steadier with it (Zhang et al. 2020).",
        key=key(number, "bias_correction"),
    )
    micro = number_field(
        middle,
        "Texts at a time",
        1,
        4096,
        phase["micro_batch"],
        placeholder="the whole batch",
        help="A contrastive batch may be larger than memory: the encoder reads this many texts at a time, twice, for "
        "the same gradients (gradient cache).",
        key=key(number, "micro_batch"),
    )
    checkpointing = right.toggle(
        "Gradient checkpointing",
        phase["gradient_checkpointing"],
        help="Keeps only the blocks' inputs and computes the rest again: less memory, about a third more time.",
        key=key(number, "checkpointing"),
    )
    learns = part in ("all", "last_blocks") and number == 0
    drawn = number_field(
        left,
        "Re-initialised top blocks",
        0,
        100,
        phase["trainable"]["reinitialised_blocks"] if learns else 0,
        disabled=not learns,
        help="Draw the weights of this many top blocks at random, once, before the first frame (Zhang et al. 2020). "
        "They have to learn, from the first phase on.",
        key=key(number, f"reinitialised.{learns}"),
    )
    more = {
        "name": name,
        "classifier_learning_rate": classifier,
        "layer_decay": decay,
        "bias_correction": correction,
    }
    return more, {"micro_batch": micro, "gradient_checkpointing": checkpointing}, {"reinitialised_blocks": drawn}
