"""A server that several visitors share: ownership, permissions, and recognition of a browser."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from core.config import parse_config
from core.errors import EngineError, StoreError
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments
from core.store import Status, Store
from core.store.secret import NAME, server_secret
from core.workers import LocalEngine
from pages.ui import visitor
from pages.ui.visitor import Visitor
from tests.pages.conftest import KEY, Pages, cookie_of
from tests.pages.test_pages import button


def run_of(store: Store, owner: str | None, status: Status = Status.STOPPED) -> str:
    run_id = store.create(parse_config({"name": f"of {owner}", "phases": [{"steps": 10}]}), owner=owner)
    if status != Status.QUEUED:
        store.claim_next(range(100))
        attempt = store.attempt(run_id, store.run(run_id).attempt)
        attempt.register()
        if status.ended:
            attempt.end(status)
    return run_id


def labels(drawn: AppTest) -> list[str]:
    return [button.label for button in drawn.button]


def test_a_run_of_somebody_else_can_be_watched_and_nothing_else(opened: Pages, shared: Store) -> None:
    shared.name_visitor("bob", "Bob <b>")
    own, drawn = (opened("fine_tune", run=run_of(shared, owner, Status.RUNNING)) for owner in ("ada", "bob"))
    assert "Stop" in labels(own)
    assert "Stop" not in labels(drawn)
    assert any(
        "Bob" in caption.value and "'s run" in caption.value and "<b>" not in caption.value for caption in drawn.caption
    )


def test_only_who_may_delete_a_run_is_offered_to_bring_it_back(opened: Pages, shared: Store) -> None:
    for owner in ("ada", "bob"):
        shared.discard(run_of(shared, owner, Status.FINISHED))
    lines = [text.value for text in opened("runs").markdown if text.value.startswith("Deleted")]
    assert len(lines) == 1
    assert "“of ada”" in lines[0]


def test_the_list_says_whose_runs_are(opened: Pages, shared: Store) -> None:
    for owner in ("ada", "bob", None):
        run_of(shared, owner)
    (table,) = opened("runs").dataframe
    assert list(table.value["By"]) == ["the server", visitor.default_name("bob"), "you"]


def test_a_server_that_is_not_shared_names_no_visitors(opened: Pages, folder: Path) -> None:
    store = Store(folder)
    run_of(store, None)
    drawn = opened("runs")
    assert "By" not in drawn.dataframe[0].value
    assert not any("You are" in caption.value for caption in drawn.caption)
    assert not (folder / NAME).exists()


def test_the_admin_s_key_opens_everything_and_another_does_not(
    opened: Pages, shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitor, "WRONG_KEY_S", 0.0)
    drawn = opened("runs")
    for key in ("guess", KEY):
        assert not any(", an admin" in caption.value for caption in drawn.caption)
        next(field for field in drawn.text_input if field.label == "Key").set_value(key)
        drawn = button(drawn, "Become an admin").click().run()
        assert any("This is not the admin key" in error.value for error in drawn.error) == (key != KEY)
    assert any(", an admin" in caption.value for caption in drawn.caption)
    assert "Become an admin" not in labels(drawn)
    drawn.query_params["run"] = run_of(shared, "bob", Status.RUNNING)
    watched = drawn.switch_page("pages/fine_tune.py").run()
    assert any("'s run" in caption.value for caption in watched.caption)
    assert "Stop" in labels(watched)
    drawn = button(drawn.switch_page("pages/runs.py").run(), "Stop being an admin").click().run()
    assert "Become an admin" in labels(drawn)
    assert not any("an admin:" in caption.value for caption in drawn.caption)


def test_a_name_that_somebody_has_is_refused_in_a_sentence(opened: Pages, shared: Store) -> None:
    shared.name_visitor("bob", "Berta")
    drawn = opened("runs")
    next(field for field in drawn.text_input if field.label == "Name").set_value("Berta")
    drawn = button(drawn, "Save").click().run()
    assert any("another visitor uses this name" in error.value for error in drawn.error)
    assert shared.visitor_names() == {"bob": "Berta"}


def test_who_may_change_what() -> None:
    ada, admin, alone = Visitor("ada", False), Visitor("eve", True), Visitor(None, True)
    assert [ada.may_change(owner) for owner in ("ada", "bob", None)] == [True, False, False]
    assert all(one.may_change(owner) for one in (admin, alone) for owner in ("ada", "bob", None))
    assert not Visitor(None, False).may_change(None)


def test_an_old_page_cannot_turn_what_is_somebody_else_s(shared: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitor, "visitor", lambda: Visitor("ada", False))
    visitor.require_own("ada")
    with pytest.raises(EngineError, match="belongs to another visitor"):
        visitor.require_own("bob")


class TestLimits:
    def test_a_visitor_with_the_most_queued_runs_allowed_is_refused(
        self, shared: Store, draft: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_VISITOR_WAITING", "2")
        engine = LocalEngine(shared, slots=range(0))
        for _ in range(2):
            engine.submit(draft(), "ada")
        with pytest.raises(EngineError, match="2 of your runs are queued already"):
            engine.submit(draft(), "ada")
        engine.submit(draft(), "bob")
        engine.submit(draft())  # from the command line, by the owner of the server
        monkeypatch.setenv("SCL_TOTAL_WAITING", "4")
        with pytest.raises(EngineError, match="4 runs are queued already"):
            engine.submit(draft(), "eve")
        assert len(shared.runs()) == 4
        monkeypatch.setenv("SCL_SHARED", "0")
        engine.submit(draft(), "ada")


class TestSignature:
    def test_only_what_this_server_signed_is_believed(
        self, shared: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def known_as(cookie: str) -> str:
            monkeypatch.setattr(type(streamlit.context), "cookies", {visitor.COOKIE: cookie})
            app = AppTest.from_string("import streamlit, pages.ui.visitor as v; streamlit.text(v.visitor().id)").run()
            return str(app.text[0].value)

        mine, other = (cookie_of("ada", folder)[visitor.COOKIE] for folder in (shared.folder, tmp_path / "other"))
        assert known_as(mine) == "ada"
        for forged in (other, mine[:-1], "ada", "", "x.y", "\0"):
            assert known_as(forged) != "ada"

    def test_the_secret_is_the_server_s_alone_and_stays(self, tmp_path: Path) -> None:
        first = server_secret(tmp_path)
        assert server_secret(tmp_path) == first
        assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
        assert server_secret(tmp_path / "another") != first

    def test_a_damaged_secret_is_said(self, tmp_path: Path) -> None:
        (tmp_path / NAME).write_text("short")
        with pytest.raises(StoreError, match="is damaged"):
            server_secret(tmp_path)


def test_a_session_without_a_cookie_stays_the_same_visitor(
    opened: Pages, shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(streamlit.context), "cookies", {})
    drawn = opened("runs")
    first = [caption.value for caption in drawn.caption if "You are" in caption.value]
    assert [caption.value for caption in drawn.run().caption if "You are" in caption.value] == first


def test_the_list_says_how_many_begin_before_a_run_that_waits(opened: Pages, shared: Store) -> None:
    for owner in ("ada", "ada", "bob"):
        run_of(shared, owner, Status.QUEUED)
    (table,) = opened("runs").dataframe
    rows = sorted(zip(table.value["By"], table.value["Status"], strict=True))
    assert [status for _, status in rows] == ["queued, 1 ahead", "queued, 2 ahead", "queued, next"]


def test_the_list_of_experiments_says_whose_they_are(opened: Pages, shared: Store, draft: Any) -> None:
    base = draft().model_dump(mode="json")
    for owner in ("ada", None):
        Experiments(LocalEngine(shared, slots=range(0))).begin(
            Design.model_validate({"base": base, "seeds": 2, "name": f"of {owner}"}), owner
        )
    (table,) = opened("experiments").dataframe
    said = dict(zip(table.value["Experiment"], table.value["By"], strict=True))
    assert said == {"of ada": "you", "of None": "the server"}
