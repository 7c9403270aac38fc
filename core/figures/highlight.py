"""Highlight the words of a text by weight, as safe HTML.

Styles are inline and translucent, so that they fit light and dark pages. No meaning depends on hue alone: negative
weights are also underlined, and words that entered or left the top k are marked with signs and named in sentences.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from core.events import TokenText
from core.figures.template import class_colour, short_text
from core.messages import N_, _, join_list, pgettext, sentences
from core.quantities import signed
from core.representation.attention import entered_and_left, selection_remark, top_words

Weights = Sequence[float] | NDArray[np.floating]

# The accent blue and orange are distinguishable with colour blindness (Okabe & Ito 2008).
POSITIVE_RGB = (74, 144, 194)
NEGATIVE_RGB = (230, 159, 0)
# A stronger background would make the text hard to read.
OPACITY_MAX = 0.5
# Number of words, strongest first, that a screen reader announces with their values.
SPOKEN_WORDS = 30
SPOKEN_CHARS = 40
# Maximum number of truncated characters shown, because a text may be as long as a book.
UNREAD_CHARS_MAX = 10_000
ENTERED, LEFT = "+", "−"
ATTENTION = N_("attention")
SAID = {ENTERED: N_("entered the top k"), LEFT: N_("left the top k")}

_BLOCK = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:1.25rem;line-height:1.75;margin:0.2rem 0 0.8rem"
_HEAD = "font-weight:600;overflow-wrap:anywhere"
_NOTE = "font-size:0.85rem;opacity:0.75;overflow-wrap:anywhere;margin:0.2rem 0"
_UNREAD = "opacity:0.6"
_CHOSEN = f"outline:1.5px solid rgb{POSITIVE_RGB};outline-offset:-1px;border-radius:0.25rem"
_UNDERLINE = f"text-decoration:underline 2px rgb{NEGATIVE_RGB};text-underline-offset:3px"
_HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);user-select:none"
_SIGN = "font-weight:700;line-height:0;user-select:none"


def highlighted_html(
    text: TokenText,
    weights: Weights,
    *,
    title: str,
    measure: str,
    chosen: Collection[int] = (),
    groups: Sequence[int] | None = None,
) -> str:
    """Return a text or pair with highlighted words; text that the encoder does not read is pale.

    Args:
        weights: one per word; negative weights get another hue and an underline, NaN means not measured.
        title: shown above the text; also the label for screen readers.
        measure: name of the weights, shown before the value on hover.
        chosen: positions of words to outline, e.g. the top k.
        groups: cluster of each word from 1, 0 for none; clusters have colours and numbers, and replace the colours of
            the weights. A legend lists their words.
    Returns: HTML without added line breaks, in which all untrusted text is escaped.
    """
    drawn = _block(title, text, weights, measure, _greatest(weights), chosen, {}, groups)
    members: dict[int, list[int]] = {}
    for place, group in sorted(enumerate(groups or ()), key=itemgetter(1)):
        members.setdefault(group, []).append(place)
    members.pop(0, None)
    for group, places in members.items():
        number = f'<span style="{_group_style(group)};padding:0 0.3rem">{group}</span>'
        drawn += _note(_("Cluster {number}: {words}", number=number, words=_listed(text, places)))
    return drawn


def before_and_after_html(
    text: TokenText,
    before: Weights,
    after: Weights,
    k: int,
    *,
    titles: tuple[str, str],
    skip: Collection[int] = (),
) -> str:
    """Return a text twice, with two sets of weights on one scale, and a summary.

    The top k words are outlined; words that entered or left the top k have a sign.

    Args:
        before, after: finite weights, one per word.
        k: number of top words, ≥ 1.
        skip: positions of words excluded from the top k and from the list for screen readers.
    """
    exchange = entered_and_left(before, after, k, skip)
    strongest = _greatest([*before, *after])
    signs = dict.fromkeys(exchange.left, LEFT), dict.fromkeys(exchange.entered, ENTERED)
    drawn = [
        _block(title, text, weights, ATTENTION, strongest, top_words(weights, k, skip), of_row, skip=skip)
        for title, weights, of_row in zip(titles, (before, after), signs, strict=True)
    ]
    summary = [
        _("Changes in the top {k}", k=k),
        _("new ({sign}): {words}", sign=ENTERED, words=_listed(text, exchange.entered)),
        _("gone ({sign}): {words}", sign=LEFT, words=_listed(text, exchange.left)),
        _("in both: {words}", words=_listed(text, exchange.stayed)),
    ]
    remark = selection_remark(len(after) - len(skip), k)
    return "".join(drawn) + _note(" · ".join(summary)) + (_note(remark) if remark else "")


def background(weight: float, scale: float) -> str:
    """Return the CSS background of a word: hue by the sign of the weight, opacity by its magnitude."""
    red, green, blue = NEGATIVE_RGB if weight < 0 else POSITIVE_RGB
    return f"rgba({red},{green},{blue},{OPACITY_MAX * min(1.0, abs(weight) / scale):.3f})"


def _greatest(weights: Weights) -> float:
    return max((abs(float(weight)) for weight in weights if not math.isnan(weight)), default=0.0) or 1.0


def _group_style(group: int) -> str:
    return f"background:{class_colour(group - 1)}{round(255 * OPACITY_MAX):02x};border-radius:3px"


def _mark(weight: float, measure: str, scale: float, *, framed: bool, sign: str, group: int | None) -> str:
    """Return the opening tag of a word's span, with style and hover text, and the sign before the word."""
    styles = [] if math.isnan(weight) else [f"background:{background(weight, scale)};border-radius:3px"]
    if group is not None:
        styles, sign = ([_group_style(group)], str(group)) if group else ([], "")
    styles += [_UNDERLINE] * (weight < 0) + [_CHOSEN] * framed
    unknown = _("{measure} not measured", measure=_(measure))
    said = [unknown if math.isnan(weight) else f"{_(measure)} {signed(weight, 4)}"]
    said += [_("in the top k")] * framed + ([_(SAID[sign])] if sign in SAID else [])
    said += [_("cluster {number}", number=group)] if group else []
    before = f'<sup aria-hidden="true" style="{_SIGN}">{sign}</sup>' if sign else ""
    return f'<span title="{_safe(join_list(said))}" style="{";".join(styles)}">{before}'


