"""Commands for tasks: add a file or a Hub data set, list, rename, delete."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click
from tqdm import tqdm

from core.cli.options import (
    COLUMNS,
    column_options,
    dialect_options,
    drop_option,
    json_option,
    kinds_to_drop,
    print_json,
    runs_option,
    say,
    setting_option,
)
from core.config import ReadingConfig
from core.config.fields import build
from core.messages import Text, ngettext
from core.store import LibraryTask, TaskLibrary
from core.tasks import TASKS
from core.tasks.files.problems import PROBLEMS
from core.tasks.hub.registry import HUB_SETS, HubRequest, request_of
from core.tasks.load import join_rows, read_files, split_rows, usable_rows

MAX_PROBLEMS = 20


@click.group()
def tasks() -> None:
    """Manage your tasks, from files or the Hugging Face Hub."""


@tasks.command("list")
@runs_option
@json_option
def list_tasks(folder: Path, as_json: bool) -> None:
    """List the bundled tasks and your own."""
    library = TaskLibrary(folder)
    own = library.tasks()
    if as_json:
        print_json({"bundled": list(TASKS), "own": [asdict(task) for task in own]})
        return
    width = max(len(name) for name in (*TASKS, *(task.id for task in own)))
    for entry in TASKS.values():
        say(f"{entry.name:<{width}}  {entry.label}")
    for task in own:
        say(f"{task.id:<{width}}  {task.name}: {ngettext('{count} row', '{count} rows', task.rows)}. {task.source}")


@tasks.command()
@click.argument("file", metavar="FILE")
@click.option("--test", metavar="FILE", help="File with the test split.")
@click.option("--name", help="A name for the task. [default: the file's]")
@column_options(default="detected")
@setting_option("--split-column", ReadingConfig, "split", metavar="NAME")
@setting_option("--encoding", ReadingConfig, "encoding")
@dialect_options
@drop_option
@runs_option
@json_option
def add(
    file: str,
    test: str | None,
    name: str | None,
    drop: tuple[str, ...],
    folder: Path,
    as_json: bool,
    **given: str | bool | None,
) -> None:
    """Add a CSV, TSV, JSONL or Parquet file to the library, and report rows with problems."""
    options = build(ReadingConfig, {COLUMNS.get(key, key): value for key, value in given.items() if value is not None})
    kinds = kinds_to_drop(drop)
    paths = [Path(path) for path in (file, test) if path is not None]
    together = read_files(paths, options)
    for reading in together.readings:
        say(reading.source.sentence, err=True)
    for problem in together.problems[:MAX_PROBLEMS]:
        file = f"{problem.file}: " if len(together.readings) > 1 else ""
        say(f"  {file}{problem.message}", err=True)
    for kind, count in together.counts.items():
        say(f"  {PROBLEMS[kind].label}: {count:,}", err=True)
    rows = join_rows(usable_rows(together, kinds), [path.name for path in paths])
    name = name or paths[0].stem
    if rows.kind == "classes":
        for note in split_rows(rows, name).notes:
            say(note, err=True)
    library = TaskLibrary(folder)
    was_here = library.find_rows(rows) is not None
    _say(library.add(rows, name=name, source=together.source), as_json, was_here=was_here)


@tasks.command()
@click.argument("data_set", metavar="DATA_SET")
@setting_option("--config", HubRequest, "config", metavar="NAME")
@setting_option("--revision", HubRequest, "revision", metavar="NAME")
@column_options()
@setting_option("--train", HubRequest, "train", metavar="SPLIT")
@setting_option("--validation", HubRequest, "validation", metavar="SPLIT")
@setting_option("--test", HubRequest, "test", metavar="SPLIT")
@setting_option("--max-rows", HubRequest, "max_rows", metavar="N", default_text="SCL_MAX_ROWS")
@click.option("--name", help="A name for the task. [default: the data set's]")
@runs_option
@json_option
def fetch(data_set: str, name: str | None, folder: Path, as_json: bool, **given: str | int | None) -> None:
    """Download a data set from the Hugging Face Hub: a known data set by its name, or any by its repository.

    \b
    Known:
    """  # noqa: D301 # \b tells click to keep line breaks
    from core.workers.hub_job import fetch_into

    asked = {COLUMNS.get(key, key): value for key, value in given.items() if value is not None}
    if name:
        asked["name"] = name
    if data_set in HUB_SETS:
        request = build(HubRequest, request_of(HUB_SETS[data_set]).model_dump() | asked)
    else:
        request = build(HubRequest, {"repository": data_set} | asked)
    with tqdm(unit=" rows", disable=not sys.stderr.isatty()) as bar:

        def progress(done: int, total: int | None, message: Text) -> None:
            bar.total = total
            bar.set_description(str(message), refresh=False)
            bar.update(done - bar.n)

        task, fetched, was_here = fetch_into(TaskLibrary(folder), request, progress=progress)
    if fetched.note:
        say(f"{fetched.note[0].upper()}{fetched.note[1:]}.", err=True)
    _say(task, as_json, was_here=was_here)


assert fetch.help is not None
fetch.help += ", ".join(HUB_SETS)


@tasks.command()
@click.argument("task")
@click.argument("name")
@runs_option
def rename(task: str, name: str, folder: Path) -> None:
    """Rename one of your tasks."""
    library = TaskLibrary(folder)
    say(f"It is now called {library.rename(library.find(task).id, name).name}.")


@tasks.command()
@click.argument("task")
@runs_option
def delete(task: str, folder: Path) -> None:
    """Delete one of your tasks; runs that used it keep their rows."""
    library = TaskLibrary(folder)
    found = library.find(task)
    library.delete(found.id)
    say(f"Deleted {found.name}.")


def _say(task: LibraryTask, as_json: bool, *, was_here: bool = False) -> None:
    if was_here:
        say(f"These rows were added before, as {task.name}.", err=True)
    if as_json:
        print_json(asdict(task))
    else:
        rows = ngettext("{count} row", "{count} rows", task.rows)
        say(f"{task.name} ({task.id}): {rows}. Use it with --task {task.id}.")
