"""When two runs are one: a hash of what a prepared config says about what is computed."""

from __future__ import annotations

import hashlib
import json


def config_hash(text: str) -> str:
    """A hash of a prepared config in its JSON form.

    Left out is what changes no number that a run learns or is scored by: its names, the steps of its frames, when
    its weights are saved, and what it asks a cluster for. Two runs with the same hash on one machine have the same
    curves. It reads JSON and no RunConfig, so that a store can hash what older versions wrote.
    """
    given = json.loads(text)
    for part in (given, given["task"]):
        part.pop("name", None)
    for part in ("checkpoint", "resources"):
        given.pop(part, None)
    # What older versions did not write.
    if given.get("processes") == 1:
        del given["processes"]
    if given.get("start") is None:
        given.pop("start", None)
    if given.get("classifier_start") == "random":
        del given["classifier_start"]
    if given["task"].get("back_translation") is None:
        given["task"].pop("back_translation", None)
        given["task"].pop("translators", None)
    given.get("probe", {}).pop("frame_steps", None)
    return hashlib.sha256(json.dumps(given, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]
