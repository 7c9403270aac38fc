"""One phase of a run: its trainable weights, its objective and its optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor, nn

from core.config import PhaseConfig, RunConfig, peak_rates
from core.config.objective import ObjectiveConfig
from core.config.plan import Plan, learning_rate_factor, plan_phase
from core.errors import TrainingError
from core.losses.evaluate import Objective, Term
from core.parameters import integer_setting
from core.parameters import number as number_of
from core.tasks.batches import RandomSampler, Sampler, make_sampler
from core.training.checkpoints import UNUSABLE
from core.training.optimisers import (
    make_optimiser,
    optimiser_state,
    parameter_groups,
    restore_optimiser_state,
)
from core.training.outputs import projection_head
from core.training.passes import Batch, Passes, Setup
from core.training.queue import MomentumQueue
from core.training.row_gradients import RowGradients
from core.training.trainable import (
    apply_trainable,
    plain_name,
    set_gradient_checkpointing,
)

NO_TURNS = nullcontext()


class Phase:
    """One phase of a run. Its steps are counted from 1."""

    def __init__(
        self, config: RunConfig, number: int, setup: Setup, drawing: AbstractContextManager[object] = NO_TURNS
    ) -> None:
        """Prepare the weights that learn and the optimiser.

        Args:
            drawing: entered while the phase draws random numbers, so that runs in other threads do not.
        """
        self.number, self.setup, self.drawing = number, setup, drawing
        self.config: PhaseConfig = config.phases[number]
        self.steps = self.config.steps or 0
        data, encoder, device = setup.data, setup.encoder, setup.machine.device
        self.encoder, self.machine = encoder, setup.machine
        self.compares_gradients = not config.on_shared_trunk
        self.learning = self._prepare_weights()
        # Number of lowest blocks that are frozen. In evaluation mode their output for a text never changes.
        self.frozen = self.config.trainable.frozen(len(encoder.blocks))
        self.parameters = [p for p in encoder.parameters() if p.requires_grad]
        # Gradients that are summed over processes reach rows that no text here has.
        self.row_gradients = RowGradients(encoder.modules() if setup.ranks is None else ())
        groups = parameter_groups(encoder, self.config.optimiser)
        self.optimiser = make_optimiser(groups, self.config.optimiser, device)
        self.labels = torch.tensor(data.train.labels, device=device)
        self.scores = torch.tensor([pair.score for pair in data.pairs], device=device)
        before = config.phase_ends[number - 1] if number else 0
        sampler_of = cache(lambda name: make_sampler(name, data.train.labels, self.config.batch_size, config.seed))
        self.rows_of = lambda step: sampler_of(config.sampler_at(before + step)).rows(step)
        self.steps_per_epoch = sampler_of(config.task.sampler).steps_per_epoch
        # Also for terms of weight 0: a queue must not depend on when λ was turned.
        self.queues = {
            key: MomentumQueue(
                encoder, key, integer_setting(term.parameters, "queue"), number_of(term.parameters, "momentum")
            )
            for key, term in zip(self.config.objective.keys, self.config.objective.terms, strict=True)
            if integer_setting(term.parameters, "queue")
        }
        self.rate_factor, self._peak_rate = 1.0, peak_rates(self.config.optimiser)[0]
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
        encoder.projections = nn.ModuleDict()  # heads of an earlier phase are not used again
        learning = apply_trainable(encoder, phase.trainable)
        encoder.projections = nn.ModuleDict(heads).to(self.machine.device)
        set_gradient_checkpointing(encoder, phase.gradient_checkpointing)
        return [*learning, encoder.projections]

    def set_objective(self, objective: ObjectiveConfig) -> None:
        """Set the objective from the next step on: the phase's own, with some knobs turned."""
        plan = plan_phase(objective, len(self.encoder.blocks))
        terms = dict(zip(objective.keys, objective.terms, strict=True))
        self.objective_config = objective
        knobs = {"lambda": objective.weight, "temperature": objective.temperature}
        self._knobs = {name: value for name, value in knobs.items() if value is not None}
        self.objective = Objective(
            [Term(t.key, t.term.loss, terms[t.key].weight, terms[t.key].parameters) for t in plan.terms]
        )
        self.reach = {term.key: term.highest_block(len(self.encoder.blocks)) for term in plan.terms}
        self._examples: Sampler | None = None
        if plan.reads_triplets or plan.reads_pairs:
            count = len(self.setup.data.triplets or self.setup.data.pairs)
            self._examples = RandomSampler(count, self.config.batch_size, self.setup.seed)
        before = self.plan
        if (plan.passes, plan.layers, plan.tokens) == (before.passes, before.layers, before.tokens):
            self.passes.plan = plan
        else:
            self.passes = self._passes(plan)
        self.plan = plan

    def _passes(self, plan: Plan) -> Passes:
        return Passes(
            plan,
            self.setup,
            rows_of=self.rows_of,
            frozen=self.frozen,
            micro_batch=self.config.effective_micro_batch,
        )

    # Inputs of `core.training.step`

    def batch(self, step: int) -> Batch:
        """Return the inputs of a step."""
        rows = self.rows_of(step)
        examples = self._examples.rows(step) if self._examples else []
        # No loss that reads labels accepts a task with scores.
        labels = self.scores[examples] if self.plan.reads_pairs else self.labels[rows]
        return self.passes.batch(step, rows, examples, labels)

    def queued(self, key: str) -> tuple[Tensor, Tensor] | None:
        """Return the vectors and labels in a term's queue."""
        return self.queues[key].held if key in self.queues else None

    def rate(self, step: int) -> float:
        """Return the factor on the learning rates at a step."""
        return learning_rate_factor(step, self.steps, self.config.optimiser.warmup_fraction) * self.rate_factor

    def knobs(self, step: int) -> dict[str, float]:
        """Return the knobs' values at a step."""
        return {"learning_rate": self._peak_rate * self.rate(step), **self._knobs, "phase": self.number + 1.0}

    # Checkpoints

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's moments and the contents of the queues."""
        tensors = optimiser_state(self.optimiser, self._names())
        for key, queue in self.queues.items():
            tensors |= {f"queue/{key}/{name}": tensor for name, tensor in queue.state().items()}
        return tensors

    def _names(self) -> dict[Tensor, str]:
        return {parameter: plain_name(name) for name, parameter in self.encoder.named_parameters()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`. Raises: TrainingError for the state of another run."""
        try:
            restore_optimiser_state(self.optimiser, self._names(), tensors)
        except KeyError as error:
            raise TrainingError(UNUSABLE, problem=error) from error
        for key, queue in self.queues.items():
            prefix = f"queue/{key}/"
            queue.restore({n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})
