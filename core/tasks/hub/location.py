"""Location of a data set on the Hub, and a one-sentence message for each error. `datasets` is imported on demand."""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from core.errors import PlaygroundError, TaskError, quote_value
from core.messages import N_, Message
from core.models.source import hub_answers
from core.tasks.hub.registry import PARQUET_REVISION, HubRequest
from core.tasks.rows import one_line

REQUEST_TIMEOUT_S = 10.0
# Bytes read ahead in each streamed file. With the client's default of 5 MB, a few rows would cost as much as all.
STORAGE_OPTIONS = {"hf": {"block_size": 2**19}}
UNREACHABLE = {"ConnectionError", "TimeoutError", "TransportError", "OfflineModeIsEnabled", "LocalEntryNotFoundError"}
# File names of the Hub's conversion to Parquet: config/split/0000.parquet, config/partial-split/0000.parquet for the
# first part of a very large one, and formerly config/name-split.parquet.
CONVERTED = re.compile(r"(?P<config>[^/]+)/(?:(?:partial[-/])?(?P<split>[^/]+)/\d+|[^/]*?(?P<old>[A-Za-z_]+))\.parquet")


@dataclass(frozen=True)
class Place:
    """The location of a data set: its commit, and the files of each split.

    Attributes:
        builder: builder of `datasets` that reads the files.
        converted: whether the files are the Hub's conversion to Parquet.
    """

    builder: Any
    commit: str
    converted: bool
    files: Mapping[str, tuple[str, ...]]

    def known_rows(self, split: str) -> int | None:
        """Return the number of rows of a split, if the repository states it."""
        said = (self.builder.info.splits or {}).get(split)
        return int(said.num_examples) if said is not None and said.num_examples else None


def located(request: HubRequest) -> Place:
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if not hub_answers():
        raise ConnectionError
    _import_datasets()
    import datasets
    from huggingface_hub import HfApi

    api = HfApi()
    found = api.dataset_info(request.repository, revision=request.revision, timeout=REQUEST_TIMEOUT_S)
    script = f"{request.repository.rpartition('/')[2]}.py"
    if request.revision == PARQUET_REVISION or any(file.rfilename == script for file in found.siblings or ()):
        return _converted(request)
    address = f"hf://datasets/{request.repository}"  # a bare name may match a folder in the working directory
    try:
        builder = datasets.load_dataset_builder(
            address, request.config, revision=found.sha, storage_options=STORAGE_OPTIONS
        )
    except (datasets.exceptions.DataFilesNotFoundError, datasets.data_files.EmptyDatasetError):
        return _converted(request)  # unsupported files, which the Hub may have converted
    except ValueError:
        _check_config(request, datasets.get_dataset_config_names(address, revision=found.sha))
        raise
    files = {str(split): tuple(map(str, paths)) for split, paths in (builder.config.data_files or {}).items()}
    return Place(builder, str(found.sha), False, files)


def _import_datasets() -> None:
    """Import the clients, and configure them to fail within seconds and to log errors only."""
    import datasets
    import huggingface_hub

    datasets.disable_progress_bars()
    datasets.config.TORCH_AVAILABLE = False  # `datasets` would import torch to look for data loader workers
    # The Hub's client retries each request by itself. Another 20 attempts would take many minutes.
    datasets.config.STREAMING_READ_MAX_RETRIES = datasets.config.STREAMING_OPEN_MAX_RETRIES = 1
    datasets.config.STREAMING_READ_RETRY_INTERVAL = datasets.config.STREAMING_OPEN_RETRY_INTERVAL = 0
    datasets.config.STREAMING_READ_SERVER_UNAVAILABLE_RETRY_INTERVAL = 0
    datasets.config.STREAMING_READ_RATE_LIMIT_RETRY_INTERVAL = 0
    huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE = 2**20  # bytes between two progress reports
    datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN = 0.5
    logging.getLogger("datasets").setLevel(logging.ERROR)


