"""A design: a draft, the settings that are varied, and the seeds. Frozen, validated, one JSON form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from core.advice.defaults import DEFAULT_STEPS
from core.config import LARGEST_SEED, PhaseConfig, RunConfig
from core.config.describe import objective_label, value_text
from core.config.edit import LAMBDA, PRESET, TEMPERATURE, changed
from core.config.fields import Section, Shown, build, field_at, not_json
from core.config.run import MAX_STEPS
from core.config.vary import OBJECTIVE, sweepable
from core.errors import ConfigError
from core.messages import ENGLISH, N_, Message, Text, _, in_language, language, listed
from core.parameters import Parameter, did_you_mean
from core.tasks.task_label import task_label

MOST_AXES, MOST_LEVELS, MOST_SEEDS, MOST_RUNS = 3, 60, 100, 2_000
LABEL_CHARS = 60
RUN_NAME_CHARS = 80
# The first seed of a number of seeds.
FIRST_SEED = 0
# A run of many is scored like any other, but has a frame at its start and its end alone, and no snapshots: that is most
# of a short run's time, and of its room on disk.
LEAN: Mapping[str, Any] = {"probe.frame_steps": [], "checkpoint.snapshot_steps": []}
# A level's setting that names a source.
START = "start"
# What an axis in a file has instead of levels.
IN_FILE = ("setting", "values")
# What is no field has its name here; labels of the others come from the field.
NAMED = {PRESET: OBJECTIVE.label, LAMBDA: N_("Weight λ"), TEMPERATURE: N_("Temperature τ")}


class Level(Section):
    """One value of what is varied, or several settings that change together."""

    label: Annotated[str, Field(min_length=1, max_length=LABEL_CHARS)]
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """The label in the language that is spoken; a level without settings is somebody's run, called as it is."""
        return _spoken(self.label) if self.settings else self.label


