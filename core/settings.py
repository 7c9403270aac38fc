"""What may be set from outside: environment variables that begin with SCL_."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.errors import ConfigError

PREFIX = "SCL_"
LOCAL, AUTO = "local", "auto"
ADDRESS = re.compile(r"[^\s/]+:[0-9]{1,5}")


class Settings(BaseSettings):
    """Where runs live, and how much of a file is read.

    Attributes:
        runs: folder of the store.
        disk_gb: what all runs may take on disk, in units of 2**30 bytes; beyond it, weights of finished runs are
            dropped, the oldest first.
        max_file_mb: a larger file is refused, in units of 2**20 bytes.
        max_rows: rows kept of a file or a Hub data set.
        excess_rows: what happens to a file with more: "sample" keeps a seeded sample of max_rows rows, which is said
            and shown; "refuse" takes nothing.
        engine: what carries runs out: "local", this machine; "auto", the Ray cluster that this machine is a node of; or
            HOST:PORT, the address of such a cluster's head.
        ray_cpus, ray_gpus: what a run asks a Ray cluster for unless it says otherwise.
        max_text_chars: a longer text is a problem of its row, as is a longer label.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    runs: Path = Path("runs")
    engine: str = LOCAL
    ray_cpus: Annotated[float, Field(gt=0, le=1024)] = 1.0
    ray_gpus: Annotated[float, Field(ge=0, le=64)] = 0.0
    disk_gb: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 20.0
    max_file_mb: Annotated[int, Field(ge=1)] = 256
    max_rows: Annotated[int, Field(ge=10)] = 200_000
    excess_rows: Literal["sample", "refuse"] = "sample"
    max_columns: Annotated[int, Field(ge=2)] = 200
    max_text_chars: Annotated[int, Field(ge=10)] = 20_000
    max_label_chars: Annotated[int, Field(ge=1)] = 100
    max_classes: Annotated[int, Field(ge=2, le=254)] = 100

    @field_validator("engine")
    @classmethod
    def _is_engine(cls, given: str) -> str:
        if given not in (LOCAL, AUTO) and not ADDRESS.fullmatch(given):
            raise ValueError("give local, auto, or HOST:PORT of a Ray cluster's head")
        return given


def settings() -> Settings:
    """The settings as the environment has them now.

    Raises: ConfigError naming the variable, its value and what would work.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{PREFIX}{'.'.join(map(str, first['loc']))}".upper()
        raise ConfigError(name, first["input"], f"{first['msg'].removeprefix('Value error, ')}.") from None
