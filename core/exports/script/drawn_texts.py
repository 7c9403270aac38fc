"""What a run reads: its rows by number, its triplets, and the texts that views made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.config import PhaseConfig, RunConfig, phase_steps
from core.config.plan import Pass
from core.encoders.model import Encoder, Tokenizer
from core.errors import StoreError
from core.exports.script.literals import Item
from core.exports.script.structure import PhaseStage
from core.tasks import TaskData
from core.tasks.batches import RandomSampler, Sampler, make_sampler
from core.tasks.dataset import Input
from core.training.inputs import StepInputs

# What a file can hold that people still open: beyond, a script is no way to hand on a run.
MOST_CHARS = 20_000_000
MOST_DRAWN = 100_000


@dataclass
class DrawnTexts:
    """The changed texts of one phase: by row where a model made them, by step where they were drawn."""

    number: int
    phases: int
    texts: dict[Pass, dict[int, Item]] = field(default_factory=dict)

    def name_of(self, wanted: Pass) -> str:
        """The constant that holds what a pass reads."""
        assert wanted.view is not None
        alike = [one for one in self.texts if one.view is not None and one.view.view == wanted.view.view]
        phase = f"_OF_PHASE_{self.number + 1}" if self.phases > 1 else ""
        place = f"_{alike.index(wanted) + 1}" if len(alike) > 1 else ""
        return f"{wanted.view.view.upper()}{place}{phase}"

    def named(self) -> Iterator[tuple[str, dict[int, Item]]]:
        for wanted, texts in self.texts.items():
            yield self.name_of(wanted), texts


@dataclass(frozen=True)
class RunRows:
    """The rows that a run reads.

    Attributes:
        rows: of each row that is read, its class and its text or pair; `texts` without the class.
        count, triplet_count: how many there are, read or not.
        all_labels: of all rows, where batches follow from them.
        drawn: for each phase.
    """

    rows: dict[int, tuple[int, Input]]
    count: int
    all_labels: tuple[int, ...] | None
    triplets: dict[int, Item]
    triplet_count: int
    drawn: tuple[DrawnTexts, ...]

    @property
    def texts(self) -> list[Input]:
        return [text for _, text in self.rows.values()]


def run_rows(
    config: RunConfig,
    data: TaskData,
    stages: Sequence[Sequence[PhaseStage]],
    encoder: Encoder,
    tokenizer: Tokenizer,
    translations: Path,
) -> RunRows:
    """Everything that the steps of a run read.

    Args:
        data: with the back-translations that were added.
        translations: the file that keeps them.
    Raises: StoreError for more than a script can hold.
    """
    labels = data.train.labels
    rows: set[int] = set()
    triplets: set[int] = set()
    drawn = []
    for number, (phase, own) in enumerate(zip(config.phases, stages, strict=True)):
        batches = _Batches(make_sampler(config.task.sampler, labels, phase.batch_size, config.seed), phase)
        rows |= batches.every(len(labels))
        if any(stage.structure.plan.reads_triplets for stage in own):
            sampler = RandomSampler(len(data.triplets), phase.batch_size, config.seed)
            triplets |= _Batches(sampler, phase).every(len(data.triplets))
        inputs = StepInputs(data, encoder, tokenizer, _passes(own), seed=config.seed, translations=translations)
        found = DrawnTexts(number, len(config.phases), _texts_of_views(inputs, _passes(own), batches))
        drawn.append(found)
    made = RunRows(
        rows={row: (labels[row], data.train.inputs[row]) for row in sorted(rows)},
        count=len(labels),
        all_labels=None if config.task.sampler == "random" else tuple(labels),
        triplets={row: tuple(data.triplets[row]) for row in sorted(triplets)},
        triplet_count=len(data.triplets) if triplets else 0,
        drawn=tuple(drawn),
    )
    _check_size(made)
    return made


def _passes(stages: Sequence[PhaseStage]) -> list[Pass]:
    return list(dict.fromkeys(wanted for stage in stages for wanted in stage.structure.plan.passes))


def _texts_of_views(inputs: StepInputs, passes: Sequence[Pass], batches: _Batches) -> dict[Pass, dict[int, Item]]:
    """What views of texts make of them, by pass."""
    return {
        wanted: _changed(inputs, place, wanted, batches)
        for place, wanted in enumerate(passes)
        if wanted.view is not None and wanted.view.entry.kind == "text"
    }


class _Batches:
    """The batches of a phase, one after the other."""

    def __init__(self, sampler: Sampler, phase: PhaseConfig) -> None:
        self._sampler, self.steps, self.size = sampler, phase_steps(phase), phase.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(1, self.steps + 1):
            yield self._sampler.rows(step)

    def every(self, count: int) -> set[int]:
        """Rows that any step reads, of `count`."""
        found: set[int] = set()
        for batch in self:
            found.update(batch)
            if len(found) == count:
                break
        return found


def _changed(inputs: StepInputs, place: int, wanted: Pass, batches: _Batches) -> dict[int, Item]:
    assert wanted.view is not None
    if wanted.view.entry.by_model:
        rows = sorted({row for batch in batches for row in batch})
        return dict(zip(rows, inputs.texts(place, 0, rows), strict=True))
    if (count := batches.steps * batches.size) > MOST_DRAWN:
        raise StoreError(
            "This run draws {count:,} changed texts, and a script holds at most {most:,}: export its command or "
            "its config.",
            count=count,
            most=MOST_DRAWN,
        )
    return {step: tuple(inputs.texts(place, step, rows)) for step, rows in enumerate(batches, 1)}


def _check_size(rows: RunRows) -> None:
    every: list[Mapping[int, Item]] = [
        rows.rows,
        rows.triplets,
        *(texts for one in rows.drawn for _, texts in one.named()),
    ]
    size = sum(_chars(value) for values in every for value in values.values())
    if size > MOST_CHARS:
        raise StoreError(
            "The texts that this run reads have {size:,} characters, and a script holds at most {most:,}: export "
            "its command or its config.",
            size=size,
            most=MOST_CHARS,
        )


def _chars(value: Item) -> int:
    return len(value) if isinstance(value, str) else 1 if isinstance(value, int) else sum(map(_chars, value))
