"""Options shared by several commands."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import BaseModel

from core.config import FILE_TASK, EncoderConfig, ReadingConfig, RunConfig
from core.config.describe import value_text
from core.config.fields import fields_of
from core.config.run import with_paths
from core.errors import ConfigError
from core.messages import join_list
from core.store import TaskLibrary, default_folder
from core.tasks import TASKS
from core.tasks.files.problems import PROBLEMS

Command = TypeVar("Command", bound=Callable[..., Any])

# Column options → their fields in ReadingConfig and HubRequest.
COLUMNS = {"text_column": "text", "second_column": "text_b", "label_column": "label", "split_column": "split"}

# Increase when a field of the JSON output changes its meaning or is removed.
JSON_VERSION = 1


def _runs_folder(context: click.Context, _parameter: click.Parameter, given: str | None) -> Path | None:
    """Return the folder given after the command, else that before it; only a command needs the default."""
    found = given or context.find_root().params.get("folder") or (default_folder() if context.parent else None)
    return found and Path(found).expanduser()


runs_option = click.option(
    "--runs",
    "folder",
    metavar="DIR",
    default=None,
    callback=_runs_folder,
    help="Folder with the runs, before or after the command. [default: SCL_RUNS, else runs/]",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result or error as one JSON object on the last line."
)
drop_option = click.option(
    "--drop",
    multiple=True,
    metavar="PROBLEM",
    help=f"Drop rows with this problem ({', '.join(PROBLEMS)}), or all; repeatable. [default: reject unusable rows]",
)


def plain_text(text: str) -> str:
    """Remove control and format characters, which a terminal may execute or show in another order.

    Newlines, tabs and the joiner of emoji are kept.
    """
    return "".join(sign for sign in text if sign in "\n\t\u200d" or unicodedata.category(sign) not in ("Cc", "Cf"))


def say(text: object, *, err: bool = False) -> None:
    """Print text that may contain names from users."""
    click.echo(plain_text(str(text)), err=err)


def print_json(found: Mapping[str, Any]) -> None:
    """Print an object as one line of JSON, with the version of the output format. Format characters are escaped."""
    text = json.dumps({"version": JSON_VERSION} | dict(found), ensure_ascii=False)
    click.echo("".join(json.dumps(sign)[1:-1] if unicodedata.category(sign) == "Cf" else sign for sign in text))


def setting_option(flag: str, section: type[BaseModel], name: str, **more: Any) -> Callable[[Command], Command]:
    """Build the option for a config field, with the field's type, help and default.

    Args:
        more: arguments of `click.option`; `default_text` replaces the field's default in the help.
    """
    field = fields_of(section)[name]
    taken = field.words.get(None, "none").lower() if field.default is None else value_text(field.default)
    default = more.pop("default_text", taken)
    kinds = {"integer": int, "number": float}
    about = f"{field.label}. {field.help}" + ("" if default == "the default" else f" [default: {default}]")
    more = {"type": kinds.get(field.kind), "help": about} | more
    if field.choices:
        more = {"metavar": "|".join(field.choices)} | more
    return click.option(flag, **more)


def column_options(default: str = "") -> Callable[[Command], Command]:
    """Build the options for the text and label columns. Args: default: default shown in the help."""

    def with_columns(command: Command) -> Command:
        for flag in ("--label-column", "--second-column", "--text-column"):
            name = COLUMNS[flag.removeprefix("--").replace("-", "_")]
            about = fields_of(ReadingConfig)[name].help + (f" [default: {default}]" if default else "")
            command = click.option(flag, metavar="NAME", help=about)(command)
        return command

    return with_columns


# Options for delimited files: value on the command line → value in ReadingConfig.
DIALECT = {
    "delimiter": {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"},
    "quote": {"double": '"', "single": "'", "none": ""},
    "escape": {"backslash": "\\", "none": ""},
}


def dialect_options(command: Command) -> Command:
    """Add the options for a file's delimiter, quotes, escapes and header, with values as in ReadingConfig."""
    for option, names in reversed(DIALECT.items()):
        command = click.option(
            f"--{option}",
            type=click.Choice(list(names)),
            callback=lambda context, parameter, given: given and DIALECT[parameter.name or ""][given],
            help=f"{fields_of(ReadingConfig)[option].help} [default: detected]",
        )(command)
    return click.option(
        "--header/--no-header", default=None, help="Read column names from the first line. [default: detected]"
    )(command)


def with_whole_paths(config: RunConfig) -> RunConfig:
    """Return a config with relative paths of files and folders resolved against the working directory."""
    return with_paths(config, whole_path, whole_model)


def whole_path(path: str) -> str:
    """Return the absolute path of a file; a path that starts with ~ is unchanged."""
    return path if path.startswith("~") else str(Path(path).absolute())


def whole_model(name: str) -> str:
    """Return the absolute path of a model in a folder; any other model name is unchanged."""
    return str(Path(name).absolute()) if name != EncoderConfig().id and os.path.isdir(name) else name


def kinds_to_drop(given: Sequence[str]) -> list[str]:
    """Return the kinds of problems whose rows are dropped; "all" means every kind."""
    return list(PROBLEMS) if "all" in given else list(given)


def task_fields(name_or_file: str | None, own: TaskLibrary | None) -> dict[str, Any]:
    """Return the fields of a TaskConfig for a task's name or a file. Raises: ConfigError."""
    if name_or_file is None:
        return {}
    if name_or_file in TASKS:
        return {"id": name_or_file}
    tasks = own.tasks() if own else []
    ids = {name: task.id for task in tasks for name in (task.name, task.id)}
    if name_or_file in ids:
        return {"id": ids[name_or_file]}
    if Path(name_or_file).suffix or "/" in name_or_file:
        return {"id": FILE_TASK, "path": name_or_file}
    names = join_list([*TASKS, *(task.name for task in tasks)])
    raise ConfigError("task", name_or_file, f"choose {names}, or give the path of a file.")
