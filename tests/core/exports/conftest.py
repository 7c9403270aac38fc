"""A language in which every message is seen."""

from __future__ import annotations

import gettext
from collections.abc import Iterator

import pytest

from core import language
from core.language import in_language


class Marked(gettext.NullTranslations):
    """Every message in brackets."""

    def gettext(self, message: str) -> str:
        return f"«{message}»"

    def pgettext(self, context: str, message: str) -> str:
        return f"«{message}»"

    def ngettext(self, one: str, many: str, count: int) -> str:
        return f"«{one if count == 1 else many}»"


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever asks for `zh` gets it."""
    catalogue = language._catalogue
    monkeypatch.setattr(language, "_catalogue", lambda code: Marked() if code == "zh" else catalogue(code))
    with in_language("zh"):
        yield
