"""Settings of an installation: environment variables that begin with SCL_, and a TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.errors import ConfigError
from core.messages import _

PREFIX = "SCL_"
ADMIN_KEY_CHARS = 12
LOCAL, AUTO = "local", "auto"
ADMIN_KEY = f"{PREFIX}ADMIN_KEY"
SERVER = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?")
ADDRESS = re.compile(r"[^\s/]+:[0-9]{1,5}")


class Settings(BaseSettings):
    """Settings of an installation: storage, limits on files, engine, and limits on visitors.

    Attributes:
        runs: folder of the store.
        address: URL at which others reach the app, such as http://192.168.1.20:8501, for links to copy; None uses the
            address that the browser shows.
        host: host names of a proxy in front of the app, separated by commas; None accepts only the host of `address`,
            this machine and IP addresses.
        disk_gb: maximum size of all runs on disk, in units of 2**30 bytes; beyond it, weights of finished runs are
            dropped, the oldest first.
        max_file_mb: maximum size of a file, in units of 2**20 bytes; a larger one is rejected.
        max_rows: maximum number of rows kept of a file or of a split of a Hub data set.
        excess_rows: treatment of a file with more rows: "sample" keeps a seeded sample of max_rows rows and tells the
            user; "refuse" rejects the file.
        engine: executor of runs: "local", this machine; "auto", the Ray cluster that this machine is a node of; or
            HOST:PORT, the address of such a cluster's head.
        ray_cpus, ray_gpus: resources that a run requests from a Ray cluster unless its config says otherwise.
        max_text_chars, max_label_chars: maximum lengths of a text and a label; a row beyond them counts as a problem.
        shared: whether several users share this server. A run then belongs to the user who started it: others watch,
            and only its owner or an admin may stop, turn, rename or delete it.
        admins: e-mail addresses of admins, if Streamlit's login is configured.
        admin_key: a visitor who types it on the Runs page becomes an admin; None for no admin by key.
        visitor_running, visitor_waiting: maximum numbers of running and of waiting runs of one visitor on a shared
            server.
        visitor_experiment: maximum number of unfinished runs of a visitor's experiments together, on a shared server.
        visitor_steps: maximum number of steps of a visitor's run, on a shared server.
        total_waiting: maximum number of waiting runs of all visitors on a shared server, without experiments.
        paused_minutes: time after which a paused run stops if another run is queued.
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
    visitor_steps: Annotated[int, Field(ge=1)] = 5_000
    total_waiting: Annotated[int, Field(ge=1)] = 1_000
    paused_minutes: Annotated[float, Field(gt=0)] = 10.0

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


def settings() -> Settings:
    """Return the current settings from the environment and the settings file; the environment overrides the file.

    The file is SCL_SETTINGS, or else scl.toml in the current folder.

    Raises: ConfigError naming the variable, its value and a remedy.
    """
    file = Path(os.environ.get(f"{PREFIX}SETTINGS") or "scl.toml")
    try:
        # Other empty variables count as not set. An empty admin key is a mistake that would leave a server without an
        # admin.
        if os.environ.get(ADMIN_KEY) == "":
            return Settings(admin_key=SecretStr(""))
        environment = ((name.upper(), value) for name, value in os.environ.items() if name.upper().startswith(PREFIX))
        return _settings(frozenset(environment), file.read_bytes() if file.is_file() else b"")
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise ConfigError("settings", str(file), "{problem}: give a TOML file.", problem=error) from None
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{PREFIX}{'.'.join(map(str, first['loc']))}".upper()
        # The validators above name a remedy. pydantic's messages are in English.
        remedy = str(first["ctx"]["error"]) if first["type"] == "value_error" else f"{first['msg']}."
        raise ConfigError(name, "…" if name == ADMIN_KEY else first["input"], remedy) from None


@lru_cache(maxsize=16)
def _settings(environment: frozenset[tuple[str, str]], file: bytes) -> Settings:
    """Load the settings. They are cached until a source changes, because a page reads them many times."""
    overridden = {name for name, value in environment if value}
    given = tomllib.loads(file.decode())
    known = given.keys() & Settings.model_fields.keys()
    return Settings(**{name: given[name] for name in known if f"{PREFIX}{name}".upper() not in overridden})
