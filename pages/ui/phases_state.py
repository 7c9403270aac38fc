"""The phases that the form edits, stored between reruns as JSON, even while they are not a valid config.

The keys of widgets contain a revision. A change of structure (a preset, an added or removed term, another loss)
increments the revision, so that every widget restarts at its current value.
"""

from __future__ import annotations

from typing import Any

from core.advice.defaults import Usual, usual
from core.catalogue.losses import LOSSES
from core.config.fields import build
from core.config.objective import ObjectiveConfig, TermConfig
from core.config.presets import PRESETS, SHOWING
from core.config.sections import OptimiserConfig
from pages.ui import state

JSON = dict[str, Any]
CONTRAST = "supcon"

CONTRASTIVE: JSON = {"terms": [{"loss": "simcse", "views": [{"view": "dropout"}]}], "combine": "additive"}


def current_phases(start: list[JSON], origin: str, now: Usual) -> list[JSON]:
    """Return the phases being edited; a new origin replaces them with `start`.

    When the task changes, values that were usual for the previous task become those usual for the current one. The
    settings of a link, a file or a run do not change.

    Args:
        origin: source of `start`; now: usual settings for the task.
    """
    if state.session_value("phases.origin", lambda: None) != origin:
        state.remember("phases.origin", origin)
        # A link or a run may have the settings of a demonstration preset.
        shown = (
            name
            for name, entry in PRESETS.items()
            if entry.group == SHOWING
            and len(entry.objectives) == len(start)
            and all(
                full_objective(objective) == phase["objective"]
                and entry.optimiser.items() <= phase["optimiser"].items()
                for objective, phase in zip(entry.objectives, start, strict=True)
            )
        )
        state.remember("phases.preset", next(shown, ""))
        _replace(start)
    known = state.session_value("phases.usual", dict[str, Usual])
    before = known.get(origin, now if origin else usual(0, 0))
    state.remember("phases.usual", {origin: now})
    phases = _phases()
    if before == now:
        return phases
    for phase in phases:
        if phase["batch_size"] == before.batch_size:
            phase["batch_size"] = now.batch_size
        for term in phase["objective"]["terms"]:
            if term["loss"] == CONTRAST and term["temperature"] == before.temperature:
                term["temperature"] = now.temperature
    _replace(phases)
    return phases


def key(number: int, name: str) -> str:
    """Return the key of a widget of phase `number`."""
    return f"form.{number}.{name}.{state.session_value('phases.revision', lambda: 0)}"


def keep(number: int, settings: JSON) -> None:
    """Store current settings of a phase."""
    _phases()[number] = _phases()[number] | settings


def apply_preset(widget: str) -> None:
    """Apply the phases of the picked preset; keep the trained weights, batch size, optimiser and steps.

    These come from the first phase, because a preset may have chosen the trained weights of the second.
    """
    chosen = PRESETS.get(state.widget_value(widget))
    if chosen is None:
        return
    phases = _phases()
    steps = max(sum(phase["steps"] for phase in phases), len(chosen.objectives))
    first = phases[0] | {"steps": steps}
    before = PRESETS.get(picked_preset())
    own = {*chosen.optimiser, *(before.optimiser if before else ())}  # settings that apply only with their preset
    usual = OptimiserConfig().model_dump(mode="json", include=own)
    first |= {"optimiser": first["optimiser"] | usual}
    if chosen.dropout is not None or (before and before.dropout is not None):  # as with the optimiser
        state.set_widget(state.form_key("dropout"), chosen.dropout)
    made = chosen.phases(first)
    state.remember("phases.preset", chosen.name)
    _replace([phase | {"objective": full_objective(phase["objective"])} for phase in made])


def picked_preset() -> str:
    """Return the preset picked last, regardless of later changes; "" for none."""
    return str(state.session_value("phases.preset", str))


def change_loss(number: int, place: int, widget: str) -> None:
    """Replace the loss of a term, with the new loss's defaults and the views that it needs."""
    objective = _phases()[number]["objective"]
    loss = state.widget_value(widget)
    entry = LOSSES.entry(loss)
    needed = [{"view": entry.first_view}] if entry.views[0] > 1 else []
    term = {"loss": loss, "weight": objective["terms"][place]["weight"], "views": needed}
    terms = [*objective["terms"]]
    terms[place] = full_term(term)
    _with_terms(number, terms, objective["combine"])


def add_term(number: int) -> None:
    """Add a term; the weights are free from then on."""
    objective = _phases()[number]["objective"]
    loss = "cross_entropy" if all(t["loss"] != "cross_entropy" for t in objective["terms"]) else "supcon"
    _with_terms(number, [*objective["terms"], full_term({"loss": loss, "weight": 0.5})], "additive")


def remove_term(number: int, place: int) -> None:
    objective = _phases()[number]["objective"]
    terms = [term for i, term in enumerate(objective["terms"]) if i != place]
    if all(term["weight"] == 0 for term in terms):
        terms = [term | {"weight": 1.0} for term in terms]
    _with_terms(number, terms, "additive")


def change_combine(number: int) -> None:
    """Switch between weights bound by λ and free weights."""
    objective = _phases()[number]["objective"]
    terms = objective["terms"]
    if objective["combine"] == "convex":
        _with_terms(number, terms, "additive")
        return
    total = sum(term["weight"] for term in terms)
    shares = [round(term["weight"] / total, 2) for term in terms]
    shares[-1] = round(1 - sum(shares[:-1]), 2)
    _with_terms(number, [t | {"weight": w} for t, w in zip(terms, shares, strict=True)], "convex")


def add_phase() -> None:
    """Insert a contrastive phase before the existing one, with half of its steps."""
    last = _phases()[-1]
    first = max(1, last["steps"] // 2)
    contrastive = last | {"objective": full_objective(CONTRASTIVE), "steps": first}
    _replace([contrastive, last | {"steps": max(1, last["steps"] - first)}])


def remove_phase(number: int) -> None:
    phases = _phases()
    left = phases[1 - number]
    _replace([left | {"steps": sum(phase["steps"] for phase in phases)}])


def full_term(term: JSON) -> JSON:
    return build(TermConfig, term).model_dump(mode="json")


def full_objective(objective: JSON) -> JSON:
    return build(ObjectiveConfig, objective).model_dump(mode="json")


def _with_terms(number: int, terms: list[JSON], combine: str) -> None:
    phases = [*_phases()]
    phases[number] = phases[number] | {"objective": {"terms": terms, "combine": combine}}
    _replace(phases)


def _phases() -> list[JSON]:
    return state.session_value("phases", list)


def _replace(phases: list[JSON]) -> None:
    state.remember("phases", phases)
    state.remember("phases.revision", state.session_value("phases.revision", lambda: 0) + 1)
