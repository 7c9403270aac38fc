"""Modules that are imported when they are first used, for code that is read by processes that never run it.

What one function alone needs, and is heavy, is imported within it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Takes the place of a module until one of its names is used, and has all of them from then on.

    It is not in `sys.modules`, where other libraries would take its name for the module itself.
    """

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


def lazy(name: str) -> Any:
    """The module of this name, imported when it is first used."""
    return LazyModule(name)
