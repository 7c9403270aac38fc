"""Commands that export runs and import replays."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from core.artifacts.replay import open_replay
from core.cli.options import json_option, plain_text, print_json, runs_option, say
from core.config.plan import as_ended, as_launched
from core.errors import StoreError
from core.exports.entry import text_writer, write_export
from core.exports.registry import EXPORTS
from core.exports.small_exports import config_json
from core.store import Store

FORMATS = "\n\n\b\n" + "\n".join(f"  {one.name:<12} {one.about}" for one in EXPORTS.values())
ABOUT = f"Export a run as a file.\n\nBESIDE is a second run for --format html.\n\nFormats:{FORMATS}"


@click.command(help=ABOUT)
@click.argument("run")
@click.argument("beside", required=False)
@click.option("--format", "form", default="config", show_default=True, metavar="NAME", help="One of the formats below.")
@click.option(
    "--output",
    metavar="PATH",
    help="File or folder to write. [default: print short text formats; write others to the working directory]",
)
@runs_option
@click.option(
    "--knobs",
    type=click.Choice(["repeated", "launched", "ended"]),
    help="Knob turns in an exported config: repeated at their steps, as launched, or with their final values from the "
    "first step. [default: repeated]",
)
@json_option
def export(
    run: str,
    beside: str | None,
    form: str,
    output: str | None,
    folder: Path,
    knobs: str | None,
    as_json: bool,
) -> None:
    """Write a run in one of the formats in `EXPORTS`."""
    chosen = EXPORTS.entry(form)
    if knobs is not None and chosen.name != "config":
        raise click.UsageError(f"--knobs applies only to --format config: leave it out with --format {chosen.name}.")
    store = Store(folder)
    record = store.run(store.find(run))
    other = None if beside is None else store.find(beside)
    if beside is not None and chosen.write_pair is None:
        raise click.UsageError(f"--format {chosen.name} exports one run: leave {beside} out.")
    found = {"run_id": record.id, "format": chosen.name}
    if knobs in ("launched", "ended"):
        turned = as_launched(record.config) if knobs == "launched" else as_ended(record.effective, record.last_step)
        chosen = replace(chosen, write=text_writer(lambda _store, _run: config_json(turned)))
    if output is None and chosen.text:
        with tempfile.TemporaryDirectory(prefix="scl-export-") as place:
            path = Path(place) / chosen.file_name(record)
            write_export(chosen, store, record.id, path)
            text = path.read_text(encoding="utf-8")
        if as_json:
            print_json(found | {"text": text})
        else:
            click.echo(plain_text(text) if sys.stdout.isatty() else text, nl=False)
        return
    path = Path(output or chosen.file_name(record))
    write_export(chosen, store, record.id, path, other)
    say(f"Wrote {path}.", err=True)
    if as_json:
        print_json(found | {"path": str(path)})


@click.command(name="import")
@click.argument("file")
@runs_option
@json_option
def import_replay(file: str, folder: Path, as_json: bool) -> None:
    """Import a replay written by `export --format replay`."""
    path = Path(file)
    if not path.is_file():
        raise StoreError(f"{path.name} does not exist: give a file written by `export --format replay`.")
    store = Store(folder)
    run = store.run(open_replay(store, path))
    if as_json:
        print_json({"run_id": run.id, "name": run.title, "folder": str(store.folder)})
        return
    say(f"Imported {run.title} ({run.id}) into {store.folder}.")