class Axis(Section):
    """What is varied, from level to level. In a file also `setting` and `values`, which make name and levels."""

    name: Annotated[str, Field(min_length=1, max_length=LABEL_CHARS)]
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=MOST_LEVELS)]

    @model_validator(mode="before")
    @classmethod
    def _of_one_setting(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        for name in given.keys() - {*IN_FILE, *cls.model_fields}:
            if meant := did_you_mean(name, [*IN_FILE, *cls.model_fields]):
                raise ConfigError(str(name), given[name], meant)
        if "setting" not in given:
            return given
        rest = given.keys() - {*IN_FILE, "name"}
        if rest or not isinstance(given.get("values"), list | tuple) or not isinstance(given["setting"], str):
            raise ConfigError(
                "axes",
                json.dumps(given, ensure_ascii=False, default=str),
                "give setting and values, such as [0.1, 0.5], or name and levels.",
            )
        made = axis_of(given["setting"], given["values"])
        return {"name": given.get("name", made.name), "levels": [level.model_dump() for level in made.levels]}

    @model_validator(mode="after")
    def _check_labels(self) -> Axis:
        _check_distinct(Message("levels of {axis}", axis=_spoken(self.name)), [level.label for level in self.levels])
        return self


class EarlyStopping(Section):
    """Poor runs end early, by asynchronous successive halving (ASHA) on validation accuracy.

    Source: Li et al. 2020, arXiv:1810.05934.
    """

    grace_steps: Annotated[
        int,
        Field(ge=1, le=MAX_STEPS, title=N_("First comparison at step"), description=N_("No run ends before.")),
        Shown(unit=N_("steps")),
    ] = 20
    reduction: Annotated[
        int,
        Field(
            ge=2,
            le=10,
            title=N_("Keep one run in"),
            description=N_(
                "About one run in this number goes on from each comparison; the next one comes at this number times "
                "the step."
            ),
        ),
    ] = 3

    def looks(self, steps: int) -> list[int]:
        """The steps before the last at which runs are compared."""
        found, step = [], self.grace_steps
        while step < steps:
            found.append(step)
            step *= self.reduction
        return found


class Cell(NamedTuple):
    """One combination of levels; its `number` never changes while the axes stay.

    Attributes:
        levels: their numbers, one per axis; None for the reference, which lies outside the grid.
    """

    number: int
    levels: tuple[int, ...] | None


class Design(Section):
    """What an experiment runs: every combination of the axes' levels, and the reference, under every seed.

    Attributes:
        protocol: the name of the protocol that made it; "" for a grid.
        base: a draft, which levels change.
        seeds: each run's `seed`; in a file also how many, counted from 0.
        baseline: what a cell is compared with: the cell that has these levels instead, by axis name and level label.
        reference: one more cell, outside the grid, which all are compared with when it is there.
        sources: runs that others start from, once under every seed; a level's setting `start` names one by its label.
        early_stopping: end poor runs early; None runs all to their end.
    """

    version: Literal[1] = 1
    name: Annotated[str, Field(max_length=80)] = ""
    protocol: Annotated[str, Field(max_length=40)] = ""
    base: RunConfig = changed(RunConfig(), LEAN)
    axes: Annotated[tuple[Axis, ...], Field(max_length=MOST_AXES)] = ()
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, le=LARGEST_SEED)], ...], Field(min_length=1, max_length=MOST_SEEDS)
    ] = (FIRST_SEED,)
    baseline: dict[str, str] = Field(default_factory=dict)
    reference: Level | None = None
    sources: Annotated[tuple[Level, ...], Field(max_length=MOST_AXES)] = ()
    early_stopping: EarlyStopping | None = None

    @field_validator("base", mode="before")
    @classmethod
    def _of_settings(cls, given: Any) -> Any:
        """In a file, settings beside the defaults will do; its runs are lean unless it says otherwise."""
        if not isinstance(given, dict) or "phases" in given or "version" in given:
            return given
        return changed(RunConfig(), {**LEAN, **given})

    @field_validator("seeds", mode="before")
    @classmethod
    def _counted(cls, given: Any) -> Any:
        if isinstance(given, int) and not isinstance(given, bool):
            if not 1 <= given <= MOST_SEEDS:
                raise ConfigError("seeds", given, "give 1 to {most}, or a list of seeds.", most=MOST_SEEDS)
            return tuple(range(FIRST_SEED, FIRST_SEED + given))
        return given

    @field_validator("baseline", mode="before")
    @classmethod
    @in_language(ENGLISH)
    def _as_labels(cls, given: Any) -> Any:
        """In a file, a level may be named by its value."""
        if not isinstance(given, dict):
            return given
        return {name: value if isinstance(value, str) else value_text(value) for name, value in given.items()}

    @model_validator(mode="after")
    def _check(self) -> Design:
        _check_distinct("axes", [axis.name for axis in self.axes])
        _check_distinct("seeds", [str(seed) for seed in self.seeds])
        by_name = {axis.name: axis for axis in self.axes}
        for name, label in self.baseline.items():
            if name not in by_name:
                raise ConfigError("baseline", name, "name an axis: {names}.", names=_any_of(by_name))
            labels = [level.label for level in by_name[name].levels]
            if label not in labels:
                raise ConfigError(
                    "baseline", label, "choose a level of {axis}: {levels}.", axis=name, levels=tuple(labels)
                )
        labels = [source.label for source in self.sources]
        _check_distinct("sources", labels)
        levels = [level for axis in self.axes for level in axis.levels]
        for level in [*levels, *([self.reference] if self.reference else [])]:
            if level.settings.get(START) not in (None, *labels):
                raise ConfigError(START, level.settings[START], "name a source: {names}.", names=_any_of(labels))
        if self.runs > MOST_RUNS:
            raise ConfigError(
                "design",
                Message("{count} run", "{count} runs", count=self.runs),
                "an experiment has at most {most}.",
                most=f"{MOST_RUNS:,}",
            )
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each axis has."""
        return tuple(len(axis.levels) for axis in self.axes)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All combinations, the last axis fastest; then the reference."""
        grid = [Cell(number, levels) for number, levels in enumerate(product(*map(range, self.shape)))]
        return (*grid, *([Cell(len(grid), None)] if self.reference else []))

    @property
    def source_cells(self) -> tuple[Cell, ...]:
        """The sources, numbered from −1 downwards."""
        return tuple(Cell(-1 - place, None) for place in range(len(self.sources)))

    @property
    def runs(self) -> int:
        return (prod(self.shape) + (self.reference is not None) + len(self.sources)) * len(self.seeds)

    @property
    def compares(self) -> bool:
        """Whether there is something to compare with."""
        return bool(self.baseline) or self.reference is not None

    def levels_of(self, cell: Cell) -> list[Level]:
        """A cell's levels, one per axis; of a source, and of the reference, that alone."""
        if cell.number < 0:
            return [self.sources[-1 - cell.number]]
        if cell.levels is None:
            assert self.reference is not None
            return [self.reference]
        return [axis.levels[level] for axis, level in zip(self.axes, cell.levels, strict=True)]

    @in_language(ENGLISH)
    def title_of(self, cell: Cell) -> str:
        """A cell in words: "CE + SCL, τ 0.3"; the one cell of a design without axes is "all runs".

        So its runs are called, whatever language is spoken; `spoken_title` is for people.
        """
        return self.spoken_title(cell)

    def spoken_title(self, cell: Cell) -> str:
        """The same in the language that is spoken."""
        levels = self.levels_of(cell)
        if cell.levels is None:
            return levels[0].title
        named = []
        for axis, level in zip(self.axes, levels, strict=True):
            # A number says of what, by the symbol of its axis where that has one.
            symbol = last if len(last := axis.name.rsplit(maxsplit=1)[-1]) == 1 else axis_title(axis, self.base)
            named.append(f"{symbol} {level.title}" if level.label[0].isdigit() else level.title)
        return listed(named) or _("all runs")

    def draft(self, cell: Cell, seed: int, sources: Mapping[str, str] = MappingProxyType({})) -> RunConfig:
        """The draft of one run.

        Args:
            sources: the ids of the runs of this seed that others start from, by label; where one is not there, the
                draft starts from the pre-trained encoder.
        Raises: ConfigError where the cell's settings do not go together.
        """
        settings = {name: value for level in self.levels_of(cell) for name, value in level.settings.items()}
        start = sources.get(settings.pop(START, None) or "")
        name = f"{self.title_of(cell)}, seed {seed}"[-RUN_NAME_CHARS:]
        draft = changed(self.base, settings | {"seed": seed, "name": name, "start": start})
        if self.early_stopping is None or draft.probe.frame_steps is None:
            return draft
        # Runs are scored at frames.
        frames = sorted({*draft.probe.frame_steps, *self.early_stopping.looks(_steps(draft))})
        return changed(draft, {"probe.frame_steps": frames})

    def check_early_stopping(self) -> None:
        """Raises: ConfigError where every run ends before runs are compared for the first time."""
        if self.early_stopping is None:
            return
        longest = 0
        for cell in self.cells:
            with suppress(ConfigError):  # a cell whose settings do not go together is left out, and said elsewhere
                longest = max(longest, _steps(self.draft(cell, self.seeds[0])))
        if longest and not self.early_stopping.looks(longest):
            raise ConfigError(
                Message("first comparison at step"),
                self.early_stopping.grace_steps,
                "the longest run takes {steps}, so none could end early: give fewer, or leave it out.",
                steps=Message("{count} step", "{count} steps", count=longest),
            )

    def check_levels(self) -> None:
        """Refuse a level that can be used neither by itself nor in any cell, such as a number out of range.

        One that fits some cells is no mistake: the others are left out.

        Raises: ConfigError.
        """
        for cell in (*self.source_cells, *(cell for cell in self.cells if cell.levels is None)):
            self.draft(cell, self.seeds[0])
        for place, axis in enumerate(self.axes):
            for number, level in enumerate(axis.levels):
                try:
                    changed(self.base, {name: value for name, value in level.settings.items() if name != START})
                except ConfigError:
                    if not any(self._fits(cell) for cell in self.cells if cell.levels and cell.levels[place] == number):
                        raise

    def _fits(self, cell: Cell) -> bool:
        """Return whether a cell's settings go together."""
        try:
            self.draft(cell, self.seeds[0])
        except ConfigError:
            return False
        return True

    def source_of(self, cell: Cell) -> str | None:
        """The label of the source that a cell's runs start from."""
        named = [level.settings[START] for level in self.levels_of(cell) if level.settings.get(START)]
        return named[-1] if named else None

    def baseline_of(self, cell: Cell) -> Cell | None:
        """What a cell is compared with; None for what is itself compared with."""
        if self.reference is not None:
            return None if cell.levels is None else self.cells[-1]
        if not self.baseline or cell.levels is None:
            return None
        wanted = tuple(
            [one.label for one in axis.levels].index(self.baseline[axis.name]) if axis.name in self.baseline else level
            for axis, level in zip(self.axes, cell.levels, strict=True)
        )
        return None if wanted == cell.levels else next(one for one in self.cells if one.levels == wanted)

    def revised(self, **fields: Any) -> Design:
        """The same with some fields changed. Raises: ConfigError."""
        return build(Design, self.model_dump(mode="json") | fields)

    def to_json(self) -> str:
        """The one JSON form, with sorted keys."""
        plain = self.model_dump(mode="json")
        if self.early_stopping is None:
            del plain["early_stopping"]  # as designs were written before
        return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def _steps(draft: RunConfig) -> int:
    return sum(phase.steps or DEFAULT_STEPS for phase in draft.phases)


