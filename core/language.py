"""What people read, in their language.

English is written in the code and is the key of every translation; the catalogues of the other languages are gettext's,
in assets/languages. A message is a whole sentence with named places: `_("{title} is {status}.", title=…, status=…)`.
Text that is made once and shown later (a registry's label, a constant) is marked with `N_` where it stands and given to
`_` where it is shown.
"""

from __future__ import annotations

import gettext
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

FOLDER = Path(__file__).resolve().parents[1] / "assets" / "languages"
ENGLISH = "en"
# By the name in an address, as their speakers call them.
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文", "ko": "한국어"}

_chosen: ContextVar[str | None] = ContextVar("language", default=None)
_ask: Callable[[], str] = lambda: ENGLISH  # noqa: E731 - replaced as a whole by `ask_for_language`


def ask_for_language(ask: Callable[[], str]) -> None:
    """Have `ask` name the language of whoever is served at the moment; English where nobody is asked."""
    global _ask  # noqa: PLW0603 - one app, one way to know its visitors
    _ask = ask


def language() -> str:
    """The language that is spoken now, a key of LANGUAGES."""
    return _chosen.get() or _ask()


@contextmanager
def in_language(code: str) -> Iterator[None]:
    """Speak a language for a while, whatever anybody chose."""
    before = _chosen.set(code)
    try:
        yield
    finally:
        _chosen.reset(before)


def _(message: str, /, **values: object) -> str:
    """A message in the language that is spoken, with its places filled; English where it is not translated."""
    return _filled(_catalogue(language()).gettext(message) if message else "", values)


def pgettext(context: str, message: str, /, **values: object) -> str:
    """The same for a word that means several things: `context` says which, for translators alone."""
    return _filled(_catalogue(language()).pgettext(context, message), values)


def ngettext(one: str, many: str, count: int, /, **values: object) -> str:
    """The same for a message that depends on a number, which may stand in it as `{count}`: 1,080."""
    text = _catalogue(language()).ngettext(one, many, count)
    return _filled(text, {"count": f"{count:,}", **values})


def N_(message: str, /) -> str:  # noqa: N802 - gettext's name, which extracting tools know
    """Mark a message that is translated where it is shown."""
    return message


def script_messages(part: str) -> dict[str, str]:
    """What scripts say, in the language that is spoken: English messages and their translations, none for English.

    Args:
        part: the start of the scripts' paths, such as "assets/map/".
    """
    return dict(_script_messages(language(), part))


def _filled(text: str, values: Mapping[str, object]) -> str:
    return text.format_map(values) if values else text


@cache
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == ENGLISH:
        return gettext.NullTranslations()
    from babel.messages.mofile import write_mo  # what English alone does without

    packed = BytesIO()
    write_mo(packed, read_catalogue(code))
    packed.seek(0)
    return gettext.GNUTranslations(packed)


@cache
def _script_messages(code: str, part: str) -> Mapping[str, str]:
    if code == ENGLISH:
        return {}
    return {
        str(message.id): str(message.string)
        for message in read_catalogue(code)
        if message.string and any(path.startswith(part) and path.endswith(".js") for path, _line in message.locations)
    }


def catalogue_path(code: str) -> Path:
    return FOLDER / f"{code}.po"


@cache
def read_catalogue(code: str) -> Catalog:
    """The messages of a language as their file has them, with the places that they come from."""
    from babel.messages.pofile import read_po

    with catalogue_path(code).open("rb") as file:
        return read_po(file, locale=code)
