"""Stores of two earlier commits, opened, shown, resumed and exported by the current code.

tests/fixtures holds a store of version 0.1.0 (schema 7) and one of the last commit before 0.2.0.dev0 (schema 10), each
with the values that the code of its commit read. make_store.py lists their contents and how to make them again.
"""

from __future__ import annotations

import csv
import json
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import pytest

from core.artifacts.maps import read_maps, steps_source
from core.artifacts.replay import open_replay
from core.config import parse_config
from core.config.compare import config_hash
from core.config.edit import from_settings
from core.config.presets import EARLIER, PRESETS
from core.exports.entry import write_export
from core.exports.registry import EXPORTS
from core.lab.process import LabProcess
from core.models import source
from core.representation.projections import MapSpec
from core.store import Status, Store, TaskLibrary
from core.store.database import MIGRATIONS
from core.store.job_table import JobTable
from core.store.liveness import boot_id, host_name
from core.training.checkpoints import Checkpoints
from core.workers import Jobs, LocalEngine, machine, processes
from pages.ui.lesson.position import TABLES
from tests.cases import slow_but
from tests.core.workers.test_branches import carry_out
from tests.fixtures.facts import (
    ENCODER,
    ENCODER_FOLDER,
    FILES,
    LOST_FILE,
    address_of,
    draw,
    experiment_facts,
    hash_rows,
    job_facts,
    launched_config,
    read_rows,
    run_facts,
    task_facts,
)

ROOT = Path(__file__).resolve().parents[3]
STORES = ROOT / "tests" / "fixtures"
# Processors round differently. On the machine that made the stores, the losses are equal to the last bit.
ROUNDING = 1e-5


class Fixture(NamedTuple):
    """An unpacked store.

    Attributes:
        expected: the values that the code of its commit read.
        stored: the config of each run as the commit wrote it.
    """

    folder: Path
    store: Store
    expected: dict[str, Any]
    stored: dict[str, str]

    def id(self, end: str) -> str:
        """Return the id of the run with this end."""
        return str(self.expected["runs"][end]["id"])


def unpack(name: str, folder: Path) -> None:
    with zipfile.ZipFile(STORES / f"{name}.zip") as file:
        file.extractall(folder)


