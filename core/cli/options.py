"""Options that several commands take alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from core.tasks.files.problems import PROBLEMS

Command = TypeVar("Command", bound=Callable[..., Any])

# What an option for a column is called in a reading or a request.
COLUMNS = {"text_column": "text", "second_column": "text_b", "label_column": "label", "split_column": "split"}

runs_option = click.option(
    "--runs", "folder", metavar="DIR", default=None, help="Folder with the runs. [default: SCL_RUNS, else runs/]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
drop_option = click.option(
    "--drop",
    multiple=True,
    metavar="PROBLEM",
    help=f"Drop rows with a problem ({', '.join(PROBLEMS)}), or all; repeatable. [default: refuse what cannot be used]",
)


def column_options(default: str = "") -> Callable[[Command], Command]:
    """The options that name the columns with texts and labels; `default` says what is taken without them."""
    suffix = f" [default: {default}]" if default else ""

    def with_columns(command: Command) -> Command:
        for option, what in (
            ("--label-column", "labels"),
            ("--second-column", "second texts of pairs"),
            ("--text-column", "texts"),
        ):
            command = click.option(option, metavar="NAME", help=f"Column with the {what}.{suffix}")(command)
        return command

    return with_columns


# How a delimited file is read: what the options take, and what it is in a reading.
DIALECT = {
    "delimiter": {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"},
    "quote": {"double": '"', "single": "'", "none": ""},
    "escape": {"backslash": "\\", "none": ""},
}


DIALECT_HELP = {
    "delimiter": "What is between fields.",
    "quote": "What encloses a field that may hold delimiters.",
    "escape": "What makes the next character part of the text.",
}


def dialect_options(command: Command) -> Command:
    """The options that name a file's delimiter, quotes, escapes and header; what they give is that of a reading."""
    for option, names in reversed(DIALECT.items()):
        command = click.option(
            f"--{option}",
            type=click.Choice(list(names)),
            callback=lambda context, parameter, given: given and DIALECT[parameter.name or ""][given],
            help=f"{DIALECT_HELP[option]} [default: detected]",
        )(command)
    return click.option(
        "--header/--no-header", default=None, help="The first line names the columns. [default: detected]"
    )(command)


def kinds_to_drop(given: Sequence[str]) -> list[str]:
    """The kinds of problems whose rows may go; "all" means every kind."""
    return list(PROBLEMS) if "all" in given else list(given)
