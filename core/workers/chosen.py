"""The engine that the settings choose."""

from __future__ import annotations

import importlib.util

from core.errors import ConfigError
from core.settings import LOCAL, settings
from core.store import Store
from core.workers.cluster.ray_engine import RayEngine
from core.workers.engine import Engine
from core.workers.local import LocalEngine


def chosen_engine(store: Store) -> Engine:
    """This machine's processes, or a Ray cluster. Raises: ConfigError for settings that cannot be followed."""
    address = settings().engine
    if address == LOCAL:
        return LocalEngine(store)
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("SCL_ENGINE", address, "install Ray (pip install -r requirements-ray.txt), or give local.")
    return RayEngine(store)
