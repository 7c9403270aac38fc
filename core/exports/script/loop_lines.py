"""One phase as a function that reads like a training loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.config import PhaseConfig, phase_steps
from core.exports.script.learning_lines import optimiser_text, weight_lines, what_learns
from core.exports.script.line_breaks import INDENT, broken, indented
from core.exports.script.loss_lines import LossLines
from core.exports.script.reading_lines import (
    PLAIN,
    PLAIN_TEXTS,
    Drawn,
    Given,
    ReadingLines,
    given_of,
    reading_lines,
)
from core.exports.script.source_file import Home
from core.exports.script.structure import RATE, PhaseStage, Structure, knob
from core.parameters import number, whole

TRAINING = "core.training"
OUTPUTS = Home(f"{TRAINING}.outputs", "Outputs")
SAMPLERS = {
    "random": Home("core.tasks.batches", "RandomSampler"),
    "class_balanced": Home("core.tasks.batches", "ClassBalancedSampler"),
    "balanced": Home("core.tasks.batches", "EqualSharesSampler"),
}
OF_EVERY_PHASE = (
    Home(f"{TRAINING}.optimisers", "make_optimiser"),
    Home(f"{TRAINING}.optimisers", "parameter_groups"),
    Home(f"{TRAINING}.optimisers", "set_rates"),
    Home(f"{TRAINING}.optimisers", "take_clipped_step"),
    Home("core.config.schedule", "learning_rate_factor"),
    Home(f"{TRAINING}.trainable", "training_mode"),
)
FOLD = Home("core.exports.script.low_rank", "fold_adapters")
ROW_GRADIENTS = Home(f"{TRAINING}.row_gradients", "RowGradients")
QUEUE = Home(f"{TRAINING}.queue", "MomentumQueue")
CACHE = Home(f"{TRAINING}.gradient_cache", "GradientCache")


@dataclass
class PhaseText:
    """What is written of one phase.

    Attributes:
        functions: of the project, that the text names.
    """

    name: str
    text: str
    functions: set[Home] = field(default_factory=set)


@dataclass(frozen=True)
class PhaseAbout:
    """What a phase's lines depend on beside its own settings.

    Attributes:
        number: from 0; `phases`: how many there are.
        first: steps of the phases before.
        checkpointing: whether any phase keeps the blocks' inputs only.
        drawn: where changed texts are that were drawn before.
        structures: of the whole run; `rows`, `triplets`: of the training split.
    """

    number: int
    phases: int
    first: int
    blocks: int
    device: str
    sampler: str
    autocast: bool
    checkpointing: bool
    drawn: Drawn
    structures: int
    rows: int
    triplets: int


def phase_text(phase: PhaseConfig, stages: Sequence[PhaseStage], about: PhaseAbout) -> PhaseText:
    """The function of a phase, and the functions `read` and `objective` of its structures behind it."""
    return _PhaseWriter(phase, stages, about).written()


class _PhaseWriter:
    def __init__(self, phase: PhaseConfig, stages: Sequence[PhaseStage], about: PhaseAbout) -> None:
        self._phase, self._stages, self._about = phase, stages, about
        self._functions: set[Home] = {*OF_EVERY_PHASE, OUTPUTS}
        self._structures = list({stage.structure.number: stage.structure for stage in stages}.values())
        self._turned = bool(stages[0].knobs)
        self._keys = dict(zip(phase.objective.keys, phase.objective.terms, strict=True))
        self._queues = {key: t for key, t in self._keys.items() if whole(t.parameters, "queue")}
        self._given: dict[str, Given] = {}
        self._readings = {one.number: self._reading(one) for one in self._structures}
        self._losses = {one.number: LossLines(one, about.blocks) for one in self._structures}
        for reading, losses in zip(self._readings.values(), self._losses.values(), strict=True):
            self._functions |= reading.functions | losses.functions

    @property
    def _in_parts(self) -> bool:
        """Whether the encoder reads a batch in parts; not where all of it is frozen."""
        frozen, blocks = self._phase.trainable.frozen(self._about.blocks), self._about.blocks
        kept = all(one.plan.keeps_frozen(frozen, blocks, in_parts=True) for one in self._structures)
        return self._phase.effective_micro_batch is not None and not kept

    def written(self) -> PhaseText:
        name = "train" if self._about.phases == 1 else f"train_phase_{self._about.number + 1}"
        pieces = [self._train(name)]
        for structure in self._structures:
            pieces += [self._read(structure), self._objective(structure)]
        return PhaseText(name, "\n\n\n".join(pieces), self._functions)

    # read and objective

    def _reading(self, structure: Structure) -> ReadingLines:
        own = []
        for place, wanted in enumerate(structure.plan.passes, 1):
            given, functions = given_of(wanted, place, self._about.drawn)
            self._given[given.name] = given
            self._functions |= functions
            own.append(given.name)
        return reading_lines(structure, own, in_parts=self._in_parts, autocast=self._about.autocast)

    def _suffix(self, structure: Structure) -> str:
        return f"_{structure.number}" if self._about.structures > 1 else ""

    def _read(self, structure: Structure) -> str:
        reading, passes = self._readings[structure.number], len(structure.plan.passes)
        given = ["encoder: Encoder", *(f"{name}: Sequence[Tokens]" for name in self._given)]
        given += ["labels: Tensor"] if self._needs_labels else []
        given += ["knobs: Mapping[str, float]"] if self._read_turned else []
        given += ["start: int", "end: int"] if self._in_parts else []
        times = "once" if passes == 1 else "twice" if passes == 2 else f"{passes} times"
        about = f"What the encoder gives for a batch; each text is read {times}, in one call."
        if self._in_parts:
            about = "What the encoder gives for the texts start … end − 1 of a batch."
        return _function(f"read{self._suffix(structure)}", given, "Outputs", about, reading.lines)

    def _objective(self, structure: Structure) -> str:
        found = self._losses[structure.number]
        given = ["encoder: Encoder", "outputs: Outputs"]
        given += ["labels: Tensor"] if self._loss_reads_labels else []
        given += ["queues: Mapping[str, MomentumQueue]"] if self._queues else []
        given += ["knobs: Mapping[str, float]"] if self._turned else []
        about = "The loss of a batch, and its parts without their weights, in nats."
        returned = "tuple[Tensor, dict[str, Tensor]]"
        return _function(f"objective{self._suffix(structure)}", given, returned, about, found.lines)

    @property
    def _needs_labels(self) -> bool:
        return any(reading.needs_labels for reading in self._readings.values())

    @property
    def _read_turned(self) -> bool:
        return self._turned and self._needs_labels

    # The loop

    def _train(self, name: str) -> str:
        about, phase = self._about, self._phase
        steps = phase_steps(phase)
        number = f"Phase {about.number + 1} of {about.phases}: " if about.phases > 1 else ""
        sentence = f"{number}{steps:,} steps of {phase.batch_size:,} texts; {what_learns(phase.trainable)}."
        sentence = sentence[0].upper() + sentence[1:]
        weights = weight_lines(phase, about.blocks, first=about.number == 0, checkpointing=about.checkpointing)
        self._functions |= weights.functions
        lines = [*weights.lines, *self._tools(), *self._stage_lines(), f"for step in range(1, {steps + 1}):"]
        lines += indented(self._step())
        if phase.trainable.part == "lora":
            self._functions.add(FOLD)
            lines.append("fold_adapters(encoder)")
        given = ["encoder: Encoder", "tokenizer: Tokenizer", "record: Record"]
        return _function(name, given, "None", sentence, lines)

    def _tools(self) -> list[str]:
        phase, sampler = self._phase, SAMPLERS[self._about.sampler]
        rows = str(self._about.rows) if self._about.sampler == "random" else "ALL_LABELS"
        lines = [
            "parameters = [parameter for parameter in encoder.parameters() if parameter.requires_grad]",
            *broken(f"settings = {optimiser_text(phase.optimiser)}", depth=1),
            "optimiser = make_optimiser(parameter_groups(encoder, settings), settings, DEVICE)",
        ]
        if self._tables:
            self._functions.add(ROW_GRADIENTS)
            lines.append("row_gradients = RowGradients(encoder.modules())")
        if self._reads_rows:
            self._functions.add(sampler)
            lines.append(f"sampler = {sampler.name}({rows}, {phase.batch_size}, SEED)")
        if self._reads_triplets:
            self._functions.add(SAMPLERS["random"])
            lines.append(f"triplet_sampler = RandomSampler({self._about.triplets}, {phase.batch_size}, SEED)")
        if self._queues:
            self._functions.add(QUEUE)
            made = ", ".join(
                f'"{key}": MomentumQueue(encoder, "{key}", {whole(t.parameters, "queue")}, '
                f"{number(t.parameters, 'momentum')!r})"
                for key, t in self._queues.items()
            )
            lines += broken(f"queues = {{{made}}}", depth=1)
        return lines

    @property
    def _reads_triplets(self) -> bool:
        return any(structure.plan.reads_triplets for structure in self._structures)

    @property
    def _reads_rows(self) -> bool:
        """Whether a step needs rows, or their labels."""
        plain = any(wanted.source == "rows" for one in self._structures for wanted in one.plan.passes)
        return plain or bool(self._queues) or self._needs_labels or self._loss_reads_labels

    @property
    def _reads_plain(self) -> bool:
        """Whether a step reads rows as they are, also to shuffle or to queue them."""
        return PLAIN in self._given or bool(self._queues) or any("texts" in one.made for one in self._given.values())

    @property
    def _loss_reads_labels(self) -> bool:
        return any("labels" in line for losses in self._losses.values() for line in losses.lines)

    @property
    def _tables(self) -> bool:
        """Whether large tables of embeddings learn on a CPU: their gradients are then summed up row by row."""
        return self._phase.trainable.part == "all" and self._about.device == "cpu"

    def _stage_lines(self) -> list[str]:
        """Which functions and knobs a step uses, where knobs were turned."""
        if not self._turned:
            return []
        several = len(self._structures) > 1
        what = "what it computes, and the knobs" if several else "and the knobs"
        lines = [f"# Knobs were turned on the way: from which step on, {what} from there on.", "stages = ("]
        for stage in self._stages:
            suffix = self._suffix(stage.structure)
            knobs = ", ".join(f'"{name}": {value!r}' for name, value in stage.knobs.items())
            functions = f"read{suffix}, objective{suffix}, " if several else ""
            lines += broken(f"{INDENT}({stage.step}, {functions}{{{knobs}}}),", depth=1)
        return [*lines, ")"]

    def _step(self) -> list[str]:
        phase, lines = self._phase, ["training_mode(encoder, learning)"]
        structure = self._structures[0]
        read, objective = f"read{self._suffix(structure)}", f"objective{self._suffix(structure)}"
        if self._turned and len(self._structures) > 1:
            read, objective = "read", "objective"
        if self._turned:
            functions = "read, objective, " if len(self._structures) > 1 else ""
            lines.append(f"_, {functions}knobs = [stage for stage in stages if stage[0] <= step][-1]")
        steps, warmup = phase_steps(phase), phase.optimiser.warmup_fraction
        factor = f" * {knob(RATE)}" if RATE in self._stages[0].knobs else ""
        lines.append(f"set_rates(optimiser, learning_rate_factor(step, {steps}, {warmup!r}){factor})")
        lines += self._batch()
        given = ["encoder", *self._given, *(["labels"] if self._needs_labels else [])]
        given += ["knobs"] if self._read_turned else []
        lines += self._encoded(read, given)
        more = [*(["labels"] if self._loss_reads_labels else []), *(["queues"] if self._queues else [])]
        more += ["knobs"] if self._turned else []
        lines += broken(f"loss, parts = {objective}({', '.join(['encoder', 'outputs', *more])})", depth=2)
        return [*lines, *self._moved()]

    def _moved(self) -> list[str]:
        """From the loss to the weights."""
        lines = ["loss.backward()", *(["cache.backward()"] if self._in_parts else [])]
        lines += ["row_gradients.gather()"] if self._tables else []
        lines += [
            "norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])",
            f"take_clipped_step(optimiser, parameters, norm, {self._phase.optimiser.max_gradient_norm!r})",
            "optimiser.zero_grad(set_to_none=True)",
        ]
        if self._queues:
            lines += ["for queue in queues.values():", f"{INDENT}queue.step(texts, labels, AUTOCAST)"]
        counted = f"{self._about.first} + step" if self._about.first else "step"
        return [*lines, f"record({counted}, loss, parts)"]

    def _batch(self) -> list[str]:
        """The rows of a step, their tokens and labels."""
        given = dict(self._given)
        if self._reads_plain:
            given = {PLAIN: PLAIN_TEXTS, **given}
        lines = ["rows = sampler.rows(step)"] if self._reads_rows else []
        lines += ["triplets = triplet_sampler.rows(step)"] if self._reads_triplets else []
        lines += [line for one in given.values() for line in broken(f"{one.name} = {one.made}", depth=2)]
        if self._needs_labels or self._loss_reads_labels or self._queues:
            lines.append("labels = torch.tensor([LABELS[row] for row in rows], device=DEVICE)  # [B]")
        return lines

    def _encoded(self, read: str, given: list[str]) -> list[str]:
        if not self._in_parts:
            return broken(f"outputs = {read}({', '.join(given)})", depth=2)
        self._functions.add(CACHE)
        size = f"len({next(iter(self._given))})"
        made = f"cache = GradientCache(partial({read}, {', '.join(given)}), {size}, {self._phase.micro_batch})"
        return [*broken(made, depth=2), "outputs = cache.encode()"]


def _function(name: str, given: Sequence[str], returned: str, about: str, lines: list[str]) -> str:
    head = broken(f"def {name}({', '.join(given)})", behind=len(f" -> {returned}:"))
    head[-1] += f" -> {returned}:"
    return "\n".join([*head, *indented([f'"""{about}"""', *lines])])
