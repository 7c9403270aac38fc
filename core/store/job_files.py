"""Jobs as the version before 0.1.0 kept them, in JSON files of their folders: read once, by the migration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENDED = ("done", "failed", "cancelled")


def read_job_files(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table of jobs for what lies in `jobs/`, the oldest first; a damaged folder hides no other."""
    made = [row for path in folder.glob("*/job.json") if (row := _row(path.parent)) is not None]
    return sorted(made, key=lambda row: (row["created_at"], row["id"]))


def _row(folder: Path) -> dict[str, Any] | None:
    job, state = _read(folder / "job.json"), _read(folder / "state.json")
    if not {"kind", "label", "request", "created_at"} <= job.keys():
        return None
    status = state.get("status")
    return {
        "id": folder.name,
        "kind": job["kind"],
        "label": job["label"],
        "request": json.dumps(job["request"], ensure_ascii=False),
        # One that has not ended is carried out by code that no longer reports here: it reads as interrupted.
        "status": status if status in ENDED else "running",
        "done": state.get("done", 0),
        "total": state.get("total"),
        "message": state.get("message", ""),
        "result": json.dumps(state.get("result", {}), ensure_ascii=False),
        "created_at": job["created_at"],
        "updated_at": (folder / "state.json").stat().st_mtime if state else job["created_at"],
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return given if isinstance(given, dict) else {}