@in_language(ENGLISH)
def axis_of(setting: str, values: Iterable[Any], base: RunConfig | None = None) -> Axis:
    """An axis over one setting: its name and its levels' labels are those that people know it by, in English.

    Args:
        base: whose losses have the setting, where it is one of theirs.
    Raises: ConfigError for values that are no list of different ones.
    """
    base = base or RunConfig()
    name, parameter = _name_of(setting, base), parameter_of(setting, base)
    levels = [{"label": value_text(value, parameter)[:LABEL_CHARS], "settings": {setting: value}} for value in values]
    return build(Axis, {"name": name, "levels": levels})


@in_language(ENGLISH)
def grid_name(base: RunConfig, axes: Sequence[Axis]) -> str:
    """A name for an experiment, in English: its axes or its losses, and the task."""
    varied = " × ".join(axis.name for axis in axes) or objective_label(base)
    return f"{varied}, {task_label(base)}"[:RUN_NAME_CHARS]


def axis_title(axis: Axis, base: RunConfig) -> str:
    """An axis's name in the language that is spoken.

    Args:
        base: of the design, whose phases and losses are in the names of their settings.
    """
    title = _spoken(axis.name)
    settings = {setting for level in axis.levels for setting in level.settings}
    if title != axis.name or language() == ENGLISH or len(settings) != 1:
        return title
    [setting] = settings
    stored = in_language(ENGLISH)(_name_of)(setting, base)
    return _name_of(setting, base) if stored == axis.name else title


