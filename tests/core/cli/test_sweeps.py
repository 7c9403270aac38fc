"""Experiments on the command line: a file is run, found again and extended. An error is one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.config import RunConfig
from core.experiments.lifecycle import Experiments
from core.experiments.protocols.registry import PROTOCOLS
from core.store import ExperimentTable, Store, TaskLibrary
from core.workers import LocalEngine
from tests.cases import each
from tests.core.experiments.conftest import Here
from tests.core.experiments.instant import InstantEngine, ScoredEngine, right

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs in this process, and end them at once."""
    monkeypatch.setattr(LocalEngine, "dispatch", lambda self: InstantEngine(self.store, right).dispatch())
    monkeypatch.setattr(LocalEngine, "warm_up", lambda _: None)
    monkeypatch.setattr(Experiments, "fill", Here.fill)


@pytest.fixture
def file(tmp_path: Path, draft: Callable[..., RunConfig]) -> Path:
    base = draft()
    given: dict[str, Any] = {
        "name": "λ",
        "base": {
            "task.id": "file",
            "task.path": base.task.path,
            "encoder.id": base.encoder.id,
            "encoder.max_length": 32,
            "steps": 8,
            "batch_size": 8,
        },
        "axes": [{"setting": "lambda", "values": [0.1, 0.9]}],
        "seeds": 6,
        "baseline": {"Weight λ": 0.1},
    }
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(given, allow_unicode=True), encoding="utf-8")
    return path


@pytest.mark.usefixtures("instant")
class TestSweep:
    def test_a_file_is_run_once_and_its_table_printed(self, run: Run, file: Path, tmp_path: Path) -> None:
        status, out, err = run("sweep", str(file))
        assert status == 0, err
        assert "| 0.9        | 6       | 75.0 ± 4.5%" in out
        assert "higher" in out
        assert "12 runs; the new ones take about" in err
        # The same file goes on with the same experiment.
        status, out, _ = run("sweep", str(file), "--json")
        assert status == 0
        store = tmp_path / "runs"
        [experiment] = ExperimentTable(store).experiments()
        found = json.loads(out.splitlines()[-1])
        assert found["id"] == experiment.id
        assert found["cells"][1]["difference"]["verdict"] == "higher"
        assert found["cells"][1]["majority_rate"] == 0.5
        assert found["main_effects"]["Weight λ"]["0.9"] == pytest.approx(found["cells"][1]["mean"])
        assert found["cells"][1]["scores"] == {str(seed): (14 + seed % 3) / 20 for seed in range(6)}
        assert len(Store(store).runs()) == 12

    @each("suffix", ["csv", "md", "tex", "html"])
    def test_the_table_is_written_by_the_files_ending(self, run: Run, file: Path, tmp_path: Path, suffix: str) -> None:
        target = tmp_path / f"table.{suffix}"
        assert run("sweep", str(file), "--output", str(target))[0] == 0
        assert "0.9" in target.read_text(encoding="utf-8")

    def test_an_ending_that_is_not_known_names_those_that_are(self, run: Run, file: Path, tmp_path: Path) -> None:
        status, _, err = run("sweep", str(file), "--output", str(tmp_path / "table.docx"))
        assert status == 1
        assert "ends in csv, md, tex, html" in err

    def test_other_measures_and_splits_are_listed(self, run: Run, file: Path) -> None:
        _, out, _ = run("sweep", str(file), "--measure", "macro_f1")
        assert "Test macro-F1" in out
        status, _, err = run("sweep", str(file), "--measure", "beauty")
        assert status == 2
        assert "beauty" in err

    def test_more_seeds_are_added(self, run: Run, file: Path) -> None:
        run("sweep", str(file))
        status, out, _ = run("experiments", "resume", "1", "--more-seeds", "2")
        assert status == 0
        assert "| 0.9        | 8 " in out


@pytest.mark.usefixtures("instant")
def test_an_own_task_is_called_by_the_name_that_it_had(run: Run, file: Path, tmp_path: Path, small_csv: Path) -> None:
    library = TaskLibrary(tmp_path / "runs")
    assert run("tasks", "add", str(small_csv), "--name", "Mine")[0] == 0
    [task] = library.tasks()
    given = yaml.safe_load(file.read_text(encoding="utf-8"))
    given["base"] |= {"task.id": task.id, "task.path": None}
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    assert run("sweep", str(file))[0] == 0
    library.rename(task.id, "Ours")
    status, _, err = run("sweep", str(file))
    assert status == 0, err
    assert len(ExperimentTable(tmp_path / "runs").experiments()) == 1
    library.delete(task.id)
    report = tmp_path / "report.html"
    assert run("experiments", "show", "1", "--output", str(report))[0] == 0
    assert '<th scope="row">Task</th><td>Mine</td>' in report.read_text(encoding="utf-8")


