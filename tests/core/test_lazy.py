from __future__ import annotations

import subprocess
import sys

import pytest

from core.lazy import lazy


def test_a_module_is_imported_when_one_of_its_names_is_used() -> None:
    code = """
import sys
from core.lazy import lazy
this = lazy("this")
assert "this" not in sys.modules
assert this.c == 97
import this as real
assert this.s is real.s
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_a_submodule_is_found_by_its_whole_name() -> None:
    assert lazy("os.path").join("a", "b") == "a/b"


def test_a_name_that_is_not_there_raises_as_the_module_does() -> None:
    with pytest.raises(AttributeError, match="module 'math' has no attribute 'tau_2'"):
        _ = lazy("math").tau_2
    with pytest.raises(ModuleNotFoundError):
        _ = lazy("no_such_module").name