def _converted(request: HubRequest) -> Place:
    """Find the Hub's own conversion to Parquet, for repositories with a script or unsupported files."""
    import datasets
    from huggingface_hub import HfApi, RepoFile
    from huggingface_hub.errors import EntryNotFoundError, RevisionNotFoundError

    api = HfApi()
    repository = request.repository
    try:
        commit = api.dataset_info(repository, revision=PARQUET_REVISION, timeout=REQUEST_TIMEOUT_S).sha
        entries = list(api.list_repo_tree(repository, revision=commit, recursive=True, repo_type="dataset"))
    except (RevisionNotFoundError, EntryNotFoundError):
        commit, entries = None, []
    configs: dict[str, dict[str, list[str]]] = {}
    for path in sorted(entry.path for entry in entries if isinstance(entry, RepoFile)):
        if match := CONVERTED.fullmatch(path):
            split = match["split"] or match["old"]
            address = f"hf://datasets/{repository}@{commit}/{path}"
            configs.setdefault(match["config"], {}).setdefault(split, []).append(address)
    if not configs:
        raise TaskError(
            "Data set {name} holds a script or unsupported files, and the Hub has no Parquet files of it: choose "
            "another repository of the same data.",
            name=quote_value(repository),
        )
    config = request.config or ("default" if "default" in configs else None)
    if config is None and len(configs) == 1:
        config = next(iter(configs))
    _check_config(request.model_copy(update={"config": config}), list(configs))
    files = configs[str(config)]
    builder = datasets.load_dataset_builder("parquet", data_files=files, storage_options=STORAGE_OPTIONS)
    return Place(builder, str(commit), True, {split: tuple(paths) for split, paths in files.items()})


def _check_config(request: HubRequest, known: Sequence[str]) -> None:
    if request.config is None and len(known) > 1:
        message = N_("Data set {name} has several configurations: choose one of {names}.")
        raise _refusal(message, request, known)
    if request.config is not None and request.config not in known:
        message = N_("Data set {name} has no configuration {config}: choose {names}.")
        raise _refusal(message, request, known, config=request.config)


def check_splits(request: HubRequest, place: Place) -> None:
    for split in request.wanted.values():
        if split not in place.files:
            message = N_("Data set {name} has no split {split}: choose {names}.")
            raise _refusal(message, request, list(place.files), split=split)


def check_columns(request: HubRequest, known: Sequence[str]) -> None:
    for column in request.columns:
        if column not in known:
            message = N_("Data set {name} has no column {column}: choose {names}.")
            raise _refusal(message, request, known, column=column)


def _refusal(message: str, request: HubRequest, known: Sequence[str], **missing: str) -> TaskError:
    """Return the error for a part that a data set lacks, with the names of at most 20 that it has."""
    shown = {name: quote_value(value) for name, value in missing.items()}
    names, more = tuple(known[:20]), len(known) - 20
    listed = Message("{names} or one of {count} more", names=names, count=more) if more > 0 else names
    return TaskError(message, name=quote_value(request.repository), names=listed, **shown)


@contextmanager
def plain_errors(request: HubRequest) -> Iterator[None]:
    """Convert the clients' errors into one sentence."""
    try:
        yield
    except (PlaygroundError, MemoryError):
        raise
    except Exception as error:
        chain: list[BaseException] = [error]
        while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(cause)
        raise TaskError(_sentence(request, chain)) from error


def _sentence(request: HubRequest, chain: Sequence[BaseException]) -> Message:
    """Return the message for an error.

    Classes are compared by name, because the clients use several libraries for the same purpose.

    Args:
        chain: the raised error, followed by its causes.
    """
    error = chain[0]
    kinds = {base.__name__ for link in chain for base in type(link).__mro__}
    codes = [getattr(getattr(link, "response", None), "status_code", None) for link in chain]
    status = next(filter(None, codes), 0)
    if "GatedRepoError" in kinds or "gated dataset" in str(error):
        message = N_("Data set {name} requires an account: accept its terms on the Hub, then set HF_TOKEN.")
    elif "RepositoryNotFoundError" in kinds:
        message = N_("Data set {name} does not exist on the Hub, or is private: check the name, or set HF_TOKEN.")
    elif "RevisionNotFoundError" in kinds:
        message = N_("Data set {name} has no revision {revision}: leave it empty, or give a branch, tag or commit.")
    elif kinds & UNREACHABLE:
        message = N_(
            "Data set {name} cannot be downloaded because the Hub cannot be reached: connect to the internet, or "
            "add a file."
        )
    elif kinds & {"HfHubHTTPError", "HTTPStatusError"} and not status:
        message = N_("Data set {name} cannot be downloaded because the Hub reports an error: try again later.")
    elif kinds & {"HfHubHTTPError", "HTTPStatusError"}:
        message = N_(
            "Data set {name} cannot be downloaded because the Hub reports the error {status}: try again later."
        )
    elif any(getattr(link, "errno", None) == errno.ENOSPC for link in chain):
        message = N_(
            "Data set {name} cannot be downloaded because the disk is full: free some space, or set HF_HOME to "
            "another disk."
        )
    else:
        message = N_("Data set {name} cannot be read ({error}: {reason}): choose another.")
    return Message(
        message,
        name=quote_value(request.repository),
        revision=quote_value(request.revision),
        status=status,
        error=type(error).__name__,
        reason=one_line(error),
    )
