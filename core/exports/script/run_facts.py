"""What holds in one run, so that what it never does is left out of its script.

A fact that no longer matches the project's source leaves more in a script and makes nothing wrong, except where a call
loses an argument and the definition keeps it, which fails at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.encoders.families import FAMILIES, Family
from core.exports.script.folding import Facts
from core.exports.script.source_file import Home
from core.exports.script.structure import PhaseStage, Structure
from core.losses.supcon import BLOCKWISE_FROM
from core.parameters import whole

TRAINING, ENCODERS = "core.training", "core.encoders"


@dataclass(frozen=True)
class Uses:
    """What the steps of a run make use of.

    Attributes:
        tokens: the tokens that [CLS] attends to; `change`: a change of the embeddings; `alone`: the encoder's pooled
            vectors without anything else, as a queue, an adversarial step or a fitted classifier has them.
        all_blocks: whether every pass goes through all blocks.
        strips: whether a contrastive loss compares enough vectors to be computed in strips.
    """

    tokens: bool
    change: bool
    alone: bool
    all_blocks: bool
    strips: bool


def uses_of(config: RunConfig, stages: Sequence[Sequence[PhaseStage]], blocks: int) -> Uses:
    """What these stages use; `blocks` are the encoder's."""
    structures = [stage.structure for phase in stages for stage in phase]
    views = [wanted.view.entry for one in structures for wanted in one.plan.passes if wanted.view is not None]
    terms = [term for phase in config.phases for term in phase.objective.terms]
    queues = any(whole(term.parameters, "queue") for term in terms)
    sizes = [
        phase.batch_size * planned.views
        for phase, own in zip(config.phases, stages, strict=True)
        for stage in own
        for planned in stage.structure.plan.terms
    ]
    return Uses(
        tokens=any(one.plan.tokens for one in structures),
        change=any(view.embedding is not None for view in views),
        alone=queues or any(view.follows_gradient for view in views) or config.classifier_start == "probe",
        all_blocks=all(_top(one, blocks) == blocks for one in structures),
        strips=max(sizes) >= BLOCKWISE_FROM,
    )


def _top(structure: Structure, blocks: int) -> int:
    plan = structure.plan
    return max([*(plan.layers or (blocks,)), *(layer for layer, _ in plan.tokens)])


def run_facts(config: RunConfig, uses: Uses, model_type: str, *, fused: bool) -> dict[Home, Facts]:
    """Facts about the definitions that a script may reach; `fused`: whether torch fuses AdamW on the run's device."""
    family = FAMILIES[model_type]
    return {
        Home(f"{ENCODERS}.model", "Encoder"): _encoder(config, uses, family),
        Home(f"{ENCODERS}.taps", "Taps"): {
            "(start)": "",
            "for (name, numbers) in (('layers', layers), ('tokens', token_layers), ('attention', self.attention))": "",
            "for (layer, k) in self.tokens": "",
            "doc Raises:": "",
        },
        Home(f"{ENCODERS}.partial", "only_blocks"): {
            "(start)": "",
            "(states)": "",
            "doc start:": "",
            "doc states:": "",
            "start > 0": False,
            "[*blocks[:start], *blocks[top:]]": "blocks[top:]",
        },
        Home(f"{ENCODERS}.readout", "pooled_vectors"): {"pooling == 'cls'": config.encoder.pooling == "cls"},
        Home(f"{ENCODERS}.attention_row", "attention_row"): {
            "family.attention_dropout is not None": family.attention_dropout is not None,
        },
        Home("core.losses.supcon", "supcon_loss"): {}
        if uses.strips
        else {"mask is None and (queue is None or not len(queue[0])) and (len(z) >= BLOCKWISE_FROM)": False},
        **_training(config, model_type, fused=fused),
    }


def _encoder(config: RunConfig, uses: Uses, family: Family) -> Facts:
    changed = ", changed" if uses.change else ""
    return {
        "(lower)": "",
        "(states)": "",
        "(start)": "",
        "doc lower:": "",
        "doc start:": "",
        "doc Raises: ValueError for a layer that is not computed": "",
        "check_start([len(text.ids) for text in texts], lower, start, len(self.blocks))": "",
        "start > 0 and change is not None": False,
        "lower is None": True,
        "taps.checked(len(self.blocks), start)": "taps.checked(len(self.blocks))",
        "self._encode_rows(batch, taps, changed, states, start)": f"self._encode_rows(batch, taps{changed})",
        **(_all_blocks() if uses.all_blocks else _some_blocks()),
        **({} if uses.change else _no_change()),
        **({} if uses.alone else {"def pooled": ""}),
        **(_tokens() if uses.tokens else _no_tokens()),
        **_first_only(config, family),
        "layer in taps.attention": False,
        "self.family.packs": family.packs,
        "self.family.first_position == 'zero'": family.first_position == "zero",
    }


def _all_blocks() -> Facts:
    return {"stack.enter_context(only_blocks(self.base, self.family, start, top, states))": ""}


def _some_blocks() -> Facts:
    return {"only_blocks(self.base, self.family, start, top, states)": "only_blocks(self.base, self.family, top)"}


def _no_change() -> Facts:
    return {"(change)": "", "doc change:": "", "change is None": True, "change is not None": False}


def _tokens() -> Facts:
    return {
        "max([*taps.layers, *counts, *taps.attention])": "max([*taps.layers, *counts])",
        "{*counts, *taps.attention}": "set(counts)",
    }


def _no_tokens() -> Facts:
    return {
        "layer in counts": False,
        "top not in counts": True,
        "max([*taps.layers, *counts, *taps.attention])": "max(taps.layers)",
        "{*taps.layers, *attended}": "taps.layers",
    }


def _first_only(config: RunConfig, family: Family) -> Facts:
    """Whether the highest block may be computed for the first tokens alone."""
    if config.encoder.pooling == "cls" and family.bert_blocks:
        return {"self.pooling == 'cls'": True, "self.family.bert_blocks": True}
    return {"first_only": False, "short": False}


def _training(config: RunConfig, model_type: str, *, fused: bool) -> dict[Home, Facts]:
    optimisers = [phase.optimiser for phase in config.phases]
    names = {one.name for one in optimisers}
    making: dict[str, bool | str] = {}
    stepping: dict[str, bool | str] = {}
    if len(names) == 1:
        making["optimiser.name == 'adafactor'"] = names == {"adafactor"}
        stepping["not optimiser.defaults.get('fused')"] = not fused or names == {"adafactor"}
    if all(one.bias_correction for one in optimisers):
        making["not optimiser.bias_correction"] = False
    return {
        Home("core.config.run", "peak_rates"): {
            "optimiser.learning_rate is None or optimiser.classifier_learning_rate is None": False,
        },
        Home(f"{TRAINING}.optimisers", "make_optimiser"): making,
        Home(f"{TRAINING}.optimisers", "take_clipped_step"): stepping,
        Home(f"{TRAINING}.trainable", "reinitialise"): {"blocks > count": False, "doc Raises:": ""},
        Home(f"{TRAINING}.trainable", "set_gradient_checkpointing"): {}
        if model_type == "mpnet"
        else {"for block in encoder.blocks": ""},
        Home(f"{TRAINING}.gradient_cache", "GradientCache"): {
            "(shared)": "",
            "(first)": "",
            "doc first:": "",
            "shared is not None": False,
            "def take": "",
        },
        Home(f"{TRAINING}.queue", "MomentumQueue"): {"def state": "", "def restore": ""},
    }
