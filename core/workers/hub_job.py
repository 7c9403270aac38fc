"""The job that downloads a data set from the Hub and adds it to the library."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from core.config.fields import build
from core.errors import ConfigError, PlaygroundError, TaskError
from core.messages import Message
from core.store.library import LibraryTask, TaskLibrary
from core.store.names import checked_task_name
from core.tasks.hub.fetch import Fetched, Progress, fetch
from core.tasks.hub.registry import HubRequest
from core.tasks.load import split_rows
from core.tasks.rows import Rows


def job(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    """Fetch a data set and add it to the library of a store's folder.

    Args:
        request: fields of a HubRequest, and "owner", the visitor who will own the task.
    Returns: the task's id and name, and "was_here", as `fetch_into`.
    Raises: TaskError or ConfigError.
    """
    owner = request.pop("owner", None)
    task, _fetched, was_here = fetch_into(
        TaskLibrary(folder), build(HubRequest, request), progress=progress, owner=owner
    )
    return {"task": task.id, "name": task.name, "was_here": was_here}


def fetch_into(
    library: TaskLibrary, request: HubRequest, *, progress: Progress, owner: str | None = None
) -> tuple[LibraryTask, Fetched, bool]:
    """Fetch a data set, check that it makes a task, and add it to a library.

    Args:
        owner: the visitor who will own the task, on a shared server.
    Returns: the task, the data fetched for it, and True if the library already had a task with the same rows, which
        keeps its name.
    Raises: ConfigError for an invalid name, before anything is fetched; TaskError from `fetch`, or for rows that do not
        make a task. Nothing is added in either case.
    """
    name = checked_task_name(request.shown_name)
    fetched = fetch(request, progress=progress)
    if request.kind == "classes":
        _check_splits(fetched.rows, name, request)
    progress(len(fetched.rows), len(fetched.rows), Message("adding the rows to the library"))
    source = f"{fetched.source}; {fetched.note}" if fetched.note else fetched.source
    was_here = library.find_rows(fetched.rows) is not None
    return library.add(fetched.rows, name=name, source=source, owner=owner), fetched, was_here


def _check_splits(rows: Rows, name: str, request: HubRequest) -> None:
    """Check that the rows can be split and learned. Raises: TaskError that says what to do."""
    try:
        split_rows(rows, name)
    except PlaygroundError as error:
        reason = error.remedy if isinstance(error, ConfigError) else error.message
        if max(Counter(rows.splits).values()) >= request.max_rows:
            raise TaskError(
                "{reason} Ask for more rows, or choose other splits or another label column.", reason=reason
            ) from None
        raise TaskError("{reason} Choose other splits or another label column.", reason=reason) from None