def _name_of(setting: str, base: RunConfig) -> str:
    """What an axis over a setting is called."""
    parameter = parameter_of(setting, base)
    return (NAMED.get(setting) or (parameter.label if parameter else setting))[:LABEL_CHARS]


def parameter_of(setting: str, base: RunConfig) -> Parameter | None:
    """What a setting is for people; None for one that is not known by a label."""
    varied = sweepable(base)
    path = setting if setting.partition(".")[0] not in PhaseConfig.model_fields else f"phases.0.{setting}"
    known = varied.get(re.sub(r"^phases\.(\d)\.objective\.terms\.(\d+)\.", lambda found: _by_key(found, base), path))
    return known.parameter if known else field_at(RunConfig, setting)


def _by_key(found: re.Match[str], base: RunConfig) -> str:
    """The path of a term by its key instead of its number."""
    phase, term = int(found[1]), int(found[2])
    keys = base.phases[phase].objective.keys if phase < len(base.phases) else ()
    return f"phases.{phase}.objective.terms.{keys[term]}." if term < len(keys) else found[0]


def parse_design(given: Mapping[str, Any] | str) -> Design:
    """A design from its JSON form. Raises: ConfigError with one sentence for the first thing that is wrong."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise not_json("design", error, Message("give one JSON object.")) from None
    return build(Design, given)


def _spoken(name: str) -> str:
    """A name in the language that is spoken, where it is one of the project's own."""
    text = _(name)
    return name if "{" in text else text  # the noun of a number has a place for it


def _any_of(names: Iterable[str]) -> Text:
    return listed(names) or Message("there is none")


def _check_distinct(field: Text, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(field, twice, "it is there twice; leave one of them out.")
