"""Every form of export: named after the run, complete or absent. Tests of each of the small ones."""

from __future__ import annotations

import csv
import io
import json
import socket
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.cli.main import draft_from, fit
from core.config import FILE_TASK, KnobTurn, RunConfig, parse_config
from core.config.edit import with_full_objective
from core.config.presets import PRESETS
from core.errors import PlaygroundError, StoreError
from core.events import Evaluation, Step
from core.exports.entry import export_bytes, file_stem, write_export
from core.exports.registry import EXPORTS
from core.exports.small_exports import COMMAND, command_line, curves_csv
from core.messages import ENGLISH, in_language
from core.store import RunRecord, Store
from tests.cases import each


class TestEveryForm:
    @pytest.mark.parametrize("name", list(EXPORTS))
    def test_it_is_written_under_the_name_of_the_run_or_not_at_all(
        self, store: Store, run: RunRecord, tmp_path: Path, name: str
    ) -> None:
        store.rename(run.id, "τ 0.1 / <b>../x</b>")
        one = EXPORTS[name]
        path = tmp_path / one.file_name(store.run(run.id))
        assert path.name.startswith(f"τ-0-1-b-x-b-{run.id}")
        assert one.refusal(store, store.run(run.id)) is None
        write_export(one, store, run.id, path)
        assert path.is_dir() if one.folder else path.stat().st_size > 0
        assert [left.name for left in tmp_path.glob(".export-*")] == []
        store.rename(run.id, "")
        with pytest.raises(StoreError, match="made could not be written"):
            write_export(one, store, run.id, tmp_path / "nowhere" / "made")

    def test_a_folder_that_is_there_is_left_alone(self, store: Store, run: RunRecord, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "mine.txt").write_text("mine")
        for one in EXPORTS.values():
            if one.folder:
                with pytest.raises(StoreError, match="there exists already: give the name of a new folder"):
                    write_export(one, store, run.id, tmp_path / "there")
        assert [path.name for path in (tmp_path / "there").iterdir()] == ["mine.txt"]

    @pytest.mark.usefixtures("foreign")
    @pytest.mark.parametrize("name", ["config", "command", "curves", "replay"])
    def test_a_file_for_programs_is_the_same_in_every_language(
        self, store: Store, run: RunRecord, tmp_path: Path, name: str
    ) -> None:
        write_export(EXPORTS[name], store, run.id, tmp_path / "spoken")
        with in_language(ENGLISH):
            write_export(EXPORTS[name], store, run.id, tmp_path / "english")
        assert (tmp_path / "spoken").read_bytes() == (tmp_path / "english").read_bytes()

    @pytest.mark.usefixtures("foreign")
    @pytest.mark.parametrize("name", ["replay", "html", "model"])
    def test_a_run_that_goes_on_is_refused_in_the_language_that_is_spoken_but_gives_its_settings(
        self, elsewhere: Store, draft: Callable[..., RunConfig], tmp_path: Path, name: str
    ) -> None:
        run_id = elsewhere.create(draft())
        with pytest.raises(StoreError, match=r"^«") as refused:
            write_export(EXPORTS[name], elsewhere, run_id, tmp_path / "made")
        assert "is «queued»: " in str(refused.value)
        assert [*tmp_path.glob("made*")] == []
        write_export(EXPORTS["config"], elsewhere, run_id, tmp_path / "config.json")

    def test_a_folder_reaches_a_browser_packed_under_its_name_and_a_file_as_it_is(
        self, store: Store, run: RunRecord
    ) -> None:
        packed = export_bytes(EXPORTS["tensorboard"], store, run.id)
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            assert {name.split("/")[0] for name in archive.namelist()} == {f"{file_stem(run)}-tensorboard"}
        assert parse_config(json.loads(export_bytes(EXPORTS["config"], store, run.id))) == run.effective

    def test_an_unknown_form_names_those_that_exist(self) -> None:
        with pytest.raises(PlaygroundError, match="config, command, script, curves, html, replay"):
            EXPORTS.entry("docx")


def taken(command: str) -> RunConfig:
    """Return the draft that `fit` makes of a command, as the shell splits it."""
    printed = command.replace(COMMAND, r"printf '%s\0'", 1)
    words = subprocess.run(["sh", "-c", printed], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    given: dict[str, Any] = fit.make_context("fit", words).params
    return draft_from({name: value for name, value in given.items() if value not in (None, (), False)})


class TestCommandLine:
    @each("name", list(PRESETS))
    def test_fit_takes_it_for_every_objective(self, name: str) -> None:
        phases = [with_full_objective(phase) for phase in PRESETS[name].phases({"steps": 20, "batch_size": 8})]
        config = parse_config({"phases": phases, "seed": 4, "task": {"id": "news_topics", "train_size": 64}})
        assert taken(command_line(config)) == config

    def test_it_repeats_a_run_with_its_turns(self, run: RunRecord) -> None:
        turned = run.effective.model_copy(
            update={"knob_turns": (KnobTurn.model_validate({"step": 2, "name": "temperature", "value": 0.1}),)}
        )
        found = taken(command_line(turned))
        # The rows are those of the file. Their hash and name are computed before launch.
        assert found == turned.model_copy(
            update={"task": turned.task.model_copy(update={"content_hash": None, "name": None})}
        )

    def test_names_of_columns_and_files_are_quoted(self) -> None:
        config = parse_config(
            {
                "task": {
                    "id": FILE_TASK,
                    "path": "my data/$(rm -rf) 'x'.csv",
                    "test_path": "te st.csv",
                    "reading": {"text": "the; text", "delimiter": ";"},
                    "drop": ["empty_text"],
                },
                "name": 'a `b` "c"',
            }
        )
        assert taken(command_line(config)) == config


def test_curves_as_csv_have_scores_beside_steps() -> None:
    scored = [Evaluation(0, "validation", {"accuracy": 0.5}), Evaluation(2, "validation", {"accuracy": 0.75})]
    text = curves_csv([Step(1, {"loss": 1.5}), Step(2, {"loss": 1.25})], scored)
    assert list(csv.DictReader(text.splitlines())) == [
        {"step": "0", "loss": "", "validation.accuracy": "0.5"},
        {"step": "1", "loss": "1.5", "validation.accuracy": ""},
        {"step": "2", "loss": "1.25", "validation.accuracy": "0.75"},
    ]


def test_tensorboard_reads_every_number_and_nothing_of_the_machine(
    store: Store, run: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # A name of two letters could be found by chance.
    monkeypatch.setattr(socket, "gethostname", lambda: "the-machine-of-this-test")
    write_export(EXPORTS["tensorboard"], store, run.id, tmp_path / "logs")
    events = EventAccumulator(str(tmp_path / "logs")).Reload()
    wanted = {f"train/{name}" for step in store.steps(run.id) for name in step.values}
    wanted |= {f"{one.split}/{name}" for one in store.evaluations(run.id) for name in one.values}
    assert set(events.Tags()["scalars"]) == wanted
    losses = [(scalar.step, scalar.value) for scalar in events.Scalars("train/loss")]
    assert losses == [(step.step, pytest.approx(step.values["loss"])) for step in store.steps(run.id)]
    (config,) = events.Tensors("config/text_summary")
    assert f'"seed": {run.config.seed}' in config.tensor_proto.string_val[0].decode()
    (path,) = (path for path in (tmp_path / "logs").rglob("*") if path.is_file())
    assert str(Path(run.config.encoder.id).parent).encode() not in path.read_bytes()
    assert socket.gethostname().encode() not in path.read_bytes()
    assert socket.gethostname() not in path.name
