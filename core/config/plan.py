"""Computations of a step, and the values that apply at it: learning rate, frames, and settings after knob turns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from core.config import MAX_STEPS, RATE, Change, PhaseConfig, RunConfig
from core.config.objective import ObjectiveConfig, TermConfig, ViewConfig
from core.errors import ConfigError
from core.messages import Message
from core.parameters import integer_setting, number, resolve_layers

Source = Literal["rows", "premise", "entailment", "contradiction", "first", "second"]
TRIPLET: tuple[Source, ...] = ("premise", "entailment", "contradiction")
PAIR: tuple[Source, ...] = ("first", "second")

# Additional passes, forward and backward, that compute an adversarial step.
ADVERSARIAL_PASSES = 2

# Maximum memory for the outputs of frozen blocks. It does not depend on the free memory: otherwise a resumed run would
# group texts differently, and its results would differ in the last bit.
KEPT_BYTES = 2 * 2**30


class Pass(NamedTuple):
    """One pass of the batch through the encoder.

    Attributes:
        source: the rows of the batch, or one text of its triplets or scored pairs.
        view: the view that the pass computes; None for the unchanged texts.
        draw: distinguishes passes that differ only in their random draws.
        cutmix: concentration a of CutMix; 0 for texts that are not mixed.
    """

    source: Source = "rows"
    view: ViewConfig | None = None
    draw: int = 0
    cutmix: float = 0.0

    @property
    def changes_input(self) -> bool:
        return self.cutmix > 0 or (self.view is not None and self.view.entry.changes_input)


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

    def keeps_frozen(self, frozen: int, blocks: int, *, in_parts: bool) -> bool:
        """Return whether the outputs of the lowest `frozen` of `blocks` blocks can be cached.

        They cannot if a view changes a text before the encoder, if the batch consists of triplets or pairs, or if
        a term reads a frozen block while higher blocks learn. Nor can they if a gradient cache reads the batch in
        micro-batches (`in_parts`), unless all blocks are frozen.
        """
        if not frozen or self.changes_input or self.reads_triplets or self.reads_pairs:
            return False
        lowest = min([*self.layers, *(layer for layer, _ in self.tokens), blocks])
        return frozen == blocks or (not in_parts and lowest > frozen)

    @property
    def reads_triplets(self) -> bool:
        return any(p.source in TRIPLET for p in self.passes)

    @property
    def reads_pairs(self) -> bool:
        """True if any pass reads one text of scored pairs."""
        return any(p.source in PAIR for p in self.passes)

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
        if term.entry.reads in ("triplets", "scores"):
            sides = TRIPLET if term.entry.reads == "triplets" else PAIR
            numbers = [self._number(Pass(side)) for side in sides]
            return TermPlan(key, term, groups=self._per_layer(term, [(n, None, 0.0) for n in numbers]))
        cut = number(term.parameters, "cutmix") if "cutmix" in term.parameters else 0.0
        passes = [Pass(cutmix=cut)] if term.original else []
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


DEFAULT_FRAMES = 24
# Exponent of the spacing. Above 1, frames are denser at the start, where the map moves most.
FRAME_SPACING = 1.6


def learning_rate_factor(step: int, steps: int, warmup_fraction: float) -> float:
    """Return the factor of a linear warm-up to 1 and a linear decay; it is never 0, so that no step is wasted.

    Args:
        step: 1 … steps.
        warmup_fraction: share of the steps that warm up.
    """
    warmup = round(steps * warmup_fraction)
    if step <= warmup:
        return step / warmup
    return (steps - step + 1) / (steps - warmup + 1)


def default_frame_steps(steps: int, frames: int = DEFAULT_FRAMES) -> tuple[int, ...]:
    """Return about `frames` steps from 0 to `steps`, denser at the start."""
    spaced = (round(steps * (i / (frames - 1)) ** FRAME_SPACING) for i in range(frames))
    return tuple(sorted({0, steps, *spaced}))


def frame_steps(wanted: Sequence[int], steps: int) -> tuple[int, ...]:
    """Return the wanted steps that the run reaches, plus step 0 and the last step."""
    return tuple(sorted({0, steps, *(step for step in wanted if 0 < step < steps)}))


class SettingsAt(NamedTuple):
    """The settings that a step used.

    Attributes:
        phase: number of the step's phase, from 0.
        objective: of that phase, at the current knob values; `objective.temperature` is τ and `objective.weight` λ,
            each None if the objective has no single one.
        rate_factor: factor on the learning-rate schedule; 1 unless that knob was turned.
    """

    phase: int
    objective: ObjectiveConfig
    rate_factor: float


class Stage(NamedTuple):
    """Settings, and the first step that used them."""

    step: int
    settings: SettingsAt


def objective_at(config: RunConfig, step: int) -> SettingsAt:
    """Return the settings that a step used; the single source for the training loop and for every page.

    Args:
        config: with the knob turns of the run (`RunRecord.effective`); prepared, if it has two phases.
        step: 1, 2, …; step 0 has the settings as launched, and a step beyond the end those of the last phase.
    Raises: ConfigError for a config of two phases that was not prepared.
    Edge: a turn holds until its phase ends. Of several turns at one step, the last in the config wins.
    """
    found = stages(config, config.phase_at(step))
    return found[max(0, bisect_right(found, step, key=lambda stage: stage.step) - 1)].settings


@lru_cache(maxsize=512)
def stages(config: RunConfig, number: int) -> tuple[Stage, ...]:
    """Return the settings of a phase, numbered from 0: as launched (step 0), then from each change or turn on.

    Raises: ConfigError for a config of two phases that has turns and was not prepared.
    """
    now = SettingsAt(number, config.phases[number].objective, 1.0)
    found = {0: now}
    for turn in config.changes_and_turns:
        if config.phase_at(turn.step) != number:
            continue
        if isinstance(turn, Change):
            now = now._replace(objective=turn.objective or now.objective)
        elif turn.name == RATE:
            now = now._replace(rate_factor=turn.value)
        else:
            now = now._replace(objective=now.objective.with_knob(turn.name, turn.value))
        found[turn.step] = now
    return tuple(Stage(step, settings) for step, settings in found.items())


def settings_at_end(config: RunConfig, number: int, step: int = MAX_STEPS) -> SettingsAt:
    """Return the last settings of a phase, numbered from 0: those at its end, or at `step` of a run in progress.

    Edge: a phase that begins after that step has its settings as launched.
    """
    return [stage.settings for stage in stages(config, number) if stage.step <= step][-1]


def as_launched(config: RunConfig) -> RunConfig:
    """Return the config without its knob turns and later changes, and not as a branch."""
    return config.model_copy(update={"knob_turns": (), "changes": (), "branch": None})


def as_ended(config: RunConfig, step: int) -> RunConfig:
    """Return a config that starts with the final settings of each phase.

    Args:
        config: with the knob turns of the run (`RunRecord.effective`).
        step: the last step that the run completed; turns planned for later steps do not count.
    Edge: a learning-rate factor that leaves no valid rate (0, or a rate above 1) leaves the rate as launched.
    """
    phases = []
    for place, phase in enumerate(config.phases):
        used = settings_at_end(config, place, step)
        factor = used.rate_factor if rate_carries_over(phase, used.rate_factor) else 1.0
        rates = {name: getattr(phase.optimiser, name) for name in ("learning_rate", "classifier_learning_rate")}
        # Twelve digits, so that 5e-05 × 0.3 is 1.5e-05 and not 1.4999999999999999e-05.
        scaled = {name: float(f"{rate * factor:.12g}") for name, rate in rates.items() if rate is not None}
        optimiser = phase.optimiser.model_copy(update=scaled if factor != 1 else {})
        phases.append(phase.model_copy(update={"objective": used.objective, "optimiser": optimiser}))
    task = config.task.model_copy(update={"sampler": config.sampler_at(step)})
    return as_launched(config.model_copy(update={"phases": tuple(phases), "task": task}))


def rate_carries_over(phase: PhaseConfig, factor: float) -> bool:
    """Return whether the learning rates can absorb a factor on the schedule: all stay above 0 and at most 1."""
    rates = (phase.optimiser.learning_rate, phase.optimiser.classifier_learning_rate)
    return all(0 < rate * factor <= 1 for rate in rates if rate is not None)
