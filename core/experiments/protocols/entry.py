"""A protocol: a question, the design that answers it, and the published figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.config import RunConfig
from core.config.edit import PRESET, apply_settings
from core.config.presets import preset
from core.experiments.design import LEAN, Axis, Design, Level, axis_of
from core.messages import N_
from core.representation.paired import LEVEL, fewest_seeds

# Minimum number of seeds; more comparisons may need more.
SEEDS = 5


@dataclass(frozen=True, slots=True)
class Published:
    """Published figures, for comparison with the results measured here.

    Attributes:
        header, rows: the table; the first column names the trained model.
        setting: encoder, data and number of runs.
        source: the publication.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    setting: str
    source: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """An experiment from a paper or the notes. Its texts are marked for translation.

    Attributes:
        question: the question it answers.
        axes: function from the user's draft to the varied axes.
        settings: settings of the base draft that differ from the defaults.
        baseline: by axis name, the level that the other levels are compared with.
        reference: a cell outside the grid that all cells are compared with.
        sources: runs that levels start from.
        differs: differences between this setting and the published one.
        measure, split: the score that the table shows by default.
        place: position in the list; protocols of the same place are in the order of their files.
    """

    name: str
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
    place: int = 0

    @property
    def base(self) -> RunConfig:
        """The protocol's own draft."""
        return apply_settings(RunConfig(), {**LEAN, **self.settings})

    def design(self, base: RunConfig | None = None, seeds: Sequence[int] = ()) -> Design:
        """Return the design for a draft.

        Args:
            base: the draft; the protocol's own if None.
            seeds: seeds to use; if empty, enough seeds to show a difference.
        Raises: ConfigError.
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


def axis(name: str, *levels: Level) -> Axis:
    """Return an axis over given levels."""
    return Axis(name=name, levels=levels)


def objectives(*names: str) -> Axis:
    """Return an axis over presets, labelled as in the list of presets."""
    return axis(N_("Objective"), *(Level(label=preset(one).label, settings={PRESET: one}) for one in names))


def setting_axis(setting: str, *values: Any, name: str = "") -> Axis:
    """Return an axis over one setting."""
    made = axis_of(setting, values)
    return made.model_copy(update={"name": name}) if name else made
