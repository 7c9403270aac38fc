"""The objective of one phase: its knobs as sliders, its equation and its terms, all built from the registries."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.catalogue.loss_entry import LossEntry
from core.catalogue.losses import LOSSES
from core.catalogue.views import VIEWS, ViewEntry
from core.config.describe import term_latex, term_words, total_latex
from core.config.fields import build
from core.config.objective import ObjectiveConfig, ViewConfig
from core.glossary import GLOSSARY
from core.messages import N_, _, join_label, sentences
from core.parameters import Parameter
from pages.ui import phases_state
from pages.ui.parameter_widget import number_slider, parameter_widget
from pages.ui.parts import card, summarised
from pages.ui.phases_state import JSON, key
from pages.ui.softmax_bars import example_softmax

MOST_TERMS = 8
COLUMNS = 3
# A text view may be used twice, as in CERT; the second use has this suffix in the widget.
AGAIN = "#2"
HELP = {
    "lambda": N_("Weight of the contrastive loss; 0 leaves it out."),
    "weight": N_("Weight of this term in the sum."),
}
# Glossary cards of knobs whose names differ from their cards' names; the weight of a single term has none.
CARDS = {"lambda": "weight", "weight": ""}


def objective_form(number: int, objective: JSON) -> JSON:
    """Draw the objective of phase `number` and read it, in the JSON form of ObjectiveConfig.

    Raises: ConfigError if loss, views, level and layers are incompatible.
    """
    above = st.container()
    given, convex = objective["terms"], objective["combine"] == "convex"
    entries = sorted((LOSSES[term["loss"]] for term in given), key=lambda entry: entry.contrastive)
    losses = " + ".join(entry.symbol for entry in entries)
    with summarised(
        [_("Loss terms: {losses}", losses=losses), _("more settings: views, tokens, layers")], key(number, "terms")
    ):
        terms = [_term(number, i, term, len(given)) for i, term in enumerate(given)]
        may_bind = len(given) == 2 and sum(LOSSES[term["loss"]].contrastive for term in given) == 1
        with st.container(horizontal=True):
            st.button(
                _("Add a term"),
                icon=":material/add:",
                disabled=len(given) >= MOST_TERMS,
                on_click=phases_state.add_term,
                args=(number,),
                key=key(number, "add_term"),
            )
            st.button(
                _("Separate weights") if convex else _("Tie weights to λ"),
                help=_("λ sets the weights to (1 − λ) and λ, which sum to 1. Separate weights need not sum to 1.")
                if convex
                else _("Two terms, one of them contrastive, weighted (1 − λ) and λ."),
                disabled=not convex and not may_bind,
                on_click=phases_state.change_combine,
                args=(number,),
                key=key(number, "combine"),
            )
    edited = {"terms": terms, "combine": objective["combine"]}
    phases_state.keep(number, {"objective": edited})
    with above:
        turned = _knobs(number, build(ObjectiveConfig, edited))
        _explain(number, turned)
    read = turned.model_dump(mode="json")
    phases_state.keep(number, {"objective": read})
    return read


def _knobs(number: int, objective: ObjectiveConfig) -> ObjectiveConfig:
    """Draw sliders for the knobs, which can also be turned during the run, and for k of terms that contrast tokens."""
    knobs = objective.knobs
    of_tokens = [place for place, term in enumerate(objective.terms) if term.level == "token"]
    if not knobs and not of_tokens:
        return objective
    columns = cycle(st.columns(min(COLUMNS, max(2, len(knobs) + len(of_tokens)))))
    for name, knob in knobs.items():
        setting = name.rpartition(".")[2]
        parameters = (p for term in objective.terms for p in term.entry.parameters if p.name == setting)
        about = HELP[setting] if setting in HELP else next(parameters).help
        term_card = CARDS.get(setting, setting)
        about = card(term_card, about) if term_card in GLOSSARY else about
        value = number_slider(next(columns), knob, about, key(number, f"knob.{name}"))
        if value != knob.value:
            objective = objective.with_knob(name, value)
    for place in of_tokens:
        term = objective.terms[place]
        parameter = next(parameter for parameter in term.entry.parameters if parameter.name == "k")
        given = objective.model_dump(mode="json")
        k = parameter_widget(next(columns), parameter, term.parameters["k"], key(number, f"k.{place}"))
        given["terms"][place]["k"] = k
        objective = build(ObjectiveConfig, given)
    return objective


def _explain(number: int, objective: ObjectiveConfig) -> None:
    """Draw the objective with its numbers filled in, what each term contrasts, the effect of τ, and the sources."""

    def sourced(entry: LossEntry | ViewEntry) -> str:
        # Translators: of a loss or a view: its name, a sentence, and the papers that it comes from.
        return _(
            "**{label}.** {summary} {source}.", label=_(entry.label), summary=_(entry.summary), source=_(entry.source)
        )

    several = len(objective.terms) > 1
    # Plain cross-entropy needs no separate equation: the sum contains it.
    of_terms = [
        line
        for _key, term in objective.formula_terms
        if not (term.entry.extras and several and len(term_latex(term)) == 1)
        for line in term_latex(term)
    ]
    with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="center", gap="medium"):
        for line in (total_latex(objective), *of_terms):
            st.latex(line, width="content")
    for _key, term in objective.formula_terms:
        if words := term_words(term):
            # Translators: what a loss contrasts, such as "SupCon: the classifier's output; views: dropout."
            st.caption(_("{loss}: {words}.", loss=_(term.entry.label), words=words))
    taus = [knob.value for name, knob in objective.knobs.items() if name.rpartition(".")[2] == "temperature"]
    normalised = all(term.parameters.get("normalize", True) for term in objective.terms)
    if taus and taus[0] > 0 and normalised:  # the example's similarities are cosines
        with st.expander(_("Effect of τ on one text"), expanded=True):
            example_softmax(taus[0], key=f"form.softmax.{number}")
            about = _(
                "This chart is an example: it uses the cosine similarities of one film review to others, "
                "computed by the bundled encoder before training."
            )
            st.caption(about)
    with st.popover(_("Sources and other definitions"), type="tertiary"):
        for loss in dict.fromkeys(term.loss for term in objective.terms):
            st.markdown(sourced(LOSSES[loss]))
            if LOSSES[loss].others_compute:
                st.markdown(_("*Other implementations:* {words}", words=_(LOSSES[loss].others_compute)))
        for name in dict.fromkeys(view.view for term in objective.terms for view in term.views):
            st.markdown(sentences([sourced(VIEWS[name]), _(VIEWS[name].others_compute)]))


# Terms


def _term(number: int, place: int, term: JSON, count: int) -> JSON:
    entry = LOSSES[term["loss"]]
    name = f"term.{place}"
    with st.container(border=True):
        left, right = st.columns([4, 1], vertical_alignment="bottom")
        # Translators: a term of the sum that a run minimises.
        label = _("Term {number}", number=place + 1)
        left.selectbox(
            label,
            list(LOSSES),
            index=list(LOSSES).index(entry.name),
            format_func=lambda loss: _(LOSSES[loss].label),
            help=_(entry.summary),
            on_change=phases_state.change_loss,
            args=(number, place, key(number, f"{name}.loss")),
            key=key(number, f"{name}.loss"),
        )
        right.button(
            _("Remove"),
            icon=":material/delete:",
            disabled=count == 1,
            on_click=phases_state.remove_term,
            args=(number, place),
            key=key(number, f"{name}.remove"),
        )
        views = _views(number, name, term, entry)
        # The settings that are relevant and have no slider above.
        columns: list[DeltaGenerator] = []
        read: JSON = {}
        hidden: JSON = {}
        for parameter in entry.parameters:
            if parameter.name == "k":
                continue  # drawn by `_knobs`
            if not _matters(parameter, {**term, **read}, entry, views):
                if not parameter.knob:  # a hidden setting must not invalidate the term
                    hidden[parameter.name] = parameter.default
                continue
            if len(read) % COLUMNS == 0:
                columns = st.columns(COLUMNS)
            offered = parameter
            if parameter.name == "level":
                levels: tuple[str, ...] = entry.levels
                choices = {level: text for level, text in (parameter.choices or {}).items() if level in levels}
                offered = replace(parameter, choices=choices)
            value = term[parameter.name]
            if offered.choices and value not in offered.choices:
                value = offered.default
            widget = key(number, f"{name}.{parameter.name}")
            read[parameter.name] = parameter_widget(columns[len(read) % COLUMNS], offered, value, widget)
    return {**term, **read, **hidden, "views": views}


def _views(number: int, name: str, term: JSON, entry: LossEntry) -> list[JSON]:
    if entry.reads in ("triplets", "scores"):
        return []
    current: dict[str, JSON] = {}
    for view in term["views"]:
        current[f"{view['view']}{AGAIN}" if view["view"] in current else view["view"]] = view
    # Layers can be views only in a loss that reads pooled vectors and takes any number of views.
    of_layers = entry.reads == "vectors" and entry.views[1] is None
    options = []
    for view, known in VIEWS.items():
        if known.kind != "layers" or of_layers:
            again = known.kind == "text" or f"{view}{AGAIN}" in current
            options += [view, f"{view}{AGAIN}"] if again else [view]
    picked = st.multiselect(
        _("Views"),
        options,
        default=list(current),
        format_func=_called,
        placeholder=_("The unchanged text"),
        help=" · ".join(join_label(_(view.label), _(view.summary)) for view in VIEWS.values()),
        key=key(number, f"{name}.views"),
    )
    read = []
    for option in picked:
        view = option.removesuffix(AGAIN)
        values = current.get(option) or build(ViewConfig, {"view": view}).model_dump(mode="json")
        if parameters := VIEWS[view].parameters:
            st.caption(_called(option))
            columns = st.columns(COLUMNS)
            for i, one in enumerate(parameters):
                widget = key(number, f"{name}.{option}.{one.name}")
                values = values | {one.name: parameter_widget(columns[i % COLUMNS], one, values[one.name], widget)}
        read.append(values)
    return read


def _called(option: str) -> str:
    """Return the displayed name of a view option."""
    label = _(VIEWS[option.removesuffix(AGAIN)].label)
    # Translators: a view that is taken a second time.
    return _("{view}, again", view=label) if AGAIN in option else label


def _matters(parameter: Parameter, term: JSON, entry: LossEntry, views: list[JSON]) -> bool:
    if parameter.knob:
        # Cross-entropy's extras are switched on here; from then on they are sliders above.
        return entry.extras and term[parameter.name] == parameter.default
    match parameter.name:
        case "level":
            return len(entry.levels) > 1
        case "clusters":
            return bool(term["level"] == "token")
        case "layers" | "projection":
            return bool(term.get("level") != "logits")
        case "original":
            return any(VIEWS[view["view"]].runs_encoder for view in views)
        case "queue":
            return bool(term["level"] == "sentence")
        case "momentum":
            return bool(term["queue"])
    return True
