"""An objective as a formula with its numbers filled in, made from the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.config.objective import ObjectiveConfig
from core.config.term import TermConfig
from core.messages import _, clauses, listed, ngettext
from core.parameters import AUTO, RELATIVE_LAYERS, Value, whole

PLACE = re.compile(r"\{([a-z_]+)\}")


def total_latex(objective: ObjectiveConfig) -> str:
    """The weighted sum, such as L = 0.10 CE + 0.90 SCL."""
    alone = len(objective.terms) == 1
    parts = []
    for key, term in objective.as_written:
        weight = "" if alone and term.weight == 1 else rf"{_shown(term.weight)}\,"
        parts.append(f"{weight}{_symbol(key, term)}")
    return rf"\mathcal{{L}}={'+'.join(parts)}"


def term_latex(term: TermConfig) -> list[str]:
    """A term's own equation, and a line for each of its settings that changes it."""
    entry, settings = term.entry, term.parameters
    equation = entry.latex_variants.get(str(settings.get("variant")), entry.latex)
    defaults = {parameter.name: parameter.default for parameter in entry.parameters}
    changed = [name for name in entry.latex_notes if settings[name] != defaults[name]]
    words = {name: entry.latex_words[name]() for name in changed if name in entry.latex_words}
    notes = [entry.latex_notes[name].replace("{words}", words.get(name, "")) for name in changed]
    return [_filled(line, settings) for line in (equation, *notes)]


def term_words(term: TermConfig) -> str:
    """What a term contrasts, in words; empty for the plain case."""
    words = []
    if term.level == "token":
        words.append(_tokens(term))
    if term.level == "logits":
        words.append(_("the classifier's output"))
    if isinstance(term.layers, tuple):
        words.append(_("one loss per layer ({layers})", layers=listed(map(str, term.layers))))
    elif term.layers != "last":
        words.append(_("one loss per layer ({layers})", layers=_(RELATIVE_LAYERS[term.layers]).lower()))
    if (head := term.parameters.get("projection", "none")) != "none":
        words.append(_("through an MLP of its own") if head == "mlp" else _("through a linear layer of its own"))
    if size := whole(term.parameters, "queue"):
        words.append(
            _("a queue of {vectors} as further candidates", vectors=ngettext("{count} vector", "{count} vectors", size))
        )
    if not term.original:
        words.append(_("without the unchanged text"))
    if not term.parameters.get("normalize", True):
        words.append(_("vectors as they are, not normalised"))
    if term.views:
        words.append(_("views: {views}", views=listed(_(view.entry.label).lower() for view in term.views)))
    return clauses(words)


def _tokens(term: TermConfig) -> str:
    """Which tokens a term contrasts, grouped or each by itself."""
    clusters = whole(term.parameters, "clusters")
    if term.parameters["k"] == AUTO:
        if clusters:
            return _("the third of the tokens that [CLS] attends to most, grouped into {groups}", groups=clusters)
        return _("the third of the tokens that [CLS] attends to most")
    tokens = ngettext("{count} token", "{count} tokens", whole(term.parameters, "k"))
    if clusters:
        return _("the {tokens} that [CLS] attends to most, grouped into {groups}", tokens=tokens, groups=clusters)
    return _("the {tokens} that [CLS] attends to most", tokens=tokens)


def _symbol(key: str, term: TermConfig) -> str:
    number = key.removeprefix(term.loss).lstrip("_")
    level = rf"^{{\text{{{term.level}}}}}" if term.level != "sentence" else ""
    return rf"\text{{{term.entry.symbol}}}{f'_{{{number}}}' if number else ''}{level}"


def _filled(latex: str, settings: Mapping[str, Value]) -> str:
    """Only names of settings are places; LaTeX has braces of its own."""
    return PLACE.sub(lambda match: _shown(settings[match[1]]) if match[1] in settings else match[0], latex)


def _shown(value: Value) -> str:
    """Two decimals, so that the formula keeps its width while one drags; more only where they would hide a number."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}" if value == round(value, 2) else f"{value:g}"
