"""An experiment as a file: what is read from it shows what the experiment showed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from core.errors import StoreError
from core.experiments.archive import ABOUT, open_archive, write_archive
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


@pytest.fixture
def elsewhere(tmp_path: Path) -> Store:
    return Store(tmp_path / "elsewhere")


def test_it_shows_what_the_experiment_showed(store: Store, archive: Path, elsewhere: Store) -> None:
    shown = []
    for place, experiment_id in ((store, None), (elsewhere, open_archive(elsewhere, archive))):
        table = ExperimentTable(place.folder)
        experiment = table.experiment(experiment_id or table.experiments()[0].id)
        design = parse_design(experiment.design)
        found = results(place, experiment, design, measure="accuracy", split="test")
        comparisons = [cell.comparison.difference for cell in found.cells if cell.comparison is not None]
        shown.append((design, [cell.scores for cell in found.cells], comparisons))
    assert shown[0] == shown[1]
    assert shown[0][2][0].examples == 20


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


def test_the_same_experiment_gives_the_same_bytes(store: Store, archive: Path, tmp_path: Path) -> None:
    write_archive(store, ExperimentTable(store.folder).experiments()[0].id, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_one_that_goes_on_is_not_written(store: Store, design: Make, tmp_path: Path) -> None:
    engine = InstantEngine(store)
    engine.holding = True
    with pytest.raises(StoreError, match="not finished"):
        write_archive(store, Here(engine).begin(design()), tmp_path / "made.zip")
    assert not (tmp_path / "made.zip").exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "cell", "format"])
def test_what_is_damaged_leaves_nothing(archive: Path, elsewhere: Store, damage: str) -> None:
    with zipfile.ZipFile(archive) as file:
        members = {name: file.read(name) for name in file.namelist()}
    about = json.loads(members[ABOUT])
    if damage == "cell":
        about["runs"][0]["cell"] = 9
    if damage == "format":
        about["format"] = 2
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in (members | {ABOUT: json.dumps(about).encode()}).items():
            file.writestr(name, content)
    if damage in ("empty", "cut"):
        archive.write_bytes(b"" if damage == "empty" else archive.read_bytes()[:200])
    with pytest.raises(StoreError, match=r"made\.zip is damaged"):
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
        found = results(store, experiment, design, measure=measure, split=split)
        assert all(cell.seeds == len(design.seeds) for cell in found.cells)


def test_a_name_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "nothing is none of them: choose few-shot" in capsys.readouterr().err