def _block(
    title: str,
    text: TokenText,
    weights: Weights,
    measure: str,
    scale: float,
    framed: Collection[int],
    signs: Mapping[int, str],
    groups: Sequence[int] | None = None,
    skip: Collection[int] = (),
) -> str:
    """Return a text with its title, highlighted words, and the hover content for screen readers."""
    name = _safe(title)
    marks = [
        _mark(w, measure, scale, framed=i in framed, sign=signs.get(i, ""), group=groups[i] if groups else None)
        for i, w in enumerate(map(float, weights))
    ]
    return (
        f'<div class="token-text" role="group" aria-label="{name}" style="position:relative">'
        f'<div style="{_HEAD}">{name}</div>{_body(text, marks)}{_spoken(text, weights, measure, skip)}</div>'
    )


def _body(text: TokenText, marks: Sequence[str]) -> str:
    """Return one block per side of the text, each with its own text direction."""
    sides, hidden, is_cut = [], 0, False
    for number, side in enumerate(text.sides):
        words = [(word.start, place, word) for place, word in enumerate(text.words) if word.side == number]
        pieces, end = [], 0
        for start, place, word in sorted(words, key=lambda item: item[:2]):
            pieces.append(_between(side[end:start]))
            # If a tokenizer splits one character into several words, the first word shows it.
            surface = side[max(end, start) : word.end]
            if surface:
                pieces.append(f"{marks[place]}{_safe(surface)}</span>")
            end = max(end, word.end)
        tail = side[end:]
        is_cut = is_cut or _is_visible(tail)
        hidden += max(0, len(tail) - UNREAD_CHARS_MAX)
        pieces.append(_between(tail[:UNREAD_CHARS_MAX]) + ("…" if len(tail) > UNREAD_CHARS_MAX else ""))
        sides.append(f'<p dir="auto" data-side="{number}" style="{_BLOCK}">{"".join(pieces)}</p>')
    if not is_cut:
        return "".join(sides)
    note = _("The grey end was truncated: the encoder reads {count} tokens of this text.", count=f"{text.length:,}")
    more = _("{count} more characters are not shown.", count=f"{hidden:,}") if hidden else ""
    return "".join(sides) + _note(sentences([note, more]))


def _between(text: str) -> str:
    """Return text between words: spaces unchanged, anything else pale, because the encoder does not read it."""
    if not _is_visible(text):
        return _safe(text)
    said = _safe(_("not read by the encoder"))
    return f'<span title="{said}" style="{_UNREAD}">{_safe(text)}</span>'


def _is_visible(text: str) -> bool:
    """Return True for text with a letter, number, punctuation mark or symbol.

    Tokenizers drop format characters, and accents without a letter.
    """
    return any(category(char)[0] in "LNPS" for char in text)


def _spoken(text: TokenText, weights: Weights, measure: str, skip: Collection[int]) -> str:
    """Return the hover content for screen readers: the strongest words with their values."""
    measured = [place for place, weight in enumerate(weights) if not math.isnan(weight) and place not in skip]
    strongest = sorted(measured, key=lambda place: (-abs(float(weights[place])), place))[:SPOKEN_WORDS]
    if not strongest:
        return ""
    items = "".join(f"<li>{_name(text, place)} {signed(weights[place], 4)}</li>" for place in strongest)
    head = _("Strongest words, {measure}:", measure=_(measure))
    return f'<div style="{_HIDDEN}">{_safe(head)}<ol>{items}</ol></div>'


def _listed(text: TokenText, places: Sequence[int]) -> str:
    return join_list(_name(text, place) for place in places) or pgettext("words", "none")


def _name(text: TokenText, place: int) -> str:
    """Return a word in bold for use in a sentence, isolated so that its text direction does not affect the rest."""
    return f'<bdi style="font-weight:600">{short_text(_legible(text.surface(text.words[place])), SPOKEN_CHARS)}</bdi>'


def _note(sentence: str) -> str:
    """Return a note below a text. Args: sentence: trusted or escaped markup."""
    return f'<p style="{_NOTE}">{sentence}</p>'


def _safe(text: str) -> str:
    """Escape untrusted text for an element or a quoted attribute.

    Line breaks become entities, because the renderer might dedent after them.
    """
    return html.escape(_legible(text)).replace("\r", "&#13;").replace("\n", "&#10;")


def _legible(text: str) -> str:
    """Replace characters that HTML or UTF-8 cannot hold by U+FFFD, so that none is lost silently."""
    return "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in text)
