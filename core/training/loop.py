"""One fine-tune as a stream of events. It knows no store, no process and no page."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from core.advice.momentum import slow_queues
from core.advice.prepare import inert_terms
from core.advice.starving import STEPS_IN_A_ROW, starving_sentences
from core.config import KnobTurn, RunConfig, check_turn
from core.config.schedule import objective_at
from core.config.score_source import classifier_learned, classifier_note
from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.errors import ConfigError, TrainingError
from core.events import (
    GRADIENT_NORM,
    LOSS,
    Checkpointed,
    Evaluation,
    Event,
    Finished,
    FloatArray,
    KnobTurned,
    Notice,
    Predictions,
    Started,
    Step,
    TurnRefused,
)
from core.messages import N_, Message
from core.registry import load
from core.tasks import TaskData
from core.training.augmentation import with_back_translations
from core.training.baseline import Baseline, learned_rows
from core.training.checkpoints import (
    PROJECTIONS,
    Checkpoints,
    load_start,
    plain_weights,
    random_states,
    restore_random_states,
    restore_weights,
    weights_of,
)
from core.training.controls import Controls, NoControls
from core.training.data_parallel import Ranks
from core.training.encode import Interrupted, encode
from core.training.half_precision import Trained
from core.training.passes import Machine
from core.training.phase import Phase
from core.training.precision import encoder_autocast
from core.training.probe import ProbeFrames
from core.training.scores import classification_scores
from core.training.step import commit_step, compute_step
from core.training.trainable import fit_classifier, merge_adapters, merged_names, plain_name, reinitialise
from core.training.untrained import (
    MemoryCache,
    Untrained,
    VectorCache,
    Vectors,
    cache_key,
)

NOT_FINITE = {
    LOSS: N_("The loss of step {step} is {value}: lower the learning rate, or raise the temperature."),
    GRADIENT_NORM: N_(
        "The gradient norm of step {step} is {value}: lower the learning rate, or raise the temperature."
    ),
}


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
    trained: Trained | None = None,
) -> Iterator[Event]:
    """Fine-tune as `config` says, with an event for everything that happens.

    Args:
        config: prepared (`core.advice.prepare`), so that every default is filled in.
        data: the rows that the config names.
        controls: asked between two steps; a consumer pauses a run by not asking for the next event.
        checkpoints: where the rolling checkpoint lies; None keeps none.
        cache: vectors of untrained encoders, shared by runs.
        translations: file that keeps back-translations, shared by runs.
        start: weights of the run that `config.start` names.
        resume: go on from the checkpoint, on exactly the same curve.
        ranks: the processes that train together, of which this one leads; the others `follow`.
        trained: takes the encoder and what it learned once the run has finished; the last weights are then not written.
    Yields: Started, then Step, Frame, Evaluation, KnobTurned, Checkpointed and Notice as they happen, then Finished.
    Raises: TrainingError for a loss that is not finite; EncoderError when the encoder cannot be loaded.
    """
    controls = controls or NoControls()
    run = _Run(config, data, checkpoints, cache or MemoryCache(), translations, start, resume, ranks)
    try:
        yield from _led(run, controls, checkpoints, trained)
    finally:
        if ranks is not None:
            with suppress(TrainingError):  # what went wrong before is what is raised
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
    """Take the steps of a run that another process leads. Arguments and errors as for `train`.

    It resumes where there is a checkpoint, as its leader does.
    """
    run = _Run(config, data, checkpoints, MemoryCache(), translations, start, checkpoints.step() is not None, ranks)
    while (turns := ranks.follow()) is not None:
        run.enter_phase_of(run.step + 1)
        deque(run.turn_knobs(turns), maxlen=0)
        run.take_step()


def _led(run: _Run, controls: Controls, checkpoints: Checkpoints | None, trained: Trained | None) -> Iterator[Event]:
    """Yield the events of a run, from the first to the last."""
    config = run.config
    yield run.started()
    yield run.frames.tokens
    yield from run.cautions()
    yield from run.fitted_classifier()
    yield from run.untrained_frame_if_cached()

    try:
        if run.step in run.frame_steps and run.step > 0:  # a stop may have cost the frame of the checkpoint's step
            yield from run.frame(controls)
        while run.step < config.steps and not controls.stop_requested():
            if run.enter_phase_of(run.step + 1):
                yield from run.cautions()
            turns = list(controls.take_turns())
            if run.ranks is not None:
                run.ranks.lead(turns)
            yield from run.turn_knobs(turns)
            yield run.take_step()
            yield from run.starvation()
            yield from run.untrained_frame(controls)
            if run.step in run.frame_steps:
                yield from run.frame(controls)
            if checkpoints and run.step in run.snapshot_steps:
                yield from run.snapshot()
            if checkpoints and run.step < config.steps and checkpoints.due(run.step):
                yield run.checkpoint()
    except Interrupted:
        pass  # a frame was given up for a stop; the steps so far count

    if run.step < config.steps:
        if checkpoints:
            yield run.checkpoint()
            yield from run.snapshot()
        yield Finished(run.step, "stopped")
        return
    run.finish()
    yield from run.test()
    if trained is not None:
        run.leave(trained)
    elif checkpoints:
        yield run.checkpoint(last=True)
    yield Finished(run.step, "finished")


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
    ) -> None:
        self.ranks = ranks
        self.config, self.checkpoints, self.cache = config, checkpoints, cache
        self.translations = translations
        self.frame_steps = frozenset(config.probe.frame_steps or ())
        self.snapshot_steps = frozenset(config.checkpoint.snapshot_steps or ())
        device = _device(config.device) if ranks is None else ranks.device
        self.machine = Machine(device, encoder_autocast(config.precision, device))
        data = with_back_translations(data, config.task, config.seed, kept=translations, device=device)
        self.data = data
        torch.manual_seed(config.seed)
        self.encoder, self.tokenizer = _loaded(config, data, device)
        self.frames = ProbeFrames(config, data, self.encoder, self.tokenizer)
        self._begin_from(start, resume)
        self.step = 0
        self.learned: set[str] = set()
        self._recent: deque[Mapping[str, float]] = deque(maxlen=STEPS_IN_A_ROW)
        self._noticed: set[Message] = set()
        restored = checkpoints.load() if resume and checkpoints else {}
        if restored and checkpoints:
            self.step = checkpoints.step() or 0
        self._enter_phase(config.phase_at(max(1, self.step)))
        if restored:
            self._restore(restored)
        self._follow_recorded_turns()

    def _begin_from(self, start: Path | None, resume: bool) -> None:
        """Take the weights of another run, draw the re-initialised blocks and fit the classifier.

        The encoder is remembered as it was pre-trained and as it starts.
        """
        config, seed = self.config, self.config.seed
        machine = self.machine
        arithmetic = f"{machine.device.type} {machine.precision}"
        fingerprint = _fingerprint(self.encoder.folder)
        key = cache_key(config.encoder, fingerprint, self.data, arithmetic)
        self._baseline = Baseline(
            config, self.data, self.encoder, self.tokenizer, autocast=machine.autocast, cache=self.cache, key=key
        )
        if start is not None:
            load_start(start, self.encoder)
            fingerprint = f"{fingerprint} {config.start}"
            key = cache_key(config.encoder, fingerprint, self.data, arithmetic)
        if blocks := config.reinitialised_blocks:
            # On the CPU, so that the draws do not depend on the device.
            reinitialise(self.encoder.cpu(), blocks)
            self.encoder.to(machine.device)
            key = cache_key(config.encoder, fingerprint, self.data, arithmetic, (blocks, seed))
        if config.classifier_start == "probe":
            learned = self.data.train.take(learned_rows(config, self.data.train.labels))
            fit_classifier(self.encoder, self.tokenizer, learned.inputs, learned.labels, config.seed)
        texts = self.frames.texts_of(by_probe=not classifier_learned(config, 0))
        self._start: Untrained | None = Untrained(
            self.encoder, texts, self.frames.attended, key, self.cache, keep=resume
        )

    def started(self) -> Started:
        data = self.data
        facts = {
            "train_rows": len(data.train),
            "validation_rows": len(data.validation),
            "test_rows": len(data.test),
            "majority_rate": data.majority_rate,
            "test_majority_rate": data.test_majority_rate,
            "parameters": sum(p.numel() for p in self.encoder.parameters()),
            "learning_parameters": sum(p.numel() for p in self.phase.parameters),
            "steps_per_epoch": self.phase.sampler.steps_per_epoch,
        }
        return Started(self.step, self.config.steps, str(self.machine.device), self.frames.probe, facts)

    # Phases

    def enter_phase_of(self, step: int) -> bool:
        """Enter the phase that a step belongs to; return whether it is another one."""
        number = self.config.phase_at(step)
        if number == self.phase.number:
            return False
        self._leave_phase()
        self._enter_phase(number)
        self._follow_recorded_turns()
        return True

    def cautions(self) -> Iterator[Notice]:
        """Warn of whatever makes the numbers of this phase misleading."""
        note = classifier_note(self.config)
        if note is not None and not classifier_learned(self.config, self.step + 1):
            yield Notice(self.step, note)
        for label in inert_terms(self.phase.config, len(self.encoder.blocks)):
            sentence = Message(
                "{loss} moves nothing: all it contrasts is frozen. Train more blocks.", loss=Message(label)
            )
            yield Notice(self.step, sentence)
        if self.phase.number and self.phase.config.trainable.reinitialised_blocks:
            yield Notice(self.step, Message("Blocks are drawn once, before the first step: this phase draws none."))
        for sentence in slow_queues(self.phase.config):
            yield Notice(self.step, sentence)
        for view in {p.view.view: p.view.entry for p in self.phase.plan.passes if p.view is not None}.values():
            if view.notice and (caution := load(view.notice)()):
                yield Notice(self.step, caution)

    def _enter_phase(self, number: int) -> None:
        self.offset = self.config.phase_ends[number - 1] if number else 0
        self.phase = Phase(
            self.config,
            number,
            data=self.data,
            encoder=self.encoder,
            tokenizer=self.tokenizer,
            machine=self.machine,
            translations=self.translations,
            ranks=self.ranks,
        )

    def _leave_phase(self) -> None:
        """Record the weights that this phase changed, and merge adapters into them."""
        learned = {name for name in self._learning() if not name.startswith(PROJECTIONS)}
        self.learned |= merged_names(learned)
        merge_adapters(self.encoder)

    def _learning(self) -> set[str]:
        return {plain_name(name) for name, parameter in self.encoder.named_parameters() if parameter.requires_grad}

    def finish(self) -> None:
        """Leave the last phase, after which the encoder is a plain one again."""
        self._leave_phase()

    def leave(self, trained: Trained) -> None:
        """Hand over the encoder with a copy of its weights, which predicting with other weights overwrites."""
        weights = weights_of(self.encoder, self.learned)
        trained.weights = {name: weight.to("cpu", copy=True) for name, weight in weights.items()}
        trained.encoder, trained.tokenizer = self.encoder, self.tokenizer

    # Knobs

    def _follow_recorded_turns(self) -> None:
        """Set the objective and the learning rate that the next step of this phase uses."""
        last = self.config.phase_ends[self.phase.number]  # a resumed run may be at the end of its phase
        used = objective_at(self.config, min(self.step + 1, last))
        self.phase.rate_factor = used.rate_factor
        if used.objective != self.phase.objective_config:
            self.phase.set_objective(used.objective)

    def turn_knobs(self, turns: Sequence[tuple[str, float]]) -> Iterator[KnobTurned | TurnRefused]:
        """Apply the knob turns that the next step is the first to use: recorded in the config, and new."""
        step = self.step + 1
        recorded = [(t.name, t.value) for t in self.config.knob_turns if t.step == step]
        if not recorded and not turns:
            return
        taken = []
        for name, value in turns:
            try:
                check_turn(self.config, step, name, value)
            except ConfigError as error:  # it was turned for the phase that has just ended
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
        self._check_finite(step, values)
        values["step_s"] = commit_step(self.phase, computed)
        self.step = step
        self._recent.append(values)
        return Step(step, values)

    def starvation(self) -> Iterator[Notice]:
        """Once for each contrastive term that has been 0 for some steps because its batches hold no positives."""
        phase, sampler = self.phase, self.config.task.sampler
        for sentence in starving_sentences(
            tuple(self._recent), phase.objective_config, phase.config.batch_size, sampler
        ):
            if sentence not in self._noticed:
                self._noticed.add(sentence)
                yield Notice(self.step, sentence)

    def _check_finite(self, step: int, values: Mapping[str, float]) -> None:
        for measure, sentence in NOT_FINITE.items():
            if not math.isfinite(values[measure]):
                raise TrainingError(sentence, step=step, value=values[measure])

    # Frames

    def untrained_frame_if_cached(self) -> Iterator[Event]:
        """The frame of step 0 before any step, where its vectors are at hand; the linear probe waits for a step."""
        if self._start is not None and self._start.vectors is not None:
            yield from self._first_frame(NoControls())

    def untrained_frame(self, controls: Controls) -> Iterator[Event]:
        """After a step, what must not delay the first: frame 0 from a copy, and a part of the linear probe."""
        yield from self._first_frame(controls)
        yield from self._baseline.between_steps()

    def _first_frame(self, controls: Controls) -> Iterator[Event]:
        if self._start is None:
            return
        start, self._start = self._start, None
        vectors = start.computed(self.tokenizer, autocast=self.machine.autocast, interrupted=controls.stop_requested)
        yield from self._untrained_events(vectors, start.encoder or self.encoder)

    def _untrained_events(self, vectors: Vectors, encoder: Encoder) -> Iterator[Event]:
        encoder.eval()
        pooled, attention = vectors["pooled"], vectors.get("attention")
        if not classifier_learned(self.config, 0):
            yield from self.frames.events(0, pooled, None, attention)
            return
        with torch.inference_mode():
            logits = encoder.logits(torch.from_numpy(pooled).to(self.machine.device))
        yield from self.frames.events(0, pooled, logits.cpu().numpy(), attention)

    def frame(self, controls: Controls) -> Iterator[Event]:
        """The probe as it is now. A stop gives it up, but not at the last step: a finished run has its last frame."""
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
        yield from self.frames.events(self.step, found.pooled.cpu().numpy(), logits, found.attention)

    def test(self) -> Iterator[Evaluation | Predictions]:
        """Scores of the test split: of the linear probe to beat, where the run was too short for it, and of the run."""
        yield from self._baseline.to_the_end()
        labels = self.data.test.labels
        logits, probe_rows = self._test_logits()
        yield Predictions("test", logits, labels)
        scores = classification_scores(logits, labels)
        scores |= {} if probe_rows is None else {"train_rows": float(probe_rows)}
        yield Evaluation(self.step, "test", scores)

    def _test_logits(self) -> tuple[FloatArray, int | None]:
        """Return the test rows' logits; where no classifier learned, a linear probe's and the rows it was fitted on."""
        texts = self.data.test.inputs
        if classifier_learned(self.config, self.step):
            found = encode(self.encoder, self.tokenizer, texts, autocast=self.machine.autocast)
            return found.logits.cpu().numpy(), None
        fitting = self.frames.fitting_texts
        found = encode(self.encoder, self.tokenizer, (*fitting, *texts), autocast=self.machine.autocast)
        train, vectors = np.split(found.pooled.cpu().numpy(), [len(fitting)])
        probe = self.frames.fitted(train)
        return probe.logits(vectors), probe.rows

    # Checkpoints

    def checkpoint(self, *, last: bool = False) -> Checkpointed | Notice:
        """A full disk does not end a run: it goes on without a checkpoint and says so."""
        assert self.checkpoints is not None
        tensors = weights_of(self.encoder, self.learned if last else self.learned | self._learning())
        if not last:  # no step follows the last
            tensors |= self.phase.state() | random_states()
        try:
            self.checkpoints.save(self.step, tensors)
        except TrainingError as error:
            return Notice(self.step, error.message)
        return Checkpointed(self.step)

    def fitted_classifier(self) -> Iterator[Notice]:
        """Keep a classifier that was fitted before the first step, as no seed draws it again."""
        if self.checkpoints and self.step == 0 and 0 in self.snapshot_steps:
            layer = f"model.{self.encoder.family.head_layers[1]}"
            yield from self.snapshot({f"{layer}.weight", f"{layer}.bias"})

    def snapshot(self, names: Collection[str] | None = None) -> Iterator[Notice]:
        """Keep what the model knows now, as one that finishes here would; a full disk costs the copy and no more.

        Args:
            names: of the weights; all that have been learned by default.
        """
        assert self.checkpoints is not None
        names = self.learned | self._learning() if names is None else names
        try:
            self.checkpoints.save_snapshot(self.step, plain_weights(self.encoder, names))
        except TrainingError as error:
            yield Notice(self.step, error.message)

    def _restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.learned = restore_weights(self.encoder, tensors) - self._learning()
        if "random/cpu" in tensors:
            self.phase.restore(tensors)
            restore_random_states(tensors)


def _loaded(config: RunConfig, data: TaskData, device: torch.device) -> tuple[Encoder, Tokenizer]:
    encoder, tokenizer = load_encoder(
        config.encoder.id,
        classes=data.classes,
        pooling=config.encoder.pooling,
        max_length=config.encoder.max_length,
    )
    return encoder.to(device), tokenizer


def _device(name: str) -> torch.device:
    missing = (name == "cuda" and not torch.cuda.is_available()) or (
        name == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise TrainingError(
            "device = {device} cannot be used: torch finds none here; choose auto or cpu.", device=repr(name)
        )
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _fingerprint(folder: Path) -> str:
    """Names, sizes and dates of the encoder's weight files."""
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
    return ";".join(f"{w.name}:{w.stat().st_size}:{w.stat().st_mtime_ns}" for w in weights)
