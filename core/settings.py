"""What may be set from outside: environment variables that begin with SCL_."""

from __future__ import annotations

import os
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from core.errors import ConfigError
from core.messages import _

PREFIX = "SCL_"
ADMIN_KEY_CHARS = 12
LOCAL, AUTO = "local", "auto"
ADMIN_KEY = f"{PREFIX}ADMIN_KEY"
SERVER = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?")
ADDRESS = re.compile(r"[^\s/]+:[0-9]{1,5}")


class Settings(BaseSettings):
    """Where runs live, and how much of a file is read.

    Attributes:
        runs: folder of the store.
        address: where others reach the app, such as http://192.168.1.20:8501, for links that are copied; None takes
            the address that the browser shows.
        host: the names by which a proxy before the app is called, separated by commas; None for those of `address`,
            this machine and IP addresses alone.
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
        shared: whether several people use this server. Then a run belongs to whoever started it: others watch, and only
            its owner or an admin may stop, turn, rename or delete it.
        admins: e-mail addresses of admins, where Streamlit's login is configured.
        admin_key: a visitor who types it on the Runs page becomes an admin; None for no admin by key.
        visitor_running, visitor_waiting: runs of one person at a time, and how many may wait, on a shared server.
        visitor_experiment: runs of an experiment there.
        total_waiting: runs of all people that may wait there, experiments aside.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    runs: Path = Path("runs")
    address: str | None = None
    host: str | None = None
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
    shared: bool = False
    admins: tuple[str, ...] = ()
    admin_key: SecretStr | None = None
    visitor_running: Annotated[int, Field(ge=1)] = 1
    visitor_waiting: Annotated[int, Field(ge=1)] = 5
    visitor_experiment: Annotated[int, Field(ge=1)] = 100
    total_waiting: Annotated[int, Field(ge=1)] = 1_000

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, settings_file())

    @field_validator("address")
    @classmethod
    def _is_address(cls, given: str | None) -> str | None:
        if given is not None and not SERVER.fullmatch(given):
            raise ValueError(_("give http:// or https:// with a host, such as http://192.168.1.20:8501."))
        return given

    @field_validator("admin_key")
    @classmethod
    def _is_long(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None and len(given.get_secret_value()) < ADMIN_KEY_CHARS:
            raise ValueError(_("give at least {least} characters, or leave it out.", least=ADMIN_KEY_CHARS))
        return given

    @field_validator("engine")
    @classmethod
    def _is_engine(cls, given: str) -> str:
        if given not in (LOCAL, AUTO) and not ADDRESS.fullmatch(given):
            raise ValueError(_("give local, auto, or HOST:PORT of a Ray cluster's head."))
        return given


def settings_file() -> Path:
    """Where settings are read that the environment does not have: SCL_SETTINGS, else scl.toml in the current folder."""
    return Path(os.environ.get(f"{PREFIX}SETTINGS") or "scl.toml")


def settings() -> Settings:
    """The settings as the environment and the settings file have them now.

    Raises: ConfigError naming the variable, its value and what would work.
    """
    try:
        # Other empty variables count as not set; here an empty one is a mistake that leaves a server without an admin.
        if os.environ.get(ADMIN_KEY) == "":
            return Settings(admin_key=SecretStr(""))
        return _settings(_environment(), _file())
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise ConfigError("settings", str(settings_file()), "{problem}: give a TOML file.", problem=error) from None
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{PREFIX}{'.'.join(map(str, first['loc']))}".upper()
        # What is checked here says what would work; pydantic's own words are English.
        remedy = str(first["ctx"]["error"]) if first["type"] == "value_error" else f"{first['msg']}."
        raise ConfigError(name, "…" if name == ADMIN_KEY else first["input"], remedy) from None


@lru_cache(maxsize=16)
def _settings(environment: frozenset[tuple[str, str]], file: bytes | None) -> Settings:
    """Made again when what they are read from has changed: a page asks many times while it is drawn."""
    return Settings()


def _environment() -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in os.environ.items() if name.upper().startswith(PREFIX))


def _file() -> bytes | None:
    path = settings_file()
    return path.read_bytes() if path.is_file() else None
