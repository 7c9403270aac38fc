"""Caching of what functions make of objects that know what identifies them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

import streamlit as st

Given = ParamSpec("Given")
Made = TypeVar("Made")


def cached_by_key(max_entries: int, *types: type) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Cache a function's results; arguments of these types are the same as long as their `key` is."""
    hashed: dict[str | type[Any], Callable[[Any], Any]] = {given: attrgetter("key") for given in types}
    return st.cache_resource(show_spinner=False, max_entries=max_entries, hash_funcs=hashed)
