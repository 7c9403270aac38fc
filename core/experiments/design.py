"""The design of an experiment: a base draft, the varied settings and the seeds, with one JSON form."""

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
from core.config.edit import LAMBDA, PRESET, TEMPERATURE, apply_settings
from core.config.fields import Section, build, field_at, not_json, setting
from core.config.run import MAX_STEPS
from core.config.vary import OBJECTIVE, sweepable
from core.errors import ConfigError
from core.messages import ENGLISH, N_, Message, Text, _, in_language, join_list, language
from core.parameters import Parameter, did_you_mean
from core.tasks.registry import task_label

MOST_AXES, MOST_LEVELS, MOST_SEEDS, MOST_RUNS = 3, 60, 100, 2_000
LABEL_CHARS = 60
RUN_NAME_CHARS = 80
# The first seed if a design gives only the number of seeds.
FIRST_SEED = 0
# Runs of an experiment store only the first and last frame and no snapshots, because frames and snapshots take most of
# a short run's time and disk space. Scores are not affected.
LEAN: Mapping[str, Any] = {"probe.frame_steps": [], "checkpoint.snapshot_steps": []}
# Name of the setting in a level that names a source.
START = "start"
# Keys that an axis in a file may have instead of name and levels.
IN_FILE = ("setting", "values")
# Labels of settings that are not fields.
NAMED = {PRESET: OBJECTIVE.label, LAMBDA: N_("Weight λ"), TEMPERATURE: N_("Temperature τ")}


class Level(Section):
    """One value of an axis, or several settings that change together."""

    label: Annotated[str, Field(min_length=1, max_length=LABEL_CHARS)]
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """The translated label. A level without settings is a user's run, whose name is not translated."""
        return _spoken(self.label) if self.settings else self.label


class Axis(Section):
    """A varied setting and its levels. In a file, `setting` and `values` may replace name and levels."""

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
    """End poor runs early by asynchronous successive halving (ASHA) on validation accuracy.

    Source: Li et al. 2020, arXiv:1810.05934.
    """

    grace_steps: int = setting(
        20, N_("First rung at step"), N_("No run ends earlier."), unit=N_("steps"), ge=1, le=MAX_STEPS
    )
    reduction: int = setting(
        3,
        N_("Reduction factor"),
        N_("At 3, about one run in three continues from each rung, and rungs are at 1, 3, 9, … times the first step."),
        ge=2,
        le=10,
    )

    def rung_steps(self, steps: int) -> list[int]:
        """Return the steps before the last at which runs are compared."""
        found, step = [], self.grace_steps
        while step < steps:
            found.append(step)
            step *= self.reduction
        return found


class Cell(NamedTuple):
    """One combination of levels. Its `number` is stable as long as the axes do not change.

    Attributes:
        levels: level numbers, one per axis; None for the reference and for sources, which lie outside the grid.
    """

    number: int
    levels: tuple[int, ...] | None


