"""Commands for experiments: run a grid from a file or a protocol by name, and show results."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import yaml
from tqdm import tqdm

from core.atomic import atomic_write
from core.cli.options import (
    Command,
    json_option,
    print_json,
    runs_option,
    say,
    task_fields,
    whole_model,
    whole_path,
    with_whole_paths,
)
from core.config import RunConfig, parse_config
from core.config.edit import LAMBDA, TEMPERATURE, apply_settings, parse_setting
from core.config.fields import build
from core.errors import ConfigError
from core.events import TEST, VALIDATION
from core.experiments.cost import cost
from core.experiments.design import Axis, Design, Level, axis_of
from core.experiments.lifecycle import Experiments, is_over
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import report_html
from core.experiments.result_table import SUFFIXES, Format, cautions, findings, notes, table_text
from core.experiments.results import MEASURES, OF_VECTORS, SPLITS, Results, results, usual_measure
from core.experiments.surface import LEVELS, SIDES, full_runs, summarise, surface_design
from core.experiments.vectors import job as measure_vectors
from core.experiments.vectors import vectors_request
from core.messages import ngettext
from core.store import Experiment, Status, Store, TaskLibrary
from core.store.sizes import size_text
from core.workers import build_engine
from core.workers.run_rows import TaskSource

POLL_S = 0.5
EXIT_FAILED = 1
# Settings that name a file or a folder.
PATHS = {"task.path": whole_path, "task.test_path": whole_path, "encoder.id": whole_model}
# Suffix of a file for the complete report.
REPORT = "html"

# The options of a command that shows results.
SHOWN = (
    runs_option,
    click.option(
        "--measure", type=click.Choice(list(MEASURES)), help="Measure to show. [default: the protocol's, else accuracy]"
    ),
    click.option(
        "--split", type=click.Choice(list(SPLITS)), help="Split to score. [default: the protocol's, else test]"
    ),
    click.option(
        "--output",
        metavar="FILE",
        help=f"Write the table ({', '.join(SUFFIXES.values())}) or the whole report ({REPORT}) to a file.",
    ),
    json_option,
)


def shown_options(command: Command) -> Command:
    """Add the options of `SHOWN` in their order."""
    for option in reversed(SHOWN):
        command = option(command)
    return command


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@shown_options
def sweep(file: Path, folder: Path, **shown: Any) -> None:
    """Run the experiment described in a YAML FILE, and follow it to its end.

    Running the same file again resumes the experiment; existing runs are not repeated.
    """
    design = _design(file)  # before the store is opened, so that an invalid file leaves nothing behind
    _run(Experiments(build_engine(Store(folder))), design, **shown)


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--seeds", type=int, help="Number of seeds. [default: as many as can show a difference, at least 5]")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Setting of every run, as in `fit --set`; repeatable.",
)
@shown_options
def protocol(name: str, seeds: int | None, settings: tuple[str, ...], folder: Path, **shown: Any) -> None:
    """Run a protocol from a paper or the notes, and follow it to its end; `protocols` lists the names."""
    entry = PROTOCOLS.entry(name)
    base = apply_settings(entry.base, dict(parse_setting(setting) for setting in settings))
    design = entry.design(with_whole_paths(base))
    if seeds is not None:
        design = design.revised(seeds=seeds)
    _run(Experiments(build_engine(Store(folder))), design, **shown)


@click.command()
@click.option("--task", metavar="NAME_OR_FILE", help="As in `fit`. [default: film_reviews]")
@click.option("--x", "first", default=TEMPERATURE, help="First setting, with values if need be: temperature=0.05,0.2.")
@click.option("--y", "second", default=LAMBDA, help="Second setting, likewise.")
@click.option("--size", type=click.IntRange(*SIDES), default=3, help="Number of values of τ and λ without values.")
@click.option("--seeds", type=click.IntRange(1, 5), default=1, help="Number of seeds.")
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="As in `fit --set`; repeatable.")
@runs_option
@json_option
def surface(
    task: str | None,
    first: str,
    second: str,
    size: int,
    seeds: int,
    settings: tuple[str, ...],
    folder: Path,
    as_json: bool,
) -> None:
    """Train all cells of a grid over two settings at once, for few steps on few rows."""
    fields = task_fields(task, TaskLibrary(folder))
    draft = with_whole_paths(apply_settings(parse_config({"task": fields}), dict(map(parse_setting, settings))))
    axes = [_axis(given, size, draft) for given in (first, second)]
    data = TaskSource(folder)(draft.task, draft.seed)
    design = surface_design(draft, data, axes, range(seeds))
    found = Experiments(build_engine(Store(folder)))
    experiment_id = _carry_out(found, design)
    runs = found.table.runs(experiment_id)
    if full := full_runs(found.engine, design):
        measure_vectors(vectors_request(experiment_id, full), folder, lambda *_: None)
    summary = summarise(found.engine.store, design, runs, full)
    if as_json:
        said = {"sentences": [str(one) for one in summary.sentences], "rank_correlations": summary.ranks}
        print_json({"id": experiment_id, "cells": summary.scores, **said})
        return
    say(
        table_text(results(found.engine.store, experiment_id, design, measure="accuracy", split=VALIDATION), "markdown")
    )
    for sentence in summary.sentences:
        say(sentence)


def _axis(given: str, size: int, draft: RunConfig) -> Axis:
    """Return the axis of an option, `setting` or `setting=value,value`. Raises: ConfigError."""
    setting, _equals, values = given.partition("=")
    if values:
        return axis_of(setting, [yaml.safe_load(value) for value in values.split(",")], draft)
    if setting not in LEVELS:
        raise ConfigError("setting", setting, "give its values, such as {example}.", example=f"{setting}=0.1,0.5")
    return axis_of(setting, LEVELS[setting][size], draft)


@click.command()
@json_option
def protocols(as_json: bool) -> None:
    """List the protocols."""
    if as_json:
        listed = [{"name": one.name, "question": one.question, "source": one.source} for one in PROTOCOLS.values()]
        print_json({"protocols": listed})
        return
    width = max(map(len, PROTOCOLS))
    for entry in PROTOCOLS.values():
        say(f"{entry.name:<{width}}  {entry.question} {ngettext('{count} run', '{count} runs', entry.design().runs)}.")


@click.group()
def experiments() -> None:
    """List, show, stop, resume and rename experiments."""


@experiments.command("list")
@runs_option
@json_option
def list_command(folder: Path, as_json: bool) -> None:
    """List the experiments, newest first."""
    found = Experiments(build_engine(Store(folder)))
    listed = []
    for one in found.table.experiments():
        runs = found.table.runs(one.id)
        finished = sum(run.status == Status.FINISHED for run in runs)
        total = found.design(one.id).runs
        listed.append({"id": one.id, "number": one.number, "name": one.title, "finished": finished, "runs": total})
    if as_json:
        print_json({"experiments": listed})
        return
    if not listed:
        say("No experiments yet: start one with `python -m core protocol few-shot`, or a file and `sweep`.")
    for one_listed in listed:
        say("{number:>5}  {id}  {finished:>5}/{runs:<5}  {name}".format(**one_listed))


@experiments.command()
@click.argument("experiment")
@shown_options
def show(experiment: str, folder: Path, **shown: Any) -> None:
    """Show the results of an experiment so far."""
    found = Experiments(build_engine(Store(folder)))
    _show(found, found.table.find(experiment), **shown)


@experiments.command()
@click.argument("experiment")
@runs_option
@json_option
def stop(experiment: str, folder: Path, as_json: bool) -> None:
    """Stop an experiment and the runs that it started."""
    found = Experiments(build_engine(Store(folder)))
    experiment_id = found.table.find(experiment)
    count = found.stop(experiment_id)
    title = found.table.experiment(experiment_id).title
    if as_json:
        print_json({"id": experiment_id, "name": title, "stopped": count})
        return
    say(f"Stopped {title} and {ngettext('{count} run', '{count} runs', count)} of it.")


@experiments.command()
@click.argument("experiment")
@click.option("--more-seeds", type=int, default=0, metavar="N", help="Give every cell N more seeds.")
@shown_options
def resume(experiment: str, more_seeds: int, folder: Path, **shown: Any) -> None:
    """Resume a stopped experiment, and follow it to its end."""
    found = Experiments(build_engine(Store(folder)))
    experiment_id = found.table.find(experiment)
    if more_seeds:
        found.add_seeds(experiment_id, more_seeds)
    found.resume(experiment_id)
    _follow(found, experiment_id)
    _show(found, experiment_id, **shown)


@experiments.command()
@click.argument("experiment")
@click.argument("name")
@runs_option
def rename(experiment: str, name: str, folder: Path) -> None:
    """Rename an experiment to NAME; an empty NAME restores the default."""
    found = Experiments(build_engine(Store(folder)))
    experiment_id = found.table.find(experiment)
    found.table.rename(experiment_id, name)
    say(f"Experiment {experiment_id} is called {found.table.experiment(experiment_id).title}.")


def _design(file: Path) -> Design:
    """Read a design from a YAML file. Raises: ConfigError for a file that cannot be read or is not a design."""
    try:
        given = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise ConfigError("file", str(file), f"{reason}; give a YAML file.") from None
    if not isinstance(given, dict):
        raise ConfigError("file", str(file), "give a YAML file with base, axes and seeds.")
    design = build(Design, given)
    axes = [axis.model_copy(update={"levels": tuple(map(_whole_level, axis.levels))}) for axis in design.axes]
    # Relative paths of files and folders are resolved against the working directory.
    design = design.model_copy(
        update={
            "base": with_whole_paths(design.base),
            "axes": tuple(axes),
            "reference": design.reference and _whole_level(design.reference),
            "sources": tuple(map(_whole_level, design.sources)),
        }
    )
    design.check_levels()
    return design


def _whole_level(level: Level) -> Level:
    whole = {
        name: PATHS[name](value) if name in PATHS and isinstance(value, str) else value
        for name, value in level.settings.items()
    }
    return level.model_copy(update={"settings": whole})


def _run(found: Experiments, design: Design, **shown: Any) -> None:
    estimated = cost(found.engine, design)
    for title, reason in estimated.refused:
        say(f"Skipped {title}: {reason}", err=True)
    seconds = timedelta(seconds=round(estimated.seconds))
    runs = ngettext("{count} run", "{count} runs", estimated.runs)
    say(
        f"{runs}; the new ones take about {seconds} in sequence and {size_text(estimated.disk_bytes)} on disk.",
        err=True,
    )
    experiment_id = _carry_out(found, design)
    _show(found, experiment_id, **shown)


def _carry_out(found: Experiments, design: Design) -> str:
    """Begin or resume the experiment of a design and follow it to its end. Returns: its id."""
    found.engine.warm_up()
    experiment_id = found.table.with_design(design.to_json())
    if experiment_id is None:
        experiment_id = found.begin(design)
    else:
        found.resume(experiment_id)
    _follow(found, experiment_id)
    return experiment_id


def _follow(found: Experiments, experiment_id: str) -> None:
    """Show a progress bar until every run has ended. Ctrl-C stops the experiment; the same command resumes it."""
    experiment = found.table.experiment(experiment_id)
    design = found.design(experiment_id)
    say(f"{experiment.title} ({experiment_id}) in {found.engine.store.folder}", err=True)
    with tqdm(total=design.runs, unit="run", disable=not sys.stderr.isatty()) as bar:
        while True:
            try:
                runs = found.table.runs(experiment_id)
                ended = sum(run.ended for run in runs)
                bar.update(ended - bar.n)
                experiment = found.table.experiment(experiment_id)
                if is_over(design, runs) or (not experiment.wanted and all(run.ended for run in runs)):
                    return
                found.revive(experiment, design, runs)
                found.engine.dispatch()
                time.sleep(POLL_S)
            except KeyboardInterrupt:
                say("Stopping. Repeat the command to resume.", err=True)
                found.stop(experiment_id)


def _show(
    found: Experiments,
    experiment_id: str,
    *,
    measure: str | None,
    split: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Print or write the table. Exit with status 1 if a run has failed."""
    experiment, design = found.table.experiment(experiment_id), found.design(experiment_id)
    protocol = PROTOCOLS.get(design.protocol)
    measure = measure or (protocol.measure if protocol else usual_measure(design))
    split = split or (protocol.split if protocol else TEST)
    if measure in OF_VECTORS:
        measure_vectors(vectors_request(experiment_id), found.engine.store.folder, lambda *_: None)
    shown = results(found.engine.store, experiment.id, design, measure=measure, split=split)
    if output is not None:
        _write(Path(output), experiment, shown)
    if as_json:
        print_json(_json(experiment_id, experiment.title, shown))
    else:
        say(table_text(shown, "markdown"))
        for note in (*findings(shown), *cautions(shown), *notes(shown)):
            say(note)
    failed = [run for cell in shown.cells for run in cell.runs if run.status == Status.FAILED]
    for run in failed:
        say(f"Run {run.number} failed: {run.message}", err=True)
    if failed:
        sys.exit(EXIT_FAILED)


