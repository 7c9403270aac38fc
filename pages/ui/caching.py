"""Caching of what functions make of values that are known by something shorter than themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.config import ReadingConfig, RunConfig
from core.messages import _, language
from core.store import RunRecord, RunSummary, Store
from core.tasks import TaskData

Given = ParamSpec("Given")
Made = TypeVar("Made")

# What a value is known by. A resumed run goes on from where it was; one that was started over is another.
KNOWN_BY: Mapping[str | type[Any], Callable[[Any], Any]] = {
    Store: lambda store: str(store.folder),
    RunRecord: attrgetter("id", "begun_attempt"),
    RunSummary: attrgetter("id", "begun_attempt"),
    RunConfig: RunConfig.to_json,
    ReadingConfig: ReadingConfig.model_dump_json,
    TaskData: attrgetter("content_hash"),
    UploadedFile: attrgetter("file_id"),
}


def cached(
    max_entries: int, *types: type, spinner: bool | str = False, kept_s: float | None = None
) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Cache a function's results, which nobody changes; everything that it is given, and the language that is spoken,
    says which result it is.

    Args:
        types: of arguments that are known by their `key`, beside those of `KNOWN_BY`.
        spinner: what the page says while it computes, marked with `N_`.
        kept_s: for how long, in seconds; as long as there is room where None.
    """
    hashed: dict[str | type[Any], Callable[[Any], Any]] = {**KNOWN_BY, **dict.fromkeys(types, attrgetter("key"))}

    def decorate(function: Callable[Given, Made]) -> Callable[Given, Made]:
        @wraps(function)
        def kept(*args: Any, in_language: str, **kwargs: Any) -> Made:
            return function(*args, **kwargs)

        @lru_cache
        def cache(code: str) -> Callable[..., Made]:
            """All languages share one cache, whose key has the language; the spinner's text is of the cache itself."""
            said = _(spinner) if isinstance(spinner, str) else spinner
            return st.cache_resource(show_spinner=said, max_entries=max_entries, ttl=kept_s, hash_funcs=hashed)(kept)

        @wraps(function)
        def found(*args: Given.args, **kwargs: Given.kwargs) -> Made:
            return cache(language())(*args, in_language=language(), **kwargs)

        return found

    return decorate
