"""What may be set from outside: environment variables that begin with SCL_."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.errors import ConfigError

PREFIX = "SCL_"


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
        max_text_chars: a longer text is a problem of its row, as is a longer label.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    runs: Path = Path("runs")
    disk_gb: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 20.0
    max_file_mb: Annotated[int, Field(ge=1)] = 256
    max_rows: Annotated[int, Field(ge=10)] = 200_000
    excess_rows: Literal["sample", "refuse"] = "sample"
    max_columns: Annotated[int, Field(ge=2)] = 200
    max_text_chars: Annotated[int, Field(ge=10)] = 20_000
    max_label_chars: Annotated[int, Field(ge=1)] = 100
    max_classes: Annotated[int, Field(ge=2, le=254)] = 100


def settings() -> Settings:
    """The settings as the environment has them now.

    Raises: ConfigError naming the variable, its value and what would work.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{PREFIX}{'.'.join(map(str, first['loc']))}".upper()
        raise ConfigError(name, first["input"], f"{first['msg']}.") from None
