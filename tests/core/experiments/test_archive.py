"""An experiment as a file: after reading, it shows the same results."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from core.artifacts.packed import write_members
from core.config.run import without_folders
from core.errors import StoreError
from core.experiments.archive import ABOUT, PREDICTIONS, open_archive, write_archive
from core.experiments.design import parse_design
from core.experiments.results import results
from core.experiments.shipped_experiments import FOLDER, SHIPPED_EXPERIMENTS, design_of, main, path_of
from core.store import ExperimentTable, Status, Store
from tests.cases import each
from tests.core.experiments.conftest import Here, Make
from tests.core.experiments.instant import InstantEngine


@pytest.fixture
def archive(store: Store, design: Make, tmp_path: Path) -> Path:
    experiments = Here(InstantEngine(store, lambda config: 12 + config.seed % 3))
    write_archive(store, experiments.begin(design(seeds=3)), tmp_path / "made.zip")
    return tmp_path / "made.zip"


def test_it_shows_what_the_experiment_showed(store: Store, archive: Path, elsewhere: Store) -> None:
    shown = []
    for place, experiment_id in ((store, None), (elsewhere, open_archive(elsewhere, archive))):
        table = ExperimentTable(place.folder)
        experiment = table.experiment(experiment_id or table.experiments()[0].id)
        design = parse_design(experiment.design)
        found = results(place, experiment.id, design, measure="accuracy", split="test")
        comparisons = [cell.comparison.difference for cell in found.cells if cell.comparison is not None]
        shown.append((without_folders(design.base), design.axes, [cell.scores for cell in found.cells], comparisons))
    assert shown[0] == shown[1]
    assert shown[0][3][0].examples == 20


def test_it_is_opened_once_wants_no_runs_and_what_was_deleted_comes_back(archive: Path, elsewhere: Store) -> None:
    first = open_archive(elsewhere, archive)
    table = ExperimentTable(elsewhere.folder)
    runs = {run.id for run in elsewhere.runs()}
    assert len(runs) == 6
    assert all(run.of_experiment and run.status == Status.FINISHED for run in elsewhere.runs())
    assert not table.experiment(first).wanted
    for discards in (False, True):
        if discards:
            table.discard(first)
            elsewhere.discard(elsewhere.runs()[0].id)
        assert open_archive(elsewhere, archive) == first
        assert [one.id for one in table.experiments()] == [first]
        assert {run.id for run in elsewhere.runs()} == runs


def test_a_value_that_a_step_lacks_stays_missing(store: Store, archive: Path, elsewhere: Store, tmp_path: Path) -> None:
    experiment = ExperimentTable(store.folder).experiments()[0].id
    run_id = str(ExperimentTable(store.folder).runs(experiment)[0].run_id)
    recorded = [{"loss": 0.5}, {"loss": 0.25, "loss.scl": 2.0}, {"loss": 0.1, "grad_norm": 0.0}]
    with store.transaction() as db:
        insert = "INSERT INTO steps (run_id, step, at, measures) VALUES (?, ?, 0, ?)"
        db.executemany(insert, [(run_id, number, json.dumps(values)) for number, values in enumerate(recorded, 1)])
    write_archive(store, experiment, tmp_path / "again.zip")
    open_archive(elsewhere, tmp_path / "again.zip")
    shown = [[dict(step.values) for step in elsewhere.steps(run.id)] for run in elsewhere.runs()]
    assert recorded in shown


def test_one_that_goes_on_is_not_written(store: Store, design: Make, tmp_path: Path) -> None:
    engine = InstantEngine(store)
    engine.holding = True
    with pytest.raises(StoreError, match="not finished"):
        write_archive(store, Here(engine).begin(design()), tmp_path / "made.zip")
    assert not (tmp_path / "made.zip").exists()


def test_folders_of_the_machine_stay_out(archive: Path, small_csv: Path, tiny_encoder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        texts = [file.read(name) for name in file.namelist()]
    for place in (small_csv, tiny_encoder):
        assert any(place.name.encode() in text for text in texts)
        assert not any(str(place.parent).encode() in text for text in texts)


def test_the_same_experiment_gives_the_same_bytes(
    store: Store, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time() + 100
    monkeypatch.setattr(time, "time", lambda: later)
    write_archive(store, ExperimentTable(store.folder).experiments()[0].id, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


# Config and scores of a run are checked as those of a replay, whose tests have more cases.
@each(
    ("place", "value", "why"),
    [
        (("runs", 0, "cell"), 9, "its runs do not match its design"),
        (("runs", 0, "seed"), 9, "its runs do not match its design"),
        (("runs", 0, "seed"), 1, "its runs do not match its design"),
        (("format",), 2, "format: Input should be 1"),
        (("runs", 1, "steps"), {"loss": [1.0, 0.5], "grad_norm": [1.0]}, "different numbers of steps for run 0.1"),
        (("runs", 0, "config", "task", "path"), "/etc/passwd", "task.path names a folder"),
        (("runs", 0, "scores", 0, "values"), {"accuracy": 0.5, "macro_f1": 0.5}, "accuracy_high are fractions"),
        (("runs", 0, "seconds"), 1e308, "seconds"),
        (("design", "seeds"), [], "seeds"),
        (("0.0",), None, "logits and labels of each run"),
        (("0.1",), np.zeros(40, np.float16), "predictions.safetensors: 0.1"),
        (("0.1",), np.zeros((19, 2), np.float16), "predictions.safetensors: 0.1"),
        (("1.1",), np.full((20, 2), np.nan, np.float16), "predictions.safetensors: 1.1"),
        (("labels.1.0",), np.full(20, 7, np.int32), "predictions.safetensors: 1.0"),
        (("labels.1.0",), np.zeros((), np.int32), "predictions.safetensors: 1.0"),
    ],
)
def test_what_does_not_belong_together_leaves_nothing(
    archive: Path, elsewhere: Store, place: tuple[str | int, ...], value: Any, why: str
) -> None:
    with zipfile.ZipFile(archive) as file:
        about, arrays = json.loads(file.read(ABOUT)), load(file.read(PREDICTIONS))
    changed = archive.with_name("changed.zip")
    target: Any = about if place[0] in about else arrays
    for part in place[:-1]:
        target = target[part]
    target[place[-1]] = value
    kept = {name: array for name, array in arrays.items() if array is not None}
    write_members(changed, {ABOUT: json.dumps(about), PREDICTIONS: save(kept)})
    _check_refusal(changed, elsewhere, why)


def test_what_is_damaged_or_no_archive_is_refused(archive: Path, elsewhere: Store) -> None:
    changed = archive.with_name("changed.zip")
    changed.write_bytes(archive.read_bytes()[:200])
    _check_refusal(changed, elsewhere, "not a zip file")
    changed.unlink()
    _check_refusal(changed, elsewhere, "No such file")


def _check_refusal(archive: Path, elsewhere: Store, why: str) -> None:
    """Check that opening is refused with one sentence and creates nothing."""
    with pytest.raises(
        StoreError, match=rf"^changed\.zip is damaged, or not an experiment \(.*({why}).*\): restore it"
    ):
        open_archive(elsewhere, archive)
    assert elsewhere.runs() == []
    assert ExperimentTable(elsewhere.folder).experiments() == []


def test_nothing_else_lies_there() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.zip" for name in SHIPPED_EXPERIMENTS}


@pytest.mark.parametrize("name", SHIPPED_EXPERIMENTS)
def test_those_of_the_project_are_their_protocols(name: str, store: Store) -> None:
    assert path_of(name).stat().st_size <= 1_500_000
    experiment = ExperimentTable(store.folder).experiment(open_archive(store, path_of(name)))
    design = parse_design(experiment.design)
    assert design == design_of(name)
    assert len(store.runs()) == design.runs
    for measure, split in (("accuracy", "test"), ("linear_svm", "validation")):
        found = results(store, experiment.id, design, measure=measure, split=split)
        assert all(cell.seeds == len(design.seeds) for cell in found.cells)


def test_a_name_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "nothing is not a shipped experiment: choose few-shot" in capsys.readouterr().err
