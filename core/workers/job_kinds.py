"""Kinds of jobs, the functions that execute them, and their limits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from core.messages import Text
from core.store.work import RUNS

Progress = Callable[[int, int | None, Text], None]
# The function that executes each kind: (request, store folder, progress) -> result. Request and result are plain JSON.
KINDS: Mapping[str, str] = {
    "hub": "core.workers.hub_job:job",
    "tokens": "core.advice.counting:job",
    "translate": "core.views.back_translation:job",
    "map": "core.artifacts.maps:job",
    "measures": "core.artifacts.measures:job",
    "inspect": "core.artifacts.inspect_job:job",
    "distances": "core.artifacts.inspect_job:distances_job",
    "vectors": "core.experiments.vectors:job",
    "experiment": "core.experiments.lifecycle:job",
}
# Kinds executed by a warm process, and their queues. They must respond fast, and their imports are slow. Any other job
# gets a new interpreter.
WARM: Mapping[str, str] = {"map": "maps", "inspect": "model", "distances": "model"}
# Modules that a queue's warm process imports before its first job.
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
# Queues with a special server, and its class, a subclass of `core.workers.warm.WarmServer`.
CLUSTER = "cluster"
SERVERS: Mapping[str, str] = {RUNS: "core.workers.warm:RunStarter", CLUSTER: "core.workers.cluster.bridge:Bridge"}
HAS_FORK = sys.platform == "linux"
# Limits on concurrent jobs of a kind: more would share one connection, or each hold a model in memory.
AT_ONCE: Mapping[str, int] = {"hub": 2, "translate": 1, "measures": 1}
# Limits on active and queued jobs of a kind: of one visitor of a shared server, and of all jobs without an owner.
VISITOR_ACTIVE, MAX_ACTIVE = 5, 20
# Time after its end at which a job is deleted. The results of these kinds are displayed once, or stored in files.
LIFETIME_S: Mapping[str, float] = {
    "translate": 600.0,
    "map": 600.0,
    "measures": 600.0,
    "inspect": 120.0,
    "experiment": 60.0,
}
OTHER_LIFETIME_S = 86_400.0
