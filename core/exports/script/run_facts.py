"""What holds in one run, so that what it never does is left out of its script."""

from __future__ import annotations

from core.config import RunConfig
from core.exports.script.folding import Facts
from core.exports.script.source_file import Home

TRAINING = "core.training"


def run_facts(config: RunConfig, model_type: str) -> dict[Home, Facts]:
    """Facts about the definitions that a script may reach."""
    return {
        Home("core.config.run", "peak_rates"): {
            "optimiser.learning_rate is None or optimiser.classifier_learning_rate is None": False
        },
        **_optimiser(config),
        Home(f"{TRAINING}.trainable", "reinitialise"): {"blocks > count": False},
        Home(f"{TRAINING}.trainable", "set_gradient_checkpointing"): _checkpointing(model_type),
        Home(f"{TRAINING}.trainable", "_head"): _projections(config),
        Home(f"{TRAINING}.gradient_cache", "GradientCache"): {
            "(shared)": "",
            "shared is not None": False,
            "(first)": "",
        },
    }


def _optimiser(config: RunConfig) -> dict[Home, Facts]:
    optimisers = [phase.optimiser for phase in config.phases]
    facts: dict[str, bool | str] = {}
    if len(names := {one.name for one in optimisers}) == 1:
        facts["optimiser.name == 'adafactor'"] = names == {"adafactor"}
    if all(one.bias_correction for one in optimisers):
        facts["not optimiser.bias_correction"] = False
    return {Home(f"{TRAINING}.optimisers", "make_optimiser"): facts}


def _checkpointing(model_type: str) -> Facts:
    return {} if model_type == "mpnet" else {"for block in encoder.blocks": ""}


def _projections(config: RunConfig) -> Facts:
    return {}
