"""Cases of a test: run in sequence within one test, or only by `make test-slow`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run all cases within one test, or within each test of a class. A failure names its case.

    Takes the arguments of `pytest.mark.parametrize`. Use it for cases that share fixtures: pytest's set-up
    takes ten milliseconds per case, but the case itself only a few microseconds.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    alone = isinstance(names, str) and len(wanted) == 1
    given = [dict(zip(wanted, (case,) if alone else case, strict=True)) for case in cases]

    def wrap(test: Any) -> Any:
        if inspect.isclass(test):
            for name, method in vars(test).items():
                if name.startswith("test_"):
                    setattr(test, name, wrap(method))
            return test
        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in wanted]

        @functools.wraps(test)
        def all_of_them(*arguments: Any, **more: Any) -> None:
            assert given, "there is no case"
            for case in given:
                try:
                    test(*arguments, **more, **case)
                except BaseException as error:
                    error.add_note(f"the case {case!r}")
                    raise

        all_of_them.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return all_of_them

    return wrap


def slow_but(quick: Collection[Any], every: Iterable[Any]) -> list[Any]:
    """Return the cases of `every`, with all except those in `quick` marked slow."""
    cases = list(every)
    assert set(quick) <= set(cases), set(quick) - set(cases)
    return [
        case if case in quick else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]
