"""One fine-tune as a stream of events, independent of the store, worker processes and pages."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from core.advice.idle_terms import STEPS_IN_A_ROW, inert_terms, slow_queues, starving_sentences
from core.advice.score_source import classifier_learned, classifier_note
from core.config import KnobTurn, RunConfig, TaskConfig, TrainableConfig, check_turn
from core.config.objective import ObjectiveConfig
from core.config.plan import objective_at
from core.encoders.model import Encoder, Tokenizer
from core.errors import ConfigError, TrainingError
from core.events import (
    GRADIENT_NORM,
    LOSS,
    SCORED_PAIRS,
    Checkpointed,
    Evaluation,
    Event,
    Finished,
    KnobTurned,
    Notice,
    Predictions,
    Started,
    Step,
    TurnRefused,
)
from core.messages import N_, Message
from core.tasks import TaskData
from core.training.checkpoints import (
    PROJECTIONS,
    Checkpoints,
    TrainedModel,
    load_start,
    plain_weights,
    random_states,
    restore_random_states,
    restore_weights,
    weights_of,
)
from core.training.data_parallel import Ranks
from core.training.encode import Interrupted, encode, encoder_autocast, load_encoder_of
from core.training.passes import Machine, Setup
from core.training.phase import NO_TURNS, Phase
from core.training.probe import ProbeFrames, view_agreement
from core.training.scores import classification_scores, probe_scores, similarity_scores
from core.training.step import commit_step, compute_step
from core.training.trainable import (
    fit_classifier,
    merge_adapters,
    merged_names,
    outermost_trained,
    plain_name,
    reinitialise,
)
from core.training.untrained import (
    Baseline,
    Untrained,
    VectorCache,
    cache_key,
    learned_rows,
    weights_fingerprint,
)
from core.views.back_translation import round_trip
from core.weight_files import snapshot_path, state_path

# Maximum size of the state kept at a frame when all weights learn, and of all states of a run.
STATE_BYTES_MAX, STATES_BYTES_MAX = 50 * 2**20, 200 * 2**20
NOT_FINITE = {
    LOSS: N_(
        "The loss of step {step} is {value}: lower the learning rate or the maximum gradient norm, raise the "
        "temperature, or turn on normalisation if it is off."
    ),
    GRADIENT_NORM: N_(
        "The gradient norm of step {step} is {value}: lower the learning rate or the maximum gradient norm, "
        "raise the temperature, or turn on normalisation if it is off."
    ),
}
OVERFLOW = N_(
    "The vectors after step {step} overflow: lower the learning rate or the maximum gradient norm, raise the "
    "temperature, or turn on normalisation if it is off."
)


class Controls(Protocol):
    """Requests to a run, which reads them between two steps. By default there are none."""

    def stop_requested(self) -> bool:
        """Return True once the run should end with a checkpoint."""
        return False

    def take_turns(self) -> Sequence[tuple[str, float]]:
        """Return the knob turns (name, value) since the last call, oldest first."""
        return ()


class CellEncoder(NamedTuple):
    """An encoder for one of several runs that share frozen blocks and take turns in drawing random numbers."""

    encoder: Encoder
    tokenizer: Tokenizer
    drawing: AbstractContextManager[object]


class NoControls(Controls):
    """Controls without requests."""


def train(
    config: RunConfig,
    data: TaskData,
    *,
    controls: Controls | None = None,
    checkpoints: Checkpoints | None = None,
    cache: VectorCache | None = None,
    translations: Path | None = None,
    start: Path | None = None,
    resume: bool = False,
    ranks: Ranks | None = None,
    trained: TrainedModel | None = None,
    cell: CellEncoder | None = None,
) -> Iterator[Event]:
    """Fine-tune an encoder as `config` describes, and yield the events of the run.

    Args:
        config: prepared (`core.advice.prepare`), so that every default is filled in.
        data: the rows that the config names.
        controls: read between two steps. The caller pauses a run by not requesting the next event.
        checkpoints: storage of the rolling checkpoint; None saves none.
        cache: vectors of untrained encoders, shared by runs.
        translations: file that caches back-translations, shared by runs.
        start: weights of the run that `config.start` names.
        resume: continue from the checkpoint, on exactly the same curve.
        ranks: the processes of a distributed run. This process leads, and the others call `follow`.
        trained: receives the encoder and its trained weights once the run has finished. The run then saves no final
            checkpoint.
        cell: an encoder that shares frozen blocks with those of other runs. Such a run saves only its last weights.
    Yields: Started, then Step, Frame, Evaluation, KnobTurned, Checkpointed and Notice as they happen, then Finished.
    Raises: TrainingError for a loss that is not finite; EncoderError if the encoder cannot be loaded.
    """
    controls = controls or NoControls()
    run = _Run(config, data, checkpoints, {} if cache is None else cache, translations, start, resume, ranks, cell)
    try:
        yield from run.events(controls, trained)
    finally:
        if ranks is not None:
            with suppress(TrainingError):  # an earlier error takes precedence
                ranks.lead(None)


def follow(
    config: RunConfig,
    data: TaskData,
    ranks: Ranks,
    *,
    checkpoints: Checkpoints,
    translations: Path | None = None,
    start: Path | None = None,
) -> None:
    """Take the steps of a run that another process leads. Arguments and errors are those of `train`.

    Like the leader, this process resumes from a checkpoint if there is one.
    """
    run = _Run(config, data, checkpoints, {}, translations, start, checkpoints.step() is not None, ranks)
    while (turns := ranks.follow()) is not None:
        run.enter_phase_of(run.step + 1)
        deque(run.turn_knobs(turns), maxlen=0)
        run.take_step()


class _Run:
    """The state of a run between two events."""

    def __init__(
        self,
        config: RunConfig,
        data: TaskData,
        checkpoints: Checkpoints | None,
        cache: VectorCache,
        translations: Path | None,
        start: Path | None,
        resume: bool,
        ranks: Ranks | None,
        cell: CellEncoder | None = None,
    ) -> None:
        self.ranks, self.drawing = ranks, cell.drawing if cell else NO_TURNS
        self.config, self.checkpoints, self.cache = config, checkpoints, cache
        self.frame_steps = frozenset(config.probe.frame_steps or ())
        self.snapshot_steps = frozenset(config.checkpoint.snapshot_steps or ())
        device = device_of(config.device) if ranks is None else ranks.device
        self.machine = Machine(device, encoder_autocast(config.precision, device))
        data = data.with_paraphrases(config.task.paraphrases)
        data = with_back_translations(data, config.task, config.seed, kept=translations, device=device)
        self.data = data
        if cell is not None:
            encoder, self.tokenizer = cell.encoder, cell.tokenizer
        else:
            torch.manual_seed(config.seed)
            encoder, self.tokenizer = load_encoder_of(config.encoder, data.classes)
        self.encoder = encoder.to(device)
        self.setup = Setup(data, self.encoder, self.tokenizer, self.machine, config.seed, translations, ranks)
        self.frames = ProbeFrames(config, data, self.encoder, self.tokenizer)
        with self.drawing:
            self._begin_from(start, resume)
        self.learned: set[str] = set()
        self._recent: deque[Mapping[str, float]] = deque(maxlen=STEPS_IN_A_ROW)
        self._noticed: set[Message] = set()
        restored = checkpoints.load() if resume and checkpoints else {}
        self.step = (checkpoints.step() or 0) if restored and checkpoints else 0
        with self.drawing:
            self._enter_phase(config.phase_at(max(1, self.step)))
        if restored:
            self.learned = restore_weights(self.encoder, restored) - self._learning()
        if "random/cpu" in restored:
            self.phase.restore(restored)
            restore_random_states(restored)
        self._follow_recorded_turns()

    def _begin_from(self, start: Path | None, resume: bool) -> None:
        """Load the weights of another run, re-initialise blocks and fit the classifier, as the config says.

        The pre-trained encoder is kept for the linear probe, and the encoder before the first step for the first frame.
        """
        config, machine, drawn = self.config, self.machine, None
        fingerprint = weights_fingerprint(self.encoder)
        self._baseline: Baseline | None = None
        if self.encoder.trunk is None:  # runs on one trunk share a probe
            key = cache_key(config.encoder, fingerprint, self.data, machine.arithmetic)
            self._baseline = Baseline(
                config, self.data, self.encoder, self.tokenizer, autocast=machine.autocast, cache=self.cache, key=key
            )
        if start is not None:
            load_start(start, self.encoder)
            fingerprint = f"{fingerprint} {config.start}"
        if blocks := config.reinitialised_blocks:
            # On the CPU, so that the draws do not depend on the device.
            reinitialise(self.encoder.cpu(), blocks)
            self.encoder.to(machine.device)
            drawn = blocks, config.seed
        if config.classifier_start == "probe":
            learned = self.data.train.take(learned_rows(config, self.data.train.labels))
            fit_classifier(self.encoder, self.tokenizer, learned.inputs, learned.labels, config.seed)
        texts = self.frames.texts_of(by_probe=not classifier_learned(config, 0))
        key = cache_key(config.encoder, fingerprint, self.data, machine.arithmetic, drawn)
        self._start: Untrained | None = Untrained(
            self.encoder, texts, self.frames.attended, key, self.cache, keep=resume
        )

    def events(self, controls: Controls, trained: TrainedModel | None) -> Iterator[Event]:
        """Yield the events of the run, from first to last."""
        checkpoints = self.checkpoints
        yield self._started()
        yield self.frames.tokens
        yield from self._cautions()
        if checkpoints and self.step == 0 and 0 in self.snapshot_steps:
            # Save a classifier that was fitted before the first step: it cannot be drawn again from the seed.
            layer = f"model.{self.encoder.family.head_layers[1]}"
            yield from self._snapshot({f"{layer}.weight", f"{layer}.bias"})
        if self._start is not None and self._start.vectors is not None:  # cached vectors need no computation
            yield from self._first_frame(NoControls())

        with suppress(Interrupted):  # a stop interrupted a frame; the steps so far count
            yield from self._steps(controls)

        if self.step < self.config.steps:
            if checkpoints and not self.config.on_shared_trunk:
                yield self._checkpoint()
                yield from self._snapshot()
            yield Finished(self.step, "stopped")
            return
        self._leave_phase()  # merges adapters into the encoder
        if self._baseline is not None:
            yield from self._baseline.encode_remaining()
        if not self.config.on_shared_trunk:
            yield from self._test()
        if trained is not None:
            weights = weights_of(self.encoder, self.learned)
            # Copy them, because predicting with other weights overwrites those of the encoder.
            trained.weights = {name: weight.to("cpu", copy=True) for name, weight in weights.items()}
            trained.encoder, trained.tokenizer = self.encoder, self.tokenizer
        elif checkpoints:
            yield self._checkpoint(last=True)
        yield Finished(self.step, "finished")

    def _steps(self, controls: Controls) -> Iterator[Event]:
        """Take the remaining steps until a stop is requested. Raises: Interrupted by a stop during a frame."""
        steps, checkpoints = self.config.steps, self.checkpoints
        if self.step in self.frame_steps and self.step > 0:  # a stop may have skipped the checkpoint's frame
            yield from self._frame(controls)
        while self.step < steps and not controls.stop_requested():
            if self.enter_phase_of(self.step + 1):
                yield from self._cautions()
            turns = list(controls.take_turns())
            if self.ranks is not None:
                self.ranks.lead(turns)
            yield from self.turn_knobs(turns)
            yield self.take_step()
            # Yield one notice for each contrastive term that stays 0 because its batches hold no positives.
            objective, batch_size = self.phase.objective_config, self.phase.config.batch_size
            sampler = self.config.sampler_at(self.step)
            for sentence in starving_sentences(tuple(self._recent), objective, batch_size, sampler):
                if sentence not in self._noticed:
                    self._noticed.add(sentence)
                    yield Notice(self.step, sentence)
            if checkpoints and self.step in self.frame_steps:
                self._keep_state(checkpoints)
            # Frame 0 and the linear probe come after the step, so that they do not delay the first one.
            yield from self._first_frame(controls)
            if self._baseline is not None:
                yield from self._baseline.encode_next()
            if self.step in self.frame_steps:
                yield from self._frame(controls)
            if checkpoints and self.step in self.snapshot_steps:
                yield from self._snapshot()
            if checkpoints and self.step < steps and checkpoints.due(self.step) and not self.config.on_shared_trunk:
                yield self._checkpoint()

    def _started(self) -> Started:
        data = self.data
        facts = {
            "train_rows": len(data.train),
            "validation_rows": len(data.validation),
            "test_rows": len(data.test),
            "majority_rate": data.majority_rate(data.validation),
            "test_majority_rate": data.majority_rate(data.test),
            "parameters": sum(p.numel() for p in self.encoder.parameters()),
            "learning_parameters": sum(p.numel() for p in self.phase.parameters),
            "steps_per_epoch": self.phase.steps_per_epoch,
        }
        if data.pairs:
            facts[SCORED_PAIRS] = len(data.pairs)
        return Started(self.step, self.config.steps, str(self.machine.device), self.frames.probe, facts)

    # Phases

    def enter_phase_of(self, step: int) -> bool:
        """Enter the phase of a step. Return whether the phase changed."""
        number = self.config.phase_at(step)
        if number == self.phase.number:
            return False
        self._leave_phase()
        with self.drawing:
            self._enter_phase(number)
        self._follow_recorded_turns()
        return True

    def _cautions(self) -> Iterator[Notice]:
        """Yield a notice for every setting that makes the numbers of this phase misleading."""
        note = classifier_note(self.config, scored=self.data.train.scores is not None)
        if note is not None and not classifier_learned(self.config, self.step + 1):
            yield Notice(self.step, note)
        for label in inert_terms(self.phase.config, len(self.encoder.blocks)):
            sentence = Message(
                "{loss} has no effect, because all layers it contrasts are frozen. Train more blocks.",
                loss=Message(label),
            )
            yield Notice(self.step, sentence)
        if self.phase.number and self.phase.config.trainable.reinitialised_blocks:
            yield Notice(
                self.step,
                Message("Blocks are re-initialised once, before the first step; this phase re-initialises none."),
            )
        for sentence in slow_queues(self.phase.config):
            yield Notice(self.step, sentence)

    def _enter_phase(self, number: int) -> None:
        self.offset = self.config.phase_ends[number - 1] if number else 0
        self.phase = Phase(self.config, number, self.setup, self.drawing)

    def _leave_phase(self) -> None:
        """Record the weights that this phase changed, and merge adapters into them."""
        learned = {name for name in self._learning() if not name.startswith(PROJECTIONS)}
        self.learned |= merged_names(learned)
        merge_adapters(self.encoder)

    def _learning(self) -> set[str]:
        return {plain_name(name) for name, parameter in self.encoder.named_parameters() if parameter.requires_grad}

    # Knobs

    def _follow_recorded_turns(self) -> None:
        """Set the objective and the learning rate of the next step from the recorded knob turns."""
        last = self.config.phase_ends[self.phase.number]  # a resumed run may be at the end of its phase
        used = objective_at(self.config, min(self.step + 1, last))
        self.phase.rate_factor = used.rate_factor
        if used.objective != self.phase.objective_config:
            self.phase.set_objective(used.objective)

    def turn_knobs(self, turns: Sequence[tuple[str, float]]) -> Iterator[KnobTurned | TurnRefused]:
        """Apply the knob turns that take effect at the next step: those recorded in the config, and new ones."""
        step = self.step + 1
        recorded = [(t.name, t.value) for t in self.config.knob_turns if t.step == step]
        if not recorded and not turns and not any(change.step == step for change in self.config.changes):
            return
        taken = []
        for name, value in turns:
            try:
                check_turn(self.config, step, name, value)
            except ConfigError as error:  # the knob belongs to the phase that has just ended
                yield TurnRefused(self.step, error.message, name, value)
                continue
            turn = KnobTurn.model_validate({"step": step, "name": name, "value": value})
            self.config = self.config.model_copy(update={"knob_turns": (*self.config.knob_turns, turn)})
            taken.append((name, value))
        self._follow_recorded_turns()
        for name, value in (*recorded, *taken):
            yield KnobTurned(step, name, value)

    # One step

    def take_step(self) -> Step:
        step = self.step + 1
        computed = compute_step(self.phase, step - self.offset)
        values = computed.values
        for measure, sentence in NOT_FINITE.items():
            if not math.isfinite(values[measure]):
                raise TrainingError(sentence, step=step, value=values[measure])
        values["step_s"] = commit_step(self.phase, computed)
        self.step = step
        self._recent.append(values)
        return Step(step, values)

    # Frames

    def _first_frame(self, controls: Controls) -> Iterator[Event]:
        """Yield the frame of step 0, unless it was yielded before."""
        if self._start is None:
            return
        start, self._start = self._start, None
        vectors = start.load_or_compute(
            self.tokenizer, autocast=self.machine.autocast, interrupted=controls.stop_requested
        )
        encoder, pooled, logits = (start.encoder or self.encoder).eval(), vectors["pooled"], None
        if classifier_learned(self.config, 0):
            with torch.inference_mode():
                logits = encoder.logits(torch.from_numpy(pooled).to(self.machine.device)).cpu().numpy()
        first = self.config.phases[0]
        agreement = self._agreement(encoder, first.trainable, first.objective)
        yield from self.frames.events(0, pooled, logits, vectors.get("attention"), encoder, agreement)

    def _agreement(self, encoder: Encoder, trainable: TrainableConfig, objective: ObjectiveConfig) -> dict[str, float]:
        """Return the agreement of dropout views, of the encoder or of the pooled vector, if the objective has them.

        A cell of a surface measures none, because its thread shares torch's random state with others.
        """
        views = [view.entry.kind for term in objective.terms for view in term.views]
        if self.config.on_shared_trunk or not {"pass", "head"} & set(views):
            return {}
        learning = outermost_trained(encoder, trainable)
        return view_agreement(encoder, learning, self.tokenizer(self.frames.viewed), self.machine.autocast)

    def _frame(self, controls: Controls) -> Iterator[Event]:
        """Yield the frame of the current step.

        A stop interrupts it, except at the last step: a finished run has its last frame.
        """
        interrupted = controls.stop_requested if self.step < self.config.steps else NoControls().stop_requested
        by_probe = not classifier_learned(self.config, self.step)
        found = encode(
            self.encoder,
            self.tokenizer,
            self.frames.texts_of(by_probe=by_probe),
            autocast=self.machine.autocast,
            interrupted=interrupted,
            attended=self.frames.attended,
        )
        logits = None if by_probe else found.logits.cpu().numpy()
        # A branch has another objective from its next step on.
        objective = objective_at(self.config, max(1, self.step)).objective
        agreement = self._agreement(self.encoder, self.phase.config.trainable, objective)
        pooled = found.pooled.cpu().numpy()
        shown = [found.pooled] if by_probe else [found.pooled, found.logits]
        if not all(vectors.square().isfinite().all() for vectors in shown):
            raise TrainingError(OVERFLOW, step=self.step)
        yield from self.frames.events(self.step, pooled, logits, found.attention, self.encoder, agreement)

    def _test(self) -> Iterator[Evaluation | Predictions]:
        """Yield the scores of the test split; without a trained classifier, those of a linear probe."""
        labels, by_probe = self.data.test.labels, not classifier_learned(self.config, self.step)
        fitting = self.frames.fitting.inputs if by_probe else ()
        texts = (*fitting, *self.data.test.inputs)
        found = encode(self.encoder, self.tokenizer, texts, autocast=self.machine.autocast)
        if by_probe:
            train, vectors = np.split(found.pooled.cpu().numpy(), [len(fitting)])
            probe = self.frames.fit_probe(train)
            logits = probe.logits(vectors)
            scores = probe_scores(logits, labels, probe.rows) | similarity_scores(vectors, self.data.test)
        else:
            logits = found.logits.cpu().numpy()
            scores = classification_scores(logits, labels)
        yield Predictions("test", logits, labels)
        yield Evaluation(self.step, "test", scores)

    # Checkpoints

    def _checkpoint(self, *, last: bool = False) -> Checkpointed | Notice:
        """Save a checkpoint. If the disk is full, return a notice instead, and the run continues."""
        assert self.checkpoints is not None
        tensors = weights_of(self.encoder, self.learned) if last else self._state()
        try:
            self.checkpoints.save(self.step, tensors)
        except TrainingError as error:
            return Notice(self.step, error.message)
        return Checkpointed(self.step)

    def _state(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on."""
        return weights_of(self.encoder, self.learned | self._learning()) | self.phase.state() | random_states()

    def _keep_state(self, checkpoints: Checkpoints) -> None:
        """Keep the state of a frame for branches, if it is small or part of the weights learns, and steps remain.

        Of many states, only some are kept. A branch at another frame repeats the steps since the last kept state.
        """
        if self.step == self.config.steps or self.config.on_shared_trunk:
            return
        state = self._state()
        size = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
        frames = sorted(self.frame_steps)
        interval = math.ceil(len(frames) * size / STATES_BYTES_MAX)
        cheap = size <= STATE_BYTES_MAX or self.phase.config.trainable.part in ("last_blocks", "lora")
        if cheap and frames.index(self.step) % interval == 0:
            with suppress(TrainingError):  # a full disk costs the branch some time
                checkpoints.write(state_path(checkpoints.folder, self.step), self.step, state)

    def _snapshot(self, names: Collection[str] | None = None) -> Iterator[Notice]:
        """Save the weights as a run that finishes here would. If the disk is full, yield a notice instead.

        Args:
            names: names of the weights; all trained weights by default.
        """
        assert self.checkpoints is not None
        names = self.learned | self._learning() if names is None else names
        path = snapshot_path(self.checkpoints.folder, self.step)
        try:
            self.checkpoints.write(path, self.step, plain_weights(self.encoder, names))
        except TrainingError as error:
            yield Notice(self.step, error.message)


def device_of(name: str) -> torch.device:
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not here.get(name, True):
        raise TrainingError("device = {device} is not available to torch here: choose auto or cpu.", device=repr(name))
    found = next((kind for kind, available in here.items() if available), "cpu")
    return torch.device(found if name == "auto" else name)


def with_back_translations(
    data: TaskData, task: TaskConfig, seed: int, *, kept: Path | None, device: torch.device
) -> TaskData:
    """Append the back-translation of every training text to the training rows, with the same label.

    If the config asks for no back-translation, return the data unchanged.

    Source: Gunel et al. 2021, arXiv:2011.01403, section 5: noise by back-translation at a temperature.

    Args:
        kept: file that caches translations, shared by runs; None caches them for this run only.
    Raises: EncoderError or ConfigError if a model cannot be fetched or loaded.
    """
    if task.back_translation is None:
        return data
    forward, backward = task.translators
    settings: dict[str, str | float] = {
        "forward": forward,
        "backward": backward,
        "temperature": task.back_translation,
    }
    trip = round_trip(settings, seed, kept, device)
    seconds = None if data.train.seconds is None else trip.translate(data.train.seconds)
    return data.with_more(trip.translate(data.train.texts), seconds)
