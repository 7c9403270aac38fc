"""The command line: one line per error, one JSON object per run, exit status 0 only for a finished run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.cli import cli, main
from core.config import parse_config
from core.engine import LocalEngine
from core.store import Status, Store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Call the command line in this process; returns status, standard output and standard error."""
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "runs"))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["core", *words])
        try:
            status = main()
        except SystemExit as error:
            status = int(error.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def fit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"SCL_RUNS": str(folder)}
    command = [sys.executable, "-m", "core", "fit", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_fit_prints_one_json_object_as_its_last_line(tiny_encoder: Path, small_csv: Path, tmp_path: Path) -> None:
    done = fit(
        "--task", str(small_csv), "--test", str(small_csv), "--train-size", "40", "--steps", "5", "--batch-size", "8",
        "--lambda", "0.5", "--temperature", "0.2", "--seed", "3", "--encoder", str(tiny_encoder), "--pooling", "mean",
        "--trainable", "last-1", "--lr", "1e-3", "--max-length", "16", "--json", folder=tmp_path / "runs",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert result["status"] == "finished"
    assert result["steps"] == 5
    assert 0 <= result["test_accuracy"] <= 1
    assert 0 <= result["macro_f1"] <= 1
    assert result["seconds"] > 0
    store = Store(tmp_path / "runs")
    config = store.run(result["run_id"]).config
    assert (config.seed, config.task.train_size, config.encoder.pooling) == (3, 40, "mean")
    assert (config.phase.objective.weight, config.phase.objective.temperature) == (0.5, 0.2)
    assert config.phase.trainable.model_dump() == {"part": "last_blocks", "blocks": 1}
    store.close()


def test_a_failed_run_exits_with_one_and_one_line(tiny_encoder: Path, small_csv: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_bytes((tiny_encoder / "config.json").read_bytes())
    done = fit(
        "--task", str(small_csv), "--encoder", str(broken), "--max-length", "16", "--json", folder=tmp_path / "r"
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "failed"
    assert "could not be loaded" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--lambda", "1.5"], "lambda = 1.5"),
        (["--lambda", "nan"], "lambda = nan"),
        (["--temperature", "0"], "temperature = 0"),
        (["--temperature", "-1"], "temperature = -1"),
        (["--temperature", "nan"], "temperature = nan"),
        (["--batch-size", "0"], "batch_size = 0"),
        (["--batch-size", "3000"], "batch_size = 3000"),
        (["--steps", "0"], "steps = 0"),
        (["--steps", "many"], "'many' is not a valid integer"),
        (["--train-size", "1"], "train_size = 1"),
        (["--train-size", "5000"], "train_size = 5000"),
        (["--encoder", "/no/such"], "is not a folder"),
        (["--encoder", "a b"], "encoder = 'a b'"),
        (["--task", "no_such_task"], "task = 'no_such_task'"),
        (["--task", "/no/such.csv"], "was not found"),
        (["--test", "/no/such.csv"], "was not found"),
        (["--trainable", "some"], "trainable = 'some'"),
        (["--trainable", "last-99"], "trainable.blocks = 99"),
        (["--pooling", "max"], "pooling = 'max'"),
        (["--max-length", "513"], "max_length = 513"),
        (["--lr", "0"], "learning_rate = 0"),
        (["--seed", "-1"], "seed = -1"),
        (["--epochs", "1", "--steps", "5"], "give steps or epochs"),
        (["--config", "/no/such.json"], "config = '/no/such.json'"),
        (["--config", "x.json", "--seed", "1"], "--seed and --config"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_an_option_that_cannot_be_used_is_one_line_and_creates_nothing(
    run: Any, tmp_path: Path, words: list[str], sentence: str
) -> None:
    status, out, err = run("fit", *words)
    assert status != 0
    assert out == ""
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def made(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "runs")
    return store, store.create(parse_config({"name": "mine", "phases": [{"steps": 7}]}))


def test_runs_are_listed_as_text_and_as_json(run: Any, tmp_path: Path) -> None:
    assert "No runs yet" in run("runs")[1]
    _, run_id = made(tmp_path)
    assert run_id in run("runs")[1]
    (listed,) = json.loads(run("runs", "--json")[1])
    assert (listed["run_id"], listed["status"], listed["test_accuracy"]) == (run_id, "queued", None)


def test_export_writes_a_config_that_fit_takes(run: Any, tmp_path: Path) -> None:
    store, run_id = made(tmp_path)
    status, out, _ = run("export", run_id)
    assert status == 0
    assert parse_config(out) == store.run(run_id).config
    run("export", "1", "--output", str(tmp_path / "config.json"))
    assert parse_config((tmp_path / "config.json").read_text()) == store.run(run_id).config


def test_a_whole_config_starts_a_run(run: Any, draft: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(draft(steps=6).to_json())

    def finish(engine: LocalEngine) -> None:
        claim = engine.store.claim_next(range(1))
        if claim:
            engine.store.attempt(claim[0], claim[1]).end(Status.FINISHED)

    monkeypatch.setattr(LocalEngine, "dispatch", finish)
    status, out, _ = run("fit", "--config", str(tmp_path / "config.json"), "--json")
    assert status == 0
    assert json.loads(out)["status"] == "finished"


def test_a_queued_run_is_stopped_and_a_finished_one_is_left_alone(run: Any, tmp_path: Path) -> None:
    store, run_id = made(tmp_path)
    assert run("stop", run_id)[0] == 0
    assert store.run(run_id).status == Status.STOPPED
    status, _, err = run("stop", run_id)
    assert status == 1
    assert "nothing to stop" in err


@pytest.mark.parametrize("command", ["stop", "resume", "export"])
def test_an_unknown_run_is_one_line(run: Any, command: str) -> None:
    status, out, err = run(command, "../../etc/passwd")
    assert (status, out) == (1, "")
    assert "'../../etc/passwd' is no run" in err


def test_every_command_and_option_has_a_help_text() -> None:
    for name, command in cli.commands.items():
        assert command.help, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{name} --{parameter.name}"


def test_every_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in cli.commands:
        assert f"python -m core {name}" in readme