class Design(Section):
    """The runs of an experiment: every combination of the axes' levels, and the reference, under every seed.

    Attributes:
        protocol: name of the protocol that created it; "" for a grid.
        base: the draft that levels modify.
        seeds: the seeds of the runs; a file may give their number n instead, for seeds 0 to n − 1.
        baseline: by axis name, a level label. Each cell is compared with the cell that has these levels instead.
        reference: an extra cell outside the grid; if set, all cells are compared with it.
        sources: runs that others start from, one per seed; a level's setting `start` names one by its label.
        early_stopping: rule that ends poor runs early; None if all runs are completed.
        full: for a surface, the draft that *Train in full* trains with the settings of a cell.
    """

    version: Literal[1] = 1
    name: Annotated[str, Field(max_length=80)] = ""
    protocol: Annotated[str, Field(max_length=40)] = ""
    base: RunConfig = apply_settings(RunConfig(), LEAN)
    axes: Annotated[tuple[Axis, ...], Field(max_length=MOST_AXES)] = ()
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, le=LARGEST_SEED)], ...], Field(min_length=1, max_length=MOST_SEEDS)
    ] = (FIRST_SEED,)
    baseline: dict[str, str] = Field(default_factory=dict)
    reference: Level | None = None
    sources: Annotated[tuple[Level, ...], Field(max_length=MOST_AXES)] = ()
    early_stopping: EarlyStopping | None = None
    full: Annotated[RunConfig | None, Field(exclude_if=lambda draft: draft is None)] = None

    @field_validator("base", mode="before")
    @classmethod
    def _of_settings(cls, given: Any) -> Any:
        """Accept a file that lists only settings that differ from the defaults, which include LEAN."""
        if not isinstance(given, dict) or "phases" in given or "version" in given:
            return given
        return apply_settings(RunConfig(), {**LEAN, **given})

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
        """Accept a file that names a level by its value."""
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
        """Number of levels of each axis."""
        return tuple(len(axis.levels) for axis in self.axes)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All combinations, with the last axis varying fastest, then the reference."""
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
        """True if cells are compared with a baseline or a reference."""
        return bool(self.baseline) or self.reference is not None

    def levels_of(self, cell: Cell) -> list[Level]:
        """Return a cell's levels, one per axis; a source or the reference is its own single level."""
        if cell.number < 0:
            return [self.sources[-1 - cell.number]]
        if cell.levels is None:
            assert self.reference is not None
            return [self.reference]
        return [axis.levels[level] for axis, level in zip(self.axes, cell.levels, strict=True)]

    @in_language(ENGLISH)
    def title_of(self, cell: Cell) -> str:
        """Return the English title of a cell: "CE + SCL, τ 0.3"; "all runs" for a design without axes.

        It names runs in every language; `spoken_title` is for display.
        """
        return self.spoken_title(cell)

    def spoken_title(self, cell: Cell) -> str:
        """Return the title of a cell in the user's language."""
        levels = self.levels_of(cell)
        if cell.levels is None:
            return levels[0].title
        named = []
        for axis, level in zip(self.axes, levels, strict=True):
            # A number gets the symbol of its axis, if it has one, or the axis title.
            symbol = last if len(last := axis.name.rsplit(maxsplit=1)[-1]) == 1 else axis_title(axis, self.base)
            named.append(f"{symbol} {level.title}" if level.label[0].isdigit() else level.title)
        return join_list(named) or _("all runs")

    def draft(self, cell: Cell, seed: int, sources: Mapping[str, str] = MappingProxyType({})) -> RunConfig:
        """Return the draft of one run.

        Args:
            sources: ids of the source runs under this seed, by label. Without one, the draft starts from the
                pre-trained encoder.
        Raises: ConfigError if the cell's settings are incompatible.
        """
        settings = {name: value for level in self.levels_of(cell) for name, value in level.settings.items()}
        start = sources.get(settings.pop(START, None) or "")
        name = f"{self.title_of(cell)}, seed {seed}"[-RUN_NAME_CHARS:]
        draft = apply_settings(self.base, settings | {"seed": seed, "name": name, "start": start})
        if (
            self.full is not None and TEMPERATURE in settings and draft.phases[0].objective.weight == 0
        ):  # τ then changes nothing
            draft = apply_settings(draft, {TEMPERATURE: self.base.phases[0].objective.temperature})
        if self.early_stopping is None or draft.probe.frame_steps is None:
            return draft
        # Runs are scored at frames.
        frames = sorted({*draft.probe.frame_steps, *self.early_stopping.rung_steps(_steps(draft))})
        return apply_settings(draft, {"probe.frame_steps": frames})

    def check_early_stopping(self) -> None:
        """Check that at least one run reaches the first rung. Raises: ConfigError."""
        if self.early_stopping is None:
            return
        longest = 0
        for cell in self.cells:
            with suppress(ConfigError):  # cells with incompatible settings are reported elsewhere
                longest = max(longest, _steps(self.draft(cell, self.seeds[0])))
        if longest and not self.early_stopping.rung_steps(longest):
            raise ConfigError(
                Message("first rung at step"),
                self.early_stopping.grace_steps,
                "the longest run has {steps}, so none could end early: give a smaller number, or leave it out.",
                steps=Message("{count} step", "{count} steps", count=longest),
            )

    def check_levels(self) -> None:
        """Reject a level that is invalid both by itself and in every cell, such as a number out of range.

        A level that is valid in some cells is accepted; the other cells are left out.

        Raises: ConfigError.
        """
        for cell in (*self.source_cells, *(cell for cell in self.cells if cell.levels is None)):
            self.draft(cell, self.seeds[0])
        for place, axis in enumerate(self.axes):
            for number, level in enumerate(axis.levels):
                try:
                    apply_settings(self.base, {name: value for name, value in level.settings.items() if name != START})
                except ConfigError:
                    for cell in (cell for cell in self.cells if cell.levels and cell.levels[place] == number):
                        with suppress(ConfigError):
                            self.draft(cell, self.seeds[0])
                            break
                    else:
                        raise

    def baseline_of(self, cell: Cell) -> Cell | None:
        """Return the cell that a cell is compared with; None for a baseline or the reference itself."""
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
        """Return a copy with some fields changed. Raises: ConfigError."""
        return build(Design, self.model_dump(mode="json") | fields)

    def to_json(self) -> str:
        """Return the canonical JSON form, with sorted keys."""
        plain = self.model_dump(mode="json")
        if self.early_stopping is None:
            del plain["early_stopping"]  # older designs lack the field
        return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def _steps(draft: RunConfig) -> int:
    return sum(phase.steps or DEFAULT_STEPS for phase in draft.phases)


