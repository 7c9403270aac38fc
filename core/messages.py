"""Translation of all text that users read.

The English text is written in the code and is the key of every translation. The other languages have gettext catalogues
in assets/languages. A message is a whole sentence with named placeholders: `_("{title} is {status}.", title=…,
status=…)`. Text that is defined once and shown later (a registry's label, a constant) is marked with `N_` where it is
defined and passed to `_` where it is shown.
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
# Native names of the languages, by their codes in a URL.
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文", "ko": "한국어"}

_chosen: ContextVar[str | None] = ContextVar("language", default=None)
_ask: Callable[[], str] = lambda: ENGLISH  # noqa: E731 - replaced as a whole by `ask_for_language`


def ask_for_language(ask: Callable[[], str]) -> None:
    """Set the function that returns the current visitor's language; without one, the language is English."""
    global _ask  # noqa: PLW0603 - app and command line replace the default
    _ask = ask


def language() -> str:
    """Return the current language, a key of LANGUAGES."""
    return _chosen.get() or _ask()


@contextmanager
def in_language(code: str) -> Iterator[None]:
    """Use a language within the block, whatever the visitor chose."""
    before = _chosen.set(code)
    try:
        yield
    finally:
        _chosen.reset(before)


def _(message: str, /, **values: object) -> str:
    """Translate a message to the current language and fill its placeholders; English if there is no translation."""
    return _filled(_catalogue(language()).gettext(message) if message else "", values)


def pgettext(context: str, message: str, /, **values: object) -> str:
    """Translate a word with several meanings, as `_` does; `context` tells translators which meaning applies."""
    return _filled(_catalogue(language()).pgettext(context, message), values)


def ngettext(one: str, many: str, count: int, /, **values: object) -> str:
    """Translate a message that depends on a number, as `_` does; `{count}` becomes the number, such as 1,080."""
    text = _catalogue(language()).ngettext(one, many, count)
    return _filled(text, {"count": f"{count:,}", **values})


def join_list(parts: Iterable[str]) -> str:
    """Join items into a list: a, b, c."""
    # Translators: two items of a list, with their separator
    return _("{first}, {next}", first="", next="").join(parts)


def join_phrase(parts: Sequence[str]) -> str:
    """Join items, at least one, into a phrase: a and b."""
    return reduce(lambda first, last: _("{first} and {last}", first=first, last=last), parts)


def clauses(parts: Iterable[str]) -> str:
    """Join items that contain commas into a list: a, b; c."""
    # Translators: two items of a list that contain commas themselves, with their separator
    return _("{first}; {next}", first="", next="").join(parts)


def sentences(parts: Iterable[str]) -> str:
    """Join whole sentences, without empty ones.

    A sentence that ends in an ASCII character, such as an error of another process or bold text, is followed by a space
    in every language.
    """
    # Translators: two sentences, with the space between them if there is one
    gap = _("{first} {next}", first="", next="")
    said = [part for part in parts if part]
    return "".join([*(f"{part} " if part[-1].isascii() else f"{part}{gap}" for part in said[:-1]), *said[-1:]])


def join_label(what: str, value: str) -> str:
    """Join a label and its value: Batch: 16."""
    return _("{what}: {value}", what=what, value=value)


def with_more(name: str, more: str) -> str:
    """Add an explanation in brackets to a name: SCL (L_out)."""
    return _("{name} ({more})", name=name, more=more)


def N_(message: str, /) -> str:  # noqa: N802 - gettext's name, which extracting tools know
    """Mark a message that is translated where it is shown."""
    return message


class Message:
    """A template and its values, translated when it is rendered.

    `str` renders it in the language of the current visitor. Values are text, numbers, other messages, and tuples of
    these, which are rendered as lists. `dump_text` and `load_text` convert it to and from JSON.

    Args:
        template: English, with named placeholders: "{title} is {status}."
        plural: the template if the value `count` is not 1; `{count}` becomes the number, such as 1,080.
    """

    __slots__ = ("plural", "template", "values")

    def __init__(self, template: str, plural: str = "", /, **values: object) -> None:
        self.template, self.plural = template, plural
        self.values = {name: _plain(value) for name, value in values.items()}

    def fill(self, **values: object) -> Message:
        """Return the message with more of its placeholders filled."""
        return Message(self.template, self.plural, **{**self.values, **values})

    def render(self, code: str) -> str:
        """Return the text in a language, a key of LANGUAGES."""
        with in_language(code):
            return str(self)

    def __str__(self) -> str:
        values = {
            name: join_list(map(str, value)) if isinstance(value, tuple) else value
            for name, value in self.values.items()
        }
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
    """Return the stored form of a text, for a column of the store: a message as JSON in bytes, other text unchanged."""
    return json.dumps(text, ensure_ascii=False, default=_encoded).encode() if isinstance(text, Message) else text


def load_text(stored: str | bytes) -> Text:
    """Return a text from its stored form: a message, or plain text, such as a sentence of an older run."""
    return json.loads(stored, object_hook=_decoded) if isinstance(stored, bytes) else stored


def _plain(value: object) -> Any:
    """Convert a value to one that can be stored."""
    if isinstance(value, tuple | list):
        return tuple(_plain(part) for part in value)
    if isinstance(value, Exception):
        message = getattr(value, "message", None)
        return message if isinstance(message, Message) else str(value)
    if isinstance(value, str | int | float | Message):
        return value
    # Numbers of numpy and torch.
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else str(value)


def _encoded(message: Message) -> dict[str, Any]:
    plural = {"plural": message.plural} if message.plural else {}
    return {"template": message.template, **plural, "values": message.values}


def _decoded(found: dict[str, Any]) -> Any:
    """Return the message of a JSON object, or the values of a message unchanged."""
    is_message = found.keys() >= {"template", "values"}
    return Message(found["template"], found.get("plural", ""), **found["values"]) if is_message else found


def script_messages(part: str) -> dict[str, str]:
    """Return the messages of scripts in the current language, by their English text; empty for English.

    Args:
        part: start of the scripts' paths, such as "assets/map/".
    """
    return dict(_script_messages(language(), part))


def _filled(text: str, values: Mapping[str, object]) -> str:
    return text.format_map(values) if values else text


@cache
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == ENGLISH:
        return gettext.NullTranslations()
    from babel.messages.mofile import write_mo  # not needed for English

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


@cache
def read_catalogue(code: str) -> Catalog:
    """Load the messages of a language from its file, with their source locations."""
    from babel.messages.pofile import read_po

    with (FOLDER / f"{code}.po").open("rb") as file:
        return read_po(file, locale=code)
