"""One fine-tune as a stream of events. It knows no store, no process and no page."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from core.config import KnobTurn, RunConfig
from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.encoders.trainable import apply_trainable, training_mode
from core.errors import TrainingError
from core.events import (
    Checkpointed,
    Evaluation,
    Event,
    Finished,
    Frame,
    KnobTurned,
    Notice,
    Probe,
    Started,
    Step,
)
from core.losses.objective import Objective, Term
from core.losses.supcon import collapse_line, lower_bound
from core.representation.geometry import effective_rank, mean_pairwise_cosine
from core.tasks import TaskData
from core.training.batches import make_sampler
from core.training.checkpoints import Checkpoints
from core.training.controls import Controls, NoControls
from core.training.encode import Interrupted, encode
from core.training.gradients import pooled_gradients
from core.training.schedule import learning_rate_factor
from core.training.scores import classification_scores
from core.training.untrained import (
    MemoryCache,
    VectorCache,
    Vectors,
    baseline_scores,
    cache_key,
    untrained_vectors,
)


def train(
    config: RunConfig,
    data: TaskData,
    *,
    controls: Controls | None = None,
    checkpoints: Checkpoints | None = None,
    cache: VectorCache | None = None,
    resume: bool = False,
) -> Iterator[Event]:
    """Fine-tune as `config` says, telling everything that happens.

    Args:
        config: prepared (`core.training.prepare`), so that every default is filled in.
        data: the rows that the config names.
        controls: asked between two steps; a consumer pauses a run by not asking for the next event.
        checkpoints: where the rolling checkpoint lies; None keeps none.
        cache: vectors of untrained encoders, shared by runs.
        resume: go on from the checkpoint, on exactly the same curve.
    Yields: Started, then Step, Frame, Evaluation, KnobTurned, Checkpointed and Notice as they happen, then Finished.
    Raises: TrainingError for a loss that is not finite; EncoderError when the encoder cannot be loaded.
    """
    controls = controls or NoControls()
    run = _Run(config, data, checkpoints, cache or MemoryCache(), resume)
    yield run.started()
    yield from run.untrained_frame_if_cached()

    try:
        if run.step in run.frame_steps and run.step > 0:  # a stop may have cost the frame of the checkpoint's step
            yield from run.frame(controls)
        while run.step < config.steps and not controls.stop_requested():
            yield from run.turn_knobs(controls.take_turns())
            yield run.take_step()
            yield from run.untrained_frame(controls)
            if run.step in run.frame_steps:
                yield from run.frame(controls)
            if checkpoints and run.step < config.steps and checkpoints.due(run.step):
                yield run.checkpoint()
    except Interrupted:
        pass  # a frame was given up for a stop; the steps so far count

    if run.step < config.steps:
        if checkpoints:
            yield run.checkpoint()
        yield Finished(run.step, "stopped")
        return
    yield run.test()
    if checkpoints:
        yield run.checkpoint(last=True)
    yield Finished(run.step, "finished")


@dataclass
class _Turned:
    """The settings that knobs can change, as they stand."""

    objective: Objective
    weight: float | None
    temperature: float | None
    learning_rate_factor: float = 1.0


class _Run:
    """What the loop holds between two events."""

    def __init__(
        self, config: RunConfig, data: TaskData, checkpoints: Checkpoints | None, cache: VectorCache, resume: bool
    ) -> None:
        self.config, self.data, self.checkpoints, self.cache = config, data, checkpoints, cache
        self.phase = config.phase
        self.frame_steps = frozenset(config.probe.frame_steps or ())
        self.device = _device(config.device)
        self.autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")
        torch.manual_seed(config.seed)
        self.encoder, self.tokenizer = _loaded(config, data, self.device)
        self.learning = apply_trainable(self.encoder, self.phase.trainable)
        self.parameters = [p for p in self.encoder.parameters() if p.requires_grad]
        self.optimiser = _adamw(self.encoder, self.phase.optimiser.weight_decay, self.device)
        self.sampler = make_sampler(config.task.sampler, data.train.labels, self.phase.batch_size, config.seed)
        self.labels = torch.tensor(data.train.labels, device=self.device)
        self.step = 0
        self._remember_untrained(resume)
        if resume and checkpoints:
            self.step = checkpoints.restore(self.encoder, self.optimiser)
        self._apply_recorded_turns()

    def _remember_untrained(self, resume: bool) -> None:
        """Before any weight changes: the untrained vectors if they are at hand, else what is needed to compute them."""
        self.cache_key = cache_key(self.config.encoder, _fingerprint(self.encoder.folder), self.data, self.device.type)
        self._vectors = self.cache.get(self.cache_key)
        self._untrained: Encoder | None = None
        if self._vectors is None or resume:
            self._untrained = copy.deepcopy(self.encoder)

    def started(self) -> Started:
        data, size = self.data, self.config.probe.size or len(self.data.validation)
        facts = {
            "train_rows": len(data.train),
            "validation_rows": len(data.validation),
            "test_rows": len(data.test),
            "majority_rate": data.majority_rate,
            "parameters": sum(p.numel() for p in self.encoder.parameters()),
            "learning_parameters": sum(p.numel() for p in self.parameters),
            "steps_per_epoch": self.sampler.steps_per_epoch,
        }
        probe = Probe(tuple(range(size)), data.validation.texts[:size], data.validation.labels[:size], data.classes)
        return Started(self.step, self.config.steps, str(self.device), probe, facts)

    # Knobs

    def _apply_recorded_turns(self) -> None:
        objective = self.phase.objective
        factor = 1.0
        for turn in sorted(self.config.knob_turns, key=lambda turn: turn.step):  # stable: of one step, the last wins
            if turn.step > self.step + 1:
                break
            if turn.name == "learning_rate":
                factor = turn.value
            else:
                objective = objective.turned(turn.name, turn.value)
        terms = [Term(t.loss, t.weight, t.parameters) for t in objective.terms]
        self.turned = _Turned(Objective(terms), objective.weight, objective.temperature, factor)

    def turn_knobs(self, turns: Sequence[tuple[str, float]]) -> Iterator[KnobTurned]:
        """Turns that the next step is the first to use: those the config recorded for it, and new ones."""
        step = self.step + 1
        recorded = [(t.name, t.value) for t in self.config.knob_turns if t.step == step]
        if not recorded and not turns:
            return
        for name, value in turns:
            turn = KnobTurn.model_validate({"step": step, "name": name, "value": value})
            self.config = self.config.model_copy(update={"knob_turns": (*self.config.knob_turns, turn)})
        self._apply_recorded_turns()
        for name, value in (*recorded, *turns):
            yield KnobTurned(step, name, value)

    # One step

    def take_step(self) -> Step:
        started = time.perf_counter()
        training_mode(self.encoder, self.learning)
        step = self.step + 1
        rows = self.sampler.rows(step)
        tokens = self.tokenizer([self.data.train.texts[row] for row in rows])
        labels = self.labels[rows]  # [B]
        learning_rate = self._learning_rate(step)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate

        with self.autocast:
            pooled = self.encoder.pooled(tokens)  # [B, H]
            if not pooled.requires_grad:  # only the head learns: its input still shows what each part asks
                pooled.requires_grad_()
            logits = self.encoder.logits(pooled)  # [B, C]
        value = self.turned.objective(pooled, logits, labels)
        measures = pooled_gradients(value, self.turned.objective.terms, pooled)
        value.total.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.phase.optimiser.max_gradient_norm)

        tensors = {"loss": value.total, "grad_norm": norm}
        tensors |= {f"loss.{name}": part for name, part in value.parts.items()} | measures
        # One transfer for all of these numbers.
        numbers = torch.stack([t.detach().float().to(self.device) for t in tensors.values()]).tolist()
        values = dict(zip(tensors, numbers, strict=True))
        self._check_finite(step, values)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step = step

        values["learning_rate"] = learning_rate
        if self.turned.weight is not None:
            values["lambda"] = self.turned.weight
        if self.turned.temperature is not None:
            values["temperature"] = self.turned.temperature
            values["collapse_line"] = collapse_line(len(rows))
            values["lower_bound"] = lower_bound(labels)
        elapsed = time.perf_counter() - started
        return Step(step, values | {"step_s": elapsed, "tokens": float(sum(map(len, tokens)))})

    def _learning_rate(self, step: int) -> float:
        optimiser = self.phase.optimiser
        factor = learning_rate_factor(step, self.config.steps, optimiser.warmup_fraction)
        return optimiser.learning_rate * factor * self.turned.learning_rate_factor

    def _check_finite(self, step: int, values: dict[str, float]) -> None:
        for measure, name in (("loss", "loss"), ("grad_norm", "gradient norm")):
            if not math.isfinite(values[measure]):
                raise TrainingError(
                    f"The {name} of step {step} is {values[measure]}: "
                    "lower the learning rate, or raise the temperature."
                )

    # Frames

    def untrained_frame_if_cached(self) -> Iterator[Event]:
        """The frame of step 0 before any step, where its vectors are at hand; the linear probe waits for a step."""
        if self._vectors is not None:
            yield from self._untrained_events(self._vectors, self._untrained or self.encoder)
            self._untrained = None

    def untrained_frame(self, controls: Controls) -> Iterator[Event]:
        """After a step, what must not delay the first: the frame of step 0 from the copy, and the linear probe."""
        if self._vectors is None and self._untrained is not None:
            encoder, self._untrained = self._untrained, None
            self._vectors = untrained_vectors(
                encoder, self.tokenizer, self.data, autocast=self.autocast, interrupted=controls.stop_requested
            )
            self.cache.put(self.cache_key, self._vectors)
            yield from self._untrained_events(self._vectors, encoder)
        if self._vectors is not None:
            vectors, self._vectors = self._vectors, None
            yield Evaluation(0, "baseline", baseline_scores(vectors, self.data))

    def _untrained_events(self, vectors: Vectors, encoder: Encoder) -> Iterator[Event]:
        encoder.eval()
        pooled = torch.from_numpy(vectors["validation"]).to(self.device)
        with torch.inference_mode(), self.autocast:
            logits = encoder.logits(pooled)
        yield from self._frame_events(0, pooled, logits)

    def frame(self, controls: Controls) -> Iterator[Event]:
        """The probe as it stands. A stop gives it up, but not at the last step: a finished run has its last frame."""
        interrupted = controls.stop_requested if self.step < self.config.steps else NoControls().stop_requested
        pooled, logits = encode(
            self.encoder,
            self.tokenizer,
            self.data.validation.texts,
            autocast=self.autocast,
            interrupted=interrupted,
        )
        yield from self._frame_events(self.step, pooled, logits)

    def _frame_events(self, step: int, pooled: torch.Tensor, logits: torch.Tensor) -> Iterator[Event]:
        vectors, scores = pooled.cpu().numpy(), logits.cpu().numpy()
        size = self.config.probe.size or len(vectors)
        yield Frame(step, vectors[:size], scores[:size])
        values = classification_scores(scores, self.data.validation.labels)
        values |= {
            "mean_cosine": mean_pairwise_cosine(vectors[:size]),
            "effective_rank": effective_rank(vectors[:size]),
        }
        yield Evaluation(step, "validation", values)

    def test(self) -> Evaluation:
        _, logits = encode(self.encoder, self.tokenizer, self.data.test.texts, autocast=self.autocast)
        return Evaluation(self.step, "test", classification_scores(logits.cpu().numpy(), self.data.test.labels))

    # Checkpoints

    def checkpoint(self, *, last: bool = False) -> Checkpointed | Notice:
        """A full disk does not end a run: it goes on without a checkpoint and says so."""
        assert self.checkpoints is not None
        try:
            self.checkpoints.save(self.step, self.encoder, None if last else self.optimiser)
        except TrainingError as error:
            return Notice(self.step, str(error))
        return Checkpointed(self.step)


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
        raise TrainingError(f"device = {name!r} cannot be used: torch finds none here; choose auto or cpu.")
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _adamw(encoder: Encoder, weight_decay: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW; biases and normalisation weights, the vectors among the parameters, do not decay."""
    learning = [p for p in encoder.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, fused=device.type in ("cpu", "cuda"))


def _fingerprint(folder: Path) -> str:
    """Names, sizes and dates of the encoder's weight files."""
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
    return ";".join(f"{w.name}:{w.stat().st_size}:{w.stat().st_mtime_ns}" for w in weights)
