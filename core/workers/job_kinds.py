"""What kinds of jobs there are, who carries them out, and how many of them at once."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from core.messages import Text
from core.store.work import RUNS

Progress = Callable[[int, int | None, Text], None]
# What carries a job out: function(request, store folder, progress) -> result, all of it plain JSON.
Work = Callable[[dict[str, Any], Path, Progress], dict[str, Any]]

KINDS: Mapping[str, str] = {
    "hub": "core.workers.hub_job:job",
    "tokens": "core.advice.counting:job",
    "translate": "core.views.back_translation:job",
    "map": "core.artifacts.maps:job",
    "measures": "core.artifacts.measures:job",
    "inspect": "core.artifacts.inspect_job:job",
    "vectors": "core.experiments.vectors:job",
    "experiment": "core.experiments.lifecycle:job",
}
# Kinds of which a warm process takes care, and the line in which they wait for it: they have to answer soon, and what
# they import takes long. Every other job has an interpreter of its own.
WARM: Mapping[str, str] = {"map": "maps", "inspect": "model"}
# What a line's process imports before its first job.
PRELOADED: Mapping[str, tuple[str, ...]] = {
    "maps": ("core.artifacts.maps",),
    "model": ("core.artifacts.inspect_job",),
    RUNS: (
        "core.workers.run_worker",
        "core.store.migrations",
        "transformers.models.bert.modeling_bert",
        "transformers.models.bert.tokenization_bert",
        "transformers.models.auto.modeling_auto",
        "transformers.models.auto.tokenization_auto",
    ),
}
# Lines that are served in a way of their own, and the class that does it: a `core.workers.warm.WarmServer`.
CLUSTER = "cluster"
SERVERS: Mapping[str, str] = {RUNS: "core.workers.warm:RunStarter", CLUSTER: "core.workers.cluster.bridge:Bridge"}
HAS_FORK = sys.platform == "linux"
# How many jobs of a kind work at once: more would share one connection, or need the memory of as many models.
AT_ONCE: Mapping[str, int] = {"hub": 2, "translate": 1, "measures": 1}
# How many of a kind may work or wait.
MAX_ACTIVE = 20
# How long a job that has ended can be looked at. What these give is drawn once, or kept in files of its own.
KEPT_S: Mapping[str, float] = {
    "translate": 600.0,
    "map": 600.0,
    "measures": 600.0,
    "inspect": 120.0,
    "experiment": 60.0,
}
KEPT_OTHERS_S = 86_400.0


def check_kind(kind: str) -> None:
    """Raises: ConfigError for an unknown kind, naming what exists."""
    if kind not in KINDS:
        raise ConfigError("job", kind, "choose {names}.", names=tuple(KINDS))


def work_of(kind: str) -> Work:
    """The function that carries a kind out, imported now. Raises: ConfigError."""
    check_kind(kind)
    module, _colon, name = KINDS[kind].partition(":")
    work: Work = getattr(importlib.import_module(module), name)
    return work


def lines() -> list[str]:
    """The lines that a warm process serves."""
    return sorted({*WARM.values(), *SERVERS})
