"""Names and texts from users that try to act on a terminal, in a spreadsheet or in a table."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from click.testing import CliRunner

from core.cli.main import cli
from core.cli.options import plain_text, print_json
from core.events import Evaluation, Step
from core.experiments import result_table
from core.exports.small_exports import curves_csv
from core.store import Store
from core.tasks.listing import csv_text
from tests.pages.conftest import Draft

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\u202egnp.exe\u2066\x00"


class TestTerminal:
    def test_a_name_prints_no_escape_and_no_override(self, shared: Store, draft: Draft) -> None:
        run_id = shared.create(draft())
        shared.rename(run_id, HOSTILE)
        printed = CliRunner().invoke(cli, ["runs", "--runs", str(shared.folder)]).output
        assert "]0;owned[31mredgnp.exe" in printed
        assert not set(HOSTILE) & set(printed) & {"\x1b", "\x07", "\u202e", "\u2066", "\x00"}

    def test_text_of_any_language_is_unchanged(self) -> None:
        text = "电影\t영화\n👩\u200d🔬 é"
        assert plain_text(text) == text

    def test_json_escapes_format_characters_and_reads_back(self, capsys: pytest.CaptureFixture[str]) -> None:
        print_json({"name": HOSTILE + "电影"})
        line = capsys.readouterr().out
        assert "\u202e" not in line
        assert "电影" in line
        assert json.loads(line)["name"] == HOSTILE + "电影"


class TestSpreadsheet:
    def test_no_cell_and_no_header_is_a_formula(self) -> None:
        text = csv_text(["=cmd|' /C calc'!A0", "@x"], [["+1+1", "-5"], [-5.0, float("nan")], ["\t=1", None]])
        rows = list(csv.reader(io.StringIO(text)))
        assert rows == [["'=cmd|' /C calc'!A0", "'@x"], ["'+1+1", "-5"], ["-5.0", ""], ["'\t=1", ""]]

    def test_the_curves_of_a_run_are_guarded(self) -> None:
        steps = [Step(1, {"loss": 0.5, "=1+1": 2.0})]
        text = curves_csv(steps, [Evaluation(1, "validation", {"accuracy": 0.75})])
        rows = list(csv.reader(io.StringIO(text)))
        assert rows == [["step", "'=1+1", "loss", "validation.accuracy"], ["1", "2.0", "0.5", "0.75"]]


def test_a_bar_in_a_header_or_cell_starts_no_new_cell_of_a_markdown_table(monkeypatch: pytest.MonkeyPatch) -> None:
    results: Any = None
    monkeypatch.setattr(result_table, "table_rows", lambda _: (["task|x"], [["a | b"], ["plain"]]))
    lines = result_table.table_text(results, "markdown").splitlines()
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [2, 2, 2, 2]
