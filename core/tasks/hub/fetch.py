"""Rows of a data set of the Hugging Face Hub, read by `datasets`. No code of a repository is ever run.

`datasets` is imported when something is fetched, in a process of its own (`core.workers`).
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.config.validation import build
from core.errors import ConfigError, PlaygroundError, TaskError
from core.quantities import counted
from core.tasks.hub.hub_rows import described
from core.tasks.hub.place import Place, check_splits, located, plain_errors
from core.tasks.hub.read import Progress, SplitRead, Steps, read_split
from core.tasks.hub.registry import HubRequest
from core.tasks.library import LibraryTask, TaskLibrary, checked_name
from core.tasks.load import split_rows
from core.tasks.rows import Rows, SplitName


@dataclass(frozen=True)
class Fetched:
    """What came of a request.

    Attributes:
        source: one sentence on where the rows come from.
        left_out: rows that cannot be used, by reason.
        note: what was sampled and left out; empty when every row is here.
    """

    rows: Rows
    source: str
    left_out: Mapping[str, int]
    note: str


@dataclass(frozen=True)
class Kept:
    """A task in the library, and what was fetched for it.

    Attributes:
        was_here: whether a task had these very rows already, which keeps its name.
    """

    task: LibraryTask
    fetched: Fetched
    was_here: bool


def job(request: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    """Fetch a data set and keep it in the library of a store's folder; a job of `core.workers`.

    Returns: the task's id and name, whether its rows were here already, and what was sampled and left out.
    Raises: TaskError or ConfigError.
    """
    library = TaskLibrary(Path(folder) / "tasks")
    kept = fetch_into(library, build(HubRequest, request), progress=progress, keeping=_to_the_end())
    return {
        "task": kept.task.id,
        "name": kept.task.name,
        "was_here": kept.was_here,
        "left_out": dict(kept.fetched.left_out),
        "note": kept.fetched.note,
    }


def fetch_into(
    library: TaskLibrary,
    request: HubRequest,
    *,
    progress: Progress,
    keeping: AbstractContextManager[None] = nullcontext(),  # noqa: B008 # it has no state
) -> Kept:
    """Fetch a data set, see that it can be learned, and keep it in a library.

    Args:
        keeping: entered while the rows are added, which is not to be cut short.
    Raises: ConfigError for a name that cannot be used, before anything is fetched; TaskError as `fetch`, and for rows
        that make no task, of which nothing is kept.
    """
    name = checked_name(request.shown_name)
    fetched = fetch(request, progress=progress)
    if request.kind == "classes":
        _check_splits(fetched.rows, name, request)
    progress(len(fetched.rows), len(fetched.rows), "adding the rows to the library")
    source = f"{fetched.source}; {fetched.note}" if fetched.note else fetched.source
    with keeping:
        was_here = library.find_rows(fetched.rows) is not None
        return Kept(library.add(fetched.rows, name=name, source=source), fetched, was_here)


def _check_splits(rows: Rows, name: str, request: HubRequest) -> None:
    """Raises: TaskError with what to do, when the rows cannot be split or learned."""
    try:
        split_rows(rows, name)
    except PlaygroundError as error:
        reason = error.remedy if isinstance(error, ConfigError) else str(error)
        cut = max(Counter(rows.splits).values()) >= request.max_rows
        more = "ask for more rows, or choose" if cut else "choose"
        raise TaskError(f"{reason.rstrip('.')}; {more} other splits or another label column.") from None


def fetch(request: HubRequest, *, progress: Progress) -> Fetched:
    """Rows of the splits that a request names, in their own order unless they were sampled.

    Args:
        progress: given rows read, rows in all (None while unknown) and what is being done.
    Raises: TaskError with one sentence: no network, no such repository, configuration, split or column, no access, or
        nothing that can be used.
    """
    progress(0, None, "asking the Hub")
    with plain_errors(request):
        place = located(request)
        check_splits(request, place)
        steps = Steps(request, place, progress)
        read = {ours: read_split(request, place, theirs, steps) for ours, theirs in request.wanted.items()}
    return _fetched(request, place, read)


def _fetched(request: HubRequest, place: Place, read: Mapping[SplitName, SplitRead]) -> Fetched:
    rows = [row for split in read.values() for row in split.rows]
    splits = tuple(ours for ours, split in read.items() for _ in split.rows)
    left_out = sum((split.left_out for split in read.values()), Counter[str]())
    counts = ", ".join(f"{len(split.rows):,} {ours}" for ours, split in read.items())
    what = ", ".join(filter(None, (request.repository, request.config)))
    revision = f"revision {place.commit[:7]}" + (" of its Parquet conversion" if place.converted else "")
    return Fetched(
        Rows(
            tuple(row.text for row in rows),
            tuple(row.label for row in rows),
            None if request.text_b is None else tuple(row.second or "" for row in rows),
            splits,
            request.kind,
        ),
        f"{what} from the Hugging Face Hub, {revision}; {counts}",
        dict(left_out),
        "; ".join([*_samples(read), *_omissions(left_out)]),
    )


def _samples(read: Mapping[SplitName, SplitRead]) -> Iterator[str]:
    for ours, split in read.items():
        of = f" of {split.sampled_from:,}" if split.sampled_from else ""
        if split.sampled and split.streamed:
            yield f"{ours} is {counted(len(split.rows), 'row')}{of}, streamed in a seeded, shuffled order"
        elif split.sampled:
            yield f"{ours} is a seeded sample of {counted(len(split.rows), 'row')}{of}"


def _omissions(left_out: Mapping[str, int]) -> Iterable[str]:
    if left_out:
        reasons = ", ".join(f"{count:,} with {described(reason)}" for reason, count in left_out.items())
        yield f"left out: {reasons}"


@contextmanager
def _to_the_end() -> Iterator[None]:
    """What is done here is not cut short by a request to end: a cancelled job leaves no task, a kept one is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield
