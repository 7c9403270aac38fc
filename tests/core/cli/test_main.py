"""The command line: one line per error, one JSON object per run, exit status 0 only for a finished run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.advice.prepare import prepare
from core.artifacts.shipped import SHIPPED
from core.cli.main import cli, draft_from
from core.config import RunConfig, parse_config
from core.config.presets import GROUPS, PRESETS
from core.events import Step
from core.exports.entry import file_stem
from core.exports.registry import EXPORTS
from core.exports.run_page import run_page
from core.store import Status, Store
from core.store.budget import keep_within
from core.workers import LocalEngine
from tests.cases import each
from tests.conftest import made_rows, write_csv
from tests.core.artifacts.made import MORE, recorded
from tests.core.exports.test_model_folder import uneven_task
from tests.core.store.test_sizes import fill
from tests.core.workers.test_branches import carry_out

ROOT = Path(__file__).resolve().parents[3]


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
    assert (config.phases[0].objective.weight, config.phases[0].objective.temperature) == (0.5, 0.2)
    assert (config.phases[0].trainable.part, config.phases[0].trainable.blocks) == ("last_blocks", 1)
    store.close()


@pytest.fixture
def worked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carry runs out in this process as a worker does. Their output goes to the run's log."""
    monkeypatch.setattr(LocalEngine, "dispatch", carry_out)


@pytest.mark.usefixtures("worked_here")
def test_a_failed_run_exits_with_one_and_one_line(
    run: Any, tiny_encoder: Path, small_csv: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_bytes((tiny_encoder / "config.json").read_bytes())
    status, out, err = run("fit", "--task", str(small_csv), "--encoder", str(broken), "--max-length", "16", "--json")
    assert status == 1
    assert json.loads(out)["status"] == "failed"
    assert "could not be loaded" in err
    assert "Traceback" not in err


# Errors of the options themselves, not of their values.
NOT_PARSED = ("'many' is not a valid integer", "--set and --config", "--nonsense")


@each(
    ("words", "sentence"),
    [
        (["--lambda", "1.5"], "lambda = 1.5"),
        (["--batch-size", "3000"], "batch_size = 3000"),
        (["--steps", "many"], "'many' is not a valid integer"),
        (["--encoder", "/no/such"], "is not a folder"),
        (["--encoder", "a b"], "encoder = 'a b'"),
        (["--task", "no_such_task"], "task = 'no_such_task'"),
        (["--test", "/no/such.csv"], "was not found"),
        (["--trainable", "some"], "trainable = 'some'"),
        (["--epochs", "1", "--steps", "5"], "give steps or epochs"),
        (["--config", "/no/such.json"], "config = '/no/such.json'"),
        (["--config", "x.json", "--set", "seed=1"], "--set and --config"),
        (["--nonsense"], "--nonsense"),
        (["--preset", "simcse", "--steps", "1"], "steps = 1 cannot be used: SimCSE, then classifier has 2 phases"),
        (["--preset", "rdrop-one-stage", "--lambda", "0.5"], "this objective has no λ; set a weight, such as obj"),
        (["--preset", "simcse-supervised"], "Film reviews has no triplets"),
        (["--set", "tau=3"], "tau = 3 cannot be used: tau is not a field; the fields are version, name, task"),
        (["--set", "lamda=0.5"], "lamda = 0.5 cannot be used: lamda is not a field; did you mean lambda?"),
        (["--set", "probe.frame_steps=12"], "probe.frame_steps = 12 cannot be used: give a list, such as [12]."),
        (["--set", "objective.terms.0.views.0.view=dropout"], "is empty; give the whole list, such as"),
        (["--seed", "3", "--set", "seed.x=1"], "set = 'seed.x' cannot be used: seed has no fields"),
        (["--set", "phases=3", "--set", "steps=5"], "phases has no fields"),
        (["--set", "name=" + "[" * 50_000], "name = "),
        (["--set", "steps=5", "--set", "epochs=2"], "give steps or epochs"),
    ],
)
def test_an_option_that_cannot_be_used_is_one_line_and_creates_nothing(
    run: Any, tmp_path: Path, words: list[str], sentence: str
) -> None:
    status, out, err = run("fit", *words)
    assert status == (2 if sentence in NOT_PARSED else 1)
    assert out == ""
    assert err.startswith("error: ")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert len(err) < 500
    assert not (tmp_path / "runs").exists()


def test_a_task_that_does_not_exist_names_ones_own_too(run: Any, tmp_path: Path, small_csv: Path) -> None:
    assert run("tasks", "add", str(small_csv), "--name", "My reviews")[0] == 0
    _, _, err = run("fit", "--task", "nosuch")
    assert "task = 'nosuch' cannot be used: choose film_reviews" in err
    assert "My reviews, or give the path of a file." in err


def test_many_classes_take_a_lower_temperature_unless_one_is_given(
    run: Any, tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[RunConfig] = []
    monkeypatch.setattr("core.cli.main.build_engine", lambda _: SimpleNamespace(submit=submitted.append))
    monkeypatch.setattr("core.cli.main._follow", lambda *_: None)
    rows = [(f"{text} {place}", f"c{place % 7}") for place, (text, _) in enumerate(made_rows(210))]
    file = str(write_csv(tmp_path / "seven.csv", rows))
    words = ("fit", "--task", file, "--encoder", str(tiny_encoder), "--max-length", "32")
    assert "With 7 classes τ is 0.07, in batches of 32." in run(*words)[2]
    assert run(*words, "--temperature", "0.3")[0] == 0
    phases = [config.phases[0] for config in submitted]
    assert [(one.objective.temperature, one.batch_size) for one in phases] == [(0.07, 32), (0.3, 16)]


@each(
    ("text", "sentence"),
    [
        (
            '{\n  "seed": 3,\n  "name" "x"\n}',
            'config = \'"name" "x"\' cannot be used: it is not valid JSON (line 3, column 10)',
        ),
        ("", "config = '' cannot be used: it is not valid JSON (line 1, column 1); give a config as exported"),
        (
            '{"phases": [{"batchsize": 8}]}',
            "batchsize = 8 cannot be used: batchsize is not a field; did you mean batch_size?",
        ),
    ],
)
def test_a_config_that_cannot_be_read_says_where(run: Any, tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    status, _, err = run("fit", "--config", str(path))
    assert status == 1
    assert sentence in err
    assert "Expecting" not in err


class TestDraft:
    """Conversion of options to a config."""

    def test_lambda_moves_the_weights_of_the_preset(self) -> None:
        def weights(preset: str) -> list[float]:
            return [t.weight for t in draft_from({"preset": preset, "weight": 0.25}).phases[0].objective.terms]

        assert weights("ce-scl") == [0.25, 0.75]
        assert weights("dscl") == [0.25, 0.75]
        assert weights("token-scl") == [0.25, 1.0]

    def test_temperature_reaches_every_term_that_has_one(self) -> None:
        made = draft_from({"preset": "scl-classifier", "temperature": 0.05})
        assert made.phases[0].objective.temperature == 0.05
        assert made.phases[1] == draft_from({"preset": "scl-classifier"}).phases[1]
        assert draft_from({"temperature": 0.05}).phases[0].objective.temperature == 0.05

    @each(
        ("setting", "read", "value"),
        [
            ("seed=7", lambda c: c.seed, 7),
            ('name="3"', lambda c: c.name, "3"),
            ("name=", lambda c: c.name, ""),
            ("task.train_size=null", lambda c: c.task.train_size, None),
            ("probe.frame_steps=[1, 2]", lambda c: c.probe.frame_steps, (1, 2)),
            ("probe.frame_steps=0,12", lambda c: c.probe.frame_steps, (0, 12)),
            ("phases.0.objective.terms.0.temperature=1e-1", lambda c: c.phases[0].objective.temperature, 0.1),
            ("objective.terms.0.layers=last_third", lambda c: c.phases[0].objective.terms[0].layers, "last_third"),
            (
                'objective.terms.0.views=[{"view": "eda", "rate": 0.3}]',
                lambda c: c.phases[0].objective.terms[0].views[0].parameters["rate"],
                0.3,
            ),
            ("optimiser.bias_correction=false", lambda c: c.phases[0].optimiser.bias_correction, False),
            (" batch_size =4", lambda c: c.phases[0].batch_size, 4),
            ("encoder.id=a=b", lambda c: c.encoder.id, "a=b"),
        ],
    )
    def test_any_field_can_be_set(self, setting: str, read: Callable[[RunConfig], object], value: object) -> None:
        assert read(draft_from({"settings": (setting,)})) == value

    def test_the_encoder_s_dropout_has_an_option(self) -> None:
        assert draft_from({"dropout": 0.0}).encoder.dropout == 0.0
        assert draft_from({}).encoder.dropout is None
        assert draft_from({"preset": "dropout-nt-xent-encoder"}).encoder.dropout == 0.3
        assert draft_from({"preset": "dropout-nt-xent-encoder", "dropout": 0.1}).encoder.dropout == 0.1

    def test_another_loss_or_view_begins_at_its_own_defaults(self) -> None:
        settings = ("objective.terms.0.loss=rdrop", 'objective.terms.0.views=[{"view": "eda", "rate": 0.3}]')
        made = draft_from({"settings": (*settings, "objective.terms.0.views.0.view=dropout")}).phases[0].objective
        assert made.terms[0].parameters == {"alpha": 1.0}
        assert made.terms[0].weight == 0.9
        assert made.terms[0].views[0].parameters == {}

    def test_the_last_of_two_settings_wins(self) -> None:
        assert draft_from({"seed": 1, "settings": ("seed=2", "seed=3")}).seed == 3


def test_presets_are_listed_as_text_and_as_json(run: Any) -> None:
    status, out, _ = run("presets")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == list(PRESETS)
    assert [line.rstrip(":") for line in out.splitlines() if not line.startswith("  ")] == list(GROUPS)
    listed = json.loads(run("presets", "--json")[1])["presets"]
    assert [entry["name"] for entry in listed] == list(PRESETS)
    assert all(entry.keys() == {"name", "label", "group", "summary", "source"} for entry in listed)


@pytest.mark.usefixtures("worked_here")
def test_a_branch_continues_a_run_with_other_settings(
    run: Any, tiny_encoder: Path, small_csv: Path, tmp_path: Path
) -> None:
    small = ("--max-length", "16", "--steps", "6", "--batch-size", "8")
    assert run("fit", "--task", str(small_csv), "--encoder", str(tiny_encoder), *small)[0] == 0
    change = ("--temperature", "0.05", "--lr", "1e-5", "--sampler", "class_balanced")
    status, out, err = run("fit", "--branch", "1@2", *change, "--json")
    assert status == 0, err
    store = Store(tmp_path / "runs")
    parent, made = store.run(store.find("1")), store.run(json.loads(out.strip().splitlines()[-1])["run_id"])
    assert str(made.config.branch) == f"{parent.id}@2"
    values = [[step.values for step in store.steps(one.id)] for one in (parent, made)]
    peak = parent.config.phases[0].optimiser.learning_rate or 0.0
    for name, value in {"temperature": 0.05, "learning_rate": values[0][2]["learning_rate"] * 1e-5 / peak}.items():
        assert values[1][1][name] == values[0][1][name]
        assert values[1][2][name] == pytest.approx(value)
    assert made.config.sampler_at(3) == "class_balanced"
    store.close()
    for words, sentence in {
        ("--branch", "1@6"): "or ends there",
        ("--branch", "1"): "give a run and a step, such as 7@40",
        ("--branch", "9@2"): "There is no run '9'",
        ("--branch", "1@2", "--steps", "9"): "--steps and --branch are both given",
        ("--branch", "1@2", "--preset", "simcse"): "two phases",
    }.items():
        status, _, err = run("fit", *words)
        assert (status, sentence in err) == (2 if "both" in sentence else 1, True), err


def made(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "runs")
    return store, store.create(parse_config({"name": "mine", "phases": [{"steps": 7}]}))


def test_runs_are_listed_as_text_and_as_json(run: Any, tmp_path: Path) -> None:
    assert "No runs yet" in run("runs")[1]
    _, run_id = made(tmp_path)
    assert run_id in run("runs")[1]
    (listed,) = json.loads(run("runs", "--json")[1])["runs"]
    assert (listed["run_id"], listed["status"], listed["test_accuracy"]) == (run_id, "queued", None)


def test_the_majority_rate_of_a_result_names_its_split(run: Any, tmp_path: Path, draft: Any) -> None:
    Store(tmp_path / "runs").create(prepare(draft(task=uneven_task(tmp_path)), gpu=False)[0])
    (listed,) = json.loads(run("runs", "--json")[1])["runs"]
    assert (listed["test_majority_rate"], round(listed["validation_majority_rate"], 3)) == (0.9, 0.667)
    assert "majority_rate" not in listed


def test_a_run_is_renamed_and_tagged(run: Any, tmp_path: Path) -> None:
    _, run_id = made(tmp_path)
    assert run("rename", run_id, "τ 0.1")[1] == f"Run {run_id} is called τ 0.1.\n"
    assert run("tag", run_id, "thesis", "draft")[1] == f"τ 0.1 ({run_id}) has the tags thesis, draft.\n"
    assert "τ 0.1  [thesis, draft]" in run("runs")[1]
    (listed,) = json.loads(run("runs", "--json")[1])["runs"]
    assert (listed["name"], listed["tags"]) == ("τ 0.1", ["thesis", "draft"])
    assert run("tag", run_id)[1] == f"τ 0.1 ({run_id}) has no tags.\n"


def test_a_turned_run_is_exported_with_its_turns_as_launched_or_as_it_ended(run: Any, tmp_path: Path) -> None:
    store, run_id = made(tmp_path)
    store.claim_next(range(100))
    attempt = store.attempt(run_id, 1)
    attempt.record_knob_turn(3, "temperature", 0.08)
    attempt.steps([Step(4, {"loss": 1.0})])
    asked = {knobs: parse_config(run("export", run_id, *options)[1]) for knobs, options in KNOBS.items()}
    assert asked["repeated"] == store.run(run_id).effective
    assert asked["launched"] == store.run(run_id).config
    assert (asked["ended"].phases[0].objective.temperature, asked["ended"].knob_turns) == (0.08, ())


@pytest.mark.parametrize("form", [name for name, one in EXPORTS.items() if one.text and not one.heavy])
def test_a_few_lines_are_printed_or_written(run: Any, tmp_path: Path, form: str) -> None:
    _, run_id = made(tmp_path)
    status, printed, err = run("export", run_id, "--format", form)
    assert (status, err) == (0, "")
    assert run("export", run_id, "--format", form, "--output", str(tmp_path / "file"))[0] == 0
    assert (tmp_path / "file").read_text(encoding="utf-8") == printed != ""


def test_other_forms_are_written_under_the_name_of_the_run(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = made(tmp_path)
    monkeypatch.chdir(tmp_path)
    status, out, err = run("export", run_id, "--format", "tensorboard")
    assert (status, out, err) == (0, "", f"Wrote {file_stem(store.run(run_id))}-tensorboard.\n")
    assert (tmp_path / f"{file_stem(store.run(run_id))}-tensorboard").is_dir()


def test_two_runs_are_written_side_by_side(run: Any, store: Store, draft: Any, tmp_path: Path) -> None:
    first, second = (recorded(store, draft(more=MORE | {"seed": seed})) for seed in (0, 1))
    path = tmp_path / "two.html"
    status, out, err = run("export", first.id, second.id, "--format", "html", "--output", str(path))
    assert (status, out, err) == (0, "", f"Wrote {path}.\n")
    assert path.read_text(encoding="utf-8") == run_page(store, [store.run(first.id), store.run(second.id)])


@each(
    ("words", "status", "sentence"),
    [
        (["--format", "command", "--knobs", "ended"], 2, "leave it out with --format command"),
        (["1", "--format", "replay", "--output", "two.zip"], 2, "--format replay exports one run: leave 1 out"),
        (["absent", "--format", "html"], 1, "There is no run 'absent'"),
        (["--format", "pdf"], 1, "choose one of config, command, script, curves, html, replay"),
    ],
)
def test_an_export_that_cannot_be_written_is_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path)
    exit_status, out, err = run("export", "1", *words)
    assert (exit_status, out) == (status, "")
    assert sentence in err
    assert not (tmp_path / "two.zip").exists()


def test_a_replay_is_imported(run: Any, tmp_path: Path) -> None:
    status, out, _ = run("import", str(SHIPPED["ce"].path))
    assert status == 0
    (listed,) = json.loads(run("runs", "--json")[1])["runs"]
    assert out.startswith(f"Imported {listed['name']} ({listed['run_id']}) into ")
    assert listed["tags"] == ["replay"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"no archive", "is damaged, or not a replay"), (None, "replay.zip does not exist: give a file")],
)
def test_what_is_no_replay_is_one_line(run: Any, tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "replay.zip").write_bytes(content)
    status, out, err = run("import", str(tmp_path / "replay.zip"))
    assert (status, out) == (1, "")
    assert problem in err
    assert json.loads(run("runs", "--json")[1]) == {"version": 1, "runs": []}


KNOBS = {"repeated": [], "launched": ["--knobs", "launched"], "ended": ["--knobs", "ended"]}


@pytest.mark.usefixtures("worked_here")
def test_a_whole_config_starts_a_run(run: Any, draft: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(draft(steps=6).to_json())
    status, out, _ = run("fit", "--config", str(tmp_path / "config.json"), "--json")
    assert status == 0
    result = json.loads(out)
    assert (result["status"], result["steps"]) == ("finished", 6)


def test_stop_export_and_import_print_json_and_an_ended_run_is_left_alone(run: Any, tmp_path: Path) -> None:
    store, run_id = made(tmp_path)
    stopped = json.loads(run("stop", run_id, "--json")[1])
    assert (stopped["version"], stopped["run_id"], stopped["status"]) == (1, run_id, "stopped")
    assert store.run(run_id).status == Status.STOPPED
    status, _, err = run("stop", run_id)
    assert (status, "nothing to stop" in err) == (1, True)
    _, other = made(tmp_path)
    assert run("stop", other)[:2] == (0, f"mine ({other}) stopped at step 0.\n")
    printed = json.loads(run("export", run_id, "--json")[1])
    assert json.loads(printed["text"])["name"] == "mine"
    target = tmp_path / "run.json"
    written = json.loads(run("export", run_id, "--output", str(target), "--json")[1])
    assert written == {"version": 1, "run_id": run_id, "format": "config", "path": str(target)}
    imported = json.loads(run("import", str(SHIPPED["ce"].path), "--json")[1])
    assert Store(imported["folder"]).run(imported["run_id"]).title == imported["name"]


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["export", "nosuchrun"], 1, {"message": "There is no run 'nosuchrun'"}),
        (["fit", "--set", "steps=0"], 1, {"field": "phases.0.steps", "message": "phases.0.steps = 0 cannot be used"}),
        (["runs", "--nonsense"], 2, {"message": "No such option"}),
    ],
)
def test_an_error_is_json_where_json_is_asked_for(
    run: Any, words: list[str], status: int, error: dict[str, str]
) -> None:
    exit_status, out, err = run(*words, "--json")
    assert exit_status == status
    found = json.loads(out)
    assert found.keys() == {"version", "error"}
    assert found["error"].keys() == error.keys()
    assert all(found["error"][name].startswith(text) for name, text in error.items())
    assert err == f"error: {found['error']['message']}\n"


def test_the_folder_of_the_runs_may_come_before_the_command(run: Any, tmp_path: Path, small_csv: Path) -> None:
    there, other = str(tmp_path / "there"), str(tmp_path / "other")
    assert run("--runs", there, "tasks", "add", str(small_csv), "--name", "Mine")[0] == 0
    assert "Mine" in run("tasks", "list", "--runs", there)[1]
    assert "Mine" not in run("--runs", there, "tasks", "list", "--runs", other)[1]  # the second --runs wins


@each("command", ["stop", "resume", "export", "keep"])
def test_an_unknown_run_is_one_line(run: Any, command: str) -> None:
    status, out, err = run(command, "../../etc/passwd")
    assert (status, out) == (1, "")
    assert "There is no run '../../etc/passwd'" in err


def test_every_command_is_in_the_documents_and_its_options_have_help_texts() -> None:
    readme = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name, command in cli.commands.items():
        assert f"python -m core {name}" in readme
        assert command.help, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{name} --{parameter.name}"


def test_runs_say_what_they_take_and_what_they_lost(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = finished(tmp_path)
    status, out, err = run("runs")
    assert status == 0
    assert out.splitlines()[0].split()[-2:] == ["MB", "mine"]
    assert " 3.0 MB " in out
    assert err.strip() == "Runs use 3.0 MB of the 20 GB that SCL_DISK_GB allows."
    monkeypatch.setenv("SCL_DISK_GB", "0.002")
    keep_within(store)
    lines = run("runs")[1].splitlines()
    assert " 1.0 MB " in lines[0]
    assert lines[1].strip().startswith("Its weights were dropped on")
    assert "to stay within 0.002 GB; curves and frames are kept." in lines[1]
    (listed,) = json.loads(run("runs", "--json")[1])["runs"]
    assert (listed["bytes"], listed["weights_kept"]) == (2**20, False)
    assert listed["weights_dropped"] == lines[1].strip()


def test_a_run_keeps_its_weights_until_it_is_said_otherwise(run: Any, tmp_path: Path) -> None:
    store, run_id = finished(tmp_path)
    assert run("keep", run_id)[:2] == (0, f"The weights of mine ({run_id}) are kept.\n")
    keep_within(store, 1e-6)
    assert store.size(run_id).weights == 2 * 2**20
    assert run("keep", "1", "--off")[:2] == (
        0,
        f"The weights of mine ({run_id}) may be dropped to stay within SCL_DISK_GB.\n",
    )
    keep_within(store, 1e-6)
    assert store.size(run_id).weights == 0
    status, out, err = run("keep", run_id)
    assert (status, out) == (1, "")
    assert f"mine ({run_id}) has no weights to keep. Its weights were dropped on" in err
    assert "raise SCL_DISK_GB and run the same settings again" in err


def finished(tmp_path: Path) -> tuple[Store, str]:
    """Make a finished run with 2 MB of weights and 1 MB of frames."""
    store, run_id = made(tmp_path)
    store.claim_next(range(1))
    attempt = store.attempt(run_id, 1)
    fill(attempt.folder, {"checkpoint.safetensors": 2 * 2**20, "frame-0000001.safetensors": 2**20})
    attempt.end(Status.FINISHED)
    return store, run_id
