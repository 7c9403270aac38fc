"""The contrastive loss of a run at a frame, as far as the frame's vectors can show it.

A frame holds one pooled vector and the logits of each text, computed without dropout. It lacks other inputs of a term
(tokens, other layers, projected vectors, further views); remarks name the missing ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.catalogue.loss_entry import ForceLaw, base_factor
from core.catalogue.losses import SUPCON
from core.config import RunConfig
from core.config.objective import ObjectiveConfig, TermConfig
from core.config.plan import objective_at
from core.messages import N_, _, join_list, join_phrase, ngettext
from core.parameters import integer_setting, resolve_layers

# Temperature shown if the run's own loss has no forces: the best one in Gunel et al. (2021).
USUAL_TAU = 0.3
# Layer number of the last layer if the number of blocks is unknown.
LAST = -1
# Labels of layers, by their name in a term, if the number of blocks is unknown.
NAMED_LAYERS = {
    "last": N_("the last layer"),
    "last_third": N_("the last third of the layers"),
    "middle_third": N_("the middle third of the layers"),
    "first_third": N_("the first third of the layers"),
    "every_third": N_("every third layer"),
    "upper_alternate": N_("every other layer of the upper half, up to the last"),
    "every": N_("every layer"),
}


@dataclass(frozen=True, slots=True)
class ShownContrast:
    """The loss whose forces are shown at a frame.

    Attributes:
        law: the loss, on one vector per text, with the τ of that step if it has one.
        own: whether the run itself used this loss at that step.
        source: the arrays of a frame that the loss compares.
        about: a sentence that names the loss.
        remarks: sentences on how the run's own loss differs; empty if it is exactly the shown one.
        batch_size: batch size of the step's phase.
    """

    law: ForceLaw
    own: bool
    source: Literal["vectors", "logits"]
    about: str
    remarks: tuple[str, ...]
    batch_size: int


def batch_rows(count: int, size: int, draw: int = 0, anchor: int | None = None) -> list[int]:
    """Sample the rows of a batch from `count` examples, including the anchor. The same `draw` gives the same batch."""
    others = [int(row) for row in np.random.default_rng([draw, count]).permutation(count) if row != anchor]
    return sorted(others[:size] if anchor is None else [anchor, *others[: size - 1]])


def names_layers(config: RunConfig) -> bool:
    """Return whether a run contrasts layers other than the last, so that the number of encoder blocks matters."""
    terms = [term for objective in config.objectives for term in objective.terms]
    views = [view for term in terms for view in term.views]
    return any(term.layers != "last" for term in terms) or any(view.entry.kind == "layers" for view in views)


def shown_contrast(config: RunConfig, step: int, layer: int | None, blocks: int | None) -> ShownContrast:
    """Return the loss that the force view shows at a frame.

    Args:
        config: prepared config with the knob turns of the run.
        step: the frame's step; its vectors come from the weights after that step.
        layer: the block whose pooled vectors are shown; None for the last.
        blocks: number of encoder blocks; if None, remarks name layers as the config does.
    """
    used = objective_at(config, step)
    batch_size = config.phases[used.phase].batch_size
    usable = [term for term in used.objective.contrastive if term.entry.forces is not None]
    if not usable:
        law = ForceLaw(SUPCON, {**SUPCON.defaults, "temperature": USUAL_TAU})
        about = _(
            "Shown instead: supervised contrastive loss (L_out) at τ {tau:g} on the pooled vectors.", tau=USUAL_TAU
        )
        return ShownContrast(law, False, "vectors", about, (_no_forces(used.objective),), batch_size)
    term = max(usable, key=lambda term: term.weight)  # the first of equal weights
    terms, views = len(used.objective.contrastive), _views(term, blocks)
    remarks = [*_place_remarks(term, layer, blocks), *_view_remarks(term, views)]
    if terms > 1:
        heaviest = _(
            "It has the largest weight, {weight:g}, of {terms} contrastive terms.", terms=terms, weight=term.weight
        )
        remarks.insert(0, heaviest)
    if term.parameters.get("reduction") == "sum":
        remarks.append(_("The run sums this loss over the anchors of a batch; the value shown is their mean."))
    law = ForceLaw(term.entry, term.parameters, max(term.entry.views[0], views))
    if law.temperature is None:
        about = _("The contrastive loss of this run at step {step:,} is {loss}.", loss=law.name, step=step)
    else:
        about = _(
            "The contrastive loss of this run at step {step:,} is {loss}, τ {tau:g}.",
            loss=law.name,
            tau=law.temperature,
            step=step,
        )
    source: Literal["vectors", "logits"] = "logits" if term.level == "logits" else "vectors"
    return ShownContrast(law, True, source, about, tuple(remarks), batch_size)


def _no_forces(objective: ObjectiveConfig) -> str:
    """Explain why a frame cannot show the forces of the run's own objective."""
    if any(term.entry.reads == "triplets" for term in objective.contrastive):
        return _(
            "This run contrasts premises with entailed and contradicting sentences that are encoded separately. A "
            "frame holds pairs that are encoded together, so the forces of this loss cannot be shown."
        )
    if objective.contrastive:
        return _("The forces of {loss} cannot be shown.", loss=_(objective.contrastive[0].entry.label))
    names = [_(term.entry.label) for _key, term in objective.formula_terms if term.weight > 0]
    return ngettext(
        "This run has no contrastive loss at this step: {losses} exerts no forces between texts.",
        "This run has no contrastive loss at this step: {losses} exert no forces between texts.",
        len(names),
        losses=join_phrase(names),
    )


