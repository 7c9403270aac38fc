"""What a protocol is: a question, the design that answers it, and what was published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.config import RunConfig
from core.config.edit import PRESET, changed
from core.config.presets import preset
from core.experiments.design import LEAN, Axis, Design, Level, axis_of
from core.messages import N_
from core.representation.paired import LEVEL, fewest_seeds

# At least; more where the number of comparisons asks for more.
SEEDS = 5


@dataclass(frozen=True, slots=True)
class Published:
    """Figures that somebody published, to print beside ours.

    Attributes:
        header, rows: a table as it is printed; the first column names what was trained.
        setting: encoder, data and how often it was run.
        source: who published it.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    setting: str
    source: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """An experiment of a paper or of the notes. Its words are marked, and translated where they are shown.

    Attributes:
        question: what it answers, as people ask it.
        axes: what is varied, given the draft that people chose.
        settings: of the draft that it starts from, beside the defaults.
        baseline: by axis name, what the other levels are compared with.
        reference: a cell outside the grid, which all are compared with.
        sources: runs that levels start from, by label.
        differs: how our setting differs from the published one.
        measure, split: what its table shows first.
    """

    name: str
    place: int
    label: str
    question: str
    source: str
    axes: Callable[[RunConfig], Sequence[Axis]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, str] = field(default_factory=dict)
    reference: Level | None = None
    sources: tuple[Level, ...] = ()
    published: tuple[Published, ...] = ()
    differs: str = ""
    measure: str = "accuracy"
    split: str = "test"

    @property
    def base(self) -> RunConfig:
        """The draft that it starts from, before anybody changed anything."""
        return changed(RunConfig(), {**LEAN, **self.settings})

    def design(self, base: RunConfig | None = None, seeds: Sequence[int] = ()) -> Design:
        """The design on a draft, its own by default, under as many seeds as can show a difference. Raises: ConfigError.

        Args:
            seeds: instead of these.
        """
        base = self.base if base is None else base
        made = Design(
            name=self.label,
            protocol=self.name,
            base=base,
            axes=tuple(self.axes(base)),
            seeds=tuple(seeds or range(SEEDS)),
            baseline=dict(self.baseline),
            reference=self.reference,
            sources=self.sources,
        )
        compared = sum(made.baseline_of(cell) is not None for cell in made.cells)
        enough = max(SEEDS, fewest_seeds(LEVEL / compared)) if compared else SEEDS
        return made if seeds or enough == SEEDS else made.revised(seeds=list(range(enough)))


def objectives(*names: str) -> Axis:
    """An axis over presets, called as their lists call them."""
    return Axis(
        name=N_("Objective"), levels=tuple(Level(label=preset(one).label, settings={PRESET: one}) for one in names)
    )


def varied(setting: str, *values: Any, name: str = "") -> Axis:
    """An axis over one setting."""
    made = axis_of(setting, values)
    return made.model_copy(update={"name": name}) if name else made
