from __future__ import annotations

import errno

import pytest

from core.errors import ConfigError, TaskError
from core.tasks.hub.location import CONVERTED, plain_errors
from core.tasks.hub.registry import HubRequest
from tests.cases import each


@each(
    ("path", "config", "split"),
    [
        ("default/train/0000.parquet", "default", "train"),
        ("sst2/validation_matched/0012.parquet", "sst2", "validation_matched"),
        ("default/partial-train/0000.parquet", "default", "train"),
        ("default/partial/train/0003.parquet", "default", "train"),
        ("mrpc/glue-train.parquet", "mrpc", "train"),
    ],
)
def test_the_hubs_names_for_converted_files(path: str, config: str, split: str) -> None:
    match = CONVERTED.fullmatch(path)
    assert match is not None
    assert (match["config"], match["split"] or match["old"]) == (config, split)
    for other in (".gitattributes", "default/train/index.duckdb", "train.parquet", "a/b/c/d.parquet"):
        assert CONVERTED.fullmatch(other) is None


REQUEST = HubRequest(repository="acme/tiny", text="text", label="label", max_rows=10)


def reported(error: Exception) -> str:
    with pytest.raises(TaskError) as raised, plain_errors(REQUEST):
        raise error
    return str(raised.value)


def test_full_disks_lost_connections_and_unknown_errors_are_one_sentence() -> None:
    assert reported(OSError(errno.ENOSPC, "No space left on device")) == (
        "Data set 'acme/tiny' cannot be downloaded because the disk is full: free some space, or set HF_HOME to "
        "another disk."
    )

    below = ValueError("outer")
    below.__cause__ = ConnectionResetError("reset by peer")
    assert "the Hub cannot be reached" in reported(below)
    assert reported(ValueError("first line.\nsecond line")) == (
        "Data set 'acme/tiny' cannot be read (ValueError: first line): choose another."
    )


def test_a_config_error_passes_through_unchanged() -> None:
    with pytest.raises(ConfigError, match="SCL_MAX_ROWS = 'x' cannot be used"), plain_errors(REQUEST):
        raise ConfigError("SCL_MAX_ROWS", "x", "give a number.")
