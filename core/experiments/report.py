"""A report on an experiment, as one self-contained HTML page without scripts."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core import __version__
from core.artifacts.seeds import TIE
from core.config import RunConfig
from core.config.describe import settings
from core.experiments.design import Axis, Cell, axis_title
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.result_table import SHARES, cautions, findings, notes, score_name, strokes_text, table_rows, unit
from core.experiments.results import Results
from core.figures.interval_chart import IntervalRow, interval_chart
from core.figures.level_curves import LevelPanel, level_curves
from core.figures.template import Figure
from core.messages import _, join_list, language, ngettext
from core.quantities import day_text
from core.store import Experiment, Status

# Settings that are listed even at their defaults.
ALWAYS = frozenset(
    {
        "task.train_size",
        "encoder.id",
        "encoder.pooling",
        "encoder.max_length",
        "phases.0.optimiser.classifier_learning_rate",
        "device",
        "precision",
    }
)
TEMPLATE = Path(__file__).resolve().parents[2] / "assets" / "report.html"


def report_html(experiment: Experiment, results: Results, config: RunConfig | None = None) -> str:
    """Return the report in the user's language. The template escapes untrusted text.

    Args:
        config: the effective config of a run, whose settings are listed; the design's base if None.
    """
    design = results.design
    protocol = PROTOCOLS.get(design.protocol)
    header, rows = table_rows(results)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals["_"] = _
    return environment.get_template(TEMPLATE.name).render(
        language=language(),
        title=experiment.title,
        created=day_text(experiment.created_at),
        question=_(protocol.question) if protocol else "",
        source=_(protocol.source) if protocol else "",
        sentences=[*summary(results), *findings(results)],
        header=header,
        rows=rows,
        chart=Markup(chart(results)),  # noqa: S704 its labels are escaped where it is made
        strokes=strokes_text(results),
        notes=[*cautions(results), *notes(results)],
        published=protocol.published if protocol else (),
        differs=_(protocol.differs) if protocol else "",
        axes=[(axis_title(axis, design.base), join_list(level.title for level in axis.levels)) for axis in design.axes],
        seeds=join_list(map(str, design.seeds)),
        settings=[(one.label, one.text) for one in settings(config or design.base) if one.listed or one.path in ALWAYS],
        runs=[
            {
                "cell": cell.title,
                "seed": run.seed,
                "run": run.number or "–",
                "id": run.run_id or "–",
                "status": _(str(run.status)) if run.status else _("not created"),
                "score": f"{cell.scores[run.seed]:.4f}" if run.seed in cell.scores else "–",
            }
            for cell in results.cells
            for run in cell.runs
        ],
        design=json.dumps(design.model_dump(mode="json"), indent=2, ensure_ascii=False),
        made_with=f"SCL Playground {__version__}, torch {version('torch')}, transformers {version('transformers')}, "
        f"Python {platform.python_version()}",
        measure=score_name(results),
    )


def summary(results: Results) -> Iterator[str]:
    """Yield the results as sentences, including comparisons that show no difference."""
    finished = sum(run.status == Status.FINISHED for cell in results.cells for run in cell.runs)
    runs = ngettext("{count} run", "{count} runs", results.design.runs)
    yield _("{finished} of {runs} have finished.", finished=f"{finished:,}", runs=runs)
    compared = [(cell.title, cell.comparison) for cell in results.cells if cell.comparison is not None]
    shown = [(title, one) for title, one in compared if one.verdict != "no difference shown"]
    if compared and not shown and results.over_seeds:
        number = ngettext("{count} comparison", "{count} comparisons", len(compared))
        yield _("{comparisons}: no difference is significant at the 5% level (Holm).", comparisons=number)
    for title, one in shown:
        against = results.cells[one.baseline].title
        if one.verdict == "higher":
            yield _("{cell} is higher than {baseline}.", cell=title, baseline=against)
        else:
            yield _("{cell} is lower than {baseline}.", cell=title, baseline=against)
    rest = len(compared) - len(shown)
    if shown and rest:
        yield ngettext(
            "The other {count} comparison is not significant.",
            "The other {count} comparisons are not significant.",
            rest,
        )


def chart(results: Results) -> str:
    """Return the scores and the difference of every cell as an SVG."""
    rows = []
    for cell in results.cells:
        found = cell.comparison.difference if cell.comparison else None
        rows.append(
            IntervalRow(
                cell.title,
                tuple(cell.scores.values()),
                found.mean if found else None,
                found.low if found else None,
                found.high if found else None,
                shown=cell.comparison is not None and cell.comparison.verdict != "no difference shown",
                worse=found is not None and results.is_worse(found.mean),
                probe=cell.reference.probe,
                majority=cell.reference.majority,
            )
        )
    percent = results.measure.name in SHARES
    return interval_chart(rows, score=score_name(results), unit=unit(results), percent=percent)


def levels_figure(measured: Sequence[Results]) -> Figure | None:
    """Draw measures against the first setting whose levels are numbers, with a line for each level of the other one.

    Returns: None if no setting is numeric, if there are more than two, or without a score.
    """
    design = measured[0].design
    numbers = [_numbers(axis) for axis in design.axes]
    if len(design.axes) > 2 or not any(numbers):
        return None
    across, levels = next((place, values) for place, values in enumerate(numbers) if values)
    [setting] = {name for level in design.axes[across].levels for name in level.settings}
    others = tuple(axis for axis in design.axes if axis is not design.axes[across])
    lines = design.model_copy(update={"axes": others})
    names = [lines.spoken_title(Cell(at, (at,))) for axis in others for at in range(len(axis.levels))] or [""]
    panels = []
    for results in measured:
        grid = np.array([cell for cell in results.cells if cell.cell.levels is not None], object).reshape(design.shape)
        rows = np.moveaxis(grid, across, -1).reshape(-1, len(levels))
        if all(cell.mean is None for cell in rows.flat):
            continue
        probes = [cell.reference.probe for cell in rows.flat if cell.reference.probe is not None]
        # The levels of a setting such as training rows have different probes.
        references = {_("probe before training"): probes[0]} if probes and max(probes) - min(probes) < TIE else {}
        references |= {
            cell.title: cell.mean for cell in results.cells if cell.cell.levels is None and cell.mean is not None
        }
        panels.append(
            LevelPanel(
                score_name(results),
                [[cell.mean for cell in row] for row in rows],
                [[cell.std for cell in row] for row in rows],
                references,
                results.measure.name in SHARES,
            )
        )
    if not panels:
        return None
    log = setting.endswith(("temperature", "rate")) and min(levels) > 0
    heading = axis_title(design.axes[across], design.base)
    return level_curves(panels, levels, names, heading, log=log)


def _numbers(axis: Axis) -> list[float]:
    """Return the level values of a numeric setting; empty if they are not numbers."""
    values = [value for level in axis.levels for value in level.settings.values()]
    whole = len(values) == len(axis.levels) and all(type(value) in (int, float) for value in values)
    return values if whole else []