def _write(path: Path, experiment: Experiment, shown: Results) -> None:
    by_suffix: dict[str, Format] = {suffix: form for form, suffix in SUFFIXES.items()}
    suffix = path.suffix.removeprefix(".")
    if suffix not in (*by_suffix, REPORT):
        raise ConfigError("output", str(path), f"give a file that ends in {', '.join([*by_suffix, REPORT])}.")
    text = report_html(experiment, shown) if suffix == REPORT else table_text(shown, by_suffix[suffix])
    try:
        with atomic_write(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError("output", str(path), f"{error.strerror}; give a file that can be written.") from None


def _json(experiment_id: str, title: str, shown: Results) -> dict[str, Any]:
    cells = []
    for cell in shown.cells:
        made: dict[str, Any] = {"cell": cell.title, "scores": cell.scores, "mean": cell.mean, "std": cell.std}
        made |= {"linear_probe": cell.reference.probe, "majority_rate": cell.reference.majority}
        if cell.comparison is not None:
            of = cell.comparison.difference
            made["difference"] = {
                "against": shown.cells[cell.comparison.baseline].title,
                "mean": of.mean,
                "interval": [of.low, of.high],
                "p": of.p,
                "p_holm": cell.comparison.corrected_p,
                "verdict": cell.comparison.verdict,
                "seeds_needed": cell.comparison.seeds_needed,
            }
        cells.append(made)
    axes = shown.design.axes
    effects = {
        axes[effect.axis].name: dict(zip([one.label for one in axes[effect.axis].levels], effect.means, strict=True))
        for effect in shown.main_effects
    }
    found = {"id": experiment_id, "name": title, "measure": shown.measure.name, "split": shown.split}
    return found | {"cells": cells, "main_effects": effects}
