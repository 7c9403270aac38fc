"""An experiment as a file: what is read from it shows what the experiment showed."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from core.artifacts.packed import write_members
from core.config.folders import without_folders
from core.errors import StoreError
from core.experiments.archive import ABOUT, PREDICTIONS, open_archive, write_archive
from core.experiments.design import parse_design
from core.experiments.results import results
from core.experiments.shipped_experiments import FOLDER, SHIPPED_EXPERIMENTS, main
from core.store import ExperimentTable, Status, Store
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


def test_it_is_opened_once_and_wants_no_runs(archive: Path, elsewhere: Store) -> None:
    first = open_archive(elsewhere, archive)
    runs = {run.id for run in elsewhere.runs()}
    assert open_archive(elsewhere, archive) == first
    assert {run.id for run in elsewhere.runs()} == runs
    assert all(run.of_experiment and run.status == Status.FINISHED for run in elsewhere.runs())
    assert not ExperimentTable(elsewhere.folder).experiment(first).wanted


def test_what_was_deleted_comes_back(archive: Path, elsewhere: Store) -> None:
    first = open_archive(elsewhere, archive)
    table = ExperimentTable(elsewhere.folder)
    table.discard(first)
    elsewhere.discard(elsewhere.runs()[0].id)
    open_archive(elsewhere, archive)
    assert [one.id for one in table.experiments()] == [first]
    assert len(elsewhere.runs()) == 6


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


def _cell(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["runs"][0]["cell"] = 9


def _seed(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["runs"][0]["seed"] = 9


def _twice(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["runs"].append(about["runs"][0])


def _format(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["format"] = 2


def _column(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["runs"][1]["steps"] = {"loss": [1.0, 0.5], "grad_norm": [1.0]}


def _config(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["runs"][-1]["config"]["seed"] = -1


def _design(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["design"]["seeds"] = []


def _score(about: dict[str, Any], _arrays: dict[str, Any]) -> None:
    about["runs"][0]["scores"][0]["values"]["accuracy"] = "high"


def _no_logits(_about: dict[str, Any], arrays: dict[str, Any]) -> None:
    del arrays["0.0"]


def _flat_logits(_about: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["0.1"] = arrays["0.1"].reshape(-1)


def _fewer_logits(_about: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["0.1"] = arrays["0.1"][:-1]


def _no_number(_about: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["1.1"][0, 0] = np.nan


def _no_class(_about: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["labels.1.0"][0] = 7


def _one_label(_about: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["labels.1.0"] = np.zeros((), np.int32)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_cell, "its runs are not those of its design"),
        (_seed, "its runs are not those of its design"),
        (_twice, "its runs are not those of its design"),
        (_format, "format: Input should be 1"),
        (_column, "steps of run 0.1 differ in number"),
        (_config, "seed = -1"),
        (_design, "seeds"),
        (_score, "accuracy"),
        (_no_logits, "logits and labels of each run"),
        (_flat_logits, "predictions.safetensors: 0.1"),
        (_fewer_logits, "predictions.safetensors: 0.1"),
        (_no_number, "predictions.safetensors: 1.1"),
        (_no_class, "predictions.safetensors: 1.0"),
        (_one_label, "predictions.safetensors: 1.0"),
    ],
)
def test_what_does_not_belong_together_leaves_nothing(
    archive: Path, elsewhere: Store, damage: Callable[[dict[str, Any], dict[str, Any]], None], why: str
) -> None:
    with zipfile.ZipFile(archive) as file:
        about, arrays = json.loads(file.read(ABOUT)), load(file.read(PREDICTIONS))
    damage(about, arrays)
    write_members(archive, {ABOUT: json.dumps(about), PREDICTIONS: save(arrays)})
    _check_refusal(archive, elsewhere, why)


@pytest.mark.parametrize("name", [ABOUT, PREDICTIONS])
@pytest.mark.parametrize("tenths", range(1, 10, 2))
def test_a_byte_that_was_turned_is_found(archive: Path, elsewhere: Store, name: str, tenths: int) -> None:
    with zipfile.ZipFile(archive) as file:
        info = file.getinfo(name)
    text = bytearray(archive.read_bytes())
    text[info.header_offset + 30 + len(name) + info.compress_size * tenths // 10] ^= 0xFF
    archive.write_bytes(text)
    _check_refusal(archive, elsewhere, f"decompressing|CRC-32 .*'{name}'")


def test_what_is_no_archive_is_refused(archive: Path, elsewhere: Store) -> None:
    archive.write_bytes(archive.read_bytes()[:200])
    _check_refusal(archive, elsewhere, "not a zip file")
    archive.write_bytes(b"")
    _check_refusal(archive, elsewhere, "not a zip file")
    archive.unlink()
    _check_refusal(archive, elsewhere, "No such file")


def _check_refusal(archive: Path, elsewhere: Store, why: str) -> None:
    """In one sentence, and nothing is created."""
    with pytest.raises(StoreError, match=rf"^made\.zip is damaged, or not an experiment \(.*({why}).*\): take it"):
        open_archive(elsewhere, archive)
    assert elsewhere.runs() == []
    assert ExperimentTable(elsewhere.folder).experiments() == []


def test_nothing_else_lies_there() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.zip" for name in SHIPPED_EXPERIMENTS}


@pytest.mark.parametrize("name", SHIPPED_EXPERIMENTS)
def test_those_of_the_project_are_their_protocols(name: str, store: Store) -> None:
    one = SHIPPED_EXPERIMENTS[name]
    assert one.path.stat().st_size <= 1_500_000
    experiment = ExperimentTable(store.folder).experiment(open_archive(store, one.path))
    design = parse_design(experiment.design)
    assert design == one.design
    assert len(store.runs()) == design.runs
    for measure, split in (("accuracy", "test"), ("linear_svm", "validation")):
        found = results(store, experiment.id, design, measure=measure, split=split)
        assert all(cell.seeds == len(design.seeds) for cell in found.cells)


def test_a_name_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "nothing is none of them: choose few-shot" in capsys.readouterr().err
