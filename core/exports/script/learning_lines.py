"""What learns in a phase, and with which optimiser, as lines."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from core.config import OptimiserConfig, PhaseConfig, TrainableConfig
from core.exports.script.line_breaks import INDENT, broken
from core.exports.script.literals import quoted
from core.exports.script.optimiser_settings import OptimiserSettings
from core.exports.script.source_file import Home

TRAINABLE = "core.training.trainable"
HEAD = Home(TRAINABLE, "_head")
CHECKPOINTING = Home(TRAINABLE, "set_gradient_checkpointing")
PROJECTION = Home("core.training.outputs", "projection_head")
ADAPTERS = Home("core.exports.script.low_rank", "insert_adapters")


class WeightLines(NamedTuple):
    """Lines that leave `learning`, the modules that learn; and the functions of the project that they name."""

    lines: list[str]
    functions: set[Home]


def weight_lines(phase: PhaseConfig, blocks: int, *, first: bool, checkpointing: bool) -> WeightLines:
    """What learns, in the order in which a run draws new weights: projection heads, then adapters.

    Args:
        blocks: of the encoder.
        first: whether there was no phase before.
        checkpointing: whether any phase of the run keeps the blocks' inputs only.
    """
    terms = zip(phase.objective.keys, phase.objective.terms, strict=True)
    kinds = {key: str(term.parameters.get("projection", "none")) for key, term in terms}
    heads = {key: kind for key, kind in kinds.items() if kind != "none"}
    lines: list[str] = []
    if heads:
        made = (f'"{key}": projection_head("{kind}", encoder.base.config.hidden_size)' for key, kind in heads.items())
        lines += broken(f"heads = nn.ModuleDict({{{', '.join(made)}}})", depth=1)
    if heads or not first:
        lines.append("encoder.projections = nn.ModuleDict()")
    lines += _learning(phase.trainable, blocks)
    if heads:
        lines += ["encoder.projections = heads.to(DEVICE)", "learning.append(encoder.projections)"]
    if checkpointing:
        lines.append(f"set_gradient_checkpointing(encoder, {phase.gradient_checkpointing})")
    text = "\n".join(lines)
    named = {home for home in (HEAD, CHECKPOINTING, PROJECTION, ADAPTERS) if f"{home.name}(" in text}
    return WeightLines(lines, named)


def _learning(trainable: TrainableConfig, blocks: int) -> list[str]:
    if trainable.part == "all":
        return ["encoder.requires_grad_(True)", "learning = [encoder]"]
    frozen = trainable.frozen(blocks)
    if trainable.part == "lora":
        rank, alpha, dropout = trainable.lora_rank, trainable.lora_alpha, trainable.lora_dropout
        return [
            "head = _head(encoder)",
            f"insert_adapters(encoder, rank={rank}, alpha={alpha!r}, dropout={dropout!r})",
            "for module in head:",
            f"{INDENT}module.requires_grad_(True)",
            "learning = [*encoder.blocks, *head]",
        ]
    own = f"*encoder.blocks[{frozen}:], " if frozen < blocks else ""
    return [
        "encoder.requires_grad_(False)",
        f"learning = [{own}*_head(encoder)]",
        "for module in learning:",
        f"{INDENT}module.requires_grad_(True)",
    ]


def what_learns(trainable: TrainableConfig) -> str:
    """In words."""
    blocks = "the last block" if trainable.blocks == 1 else f"the last {trainable.blocks} blocks"
    return {
        "all": "all weights learn",
        "last_blocks": f"{blocks} and the classifier learn",
        "lora": "low-rank adapters and the classifier learn",
        "classifier": "the classifier learns",
    }[trainable.part]


def optimiser_text(optimiser: OptimiserConfig) -> str:
    """The settings as a call that says both rates, and what is not at its default."""
    defaults = {one.name: one.default for one in fields(OptimiserSettings)}
    given = {name: getattr(optimiser, name) for name in defaults}
    said = [
        f"{name}={quoted(value) if isinstance(value, str) else repr(value)}"
        for name, value in given.items()
        if value != defaults[name]
    ]
    return f"OptimiserSettings({', '.join(said)})"
