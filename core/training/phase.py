"""One phase of a run: what learns, from which objective, and one step of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from core.config import PhaseConfig, RunConfig, peak_rates
from core.config.objective import ObjectiveConfig
from core.encoders.model import Encoder, Tokenizer
from core.encoders.trainable import (
    apply_trainable,
    frozen_blocks,
    plain_name,
    set_gradient_checkpointing,
    training_mode,
)
from core.errors import TrainingError
from core.losses.evaluate import Objective, ObjectiveValue, Term, reference_lines
from core.parameters import number, whole
from core.tasks import TaskData
from core.training.batches import RandomSampler, Sampler, make_sampler
from core.training.gradients import COSINE, EVERY_STEPS, SharedGradients, shared_gradients
from core.training.optimisers import (
    make_optimiser,
    optimiser_state,
    parameter_groups,
    restore_optimiser_state,
    set_rates,
    take_clipped_step,
)
from core.training.outputs import Outputs, Reader, projection_head
from core.training.passes import Batch, Machine, Passes
from core.training.plan import Plan, plan_phase
from core.training.queue import MomentumQueue
from core.training.row_gradients import RowGradients
from core.training.schedule import learning_rate_factor
from core.training.starving import ACTIVE


class Phase:
    """Carries the steps of one phase; step numbers here count from the phase's own beginning."""

    def __init__(
        self,
        config: RunConfig,
        number: int,
        *,
        data: TaskData,
        encoder: Encoder,
        tokenizer: Tokenizer,
        machine: Machine,
        translations: Path | None = None,
    ) -> None:
        self.number, self.seed, self.data = number, config.seed, data
        self.config: PhaseConfig = config.phases[number]
        self.steps = self.config.steps or 0
        self.encoder, self.tokenizer, self.machine, self.translations = encoder, tokenizer, machine, translations
        self.learning = self._prepare_weights()
        self.parameters = [p for p in encoder.parameters() if p.requires_grad]
        self.row_gradients = RowGradients(encoder.modules())
        self.optimiser = make_optimiser(
            parameter_groups(encoder, self.config.optimiser), self.config.optimiser, machine.device
        )
        self.labels = torch.tensor(data.train.labels, device=machine.device)
        size = self.config.batch_size
        self.sampler = make_sampler(config.task.sampler, data.train.labels, size, config.seed)
        self.triplets: Sampler | None = RandomSampler(len(data.triplets), size, config.seed) if data.triplets else None
        self.queues = self._queues(self.config.objective)
        self.rate_factor = 1.0
        self.plan = plan_phase(self.config.objective, len(encoder.blocks))
        self.passes = self._passes(self.plan)
        self.set_objective(self.config.objective)

    def _prepare_weights(self) -> list[nn.Module]:
        encoder, phase = self.encoder, self.config
        heads = {
            key: projection_head(str(term.parameters["projection"]), encoder.base.config.hidden_size)
            for key, term in zip(phase.objective.keys, phase.objective.terms, strict=True)
            if term.parameters.get("projection", "none") != "none"
        }
        encoder.projections = nn.ModuleDict()  # those of an earlier phase have done their work
        learning = apply_trainable(encoder, phase.trainable)
        encoder.projections = nn.ModuleDict(heads).to(self.machine.device)
        set_gradient_checkpointing(encoder, phase.gradient_checkpointing)
        return [*learning, encoder.projections]

    def _queues(self, objective: ObjectiveConfig) -> dict[str, MomentumQueue]:
        """From the first step on, also for a term of weight 0: a queue must not depend on when λ was turned."""
        terms = zip(objective.keys, objective.terms, strict=True)
        return {
            key: MomentumQueue(self.encoder, key, whole(term.parameters, "queue"), number(term.parameters, "momentum"))
            for key, term in terms
            if whole(term.parameters, "queue")
        }

    def set_objective(self, objective: ObjectiveConfig) -> None:
        """Follow another objective from the next step on; the phase's own with some knobs turned."""
        plan = plan_phase(objective, len(self.encoder.blocks))
        terms = dict(zip(objective.keys, objective.terms, strict=True))
        self.objective_config = objective
        self.objective = Objective(
            [Term(t.key, t.term.loss, terms[t.key].weight, terms[t.key].parameters) for t in plan.terms]
        )
        if not plan.same_passes(self.plan):
            self.passes = self._passes(plan)
        self.plan = plan

    def _passes(self, plan: Plan) -> Passes:
        return Passes(
            plan,
            data=self.data,
            encoder=self.encoder,
            tokenizer=self.tokenizer,
            machine=self.machine,
            seed=self.seed,
            rows_of=self.sampler.rows,
            frozen=frozen_blocks(self.encoder, self.config.trainable),
            micro_batch=self.config.effective_micro_batch,
            translations=self.translations,
        )

    # One step

    def take_step(self, step: int) -> dict[str, float]:
        """Step 1, 2, … of this phase; returns what was measured in it.

        The optimiser moves only when `commit` is called, so that a loss that is not finite changes nothing.
        """
        started = time.perf_counter()
        training_mode(self.encoder, self.learning)
        set_rates(self.optimiser, self._rate(step))
        batch = self._batch(step)
        outputs, cache = self.passes.encode(step, batch)
        reader = Reader(outputs, self.encoder, self.plan, queue=self._queued)
        value = self.objective(reader, batch.labels)
        measures = self._lines(reader, batch.labels)
        shared = self._shared_gradients(step, value, outputs)
        if shared is not None and cache is None:
            shared.add(outputs.vectors)
        value.total.backward()
        if cache is not None:
            cache.backward(shared)
        if shared is not None:
            measures |= shared.measures()
        self.row_gradients.gather()
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        self._pending = batch, norm, started
        return self._numbers(value, norm, measures) | self._settings(step) | _counts(batch)

    def commit(self) -> float:
        """Let the optimiser take the step that was computed; returns the seconds of the whole step."""
        batch, norm, started = self._pending
        take_clipped_step(self.optimiser, self.parameters, norm, self.config.optimiser.max_gradient_norm)
        self.optimiser.zero_grad(set_to_none=True)
        for queue in self.queues.values():
            queue.step(self.passes.inputs.plain(batch.rows), batch.labels, self.machine.autocast)
        return time.perf_counter() - started

    def _batch(self, step: int) -> Batch:
        rows = self.sampler.rows(step)
        triplets = self.triplets.rows(step) if self.triplets and self.plan.reads_triplets else []
        return self.passes.batch(step, rows, triplets, self.labels[rows])

    def _queued(self, key: str) -> tuple[Tensor, Tensor] | None:
        return self.queues[key].held if key in self.queues else None

    # What is recorded

    def _settings(self, step: int) -> dict[str, float]:
        """The knobs' values at a step."""
        values = {
            "learning_rate": peak_rates(self.config.optimiser)[0] * self._rate(step),
            "lambda": self.objective_config.weight,
            "temperature": self.objective_config.temperature,
            "phase": self.number + 1.0,
        }
        return {name: value for name, value in values.items() if value is not None}

    def _rate(self, step: int) -> float:
        return learning_rate_factor(step, self.steps, self.config.optimiser.warmup_fraction) * self.rate_factor

    def _shared_gradients(self, step: int, value: ObjectiveValue, outputs: Outputs) -> SharedGradients | None:
        """At each few steps, what compares the terms."""
        if (step - 1) % EVERY_STEPS:
            return None
        frozen = frozen_blocks(self.encoder, self.config.trainable)
        return shared_gradients(value, self.objective.terms, self.plan, self.encoder, outputs.vectors, frozen)

    def _lines(self, reader: Reader, labels: Tensor) -> dict[str, Tensor]:
        lines: dict[str, Tensor] = {}
        for term in self.objective.terms:
            with torch.no_grad():
                found = reference_lines(term.loss, reader(term.key), labels, term.parameters)
            if found is not None:
                lines[f"collapse_line.{term.key}"] = found.collapse
                if found.bound is not None:
                    lines[f"lower_bound.{term.key}"] = found.bound
                if found.active is not None:
                    lines[f"{ACTIVE}{term.key}"] = found.active
        return lines

    def _numbers(self, value: ObjectiveValue, norm: Tensor, measures: Mapping[str, Tensor]) -> dict[str, float]:
        tensors = {"loss": value.total, "grad_norm": norm}
        tensors |= {f"loss.{name}": part for name, part in value.parts.items()} | dict(measures)
        # One transfer for all of these numbers.
        stacked = torch.stack([tensor.detach().to(self.machine.device, torch.float32) for tensor in tensors.values()])
        found = dict(zip(tensors, stacked.tolist(), strict=True))
        if math.isnan(found.get(COSINE, 0.0)):  # a term that asks for nothing in this batch has no direction
            del found[COSINE]
        return found

    # Checkpoints

    def state(self) -> dict[str, Tensor]:
        """Moments of the optimiser and contents of the queues."""
        tensors = optimiser_state(self.optimiser, self._names())
        for key, queue in self.queues.items():
            tensors |= {f"queue/{key}/{name}": tensor for name, tensor in queue.state().items()}
        return tensors

    def _names(self) -> dict[Tensor, str]:
        return {parameter: plain_name(name) for name, parameter in self.encoder.named_parameters()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave. Raises: TrainingError for another run's."""
        try:
            restore_optimiser_state(self.optimiser, self._names(), tensors)
        except KeyError as error:
            raise TrainingError(f"The checkpoint cannot be used ({error}): start a new run.") from error
        for key, queue in self.queues.items():
            prefix = f"queue/{key}/"
            queue.restore({n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})


def _counts(batch: Batch) -> dict[str, float]:
    tokens = sum(len(tokens.ids) for texts in batch.tokens for tokens in texts)
    return {"tokens": float(tokens), "texts": float(len(batch.rows))}
