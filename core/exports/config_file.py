"""The settings of a run as JSON, as `fit --config` and the form on Fine-tune take them."""

from __future__ import annotations

import json
from pathlib import Path

from core.config import RunConfig
from core.exports.entry import Export
from core.messages import N_
from core.store import RunRecord, Store


def config_json(config: RunConfig) -> str:
    return json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def _write(store: Store, run: RunRecord, path: Path) -> None:
    path.write_text(config_json(run.effective), encoding="utf-8")


ENTRIES = (
    Export(
        name="config",
        label=N_("Config"),
        place=10,
        about=N_("All settings as JSON, with the knob turns that were made: which Fine-tune and fit --config take."),
        suffix=".json",
        mime="application/json",
        write=_write,
        text=True,
    ),
)