@pytest.fixture(params=["schema_7", "schema_10"])
def fixture(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    """Open a store with the current code, in a process that starts no others."""
    unpack(request.param, tmp_path)
    expected = json.loads((STORES / f"{request.param}.json").read_text(encoding="utf-8"))
    monkeypatch.setitem(source._PLACED, ENCODER, tmp_path / ENCODER_FOLDER)
    monkeypatch.setenv("SCL_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(ROOT)
    for starter in (LocalEngine, LabProcess):
        monkeypatch.setattr(starter, "warm_up", lambda _: None)
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    monkeypatch.setattr(processes, "spawn", lambda *_: None)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2**40)
    database = sqlite3.connect(tmp_path / "runs" / "runs.sqlite3")
    stored = dict(database.execute("SELECT id, config FROM runs"))
    database.close()
    return Fixture(tmp_path, Store(tmp_path / "runs"), expected, stored)


def assert_kept(before: Any, now: Any, where: str = "config") -> None:
    """Assert that a config has every value that it had. It may have more fields."""
    if isinstance(before, dict):
        for name, value in before.items():
            assert name in now, f"{where}.{name} is gone"
            assert_kept(value, now[name], f"{where}.{name}")
    elif isinstance(before, list):
        for number, (value, later) in enumerate(zip(before, now, strict=True)):
            assert_kept(value, later, f"{where}.{number}")
    else:
        assert now == before, where


KILLED = """
import os, signal, sys
from core.store import Store, migrations
migrations.config_hash = lambda text: os.kill(os.getpid(), signal.SIGKILL)
Store(sys.argv[1])
"""


def test_a_migration_that_is_killed_goes_on_and_leaves_the_store_as_it_was_beside_it(tmp_path: Path) -> None:
    """Kill the migration to schema 8 at its first hash, after it has changed the table of runs."""
    unpack("schema_7", tmp_path)
    folder = tmp_path / "runs"
    killed = subprocess.run([sys.executable, "-c", KILLED, folder], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    expected = json.loads((STORES / "schema_7.json").read_text(encoding="utf-8"))["runs"]
    with closing(Store(folder)) as store:
        assert {run.id for run in store.runs()} == {one["id"] for end, one in expected.items() if end != "deleted"}
    with closing(sqlite3.connect(folder / "runs.sqlite3.schema-7")) as copy:
        assert copy.execute("SELECT count(*) FROM _sqlite_migrations").fetchone() == (7,)
        assert copy.execute("SELECT count(*) FROM runs").fetchone() == (len(expected),)
    assert not list(folder.glob("*.partial"))


def test_jobs_of_every_end_and_a_paused_run_are_carried_over(tmp_path: Path) -> None:
    unpack("schema_10", tmp_path)
    dead = json.dumps({"host": host_name(), "boot_id": boot_id(), "pid": 2**22 - 1, "started_at": 1.0})
    with closing(sqlite3.connect(tmp_path / "runs" / "runs.sqlite3")) as database:
        database.execute("DELETE FROM jobs")
        kinds = ("map", "hub", "hub", "hub", "hub", "hub", "run")
        statuses = ("waiting", "running", "running", "done", "failed", "cancelled", "waiting")
        ends_asked = (None, None, 5.0, None, None, 4.0, None)
        for number, (kind, status, asked) in enumerate(zip(kinds, statuses, ends_asked, strict=True)):
            database.execute(
                "INSERT INTO jobs (id, kind, label, request, warm_group, status, worker, message, created_at, "
                "updated_at, cancelled_at) VALUES (?, ?, 'A job', '{}', ?, ?, ?, 'It said so.', 1, ?, ?)",
                (f"job{number}", kind, "maps" if kind == "map" else None, status, dead, time.time(), asked),
            )
        (paused,) = database.execute("SELECT id FROM runs WHERE status = 'finished' LIMIT 1").fetchone()
        database.execute("UPDATE runs SET status = 'paused', worker = ? WHERE id = ?", (dead, paused))
        database.commit()
    table = JobTable(tmp_path / "runs")
    found = [(job.id, job.status, str(job.message)) for job in table.jobs()]
    lost = "The job's process ended early: start the job again."
    assert found == [
        ("job5", "stopped", "Cancelled."),
        ("job4", "failed", "It said so."),
        ("job3", "finished", "It said so."),
        ("job2", "stopped", "Cancelled."),
        ("job1", "interrupted", lost),
        ("job0", "queued", "starting"),
    ]
    assert table.find_pending_ids("maps") == ["job0"]
    with closing(Store(tmp_path / "runs")) as store:
        assert store.run(paused).status == Status.INTERRUPTED


def test_every_run_reads_as_the_commit_read_it(fixture: Fixture) -> None:
    store = fixture.store
    assert store._recorded() == MIGRATIONS
    assert store.unreadable_runs() == []
    expected = fixture.expected["runs"]
    assert {end: run["status"] for end, run in expected.items()} == {
        "finished": "finished",
        "interrupted": "interrupted",
        "stopped": "stopped",
        "running": "interrupted",
        "queued": "queued",
        "failed": "failed",
        "deleted": "stopped",
        "replayed": "finished",
    }
    assert fixture.id("deleted") not in {run.id for run in store.runs()}
    store.restore(fixture.id("deleted"))
    listed = {run.id: (run.title, str(run.status), list(run.tags)) for run in store.runs()}
    for run in expected.values():
        assert listed[run["id"]] == (run["title"], run["status"], run["tags"])
        assert {"id": run["id"]} | run_facts(store, run["id"]) == run


def test_every_config_says_what_it_said_and_has_the_same_hash(fixture: Fixture) -> None:
    store = fixture.store
    store.restore(fixture.id("deleted"))
    # The first had a knob turn, and the second ran on another machine.
    not_repeatable = {fixture.id("finished"), fixture.id("replayed")}
    for run_id, text in fixture.stored.items():
        config = store.run(run_id).config
        assert_kept(json.loads(text), json.loads(config.to_json()))
        # Hash the text from the commit and the text from the current code.
        assert config_hash(text) == config_hash(config.to_json())
        assert run_id in not_repeatable or store.same_as(config) == run_id
    assert [run.id for run in store.runs() if run.adopted] == [fixture.id("replayed")]
    for end, value in fixture.expected.get("config_hashes", {}).items():
        assert config_hash(store.run(fixture.id(end)).config.to_json()) == value
    exported = (fixture.folder / "config.json").read_text(encoding="utf-8")
    assert parse_config(exported) == store.run(fixture.id("finished")).effective
    assert_kept(json.loads(exported), json.loads(parse_config(exported).to_json()))


def test_every_preset_is_the_draft_that_it_was(fixture: Fixture) -> None:
    """Check each draft, as JSON and as the settings in a link. The task's defaults may have changed since."""
    presets = json.loads((fixture.folder / "presets.json").read_text(encoding="utf-8"))
    assert set(presets) <= {*PRESETS, *EARLIER}
    for given in presets.values():
        assert_kept(given["draft"], json.loads(parse_config(given["draft"]).to_json()))
        linked = json.loads(from_settings(given["settings"]).to_json())
        assert_kept(given["draft"] | {"task": {}}, linked)


def test_every_task_has_its_rows_and_its_file_is_read_alike(fixture: Fixture) -> None:
    library, expected = TaskLibrary(fixture.store.folder), fixture.expected["tasks"]
    kept = {expected[name]["id"] for name, (_options, discarded) in FILES.items() if not discarded}
    assert {task.id for task in library.tasks()} == kept
    for name, (_options, discarded) in FILES.items():
        if discarded:
            library.restore(expected[name]["id"])
        assert task_facts(library, library.task(expected[name]["id"])) == expected[name]
        assert hash_rows(read_rows(fixture.folder / "files" / name)[0]) == expected[name]["hash"]


def test_jobs_and_the_map_that_one_placed_are_there(fixture: Fixture) -> None:
    store = fixture.store
    assert [job_facts(job) for job in Jobs(store.folder).jobs()] == fixture.expected["jobs"]
    run = store.run(fixture.id("finished"))
    steps = tuple(store.frame_steps(run.id))
    maps = read_maps(steps_source(store, run, steps).folder(store.run_folder(run.id), MapSpec("pca", 3)), steps)
    assert {step: points.shape for step, points in maps.items()} == dict.fromkeys(steps, (18, 3))


def test_the_experiment_has_its_results(fixture: Fixture) -> None:
    expected = fixture.expected["experiment"]
    assert (expected is None) == (fixture.expected["schema"] < 8)  # earlier versions had no experiments
    if expected is not None:
        found = experiment_facts(fixture.store, expected["id"])
        assert_kept(expected.pop("design"), found.pop("design"))
        assert found == expected


def test_unfinished_runs_end_as_if_nothing_had_happened(fixture: Fixture) -> None:
    """One resumes from a checkpoint, one from the step at which it was stopped, and one from the beginning."""
    store, ends = fixture.store, ("interrupted", "stopped", "running")
    store.send(fixture.id("queued"), "stop")
    resumed_at = {}
    for end in ends:
        run_id = fixture.id(end)
        LocalEngine(store).resume(run_id)
        resumed_at[end] = Checkpoints(store.run_folder(run_id)).step() or 0
        carry_out(LocalEngine(store))
        run = store.run(run_id)
        assert (run.status, run.last_step) == (Status.FINISHED, run.steps)
        losses = [step.values["loss"] for step in store.steps(run_id)]
        assert losses == pytest.approx(fixture.expected["uninterrupted_losses"][end], rel=ROUNDING)
        assert tuple(store.frame_steps(run_id)) == run.config.probe.frame_steps
        assert {"test", "validation"} <= {one.split for one in store.evaluations(run_id)}
    assert resumed_at == {"interrupted": 4, "stopped": 3, "running": 0}
    # The rows came from the store, since the file is gone.
    assert store.run(fixture.id("stopped")).config.task.path == LOST_FILE


def test_the_finished_run_is_exported_in_every_form(fixture: Fixture) -> None:
    store, folder = fixture.store, fixture.folder / "exported"
    folder.mkdir()
    run = store.run(fixture.id("finished"))
    for name, export in EXPORTS.items():
        write_export(export, store, run.id, folder / name)
        assert any((folder / name).iterdir()) if export.folder else (folder / name).stat().st_size > 0
    assert parse_config((folder / "config").read_text(encoding="utf-8")) == run.effective
    with (folder / "curves").open(encoding="utf-8") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file) if row["loss"]]
    assert losses == fixture.expected["runs"]["finished"]["losses"]
    # The replay from the commit, and one by the current code.
    replays = (fixture.folder / "replay.zip", folder / "replay")
    older, newer = (store.run(open_replay(store, path)) for path in replays)
    assert (older.title, older.status, older.effective) == (newer.title, newer.status, newer.effective)
    facts = [run_facts(store, one.id) for one in (older, newer)]
    for known in ("probe", "tokens", "steps", "evaluations", "frames"):
        assert facts[0][known] == facts[1][known], known
    assert store.frame_steps(older.id) == store.frame_steps(run.id)


# The links of version 0.1.0 have the pages and names of the first seven of the later store.
@pytest.mark.parametrize("fixture", slow_but(["schema_10"], ["schema_7", "schema_10"]), indirect=True)
def test_every_link_shows_what_it_showed(fixture: Fixture) -> None:
    """Open links to every page. Only the later store has those to Experiments and the loss lab."""
    for link in [*fixture.expected["links"], {"link": "experiments", "address": "experiments?"}]:
        page, _, query = link["link"].partition("?")
        # A page keeps unknown names in the address.
        assert {name for name, _value in parse_qsl(query)} <= TABLES[page].items().keys()
        app = draw(link["link"])
        assert not app.exception, link["link"]
        assert not app.warning, (link["link"], app.warning)
        assert not app.error, (link["link"], app.error)
        if "config" in link:
            # The drafts may differ: "auto" is newer than 0.1.0, and resolves to the behaviour of 0.1.0.
            assert_kept(link["config"], launched_config(app, fixture.store.folder))
        else:
            assert address_of(app, link["link"]) == link["address"]
    app = draw("runs")
    titles = {run["title"] for end, run in fixture.expected["runs"].items() if end != "deleted"}
    assert titles <= set(app.dataframe[0].value["Run"])