@in_language(ENGLISH)
def axis_of(setting: str, values: Iterable[Any], base: RunConfig | None = None) -> Axis:
    """Return an axis over one setting, with its display name and level labels in English.

    Args:
        base: the draft whose losses define the setting, if a loss does.
    Raises: ConfigError if the values are not a list of distinct values.
    """
    base = base or RunConfig()
    name, parameter = _name_of(setting, base), parameter_of(setting, base)
    levels = [{"label": value_text(value, parameter)[:LABEL_CHARS], "settings": {setting: value}} for value in values]
    return build(Axis, {"name": name, "levels": levels})


@in_language(ENGLISH)
def grid_name(base: RunConfig, axes: Sequence[Axis]) -> str:
    """Return an English name for an experiment: its axes (its losses if it has none) and the task."""
    varied = " × ".join(axis.name for axis in axes) or objective_label(base)
    return f"{varied}, {task_label(base)}"[:RUN_NAME_CHARS]


def axis_title(axis: Axis, base: RunConfig) -> str:
    """Return an axis's name in the user's language.

    Args:
        base: the design's draft; names of settings depend on its phases and losses.
    """
    title = _spoken(axis.name)
    settings = {setting for level in axis.levels for setting in level.settings}
    if title != axis.name or language() == ENGLISH or len(settings) != 1:
        return title
    [setting] = settings
    stored = in_language(ENGLISH)(_name_of)(setting, base)
    return _name_of(setting, base) if stored == axis.name else title


def _name_of(setting: str, base: RunConfig) -> str:
    """Return the name of an axis over a setting."""
    parameter = parameter_of(setting, base)
    return (NAMED.get(setting) or (parameter.label if parameter else setting))[:LABEL_CHARS]


def parameter_of(setting: str, base: RunConfig) -> Parameter | None:
    """Return the parameter that describes a setting; None if it has no label."""
    varied = sweepable(base)
    path = setting if setting.partition(".")[0] not in PhaseConfig.model_fields else f"phases.0.{setting}"
    known = varied.get(re.sub(r"^phases\.(\d)\.objective\.terms\.(\d+)\.", lambda found: _by_key(found, base), path))
    return known.parameter if known else field_at(RunConfig, setting)


def _by_key(found: re.Match[str], base: RunConfig) -> str:
    """Return the path of a term, with the term's number replaced by its key."""
    phase, term = int(found[1]), int(found[2])
    keys = base.phases[phase].objective.keys if phase < len(base.phases) else ()
    return f"phases.{phase}.objective.terms.{keys[term]}." if term < len(keys) else found[0]


def parse_design(given: Mapping[str, Any] | str) -> Design:
    """Parse a design from its JSON form. Raises: ConfigError for the first problem."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise not_json("design", error, Message("give one JSON object.")) from None
    return build(Design, given)


def _spoken(name: str) -> str:
    """Return a name in the user's language, if it is a name from the project."""
    text = _(name)
    return name if "{" in text else text  # the translation is a counted noun with a placeholder


def _any_of(names: Iterable[str]) -> Text:
    return join_list(names) or Message("there is no such run")


def _check_distinct(field: Text, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(field, twice, "it occurs twice; remove one.")
