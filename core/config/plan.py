"""The computations of a step: everything that its terms need, each once, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, NamedTuple

from core.config.objective import ObjectiveConfig
from core.config.term import TermConfig, ViewConfig
from core.errors import ConfigError
from core.messages import Message
from core.parameters import integer_setting, number, resolve_layers

Source = Literal["rows", "premise", "entailment", "contradiction"]
TRIPLET: tuple[Source, ...] = ("premise", "entailment", "contradiction")

# Additional passes, forward and backward, that compute an adversarial step.
ADVERSARIAL_PASSES = 2

# Maximum memory for the outputs of frozen blocks. It does not depend on the free memory: otherwise a resumed run would
# group texts differently, and its results would differ in the last bit.
KEPT_BYTES = 2 * 2**30


class Pass(NamedTuple):
    """One pass of the batch through the encoder.

    Attributes:
        source: the rows of the batch, or one text of its triplets.
        view: the view that the pass computes; None for the unchanged texts.
        draw: distinguishes passes that differ only in their random draws.
    """

    source: Source = "rows"
    view: ViewConfig | None = None
    draw: int = 0

    @property
    def changes_input(self) -> bool:
        return self.view is not None and self.view.entry.changes_input


class LogitsOf(NamedTuple):
    """The classifier's logits for a pass; `draw` distinguishes masks of the head's dropout."""

    number: int
    draw: int


class VectorOf(NamedTuple):
    """The pooled vector of a pass at a layer; `mask` numbers its dropout mask, of rate `rate`."""

    number: int
    layer: int
    mask: int | None = None
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class TermPlan:
    """The inputs of one term.

    Attributes:
        logits: logits of each view, for a loss on logits or contrast at the level of logits.
        groups: vectors of all views at each contrasted layer, for contrast of vectors or tokens.
    """

    key: str
    term: TermConfig
    logits: tuple[LogitsOf, ...] = ()
    groups: tuple[tuple[VectorOf, ...], ...] = ()

    def highest_block(self, blocks: int) -> int:
        """Return the highest block whose output the term reads; its gradient reaches all weights up to that block.

        Args:
            blocks: number of blocks of the encoder.
        """
        return blocks if self.logits else max(vector.layer for group in self.groups for vector in group)

    @property
    def views(self) -> int:
        """Number of vectors that represent one text in the loss."""
        if self.logits:
            return len(self.logits)
        if self.term.level == "token":
            return len(self.groups[0]) * (
                integer_setting(self.term.parameters, "clusters") or integer_setting(self.term.parameters, "k")
            )
        return len(self.groups[0])


@dataclass(frozen=True, slots=True)
class Plan:
    """The computations of a step.

    Attributes:
        layers: blocks whose pooled vectors are kept.
        tokens: pairs of a block and k; the block's top k tokens are kept.
    """

    passes: tuple[Pass, ...]
    layers: tuple[int, ...]
    tokens: tuple[tuple[int, int], ...]
    terms: tuple[TermPlan, ...]

    def same_passes(self, other: Plan) -> bool:
        """Return whether two plans need the same outputs of the encoder."""
        return (self.passes, self.layers, self.tokens) == (other.passes, other.layers, other.tokens)

    def keeps_frozen(self, frozen: int, blocks: int, *, in_parts: bool) -> bool:
        """Return whether the outputs of the lowest `frozen` of `blocks` blocks can be cached.

        They cannot if a view changes a text before the encoder, if the batch consists of triplets, or if a term reads a
        frozen block while higher blocks learn. Nor can they if a gradient cache reads the batch in micro-batches
        (`in_parts`), unless all blocks are frozen.
        """
        if not frozen or self.changes_input or self.reads_triplets:
            return False
        lowest = min([*self.layers, *(layer for layer, _ in self.tokens), blocks])
        return frozen == blocks or (not in_parts and lowest > frozen)

    @property
    def reads_triplets(self) -> bool:
        return any(p.source != "rows" for p in self.passes)

    @property
    def changes_input(self) -> bool:
        """True if any pass reads changed texts."""
        return any(p.changes_input for p in self.passes)

    @property
    def readings(self) -> int:
        """Number of times that the encoder reads each text of the batch in a step."""
        adversarial = sum(p.view is not None and p.view.entry.follows_gradient for p in self.passes)
        queues = sum(bool(integer_setting(t.term.parameters, "queue")) for t in self.terms)
        return len(self.passes) + ADVERSARIAL_PASSES * adversarial + queues


def plan_phase(objective: ObjectiveConfig, blocks: int) -> Plan:
    """Return the plan of an objective on an encoder of `blocks` blocks.

    A term of weight 0 is included if the other terms compute everything it needs, and left out if it would cost a pass
    or a queue.

    Raises: ConfigError for a layer that the encoder does not have, or a view that adds nothing.
    """
    planner = _Planner(blocks)
    terms: dict[str, TermPlan] = {}
    weighted = list(zip(objective.keys, objective.terms, strict=True))
    for key, term in weighted:
        if term.weight > 0:
            terms[key] = planner.term(key, term)
    for key, term in weighted:
        if term.weight == 0:
            tried = deepcopy(planner)
            planned = tried.term(key, term)
            if tried.needs() == planner.needs() and not integer_setting(term.parameters, "queue"):
                terms[key] = planned
    passes, layers, tokens = planner.needs()
    return Plan(passes, layers, tokens, tuple(terms[key] for key in objective.keys if key in terms))


class _Planner:
    """Collector of the passes, layers and tokens that terms need, each once."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.passes: list[Pass] = []
        self.layers: set[int] = set()
        self.tokens: dict[int, int] = {}

    def needs(self) -> tuple[tuple[Pass, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
        return tuple(self.passes), tuple(sorted(self.layers)), tuple(sorted(self.tokens.items()))

    def term(self, key: str, term: TermConfig) -> TermPlan:
        if term.entry.reads == "triplets":
            numbers = [self._number(Pass(side)) for side in TRIPLET]
            return TermPlan(key, term, groups=self._per_layer(term, [(n, None, 0.0) for n in numbers]))
        passes = [Pass()] if term.original else []
        for view in term.views:
            if view.entry.runs_encoder:  # identical views get different draws
                passes.append(Pass("rows", view, sum(p.view == view for p in passes)))
        numbers = [self._number(wanted) for wanted in passes]
        heads = [view for view in term.views if view.entry.kind == "head"]
        if term.entry.reads == "logits" or term.level == "logits":
            self.layers.add(self.blocks)
            draws = [LogitsOf(number, 0) for number in numbers]
            return TermPlan(key, term, logits=(*draws, *(LogitsOf(numbers[0], 1) for _ in heads)))
        if term.level == "token":
            groups = []
            for layer in self._layers_of(term):
                self.tokens[layer] = max(self.tokens.get(layer, 0), integer_setting(term.parameters, "k"))
                groups.append(tuple(VectorOf(number, layer) for number in numbers))
            return TermPlan(key, term, groups=tuple(groups))
        rate = number(heads[0].parameters, "rate") if heads else 0.0
        sources: list[tuple[int, int | None, float]] = [(n, 0 if heads else None, rate) for n in numbers]
        sources += [(numbers[0], 1, rate) for _ in heads]
        others = self._layer_views(term)
        self.layers.update(others)
        beside = tuple(VectorOf(numbers[0], layer) for layer in others)
        return TermPlan(key, term, groups=tuple((*group, *beside) for group in self._per_layer(term, sources)))

    def _per_layer(
        self, term: TermConfig, sources: Sequence[tuple[int, int | None, float]]
    ) -> tuple[tuple[VectorOf, ...], ...]:
        layers = self._layers_of(term)
        self.layers.update(layers)
        return tuple(tuple(VectorOf(n, layer, mask, rate) for n, mask, rate in sources) for layer in layers)

    def _number(self, wanted: Pass) -> int:
        if wanted not in self.passes:
            self.passes.append(wanted)
        return self.passes.index(wanted)

    def _layers_of(self, term: TermConfig) -> tuple[int, ...]:
        return resolve_layers(term.layers, self.blocks, f"{term.loss}.layers")

    def _layer_views(self, term: TermConfig) -> tuple[int, ...]:
        """Return the blocks that are views besides the last one."""
        chosen = [view.parameters["layers"] for view in term.views if view.entry.kind == "layers"]
        if not chosen:
            return ()
        layers = resolve_layers(chosen[0], self.blocks, f"{term.loss}.views.layers")  # type: ignore[arg-type]
        others = tuple(layer for layer in layers if layer != self.blocks)
        if not others and isinstance(chosen[0], str) and self.blocks > 1:
            return (self.blocks - 1,)  # too few blocks for a third, so take the block below the last
        if not others:
            remedy = Message("the last block is already a view and the encoder has no other; remove it.")
            if self.blocks > 1:
                remedy = Message("the last block is already a view; name others, such as [1].")
            raise ConfigError(f"{term.loss}.views.layers", ", ".join(map(str, layers)), remedy)
        return others
