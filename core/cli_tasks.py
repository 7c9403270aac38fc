"""The tasks of one's own, without a browser: add a file or a Hub data set, list, rename, delete."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click
from tqdm import tqdm

from core.config import ReadingConfig
from core.engine.rows import TASKS_FOLDER
from core.store import default_folder
from core.tasks import TASKS, LibraryTask, TaskLibrary
from core.tasks.files.problems import PROBLEMS
from core.tasks.files.reading import Reading, read_file
from core.tasks.hub.registry import HUB_SETS, HubRequest, request_of
from core.tasks.load import joined, usable_rows
from core.validation import build

MAX_PROBLEMS = 20

runs_option = click.option(
    "--runs", "folder", metavar="DIR", default=None, help="Folder with the runs. [default: SCL_RUNS, else runs/]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")


@click.group()
def tasks() -> None:
    """Tasks of your own, from a file or from the Hugging Face Hub."""


@tasks.command("list")
@runs_option
@json_option
def list_tasks(folder: str | None, as_json: bool) -> None:
    """List the bundled tasks and those of your own."""
    own = _library(folder).tasks()
    if as_json:
        click.echo(json.dumps({"bundled": list(TASKS), "own": [asdict(task) for task in own]}, ensure_ascii=False))
        return
    width = max(len(name) for name in (*TASKS, *(task.id for task in own)))
    for entry in TASKS.values():
        click.echo(f"{entry.name:<{width}}  {entry.label}")
    for task in own:
        click.echo(f"{task.id:<{width}}  {task.name}: {task.rows:,} rows. {task.source}")


@tasks.command()
@click.argument("file", metavar="FILE")
@click.option("--test", metavar="FILE", help="File with the test split.")
@click.option("--name", help="A name for the task. [default: the file's]")
@click.option("--text-column", metavar="NAME", help="Column with the texts. [default: guessed]")
@click.option("--second-column", metavar="NAME", help="Column with the second texts of pairs. [default: guessed]")
@click.option("--label-column", metavar="NAME", help="Column with the labels. [default: guessed]")
@click.option("--split-column", metavar="NAME", help="Column that says train, validation or test. [default: guessed]")
@click.option("--encoding", metavar="NAME", help="utf-8, utf-16, cp1252, gb18030 or cp949. [default: detected]")
@click.option(
    "--drop", multiple=True, metavar="PROBLEM", help=f"Drop rows with a problem ({', '.join(PROBLEMS)}), or all."
)
@runs_option
@json_option
def add(
    file: str,
    test: str | None,
    name: str | None,
    drop: tuple[str, ...],
    folder: str | None,
    as_json: bool,
    **given: str,
) -> None:
    """Add the rows of a CSV, TSV, JSONL or Parquet file to the library, and say what is wrong with any."""
    fields = {"text_column": "text", "second_column": "text_b", "label_column": "label", "split_column": "split"}
    options = build(ReadingConfig, {fields.get(key, key): value for key, value in given.items() if value is not None})
    kinds = list(PROBLEMS) if "all" in drop else list(drop)
    paths = [Path(path) for path in (file, test) if path is not None]
    readings = [read_file(path, options) for path in paths]
    for reading in readings:
        _tell(reading)
    rows = joined([usable_rows(reading, kinds) for reading in readings], [path.name for path in paths])
    source = "; ".join(reading.source_sentence for reading in readings) + "."
    _say(_library(folder).add(rows, name=name or paths[0].stem, source=source), as_json)


def _tell(reading: Reading) -> None:
    """What was found in a file, on standard error."""
    click.echo(reading.source_sentence, err=True)
    for problem in reading.problems[:MAX_PROBLEMS]:
        click.echo(f"  {problem.message}", err=True)
    for kind, count in reading.counts.items():
        if count:
            click.echo(f"  {PROBLEMS[kind].label}: {count:,}", err=True)


@tasks.command()
@click.argument("data_set", metavar="DATA_SET")
@click.option("--config", metavar="NAME", help="Configuration of the data set on the Hub.")
@click.option("--text-column", metavar="NAME")
@click.option("--second-column", metavar="NAME")
@click.option("--label-column", metavar="NAME")
@click.option("--max-rows", type=int, metavar="N", help="Rows read of each split.")
@click.option("--name", help="A name for the task. [default: the data set's]")
@runs_option
@json_option
def fetch(data_set: str, name: str | None, folder: str | None, as_json: bool, **given: str | int | None) -> None:
    """Fetch a data set of the Hugging Face Hub: one of those known here by name, or any by its repository.

    \b
    Known:"""
    from core.tasks.hub.fetch import fetch as fetch_rows

    fields = {"text_column": "text", "second_column": "text_b", "label_column": "label"}
    asked = {fields.get(key, key): value for key, value in given.items() if value is not None}
    if data_set in HUB_SETS:
        request = build(HubRequest, request_of(HUB_SETS[data_set]).model_dump() | asked)
    else:
        request = build(HubRequest, {"repository": data_set} | asked)
    with tqdm(unit=" rows", disable=not sys.stderr.isatty()) as bar:

        def progress(done: int, total: int | None, message: str) -> None:
            bar.total = total
            bar.set_description(message, refresh=False)
            bar.update(done - bar.n)

        fetched = fetch_rows(request, progress=progress)
    _say(_library(folder).add(fetched.rows, name=name or request.name or data_set, source=fetched.source), as_json)


assert fetch.help is not None
fetch.help += ", ".join(HUB_SETS)


@tasks.command()
@click.argument("task")
@click.argument("name")
@runs_option
def rename(task: str, name: str, folder: str | None) -> None:
    """Give a task of your own another name."""
    library = _library(folder)
    click.echo(f"It is now called {library.rename(library.find(task).id, name).name}.")


@tasks.command()
@click.argument("task")
@runs_option
def delete(task: str, folder: str | None) -> None:
    """Delete a task of your own; runs that were made with it keep their rows."""
    library = _library(folder)
    found = library.find(task)
    library.discard(found.id)
    library.purge_discarded(0.0)
    click.echo(f"{found.name} is deleted.")


def _library(folder: str | None) -> TaskLibrary:
    return TaskLibrary(Path(folder or default_folder()).expanduser() / TASKS_FOLDER)


def _say(task: LibraryTask, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(task), ensure_ascii=False))
    else:
        click.echo(f"{task.name} ({task.id}): {task.rows:,} rows. Use it with --task {task.id}.")
