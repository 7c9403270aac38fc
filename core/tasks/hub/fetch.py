"""Download of data sets from the Hugging Face Hub by `datasets`. Code of a repository is never run.

`datasets` is imported on demand, in a separate process (`core.workers`). A small split is downloaded completely into
the Hub client's cache, so that a second download is free and a limited number of rows is a fair sample. A large split
is streamed in a seeded, shuffled order until it has enough rows.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from core.errors import TaskError, quote_value
from core.messages import ENGLISH, Message, Text, in_language, ngettext
from core.settings import settings
from core.tasks.hub.hub_rows import Row, RowReader
from core.tasks.hub.location import Place, check_columns, check_splits, located, plain_errors
from core.tasks.hub.registry import HubRequest
from core.tasks.rows import Rows, SplitName

Progress = Callable[[int, int | None, Text], None]

# Every user gets the same sample, as with the splits of a task.
SEED = 20210111
# A split up to this size is downloaded completely.
WHOLE_BYTES = 64 * 2**20
# Size of the shuffle buffer of a streamed split, in rows.
BUFFER_ROWS = 10_000
PROGRESS_EVERY_ROWS = 500
# Address of a file on the Hub in `datasets`.
ADDRESS = re.compile(r"hf://datasets/(?P<repository>[^@]+)@(?P<commit>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class Fetched:
    """Rows fetched for a request.

    Attributes:
        source: one sentence on the source of the rows, stored in English.
        note: sampled and left-out rows, in English; empty if all rows are included.
    """

    rows: Rows
    source: str
    note: str


def fetch(request: HubRequest, *, progress: Progress) -> Fetched:
    """Fetch the rows of the splits that a request names, in the repository's order unless they are sampled.

    Args:
        progress: called with the rows read, the total of rows (None while unknown) and the current activity.
    Raises: TaskError if the Hub cannot be reached or denies access, if the repository, configuration, split or column
        does not exist, or if no row is usable.
    """
    progress(0, None, Message("contacting the Hub"))
    with plain_errors(request):
        place = located(request)
        check_splits(request, place)
        steps = Steps(request, place, progress)
        read = {ours: read_split(steps, theirs) for ours, theirs in request.wanted.items()}
    return _fetched(request, place, read)


@in_language(ENGLISH)
def _fetched(request: HubRequest, place: Place, read: Mapping[SplitName, SplitRead]) -> Fetched:
    rows = [row for split in read.values() for row in split.rows]
    splits = tuple(ours for ours, split in read.items() for _row in split.rows)
    left_out = sum((split.left_out for split in read.values()), Counter[Message]())
    counts = ", ".join(f"{len(split.rows):,} {ours}" for ours, split in read.items())
    notes = []
    for ours, split in read.items():
        of = f" of {split.sampled_from:,}" if split.sampled_from else ""
        count = ngettext("{count} row", "{count} rows", len(split.rows))
        if split.sampled and split.streamed:
            notes.append(f"{ours} is {count}{of}, streamed in a seeded, shuffled order")
        elif split.sampled:
            notes.append(f"{ours} is a seeded sample of {count}{of}")
    if left_out:
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in left_out.items())
        notes.append(f"left out: {reasons}")
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
        "; ".join(notes),
    )


@dataclass
class SplitRead:
    """Usable rows of a split, and how they were read.

    Attributes:
        classes: number of classes that the repository names; 0 if it names none.
        sampled_from: number of rows in the split, or of usable rows if all were read; None if unknown.
    """

    rows: list[Row]
    left_out: Counter[Message]
    sampled_from: int | None = None
    sampled: bool = False
    streamed: bool = False
    classes: int = 0


@dataclass
class Steps:
    """Progress reports on the rows read, over all splits."""

    request: HubRequest
    place: Place
    report: Progress
    done: int = 0
    total: int | None = field(init=False)

    def __post_init__(self) -> None:
        known = [self.place.known_rows(split) for split in self.request.wanted.values()]
        most = self.request.max_rows
        self.total = None if None in known else sum(min(rows or 0, most) for rows in known)

    def rows(self, split_rows: int, split: str) -> None:
        """Report that `split_rows` rows of this split were read so far."""
        done = self.done + min(split_rows, self.request.max_rows)
        total = None if self.total is None else max(self.total, done)
        self.report(done, total, Message("reading {split}", split=split))

    def bytes(self, got: int, of: int, split: str) -> None:
        if of >= 100_000:
            size = Message("{got:.1f} of {all:.1f} MB", got=got / 1e6, all=of / 1e6)
        else:
            size = Message("{got:,} of {all:,} bytes", got=got, all=of)
        self.report(self.done, self.total, Message("downloading {split}, {size}", split=split, size=size))


def read_split(steps: Steps, split: str) -> SplitRead:
    sizes = _sizes(steps.place.files[split])
    whole = sizes is not None and sum(sizes) <= WHOLE_BYTES
    read = _read_whole(steps, split, sizes or []) if whole else _read_part(steps, split)
    if not read.rows and not read.left_out:
        raise TaskError(
            "Data set {name} has no rows in its split {split}: choose another.",
            name=quote_value(steps.request.repository),
            split=quote_value(split),
        )
    if not read.rows:
        [(reason, count)] = read.left_out.most_common(1)
        raise TaskError(
            "None of the {total:,} rows of the split {split} can be used; {count:,} of them have {reason}: choose "
            "another split or other columns.",
            total=read.left_out.total(),
            split=quote_value(split),
            count=count,
            reason=reason,
        )
    steps.done += min(len(read.rows) + read.left_out.total(), steps.request.max_rows)
    return read


def _sizes(files: Sequence[str]) -> list[int] | None:
    """Return the bytes of each file; None for files outside the Hub."""
    from huggingface_hub import HfFileSystem

    if not all(ADDRESS.fullmatch(address) and "::" not in address for address in files):
        return None
    system = HfFileSystem()
    return [int(system.info(address)["size"]) for address in files]


def _read_whole(steps: Steps, split: str, sizes: Sequence[int]) -> SplitRead:
    """Read every row of a split from files in the client's cache. Keep a seeded sample if there are too many."""
    most = steps.request.max_rows
    read = _read(steps, split, _downloaded(steps.place.files[split], split, sizes, steps))
    if len(read.rows) > most:
        _refuse_excess(steps.request, split, len(read.rows))
        read.sampled, read.sampled_from = True, len(read.rows)
        chosen = sorted(random.Random(SEED).sample(range(len(read.rows)), most))  # noqa: S311
        read.rows = [read.rows[i] for i in chosen]
    return read


