"""Attempts by a visitor of a shared server to reach files and runs of others."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import streamlit
import yaml
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest

from core.cli.main import cli, main
from core.cli.sweeps import sweep
from core.config import TaskConfig, parse_config
from core.config.fields import build
from core.errors import ConfigError, StoreError, TaskError
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments
from core.models.source import local_folder
from core.settings import settings
from core.store import Store
from core.tasks import load_task
from core.workers import LocalEngine, limits
from core.workers.processes import ROOT
from pages.ui import serving, text_details, visitor
from tests.pages.conftest import APP, KEY, Draft, page


@pytest.fixture
def untrusted(shared: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the same store, for a visitor who is not an admin."""
    monkeypatch.setattr(limits, "_trusted", lambda: False)
    return shared


def draw_views(encoder: str) -> None:
    from pages.ui.text_details import text_views_of

    text_views_of("a film", encoder)


class TestFilesOfTheServer:
    def test_a_visitor_cannot_launch_a_run_that_names_a_file(
        self, untrusted: Store, draft: Draft, tiny_encoder: Path
    ) -> None:
        folder = str(tiny_encoder)
        plain = {"task": {"id": "film_reviews"}, "phases": [{"steps": 2}]}
        view = {"view": "back_translation", "forward": folder}
        objective = {"terms": [{"loss": "supcon", "views": [view, {"view": "back_translation"}]}]}
        attacks: dict[str, dict[str, Any]] = {
            "task.path": {"task": draft().task.model_dump()},
            "task.test_path": {"task": {"id": "film_reviews", "test_path": draft().task.path}},
            "encoder.id": {"encoder": {"id": folder}},
            "task.translators": {
                "task": {"id": "film_reviews", "translators": [folder, folder], "back_translation": 0.7}
            },
            "forward": {"phases": [{"steps": 2, "objective": objective}, {"steps": 2}]},
        }
        engine = LocalEngine(untrusted, slots=range(0))
        for field, attack in attacks.items():
            with pytest.raises(ConfigError, match="only an admin may name") as refused:
                engine.submit(parse_config(plain | attack), "ada")
            assert refused.value.field == field
        assert untrusted.runs() == []

    def test_no_cell_of_a_visitor_s_experiment_names_one(self, untrusted: Store, tiny_encoder: Path) -> None:
        base = {"task": {"id": "film_reviews"}, "phases": [{"steps": 2}]}
        axes = [{"setting": "encoder.id", "values": ["all-MiniLM-L6-v2", str(tiny_encoder)]}]
        experiments = Experiments(LocalEngine(untrusted, slots=range(0)))
        design = build(Design, {"base": parse_config(base).model_dump(mode="json"), "axes": axes})
        with pytest.raises(ConfigError, match="only an admin may name a folder"):
            experiments.begin(design, "ada")
        assert experiments.table.experiments() == []
        assert untrusted.runs() == []

    def test_no_page_reads_one_for_a_visitor(
        self, untrusted: Store, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ConfigError, match="only an admin may name a folder"):
            text_details._counts(str(tiny_encoder), ["a film"])
        monkeypatch.setattr(text_details, "token_strings", lambda *_: pytest.fail("the tokenizer was read"))
        drawn = AppTest.from_function(draw_views, args=(str(tiny_encoder),)).run()
        assert not drawn.exception
        assert any("only an admin may name a folder" in caption.value for caption in drawn.caption)

    def test_settings_of_the_command_line_that_name_a_file_are_reused_by_an_admin_alone(
        self, shared: Store, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_id = LocalEngine(shared, slots=range(0)).submit(draft())
        drawn = page("fine_tune", **{"from": run_id})
        assert any("only an admin may name a file" in error.value for error in drawn.error)
        assert next(button for button in drawn.button if button.label == "Launch").disabled
        monkeypatch.setenv("SCL_ADMINS", '["eve@school.example"]')
        login = {"is_logged_in": True, "email": "eve@school.example"}
        monkeypatch.setattr(type(streamlit.user), "to_dict", lambda _: login)
        drawn = page("fine_tune", **{"from": run_id})
        assert not drawn.error
        assert not next(button for button in drawn.button if button.label == "Launch").disabled

    def test_a_name_does_not_reach_into_the_working_directory(
        self, tiny_encoder: Path, small_csv: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(small_csv.parent)
        with pytest.raises(TaskError, match="is not a full path"):
            load_task(TaskConfig(id="file", path=small_csv.name), 0)
        with pytest.raises(TaskError, match="is not a full path"):
            load_task(TaskConfig(id="film_reviews", test_path=small_csv.name), 0)
        monkeypatch.chdir(tiny_encoder.parent)
        assert local_folder(tiny_encoder.name) is None

    def test_the_command_line_finds_files_of_the_working_directory(
        self, folder: Path, tmp_path: Path, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.cli.main._follow", lambda *_: None)
        monkeypatch.setattr("core.cli.sweeps._follow", lambda *_: None)
        monkeypatch.setattr("core.cli.sweeps._show", lambda *_, **__: None)
        whole = draft()
        assert whole.task.path is not None
        rows, encoder = os.path.relpath(whole.task.path, tmp_path), os.path.relpath(whole.encoder.id, tmp_path)
        monkeypatch.chdir(tmp_path)
        relative = whole.to_json().replace(whole.task.path, rows).replace(whole.encoder.id, encoder)
        Path("run.json").write_text(relative)
        Path("sweep.yaml").write_text(
            f"base: {{task.id: file, task.path: {rows}, device: cpu, encoder.max_length: 32}}\n"
            f"axes: [{{setting: encoder.id, values: [{encoder}]}}]\n"
        )
        cli(["fit", "--config", "run.json", "--runs", "one"], standalone_mode=False)
        options = ["--device", "cpu", "--max-length", "32", "--batch-size", "8"]
        cli(["fit", "--task", rows, "--encoder", encoder, *options, "--runs", "one"], standalone_mode=False)
        sweep(["sweep.yaml", "--runs", "one"], standalone_mode=False)
        for run in Store("one").runs():
            assert Path(str(run.config.task.path)).samefile(whole.task.path)
            assert Path(run.config.encoder.id).samefile(whole.encoder.id)
        assert len(Store("one").runs()) == 3


class TestVisitors:
    @pytest.mark.parametrize("key", ["", "a"])
    def test_a_key_that_is_easily_guessed_is_refused(self, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_ADMIN_KEY", key)
        with pytest.raises(ConfigError, match="SCL_ADMIN_KEY = '…' cannot be used: give at least 12 characters"):
            settings()

    @pytest.mark.parametrize(
        "name",
        [
            "admin",
            "ADMIN\u200b",
            "Аdmin",
            "ａｄｍｉｎ",
            "System",
            "the server",
            "服务器",
            "관리자",
            "visitor 0381",
            "a@b.org",
        ],
    )
    def test_a_name_of_the_server_or_an_admin_is_refused(self, shared: Store, name: str) -> None:
        with pytest.raises(ConfigError, match="could be mistaken for"):
            shared.name_visitor("ada", name)
        assert shared.visitor_names() == {}

    @pytest.mark.parametrize("twin", ["Ber\u200bta", "ＢＥＲＴＡ", "Bеrta", "B\u2060erta ", "\u202eBerta", "Be rta"])
    def test_a_name_that_reads_like_another_s_is_refused(self, shared: Store, twin: str) -> None:
        shared.name_visitor("bob", "Berta")
        with pytest.raises(ConfigError, match="another visitor uses this name"):
            shared.name_visitor("ada", twin)
        shared.name_visitor("bob", "Berta\u200b")
        assert shared.visitor_names() == {"bob": "Berta"}

    def test_ten_wrong_keys_lock_the_field_for_all(self, shared: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(visitor, "WRONG_KEY_S", 0.0)
        visitor._wrong_keys_at.clear()

        def typed(key: str) -> AppTest:
            drawn = page("runs")
            next(field for field in drawn.text_input if field.label == "Key").set_value(key)
            return next(button for button in drawn.button if button.label == "Become an admin").click().run()

        for _ in range(9):
            visitor._wrong_keys_at.append(time.monotonic())
        assert any("This is not the admin key" in error.value for error in typed("guess").error)
        assert any("After 10 wrong keys" in error.value for error in typed(KEY).error)
        later = time.monotonic() + visitor.LOCKED_S
        monkeypatch.setattr(visitor.time, "monotonic", lambda: later)
        assert any(", an admin" in caption.value for caption in typed(KEY).caption)
        visitor._wrong_keys_at.clear()


def damage(store: Store, run_id: str, **fields: Any) -> None:
    """Add fields to a run's stored config that this version does not know."""
    with store.transaction() as db:
        text = db.execute("SELECT config FROM runs WHERE id = ?", (run_id,)).fetchone()["config"]
        db.execute("UPDATE runs SET config = ? WHERE id = ?", (json.dumps(json.loads(text) | fields), run_id))


class TestUnreadableStore:
    def test_one_unreadable_run_leaves_everything_else_working(
        self, shared: Store, draft: Draft, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("SCL_SHARED", "0")
        broken, cut, queued = (shared.create(draft()) for _ in range(3))
        damage(shared, broken, tomorrow=1)
        with shared.transaction() as db:
            db.execute("UPDATE runs SET config = '{' WHERE id = ?", (cut,))
        for name in ("home", "explore", "tokens", "compare", "experiments"):
            assert not any("tomorrow" in error.value for error in page(name).error)
        monkeypatch.setattr("sys.argv", ["core", "runs"])
        assert main() == 0
        said = capsys.readouterr()
        assert queued in said.out
        assert broken in said.err
        assert "tomorrow" in said.err
        with pytest.raises(StoreError, match="cannot be read: tomorrow"):
            shared.run(broken)
        claim = shared.claim_next(range(3))
        assert claim is not None
        assert claim[0] == queued

        drawn = page("runs")
        assert any(broken in warning.value and "tomorrow" in warning.value for warning in drawn.warning)
        next(button for button in drawn.button if button.key == f"delete.{broken}").click().run()
        assert [run.id for run in shared.unreadable_runs()] == [cut]
        shared.discard(cut)
        assert shared.unreadable_runs() == []

    def test_a_store_of_a_later_version_is_refused_in_a_sentence(
        self, shared: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with shared.transaction() as db:
            recorded = "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('runs', 'm999', 'now')"
            db.execute(recorded)
        monkeypatch.setattr("sys.argv", ["core", "runs"])
        assert main() == 1
        assert "was written by a later version" in capsys.readouterr().err
        drawn = AppTest.from_file(APP, default_timeout=60).run()
        assert not drawn.exception
        assert any("was written by a later version" in error.value for error in drawn.error)


class TestServing:
    def test_a_browser_that_calls_the_server_by_another_name_gets_no_page(
        self, shared: Store, draft: Draft, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shared.create(draft(more={"name": "secret run"}))
        monkeypatch.setattr(type(streamlit.context), "headers", {"Host": "rebound.example:8501"})
        drawn = AppTest.from_file(APP, default_timeout=60).run()
        assert any("This server does not answer to" in error.value for error in drawn.error)
        assert not any("secret run" in text.value for text in drawn.markdown)

    @pytest.mark.parametrize(
        "host",
        ["localhost:8501", "LOCALHOST.", "127.0.0.1:8501", "192.168.1.20", "[::1]:8501", "lab.example", "scl.example"],
    )
    def test_a_browser_that_uses_a_known_host_name_is_answered(
        self, host: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_ADDRESS", "https://lab.example:8443/scl")
        monkeypatch.setenv("SCL_HOST", "other.example, scl.example")
        monkeypatch.setattr(type(streamlit.context), "headers", {"Host": host})
        serving.check_host()

    def test_the_server_takes_no_larger_upload_than_a_page(
        self, shared: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "70")
        page("home")
        assert streamlit.get_option("server.maxUploadSize") == 70
        monkeypatch.delenv("SCL_MAX_FILE_MB")
        page("home")
        assert streamlit.get_option("server.maxUploadSize") == 256

    def test_a_session_cannot_fill_the_memory_with_uploads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streamlit, "get_option", lambda _: 1)
        held = serving.NewestUploads("/upload")
        for number in range(6):
            held.add_file("mine", UploadedFileRec(str(number), "a.csv", "text/csv", b"x" * 2**18))
        assert [one.file_id for one in held.get_files("mine", [*"012345"])] == [*"2345"]
        held.add_file("mine", UploadedFileRec("large", "a.csv", "text/csv", b"x" * 2**20))
        held.add_file("other", UploadedFileRec("0", "a.csv", "text/csv", b"x"))
        assert [one.file_id for one in held.get_files("mine", [*"012345", "large"])] == ["large"]
        assert held.get_files("other", ["0"])

    def test_a_container_may_do_no_more_than_it_needs(self) -> None:
        services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
        for service in services.values():
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert service["mem_limit"]
            assert service["pids_limit"]
            assert "image" not in service or service["image"].count(".") == 2
