"""Helpers for the tests of configs: objectives, terms and views, and runs whose knobs are turned."""

from __future__ import annotations

from typing import Any

from core.config import RunConfig, parse_config
from core.config.fields import build
from core.config.objective import ObjectiveConfig, TermConfig

CE: dict[str, Any] = {"loss": "cross_entropy"}
SCL: dict[str, Any] = {"loss": "supcon"}
DROPOUT = [{"view": "dropout"}]
# A turn: its step, its knob and its value.
Turn = tuple[int, str, float]


def views(*names: str) -> list[dict[str, str]]:
    return [{"view": name} for name in names]


def objective(*terms: dict[str, Any], combine: str = "additive") -> ObjectiveConfig:
    return build(ObjectiveConfig, {"terms": list(terms), "combine": combine})


def term(loss: str, **fields: Any) -> TermConfig:
    return build(TermConfig, {"loss": loss, **fields})


def turned(*turns: Turn, **given: Any) -> RunConfig:
    """Return the config of a run with these knob turns; `given` are its sections in JSON form."""
    made = [{"step": step, "name": name, "value": value} for step, name, value in turns]
    return parse_config(given | {"knob_turns": made})