def _read_part(steps: Steps, split: str) -> SplitRead:
    """Read as many rows of a streamed split as requested.

    Files are read side by side from their beginnings. If these rows lack a class, because the files are sorted by
    class, scattered row groups are read instead, which costs more requests.
    """
    request, files = steps.request, steps.place.files[split]
    known = steps.place.known_rows(split)
    if known is not None and known > request.max_rows:
        _refuse_excess(request, split, known)
    read = _read(steps, split, files, streamed=True)
    misses_a_class = request.kind == "classes" and len({row.label for row in read.rows}) < max(2, read.classes)
    if read.sampled and _is_parquet(steps.place.builder) and misses_a_class:
        read = _read(steps, split, files, streamed=True, scattered=True)
    if read.sampled:
        _refuse_excess(request, split, known)
        read.sampled_from = known
        if request.kind == "classes" and len({row.label for row in read.rows}) == 1:
            raise TaskError(
                "The first {rows:,} rows of the split {split} all have the label {label}, so it is sorted by label: "
                "ask for more rows.",
                rows=len(read.rows),
                split=quote_value(split),
                label=quote_value(read.rows[0].label),
            )
    return read


def _refuse_excess(request: HubRequest, split: str, count: int | None) -> None:
    """Check the number of rows, if the settings do not allow a sample. Raises: TaskError for too many rows."""
    limits = settings()
    if limits.excess_rows == "refuse" and request.max_rows == limits.max_rows:
        has = Message("more than {rows:,} rows", rows=limits.max_rows)
        if count is not None:
            has = Message("{count} row", "{count} rows", count=count)
        raise TaskError(
            "The split {split} has {rows}, but at most {most:,} are read: ask for fewer rows, or set "
            "SCL_EXCESS_ROWS=sample.",
            split=quote_value(split),
            rows=has,
            most=limits.max_rows,
        )


