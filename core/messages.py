"""What people read, in their language.

English is written in the code and is the key of every translation; the catalogues of the other languages are gettext's,
in assets/languages. A message is a whole sentence with named places: `_("{title} is {status}.", title=…, status=…)`.
Text that is made once and shown later (a registry's label, a constant) is marked with `N_` where it is defined and
passed to `_` where it is shown.
"""

from __future__ import annotations

import gettext
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, reduce
from io import BytesIO
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """The same for a message that depends on a number, which may appear in it as `{count}`: 1,080."""
    text = _catalogue(language()).ngettext(one, many, count)
    return _filled(text, {"count": f"{count:,}", **values})


def listed(parts: Iterable[str]) -> str:
    """Things in a list: a, b, c."""
    # Translators: two items of a list, with their separator
    return _("{first}, {next}", first="", next="").join(parts)


def joined(parts: Sequence[str]) -> str:
    """Things, at least one, as a sentence names them: a and b."""
    return reduce(lambda first, last: _("{first} and {last}", first=first, last=last), parts)


def clauses(parts: Iterable[str]) -> str:
    """Things in a list that have commas of their own: a, b; c."""
    # Translators: two items of a list that contain commas themselves, with their separator
    return _("{first}; {next}", first="", next="").join(parts)


def sentences(parts: Iterable[str]) -> str:
    """Whole sentences one after the other, empty ones left out.

    What ends in a sign of English keeps its space in every language: an error of another process, bold text.
    """
    # Translators: two sentences, with the space between them if there is one
    gap = _("{first} {next}", first="", next="")
    said = [part for part in parts if part]
    return "".join([*(f"{part} " if part[-1].isascii() else f"{part}{gap}" for part in said[:-1]), *said[-1:]])


def called(what: str, value: str) -> str:
    """What something is, and its value: Batch: 16."""
    return _("{what}: {value}", what=what, value=value)


def with_more(name: str, more: str) -> str:
    """A name with something in brackets: SCL (L_out)."""
    return _("{name} ({more})", name=name, more=more)


def N_(message: str, /) -> str:  # noqa: N802 - gettext's name, which extracting tools know
    """Mark a message that is translated where it is shown."""
    return message


class Message:
    """A template and its values, without a language until it is read.

    `str` renders it in the language of the current visitor. Values are text, numbers, other messages, and tuples of
    these, which are listed. `dump_text` and `load_text` keep it as JSON.

    Args:
        template: English, with named places: "{title} is {status}."
        plural: the same for every number but 1; a value `count` decides, and may appear as `{count}`: 1,080.
    """

    __slots__ = ("plural", "template", "values")

    def __init__(self, template: str, plural: str = "", /, **values: object) -> None:
        self.template, self.plural = template, plural
        self.values = {name: _plain(value) for name, value in values.items()}

    def fill(self, **values: object) -> Message:
        """Return the message with more of its places filled."""
        return Message(self.template, self.plural, **{**self.values, **values})

    def render(self, code: str) -> str:
        """Return the text in a language, a key of LANGUAGES."""
        with in_language(code):
            return str(self)

    def __str__(self) -> str:
        values = {name: _list_text(value) for name, value in self.values.items()}
        if not self.plural:
            return _(self.template, **values)
        return ngettext(self.template, self.plural, int(values.pop("count")), **values)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return f"Message({self.template!r}, **{self.values!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and dump_text(self) == dump_text(other)

    def __hash__(self) -> int:
        return hash(self.template)


# A message, or text that is not translated.
Text = str | Message


def dump_text(text: Text) -> str | bytes:
    """Return what `load_text` reads back, for a column of the store: a message as JSON in bytes, text as it is."""
    return json.dumps(_encoded(text), ensure_ascii=False).encode() if isinstance(text, Message) else text


def load_text(stored: str | bytes) -> Text:
    """Return a stored message, or text that is none, such as a sentence of an older run."""
    return _decoded(json.loads(stored)) if isinstance(stored, bytes) else stored


def _plain(value: object) -> Any:
    """A value as it can be stored."""
    if isinstance(value, tuple | list):
        return tuple(_plain(part) for part in value)
    if isinstance(value, Exception):
        message = getattr(value, "message", None)
        return message if isinstance(message, Message) else str(value)
    if isinstance(value, str | int | float | Message):
        return value
    # Numbers of numpy and torch.
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else str(value)


def _list_text(value: Any) -> Any:
    return listed(map(str, value)) if isinstance(value, tuple) else value


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(part) for part in value]
    if not isinstance(value, Message):
        return value
    plural = {"plural": value.plural} if value.plural else {}
    return {"template": value.template, **plural, "values": {name: _encoded(one) for name, one in value.values.items()}}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part) for part in value)
    if not isinstance(value, dict):
        return value
    values = {name: _decoded(one) for name, one in value["values"].items()}
    return Message(value["template"], value.get("plural", ""), **values)


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
