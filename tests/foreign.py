"""A test language that marks every message: text without marks was not translated."""

from __future__ import annotations

from gettext import NullTranslations

# Nouns that follow a number. Their translations contain a placeholder for the number.
NOUNS = ("row",)


class Foreign(NullTranslations):
    """A translator that encloses every message in angle quotation marks."""

    def gettext(self, message: str) -> str:
        return f"«{{count}} {message}»" if message in NOUNS else f"«{message}»"

    def pgettext(self, context: str, message: str) -> str:
        return f"«{message}»"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"«{msgid1 if n == 1 else msgid2}»"