def _downloaded(files: Sequence[str], split: str, sizes: Sequence[int], steps: Steps) -> list[str]:
    """Download files into the client's cache, and return their paths."""
    from huggingface_hub import hf_hub_download
    from tqdm import tqdm

    lock = threading.Lock()
    got = 0

    class Bar(tqdm):  # type: ignore[misc] # tqdm has no types
        """A progress bar that reports bytes instead of drawing them."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **(more | {"disable": True}))

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal got
            with lock:
                got += int(n or 0)
                steps.bytes(got, sum(sizes), split)
            return None

        def update_transfer(self, n: float | None = 1) -> None:
            """Ignore bytes on the wire, which Xet reports in addition to those of the file."""

        def set_transfer_postfix_str(self, *args: Any, **more: Any) -> None:
            """Ignore the speed, which is not shown."""

    local = []
    for number, address in enumerate(files):
        match = ADDRESS.fullmatch(address)
        assert match is not None  # files outside the Hub have no known size, and are streamed
        repository, commit, path = match["repository"], match["commit"], match["path"]
        local.append(str(hf_hub_download(repository, path, repo_type="dataset", revision=commit, tqdm_class=Bar)))
        got = sum(sizes[: number + 1])  # a cached file reports no bytes
    return local


def _is_parquet(builder: Any) -> bool:
    return type(builder).__module__ == "datasets.packaged_modules.parquet.parquet"


def _opened(request: HubRequest, builder: Any, split: str, files: Sequence[str]) -> Any:
    """Open a split as a stream of rows, from local files or the Hub. Parquet files yield the requested columns only."""
    from datasets.data_files import DataFilesDict, DataFilesList
    from pyarrow.dataset import ParquetFragmentScanOptions

    builder.config.data_files = DataFilesDict({split: DataFilesList(list(files), [("", "")] * len(files))})
    dataset = builder.as_streaming_dataset(split=split)
    if dataset.features is not None:
        check_columns(request, list(dataset.features))
        if _is_parquet(builder):
            builder.config.columns = request.columns
            # Pre-buffering would fetch most of a file for its first rows.
            builder.config.fragment_scan_options = ParquetFragmentScanOptions(pre_buffer=False)
            dataset = builder.as_streaming_dataset(split=split)
    return dataset


def _read(
    steps: Steps, split: str, files: Sequence[str], *, streamed: bool = False, scattered: bool = False
) -> SplitRead:
    """Read the rows of files: all of them, or as many as requested of a stream, shuffled if it may have more."""
    request = steps.request
    dataset = _opened(request, steps.place.builder, split, files)
    known = steps.place.known_rows(split)
    if streamed and (known is None or known > request.max_rows):
        if scattered:
            dataset = dataset.reshard()  # one shard per row group, so that their order is shuffled
        dataset = dataset.shuffle(seed=SEED, buffer_size=min(BUFFER_ROWS, request.max_rows))
    names = getattr((dataset.features or {}).get(request.label), "names", None)
    reader = RowReader(request, names)
    read = SplitRead([], Counter(), streamed=streamed)
    read.classes = len({request.label_names.get(name, name) for name in names or ()})
    count = 0
    with closing(iter(dataset)) as rows:
        for count, row in enumerate(rows, start=1):
            if count == 1:
                check_columns(request, list(row))
            found = reader.read(row)
            if isinstance(found, Message):
                read.left_out[found] += 1
            elif streamed and len(read.rows) >= request.max_rows:
                read.sampled = True
                break
            else:
                read.rows.append(found)
            if count % PROGRESS_EVERY_ROWS == 0:
                steps.rows(count, split)
    steps.rows(count, split)
    return read
