"""A language in which every message is seen: what a test reads without marks was not translated."""

from __future__ import annotations

from gettext import NullTranslations

# Nouns behind a number, whose translations have a place for it.
NOUNS = ("row",)


class Foreign(NullTranslations):
    """Every message between angle quotation marks."""

    def gettext(self, message: str) -> str:
        return f"«{{count}} {message}»" if message in NOUNS else f"«{message}»"

    def pgettext(self, context: str, message: str) -> str:
        return f"«{message}»"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"«{msgid1 if n == 1 else msgid2}»"
