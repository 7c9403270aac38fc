"""Fetching a data set of the Hugging Face Hub by `datasets`. No code of a repository is ever run.

`datasets` is imported when something is fetched, in a process of its own (`core.workers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from core.messages import ENGLISH, Message, in_language, ngettext
from core.tasks.hub.hub_rows import described
from core.tasks.hub.place import Place, check_splits, located, plain_errors
from core.tasks.hub.read import Progress, SplitRead, Steps, read_split
from core.tasks.hub.registry import HubRequest
from core.tasks.rows import Rows, SplitName


@dataclass(frozen=True)
class Fetched:
    """Rows fetched for a request.

    Attributes:
        source: one sentence on where the rows come from, in English, as it is kept.
        left_out: rows that cannot be used, by reason.
        note: what was sampled and left out, in English too; empty when every row is here.
    """

    rows: Rows
    source: str
    left_out: Mapping[str, int]
    note: str


def fetch(request: HubRequest, *, progress: Progress) -> Fetched:
    """Return the rows of the splits that a request names, in the repository's order unless they were sampled.

    Args:
        progress: given rows read, rows in all (None while unknown) and what is being done.
    Raises: TaskError with one sentence: no network, no such repository, configuration, split or column, no access, or
        nothing that can be used.
    """
    progress(0, None, Message("asking the Hub"))
    with plain_errors(request):
        place = located(request)
        check_splits(request, place)
        steps = Steps(request, place, progress)
        read = {ours: read_split(request, place, theirs, steps) for ours, theirs in request.wanted.items()}
    return _fetched(request, place, read)


@in_language(ENGLISH)
def _fetched(request: HubRequest, place: Place, read: Mapping[SplitName, SplitRead]) -> Fetched:
    rows = [row for split in read.values() for row in split.rows]
    splits = tuple(ours for ours, split in read.items() for _row in split.rows)
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
        rows = ngettext("{count} row", "{count} rows", len(split.rows))
        if split.sampled and split.streamed:
            yield f"{ours} is {rows}{of}, streamed in a seeded, shuffled order"
        elif split.sampled:
            yield f"{ours} is a seeded sample of {rows}{of}"


def _omissions(left_out: Mapping[str, int]) -> Iterable[str]:
    if left_out:
        reasons = ", ".join(f"{count:,} with {described(reason)}" for reason, count in left_out.items())
        yield f"left out: {reasons}"
