"""What people read, in their language.

English is written in the code and is the key of every translation; the catalogues of the other languages are gettext's,
in assets/languages. A message is a whole sentence with named places: `_("{title} is {status}.", title=…, status=…)`.
Text that is made once and shown later (a registry's label, a constant) is marked with `N_` where it is defined and
passed to `_` where it is shown.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache, reduce
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

FOLDER = Path(__file__).resolve().parents[1] / "assets" / "languages"
ENGLISH = "en"
# By the name in an address, as their speakers call them.
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文", "ko": "한국어"}

# Fewer letters than these would fit sentences that are others.
SHORTEST_FORM = 12

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


@lru_cache(maxsize=512)
def _reread(code: str, sentence: str) -> str:
    if code == ENGLISH:
        return sentence
    with in_language(code):
        if (known := _(sentence)) != sentence:
            return known
        for form, translated in _forms(code):
            if (found := form.fullmatch(sentence)) is not None:
                values = {name: _value(code, value) for name, value in found.groupdict().items()}
                return _AsGiven().vformat(translated, (), values)
        # Two sentences that were kept as one.
        for first, then in _halves(sentence):
            said = [_reread(code, first), _reread(code, then)]
            if said[0] != first and said[1] != then:
                return sentences(said)
    return sentence


def _value(code: str, text: str) -> str:
    """What fills a place, which may be a whole sentence: the remedy of an error."""
    return _(text) if len(text) < SHORTEST_FORM else _reread(code, text)


def _halves(text: str) -> Iterator[tuple[str, str]]:
    for end in re.finditer(r"[.?!] (?=[A-Z])", text):
        yield text[: end.start() + 1], text[end.end() :]


def reread(sentence: str) -> str:
    """A sentence that another process wrote in English, such as a run's error, in the language that is spoken.

    It is recognised by its form: the message whose places can be filled so that it reads like this. What has no such
    form stays as it is.
    """
    return _reread(language(), sentence)


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


class _AsGiven(Formatter):
    """Fills places with text that was formatted already."""

    def format_field(self, value: object, format_spec: str) -> str:
        return str(value)


@cache
def _forms(code: str) -> Sequence[tuple[re.Pattern[str], str]]:
    """Messages with places as patterns, and their translations; those with most words of their own come first."""
    found = []
    for message in read_catalogue(code):
        ids, strings = ((one,) if isinstance(one, str) else tuple(one) for one in (message.id, message.string or ""))
        for text in ids:
            own = "".join(part for part, _name, _spec, _conversion in _parts(text))
            if len(own) >= SHORTEST_FORM and own != text and strings[-1]:
                found.append((len(own), re.compile(_pattern(text), re.DOTALL), strings[-1]))
    return [(form, text) for _length, form, text in sorted(found, key=lambda one: -one[0])]


def _pattern(text: str) -> str:
    seen: set[str] = set()
    pattern = ""
    for part, name, _spec, _conversion in _parts(text):
        pattern += re.escape(part)
        if name is not None:
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.+?)"
            seen.add(name)
    return pattern


def _parts(text: str) -> Sequence[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(Formatter().parse(text))
    except ValueError:  # braces that are no places
        return [(text, None, None, None)]


def catalogue_path(code: str) -> Path:
    return FOLDER / f"{code}.po"


@cache
def read_catalogue(code: str) -> Catalog:
    """The messages of a language as their file has them, with the places that they come from."""
    from babel.messages.pofile import read_po

    with catalogue_path(code).open("rb") as file:
        return read_po(file, locale=code)
