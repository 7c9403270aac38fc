"""Random ids of runs and jobs, and validation of the names and tags that users give."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Sequence
from functools import cache

from core.errors import ConfigError, quote_value
from core.messages import LANGUAGES, Message, _, in_language

# Without l, o, 0 and 1, which are easily confused.
ID_LETTERS, ID_CHARS = "abcdefghijkmnpqrstuvwxyz23456789", 12
NAME_CHARS, TAG_CHARS, TAGS_MAX = 80, 24, 8

# Names that suggest the operator of the server, in addition to the labels that the pages use.
RESERVED = (
    "admin", "administrator", "moderator", "root", "system", "server", "owner", "operator", "support", "staff",
    "管理员", "管理員", "系统", "系統", "服务器", "伺服器", "관리자", "운영자", "시스템", "서버",
)  # fmt: skip
# Casefolded Cyrillic and Greek letters that look like Latin ones.
LATIN_TWINS = str.maketrans("авекмнорстухіјѕԁԛԝαβεικνορτυχ", "abekmhopctyxijsdqwabeikvoptux")


def new_id() -> str:
    """Draw a random id for a run or job."""
    return "".join(secrets.choice(ID_LETTERS) for _place in range(ID_CHARS))


def checked_name(text: str) -> str:
    """Return a name with whitespace collapsed; "" means that the number serves as title. Raises: ConfigError."""
    name = " ".join(text.split())
    if len(name) > NAME_CHARS:
        raise ConfigError("name", quote_value(name), "give at most {most} characters.", most=NAME_CHARS)
    return name


def checked_visitor_name(text: str) -> str:
    """Return a visitor's name with whitespace collapsed and invisible characters removed; "" for none.

    Raises: ConfigError for a name that is too long, or that suggests the server, an admin or another visitor.
    """
    name = checked_name("".join(sign for sign in unicodedata.normalize("NFC", text) if not _is_invisible(sign)))
    key = visitor_key(name)
    if "@" in key or _reserved().fullmatch(key):
        raise ConfigError(
            "name", quote_value(name), "it could be mistaken for an admin, the server or another visitor."
        )
    return name


def visitor_key(name: str) -> str:
    """Return a key that is equal for names that look the same."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    seen = (sign for sign in unicodedata.normalize("NFKC", plain) if not _is_invisible(sign) and not sign.isspace())
    return "".join(seen).translate(LATIN_TWINS)


def _is_invisible(sign: str) -> bool:
    # Format characters, variation selectors, and blanks that Unicode classifies as letters or symbols.
    return (
        unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f" or sign in "\u115f\u1160\u3164\uffa0\u2800"
    )


@cache
def _reserved() -> re.Pattern[str]:
    """Return a pattern that matches the keys of RESERVED names and of the pages' labels for visitors and the server."""
    names = {*RESERVED}
    for code in LANGUAGES:
        with in_language(code):
            names |= {_("the server"), _("you"), _("Admin"), _("visitor {number}", number="0")}
    return re.compile("|".join(re.escape(visitor_key(name)).replace("0", r"\d+") for name in names))


def checked_tags(given: Sequence[str]) -> tuple[str, ...]:
    """Return the tags in their order, with whitespace collapsed and duplicates removed. Raises: ConfigError."""
    tags = tuple(dict.fromkeys(tag for text in given if (tag := " ".join(text.split()))))
    for tag in tags:
        if len(tag) > TAG_CHARS or "," in tag:
            raise ConfigError(
                "tags", quote_value(tag), "a tag has at most {most} characters and no comma.", most=TAG_CHARS
            )
    if len(tags) > TAGS_MAX:
        raise ConfigError("tags", Message("{count} tags", count=len(tags)), "give at most {most}.", most=TAGS_MAX)
    return tags


def checked_task_name(text: str) -> str:
    """Return a task's name with whitespace collapsed. Raises: ConfigError if it is empty or too long."""
    name = " ".join(text.split())
    if not 0 < len(name) <= NAME_CHARS:
        raise ConfigError("name", name, "give a name of 1 to {most} characters.", most=NAME_CHARS)
    return name