@each(
    ("text", "sentence"),
    [
        (":\n  - [", "give a YAML file"),
        ("3", "give a YAML file with base, axes and seeds"),
        ("!!python/object/apply:os.system ['true']", "give a YAML file"),
        ("a: &a [*a]", "cannot be used"),
        ("base: {task.id: nonsense}", "nonsense"),
        ("axes: [{setting: lamda, values: [0.1, 0.3]}]", "did you mean lambda?"),
        ("sedes: 3", "did you mean seeds?"),
        ("axes: [{setting: lambda, values: [0.1, 7]}]", "lambda = 7 cannot be used: give a number from 0 to 1."),
        ("reference: {label: CE, settings: {lambda: 7}}", "lambda = 7 cannot be used"),
    ],
)
def test_a_file_that_is_no_design_is_one_line_and_creates_nothing(
    run: Run, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(text, encoding="utf-8")
    status, out, err = run("sweep", str(path))
    assert status == 1
    assert out == ""
    assert sentence in err.splitlines()[-1]
    assert not (tmp_path / "runs").exists() or ExperimentTable(tmp_path / "runs").experiments() == []


@pytest.mark.usefixtures("instant")
def test_a_level_that_fits_some_cells_is_no_mistake(run: Run, file: Path, tmp_path: Path) -> None:
    given = yaml.safe_load(file.read_text(encoding="utf-8"))
    axes = [{"setting": "preset", "values": ["ce", "ce-scl"]}, {"setting": "temperature", "values": [0.1, 0.3]}]
    file.write_text(yaml.safe_dump(given | {"axes": axes, "baseline": {}, "seeds": 1}), encoding="utf-8")
    status, _, err = run("sweep", str(file))
    assert status == 0
    assert "Skipped CE, τ 0.1" in err
    assert len(Store(tmp_path / "runs").runs()) == 2


@each(
    ("words", "sentence"),
    [
        (["sweep", "/no/such.yaml"], "No such file"),
        (["protocol", "nonsense"], "choose one of few-shot"),
        (["surface", "--x", "batch_size"], "give its values, such as batch_size=0.1,0.5"),
        (["experiments", "show", "7"], "does not exist"),
    ],
)
def test_what_does_not_exist_or_lacks_values_is_refused(run: Run, words: list[str], sentence: str) -> None:
    status, _, err = run(*words)
    assert status == 1
    assert sentence in err


def test_protocols_are_listed_with_their_questions(run: Run) -> None:
    _, out, _ = run("protocols")
    assert all(entry.question in out for entry in PROTOCOLS.values())
    _, out, _ = run("protocols", "--json")
    assert {one["name"] for one in json.loads(out)["protocols"]} == set(PROTOCOLS)


@pytest.mark.usefixtures("instant")
def test_a_protocol_runs_with_other_settings(run: Run, tiny_encoder: Path, small_csv: Path) -> None:
    status, out, err = run(
        "protocol", "rdrop-stages", "--seeds", "2", "--set", f"encoder.id={tiny_encoder}", "--set", "task.id=file",
        "--set", f"task.path={small_csv}", "--set", "batch_size=8", "--set", "encoder.max_length=32",
    )  # fmt: skip
    assert status == 0, err
    assert "R-Drop, two stages" in out


@pytest.mark.usefixtures("instant")
def test_experiments_are_listed_shown_renamed_and_stopped(run: Run, file: Path) -> None:
    assert "No experiments yet" in run("experiments", "list")[1]
    run("sweep", str(file))
    assert "12/12" in run("experiments", "list")[1]
    assert json.loads(run("experiments", "list", "--json")[1])["experiments"][0]["finished"] == 12
    assert "75.0 ± 4.5%" in run("experiments", "show", "1")[1]
    assert "is called Weights" in run("experiments", "rename", "1", "Weights")[1]
    assert "Stopped Weights and 0 runs of it." in run("experiments", "stop", "1")[1]
    assert json.loads(run("experiments", "stop", "1", "--json")[1])["stopped"] == 0


@pytest.mark.usefixtures("instant")
def test_cells_of_a_surface_are_scored_and_described(
    run: Run, draft: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalEngine, "dispatch", lambda self: ScoredEngine(self.store, right).dispatch())
    task, encoder = draft().task.path, draft().encoder.id
    given = ["surface", "--task", str(task), "--set", f"encoder.id={encoder}", "--set", "encoder.max_length=32"]
    given += ["--set", "batch_size=8", "--x", "temperature=0.1,0.5", "--y", "lambda=0.2,0.8", "--json"]
    status, out, err = run(*given)
    assert status == 0, err
    found = json.loads(out)
    assert sorted(found["cells"]) == ["τ 0.1, λ 0.2", "τ 0.1, λ 0.8", "τ 0.5, λ 0.2", "τ 0.5, λ 0.8"]
    assert found["sentences"]
    # The same command shows the same experiment again.
    assert json.loads(run(*given)[1]) == found
    assert len(Store(tmp_path / "runs").runs()) == 4