def _views(term: TermConfig, blocks: int | None) -> int:
    """Count the vectors per text in the loss, as far as one pooled vector can represent them."""
    if term.level == "token":
        return 1
    count = int(term.original)
    for view in term.views:
        layers = view.parameters.get("layers")
        if view.entry.kind != "layers":
            count += 1
        elif blocks is None:
            count += len(layers) if isinstance(layers, tuple) else 1
        else:  # by the rule that plans a step
            numbers = resolve_layers(layers, blocks)  # type: ignore[arg-type]
            count += len([number for number in numbers if number != blocks]) or 1
    return count


def _place_remarks(term: TermConfig, layer: int | None, blocks: int | None) -> list[str]:
    """Return remarks on the level, the layers and the projection head."""
    if term.level == "logits":
        return [_("The classifier's outputs are compared, as in the run.")]
    numbers, layers = _layers(term, blocks)
    shown = _("layer {number}", number=layer or blocks) if layer or blocks else _("the last layer")
    remarks = []
    if term.level == "token":
        instead = _(
            "Frames hold no token vectors, so the same loss is computed on the pooled vectors of {layer}.", layer=shown
        )
        remarks.append(f"{_tokens_remark(term, layers)} {instead}")
    elif (layer or blocks or LAST) not in numbers:
        remarks.append(
            _(
                "The run contrasts the pooled vectors of {layers}; here the same loss is computed on those of {layer}.",
                layers=layers,
                layer=shown,
            )
        )
    elif len(numbers) != 1:
        remarks.append(
            _(
                "The run averages this loss over {layers}; the forces here are of {layer}.",
                layers=layers,
                layer=shown,
            )
        )
    if (head := term.parameters.get("projection", "none")) == "mlp":
        remarks.append(_("The run contrasts the output of an MLP on these vectors, which frames do not hold."))
    elif head != "none":
        remarks.append(_("The run contrasts the output of a linear layer on these vectors, which frames do not hold."))
    return remarks


def _tokens_remark(term: TermConfig, layers: str) -> str:
    tokens = ngettext("{count} token", "{count} tokens", integer_setting(term.parameters, "k"))
    if clusters := integer_setting(term.parameters, "clusters"):
        return _(
            "The run contrasts the {tokens} of a text with the highest [CLS] attention, in {clusters}, from {layers}.",
            tokens=tokens,
            clusters=ngettext("{count} cluster", "{count} clusters", clusters),
            layers=layers,
        )
    return _(
        "The run contrasts the {tokens} of a text with the highest [CLS] attention, from {layers}.",
        tokens=tokens,
        layers=layers,
    )


def _view_remarks(term: TermConfig, views: int) -> list[str]:
    """Return remarks on further views, the queue and the factor of the loss."""
    remarks, names = [], join_list(_(view.entry.label).lower() for view in term.views)
    if term.level == "token" and term.views:
        remarks.append(_("Frames do not hold its other views either ({views}).", views=names))
    elif views > 1 or not term.original:
        own = [_("the text itself")] if term.original else []
        remarks.append(
            _(
                "The run contrasts {views} of each text ({names}). A frame holds one vector of the unchanged text "
                "without dropout, which represents all of them here.",
                views=ngettext("{count} view", "{count} views", views),
                names=join_list([*own, names]),
            )
        )
    if size := integer_setting(term.parameters, "queue"):
        vectors = ngettext("{count} past vector", "{count} past vectors", size)
        remarks.append(_("Its queue of {vectors} is left out.", vectors=vectors))
    if (factor := base_factor(term.parameters)) != 1:
        remarks.append(_("Its factor τ/τ₀, {factor:g}, is left out.", factor=factor))
    return remarks


def _layers(term: TermConfig, blocks: int | None) -> tuple[tuple[int, ...], str]:
    """Return the numbers, if known, and the name of the layers that a term contrasts."""
    if blocks is None and isinstance(term.layers, str):
        return (LAST,) if term.layers == "last" else (), _(NAMED_LAYERS[term.layers])
    numbers = (
        term.layers if isinstance(term.layers, tuple) and blocks is None else resolve_layers(term.layers, blocks or 0)
    )
    if len(numbers) == 1:
        return numbers, _("layer {number}", number=numbers[0])
    first = join_list(map(str, numbers[:-1]))
    return numbers, _("layers {first} and {last}", first=first, last=numbers[-1])
