"""What is said of a task in the library: its id and the columns of its row."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from core.config import OWN_TASK
from core.tasks.rows import Rows

TASK_ID = re.compile(rf"{OWN_TASK}[0-9a-f]{{16}}")


def task_id_of(rows: Rows) -> str:
    return OWN_TASK + rows.content_hash[:16]


def entry_of(rows: Rows, name: str, source: str, created_at: float) -> dict[str, Any]:
    """The columns of the table of tasks for these rows."""
    classes = dict(Counter(rows.labels).most_common()) if rows.kind == "classes" else {}
    return {
        "id": task_id_of(rows),
        "name": name,
        "source": source,
        "kind": rows.kind,
        "pairs": rows.seconds is not None,
        "rows": len(rows),
        "classes": json.dumps(classes, ensure_ascii=False),
        "splits": json.dumps(Counter[str](rows.splits or ())),
        "created_at": created_at,
        "changed_at": created_at,
    }
