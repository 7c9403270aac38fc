"""The fixtures of a shared server, which the page tests use too."""

from __future__ import annotations

from tests.pages import conftest

folder, shared = conftest.folder, conftest.shared
