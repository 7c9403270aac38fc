"""Preparation of a draft: every default is filled in and everything checked before the run is created."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from core.advice.defaults import (
    DEFAULT_STEPS,
    MANY_CLASSES,
    default_sampler,
    momentum_of,
    with_rates,
)
from core.advice.positives import count_tokens
from core.config import (
    FILE_TASK,
    TRAIN_POINTS_MAX,
    Change,
    CheckpointConfig,
    EncoderConfig,
    PhaseConfig,
    ProbeConfig,
    RunConfig,
    TaskConfig,
)
from core.config.plan import Plan, default_frame_steps, frame_steps, plan_phase
from core.config.run import translation_models
from core.errors import ConfigError, EncoderError, TaskError, quote_value
from core.messages import Message, Text
from core.models.own_pooling import own_pooling
from core.models.source import (
    TRANSLATION_MODEL,
    EncoderShape,
    bundled_note,
    encoder_shape,
    is_available,
    is_local,
)
from core.parameters import EMBEDDINGS
from core.tasks import TASKS, TaskData, load_task
from core.tasks.batches import CLASSES_AT_ONCE, SMALLEST_BALANCED
from core.texts.eda import eda
from core.texts.paraphrases import PARAPHRASED, have_paraphrases

Load = Callable[[TaskConfig, int], TaskData]

PROBE_ON_CPU = 120
PROBE_ON_GPU = 500
# A single text of a class does not show how close its texts are to each other.
PROBE_OF_A_CLASS = 2
# Validation rows of a task with similarity scores, two for each pair.
VALIDATION_OF_SCORES = 400
# Validation rows on the map for each training row.
TRAIN_SHARE = 3
# Snapshots of a run's weights: their maximum number, and their maximum size on disk.
SNAPSHOTS = 4
SNAPSHOT_BYTES_MAX = 200 * 2**20
# Limit on frames times points of the map.
MAX_VECTORS_STORED = 2_000_000


def default_probe_size(classes: int, *, gpu: bool) -> int:
    return max(PROBE_ON_GPU if gpu else PROBE_ON_CPU, PROBE_OF_A_CLASS * classes)


def validation_size(natural: TaskData, probe_size: int | None = None, *, gpu: bool) -> int:
    """Return the default number of validation rows: those on the map, as every frame scores all of them, or more pairs.

    If the split was cut from the training rows, the other rows remain training rows.

    Args:
        natural: the task with all rows of its splits.
        probe_size: validation rows on the map, None for the default.
    """
    # A rank correlation needs more rows than the map.
    least = 0 if natural.train.scores is None else VALIDATION_OF_SCORES
    return min(len(natural.validation), max(least, probe_size or default_probe_size(len(natural.classes), gpu=gpu)))


def prepare(
    draft: RunConfig, *, gpu: bool, bfloat16: bool = False, load: Load = load_task
) -> tuple[RunConfig, TaskData]:
    """Return the draft with every default filled in, and its data.

    Args:
        gpu: whether there is a GPU; it determines the default size of the probe set.
        bfloat16: whether the run's device computes in bfloat16; it determines the default precision.
        load: loads the rows of a task under a seed; the default loads bundled tasks and files.
    Returns: a complete config (content hash, steps, frame steps, sizes), and the rows.
    Raises: ConfigError, TaskError or EncoderError in one sentence.
    """
    gpu = gpu and draft.device != "cpu"
    shape = encoder_shape(draft.encoder.id)
    encoder = draft.encoder
    if encoder.max_length > shape.positions:
        remedy = Message(
            "{encoder} reads at most {limit} tokens; give at most that many.",
            encoder=quote_value(encoder.id),
            limit=shape.positions,
        )
        raise ConfigError("encoder.max_length", encoder.max_length, remedy)
    if encoder.pooling == "auto":
        encoder = encoder.model_copy(update={"pooling": own_pooling(encoder.id)})
    if is_local(encoder.id):
        encoder = encoder.model_copy(update={"id": _expanded(encoder.id)})
    task = draft.task
    if task.id == FILE_TASK and task.path:
        task = task.model_copy(update={"path": _expanded(task.path)})
    if task.test_path:
        task = task.model_copy(update={"test_path": _expanded(task.test_path)})
    if task.validation_size is None:
        plain = TaskConfig()
        changed = ("train_size", "imbalance", "label_noise", "text_noise", "content_hash")
        natural = load(task.model_copy(update={name: getattr(plain, name) for name in changed}), draft.seed)
        task = task.model_copy(update={"validation_size": validation_size(natural, draft.probe.size, gpu=gpu)})
    data = load(task, draft.seed)
    if note := bundled_note(encoder.id):
        data = replace(data, notes=(note, *data.notes))
    probe, data = _fewer_where_groups_stay_whole(draft.probe, task.validation_size, data)
    found = {"content_hash": data.content_hash, "validation_size": len(data.validation), "name": data.name[:80]}
    if task.sampler == "auto":
        found["sampler"] = default_sampler(len(data.classes))
    task = task.model_copy(update=found)
    counted_phases = _with_tokens(draft.phases, encoder, data)
    _check_paraphrases(draft, data)
    learned = data.with_paraphrases(task.paraphrases)
    if task.back_translation is not None:
        learned = learned.with_more(learned.train.texts, learned.train.seconds)
    # With one phase, a message names a field without its phase.
    two = len(draft.phases) > 1
    phases = tuple(
        _phase(phase, learned, shape, f"phases.{number}." if two else "") for number, phase in enumerate(counted_phases)
    )
    _check_embeddings(phases, encoder)
    _check_phases(phases, [task.sampler, *(change.sampler for change in draft.changes)])
    config = draft.model_copy(update={"task": task, "encoder": encoder, "phases": phases})
    changes = tuple(
        change
        if change.objective is None
        else _with_objective(change, phases[config.phase_at(change.step)], encoder, learned, shape)
        for change in config.changes
    )
    more: dict[str, object] = {"changes": changes, "probe": _probe(probe, config.steps, data, gpu)}
    if config.classifier_start == "auto":
        probe_helps = not two and phases[0].objective.trains_classifier and len(data.classes) >= MANY_CLASSES
        more["classifier_start"] = "probe" if probe_helps else "random"
    if config.precision == "auto":
        more["precision"] = "bfloat16" if bfloat16 else "float32"
    config = config.model_copy(update=more)
    return config.model_copy(update={"checkpoint": _checkpoint(config, shape)}), data


def check_models(config: RunConfig) -> None:
    """Check that the encoder and the translation models of a run are on this machine, or that the Hub answers.

    Raises: EncoderError, or ConfigError for an invalid name.
    """
    encoder_shape(config.encoder.id)
    missing = [name for name in translation_models(config) if not is_available(name, TRANSLATION_MODEL)]
    if missing:
        raise EncoderError(
            "The translation models {names} are not on this machine and the Hub cannot be reached: connect to the "
            "internet, give their local folders, or use the bundled paraphrases instead.",
            names=tuple(map(quote_value, missing)),
        )


def _expanded(path: str) -> str:
    try:
        return str(Path(path).expanduser())
    except RuntimeError:
        raise TaskError(
            "{path} is below a home folder that does not exist: check the path.", path=quote_value(path)
        ) from None


def _with_tokens(phases: tuple[PhaseConfig, ...], encoder: EncoderConfig, data: TaskData) -> tuple[PhaseConfig, ...]:
    """Return the phases with a number for every automatic k, from the lengths of the training texts."""
    if not any(phase.objective.counts_tokens for phase in phases):
        return phases
    tokens = float(np.mean(count_tokens(encoder.id, data.train, encoder.max_length).tokens))
    return tuple(phase.model_copy(update={"objective": phase.objective.with_tokens(tokens)}) for phase in phases)


def _phase(phase: PhaseConfig, data: TaskData, shape: EncoderShape, where: str) -> PhaseConfig:
    for field, value, remedy in _problems(phase, data, shape):
        raise ConfigError(f"{where}{field}", value, remedy)
    steps = phase.steps
    if steps is None and phase.epochs is not None:
        steps = max(1, math.ceil(phase.epochs * (len(data.train) // phase.batch_size)))
    steps = steps or DEFAULT_STEPS
    found = {
        "objective": phase.objective.with_momentum(momentum_of(steps)),
        "optimiser": with_rates(phase.optimiser, phase.trainable, shape),
    }
    return phase.model_copy(update={"steps": steps, "epochs": None, **found})


def _with_objective(
    change: Change, phase: PhaseConfig, encoder: EncoderConfig, data: TaskData, shape: EncoderShape
) -> Change:
    """Return a change with the defaults of its objective filled in for the phase that it belongs to."""
    changed = phase.model_copy(update={"objective": change.objective})
    (counted,) = _with_tokens((changed,), encoder, data)
    return change.model_copy(update={"objective": _phase(counted, data, shape, "").objective})


# Training texts that are searched for words with synonyms.
SYNONYM_TEXTS = 200
# A field of a phase, its value, and the remedy.
Problem = tuple[str, object, Text]


def _problems(phase: PhaseConfig, data: TaskData, shape: EncoderShape) -> Iterator[Problem]:
    """Find settings of a phase that its data or its encoder do not allow."""
    yield from _score_problems(phase, data)
    rows = len(data.train)
    if phase.batch_size > rows:
        remedy = Message("there are {rows:,} training rows; give at most {rows:,}.", rows=rows)
        yield "batch_size", phase.batch_size, remedy
    yield from _trainable_problems(phase, shape)
    plan = plan_phase(phase.objective, shape.blocks)
    yield from _learning_problems(phase, plan, shape)
    yield from _replacement_problems(plan, data)
    if phase.objective.contrastive:
        yield from _positive_problems(phase, plan, data)
    if phase.micro_batch and any(p.view is not None and p.view.entry.follows_gradient for p in plan.passes):
        remedy = Message(
            "an adversarial step is computed over the whole batch; leave micro_batch empty, or choose another view."
        )
        yield "micro_batch", phase.micro_batch, remedy


def _replacement_problems(plan: Plan, data: TaskData) -> Iterator[Problem]:
    """Find replacement by synonyms on texts of which no word has one, such as Chinese or Korean texts."""
    replaces = any(
        one.view is not None and one.view.view == "eda" and one.view.parameters["operation"] == "replace"
        for one in plan.passes
    )
    texts, rng = data.train.texts[:SYNONYM_TEXTS], np.random.default_rng(0)
    if replaces and all(eda(text, operation="replace", rate=1.0, rng=rng) == text for text in texts):
        remedy = Message(
            "no word of the training texts has a known synonym, and the list of synonyms is English; delete, "
            "duplicate or swap words instead."
        )
        yield "eda.operation", "replace", remedy


def _check_paraphrases(draft: RunConfig, data: TaskData) -> None:
    """Check that every training text has the paraphrase that the run reads. Raises: ConfigError."""
    task, terms = draft.task, (term for objective in draft.objectives for term in objective.terms)
    is_view = any(view.view == "paraphrase" for term in terms for view in term.views)
    is_added = task.paraphrases != "none"
    if not (is_view or is_added):
        return
    has_others = is_view and (is_added or task.back_translation is not None)
    if has_others or not have_paraphrases([*data.train.texts, *(data.train.seconds or ())]):
        raise ConfigError(
            "views" if is_view else "task.paraphrases",
            "paraphrase" if is_view else task.paraphrases,
            "only the original texts of {tasks} have paraphrases; choose one of these tasks without text noise or "
            "added texts, or leave paraphrases out.",
            tasks=tuple(Message(TASKS[name].label) for name in PARAPHRASED),
        )


def lack_of_scores(task: str) -> Message:
    """Return the remedy for a task without similarity scores where they are needed."""
    return Message(
        "{task} has no similarity scores; choose a task of scored pairs, such as STS-B, which the Data page fetches.",
        task=task,
    )


def _score_problems(phase: PhaseConfig, data: TaskData) -> Iterator[Problem]:
    """Find losses that need classes on a task with similarity scores, and the reverse."""
    for term in phase.objective.terms:
        entry = term.entry
        if data.train.scores is None:
            if entry.reads == "scores":
                yield "objective", term.loss, lack_of_scores(data.name)
        elif not entry.contrastive or entry.uses_labels or term.level == "logits":
            remedy = Message(
                "{task} has similarity scores instead of classes; choose CoSENT, cosine MSE or SimCSE without a "
                "classifier.",
                task=data.name,
            )
            yield "objective", term.loss, remedy
        elif term.parameters.get("label_filter"):
            remedy = Message("{task} has similarity scores instead of classes; turn it off.", task=data.name)
            yield f"{term.loss}.label_filter", True, remedy


def _trainable_problems(phase: PhaseConfig, shape: EncoderShape) -> Iterator[Problem]:
    trainable = phase.trainable
    if trainable.part == "last_blocks" and trainable.blocks > shape.blocks:
        blocks = Message("{count} block", "{count} blocks", count=shape.blocks)
        yield (
            "trainable.blocks",
            trainable.blocks,
            Message("the encoder has {blocks}; give at most that many.", blocks=blocks),
        )
    learning = {"all": shape.blocks, "last_blocks": trainable.blocks}.get(trainable.part, 0)
    if trainable.reinitialised_blocks > learning:
        remedy = Message(
            "{count} block is trained, and only trained blocks can be re-initialised; give at most {count}.",
            "{count} blocks are trained, and only trained blocks can be re-initialised; give at most {count}.",
            count=learning,
        )
        yield "trainable.reinitialised_blocks", trainable.reinitialised_blocks, remedy


def _check_embeddings(phases: Sequence[PhaseConfig], encoder: EncoderConfig) -> None:
    """Check that no contrast reads first tokens of the embeddings. Raises: ConfigError."""
    for term in (term for phase in phases for term in phase.objective.terms):
        chosen = [term.layers, *(view.parameters.get("layers", ()) for view in term.views)]
        if encoder.pooling == "cls" and any(EMBEDDINGS in layers for layers in chosen if isinstance(layers, tuple)):
            raise ConfigError(
                f"{term.loss}.layers",
                EMBEDDINGS,
                "the first token has the same embedding in every text; give layers from 1, or set encoder.pooling to "
                "mean.",
            )


def _learning_problems(phase: PhaseConfig, plan: Plan, shape: EncoderShape) -> Iterator[Problem]:
    """Find contrast that reaches no weight that learns.

    Contrast reaches the contrasted blocks and those below them, but not the classifier.
    """
    if phase.objective.classifies:
        return
    if phase.trainable.part == "last_blocks":
        highest = max(term.highest_block(shape.blocks) for term in plan.terms if term.groups)
        frozen = shape.blocks - phase.trainable.blocks
        remedy = Message(
            "the highest contrasted block is block {highest}, but blocks 1 to {frozen} are frozen; train more "
            "blocks, or contrast higher layers.",
            highest=highest,
            frozen=frozen,
        )
        if highest <= frozen:
            yield "trainable.blocks", phase.trainable.blocks, remedy
    if phase.trainable.part == "classifier":
        remedy = Message(
            "a contrastive loss alone does not reach the classifier, and nothing else is trained; train blocks, or "
            "add a cross-entropy term."
        )
        yield "trainable.part", "classifier", remedy


def _positive_problems(phase: PhaseConfig, plan: Plan, data: TaskData) -> Iterator[Problem]:
    """Find batches and rows in which contrast has nothing to compare."""
    if phase.batch_size < 2:
        yield "batch_size", phase.batch_size, Message("a contrastive loss compares texts; give at least 2.")
    if plan.reads_triplets and not data.triplets:
        remedy = Message(
            "{task} has no triplets. It needs pairs (columns text, text_b, label) with the labels entailment and "
            "contradiction for the same premise, and enough training rows of both.",
            task=data.name,
        )
        yield "objective", next(t.loss for t in phase.objective.terms if t.entry.reads == "triplets"), remedy
    count = len(data.triplets)
    if plan.reads_pairs and phase.batch_size > len(data.pairs):
        given = Message("{count} pair", "{count} pairs", count=len(data.pairs))
        remedy = Message(
            "{task} has {pairs}; give at most {count:,}.", task=data.name, pairs=given, count=len(data.pairs)
        )
        yield "batch_size", phase.batch_size, remedy
    if plan.reads_triplets and phase.batch_size > count:
        given = Message("{count} triplet", "{count} triplets", count=count)
        remedy = Message("{task} has {triplets}; give at most {count:,}.", task=data.name, triplets=given, count=count)
        yield "batch_size", phase.batch_size, remedy
    of_class = [t for t in plan.terms if t.term.weight > 0 and t.term.entry.reads == "vectors" and t.views == 1]
    if of_class and max(Counter(data.train.labels).values()) < 2:
        raise ConfigError(
            "train_size", len(data.train), "no class has two rows, so no anchor has a positive; add rows."
        )


def _check_phases(phases: tuple[PhaseConfig, ...], samplers: Sequence[str | None]) -> None:
    """Reject phases that cannot follow each other, and batches that are too small for a sampler."""
    if len(phases) > 1 and not phases[-1].objective.classifies:
        raise ConfigError(
            f"phases.{len(phases) - 1}.objective",
            Message("no loss on the classifier"),
            "the second phase trains the classifier; give it a cross-entropy term.",
        )
    smallest = min(phase.batch_size for phase in phases)
    if not CLASSES_AT_ONCE.keys().isdisjoint(samplers) and smallest < SMALLEST_BALANCED:
        raise ConfigError(
            "batch_size",
            smallest,
            "class-balanced batches hold two rows of at least two classes; give at least {least}, or choose random "
            "batches.",
            least=SMALLEST_BALANCED,
        )
    for number, phase in enumerate(phases[1:], 1):
        if blocks := phase.trainable.reinitialised_blocks:
            raise ConfigError(
                f"phases.{number}.trainable.reinitialised_blocks",
                blocks,
                "blocks are re-initialised once, before the first step; set this in the first phase, and 0 here.",
            )


def _fewer_where_groups_stay_whole(
    probe: ProbeConfig, validation_size: int | None, data: TaskData
) -> tuple[ProbeConfig, TaskData]:
    """Limit the probe set to the existing validation rows, and add a note about this to the data.

    Rows with the same first text stay in one split, so a split may hold a few rows fewer than requested.

    Args:
        validation_size: requested number of rows of the split.
    """
    asked, there = probe.size, len(data.validation)
    if asked is None or validation_size is None or not there < asked <= validation_size:
        return probe, data
    note = Message(
        "the map can show {texts} instead of {asked:,}: rows with the same first text stay in one split.",
        texts=Message("{count} validation text", "{count} validation texts", count=there),
        asked=asked,
    )
    return probe.model_copy(update={"size": there}), replace(data, notes=(*data.notes, note))


def _probe(probe: ProbeConfig, steps: int, data: TaskData, gpu: bool) -> ProbeConfig:
    available = len(data.validation)
    if probe.size is not None and probe.size > available:
        raise ConfigError(
            "probe.size",
            probe.size,
            "the validation split has {rows}; give at most that many.",
            rows=Message("{count} row", "{count} rows", count=available),
        )
    size = min(available, probe.size or default_probe_size(len(data.classes), gpu=gpu))
    most = min(len(data.train), TRAIN_POINTS_MAX)
    beside = min(most, size // TRAIN_SHARE) if probe.train_size is None else probe.train_size
    if beside > most:
        rows = Message("{count} training row", "{count} training rows", count=most)
        raise ConfigError("probe.train_size", beside, "the map can show {rows}; give at most that many.", rows=rows)
    frames = default_frame_steps(steps) if probe.frame_steps is None else frame_steps(probe.frame_steps, steps)
    if len(frames) * (size + beside) > MAX_VECTORS_STORED:
        raise ConfigError(
            "probe.frame_steps",
            Message("{frames:,} frames of {points:,} points", frames=len(frames), points=size + beside),
            "at most {most:,} vectors are stored; give fewer frames or points.",
            most=MAX_VECTORS_STORED,
        )
    return ProbeConfig(size=size, train_size=beside, frame_steps=frames)


def _checkpoint(config: RunConfig, shape: EncoderShape) -> CheckpointConfig:
    """Return the checkpoint settings with snapshot steps: some of the frames, evenly spread, within the size limit."""
    frames = config.probe.frame_steps or ()
    wanted = config.checkpoint.snapshot_steps
    if wanted is None:
        learning = {"all": shape.parameters, "classifier": 0}
        learning["lora"] = 2 * shape.blocks * shape.hidden_size**2  # stored as the weights that the adapters change
        of_phases = [
            learning.get(phase.trainable.part, phase.trainable.blocks * shape.block_parameters)
            for phase in config.phases
        ]
        largest = 4 * max(of_phases)
        count = min(SNAPSHOTS, SNAPSHOT_BYTES_MAX // max(1, largest))
        wanted = tuple(frames[(i * (len(frames) - 1)) // (count + 1)] for i in range(1, count + 1))
    steps = {step for step in wanted if 0 < step < config.steps and step in frames}
    # A fitted classifier cannot be drawn again from a seed, so step 0 is stored.
    steps |= {0} if config.classifier_start == "probe" else set()
    return config.checkpoint.model_copy(update={"snapshot_steps": tuple(sorted(steps))})
