"""Journeys of a student, a researcher and a teacher from page to page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from core.config import RunConfig
from core.exports.entry import file_stem
from core.store import RunRecord, Status, Store, TaskLibrary
from core.tasks.rows import Rows
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.seen import JOB_MS, quiet, settled
from tests.browser.test_map_view import drawn
from tests.browser.test_runs import open_names, press
from tests.conftest import made_rows, write_csv
from tests.core.artifacts.made import MORE, recorded

pytestmark = pytest.mark.usefixtures("laptop")


@pytest.fixture
def runs(server_store: Store, draft: Callable[..., RunConfig]) -> list[RunRecord]:
    """Return two finished runs that differ in their seed, the newer one second."""
    return [recorded(server_store, draft(more=MORE | {"seed": seed})) for seed in (0, 1)]


def link(page: Page, name: str) -> Locator:
    return page.get_by_test_id("stMain").get_by_role("link", name=name, exact=True).first


def fill(page: Page, label: str, value: str) -> None:
    field = page.get_by_role("spinbutton", name=label, exact=True)
    field.fill(value)
    field.press("Enter")
    quiet(page)


@pytest.mark.slow
def test_a_run_on_an_uploaded_file_takes_a_turned_knob(
    page: Page, server: Server, server_store: Store, library: TaskLibrary, tmp_path: Path
) -> None:
    """Data, form, a reload, a live run whose τ changes, and its finished page."""
    rows = [(f"{text} {i}", label) for i, (text, label) in enumerate(made_rows(60))]
    path = write_csv(tmp_path / "my reviews.csv", [*rows, rows[3], ("no label here", ""), ("", "good")])
    settled(page, f"{server.url}/data?view=file")
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(path)
    for said in ("Repeated rows: 1.", "Rows without a label: 1.", "Rows without a text: 1."):
        expect(page.get_by_text(said)).to_be_visible()
    page.get_by_role("button", name="Drop 3 rows and add 60").click()
    expect(page.get_by_text("was added, with 60 rows.")).to_be_visible()
    [task] = [task for task in library.tasks() if task.name == "my reviews"]
    kept = library.rows(task.id)
    assert list(zip(kept.texts, kept.labels, strict=True)) == rows

    page.get_by_role("link", name="Fine-tune on it").click()
    page.wait_for_url(f"**/fine_tune?task={task.id}")
    page.get_by_text("All training rows · random batches").click()
    fill(page, "Training rows", "24")
    page.get_by_text("steps, batch size 16").click()
    page.get_by_text("128 tokens").click()
    for label, value in (("Steps", "40"), ("Batch size", "4"), ("Maximum tokens", "16")):
        fill(page, label, value)
    page.reload()
    expect(page.get_by_text("24 rows · random batches")).to_be_visible()
    expect(page.get_by_role("combobox", name=re.compile("Task"))).to_have_value("my reviews (added)")

    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/fine_tune?run=*")
    run_id = page.url.split("run=")[1]
    knob = page.get_by_role("slider", name="Temperature τ")
    knob.focus()
    page.keyboard.press("Home")
    wait_for(server_store, run_id, lambda _: bool(server_store.knob_turns(run_id)))
    run = wait_for(server_store, run_id, lambda run: run.status.ended, timeout_s=120)
    assert run.status == Status.FINISHED, run.message
    assert (run.config.task.name, run.config.task.train_size, run.last_step) == ("my reviews", 24, 40)
    assert [(turn.name, turn.value) for turn in run.effective.knob_turns] == [("temperature", 0.01)]
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"τ 0\.3 → 0\.01")).first).to_be_visible()


@pytest.mark.slow
def test_a_twin_is_compared_on_every_map(
    page: Page, server: Server, server_store: Store, runs: list[RunRecord]
) -> None:
    """Compare, a twin in one click, and both runs on PCA, t-SNE and UMAP."""
    settled(page, f"{server.url}/fine_tune?run={runs[0].id}")
    link(page, "Compare").click()
    page.wait_for_url("**/compare?runs=*")
    settled(page, f"{server.url}/compare?runs={runs[0].id}&show=twin&change=phases.0.batch_size")
    page.get_by_role("button", name="Launch the twin").click()
    page.wait_for_url("**show=curves*")
    newest = server_store.runs()[0]
    assert newest.id in page.url
    wait_for(server_store, newest.id, lambda run: run.status == Status.FINISHED)
    for method, name in (("pca", "PCA"), ("tsne", "t-SNE (perplexity"), ("umap", "UMAP (")):
        page.goto(f"{server.url}/compare?runs={runs[0].id},{newest.id}&show=maps&map={method}")
        expect(page.get_by_text(name).first).to_be_visible(timeout=JOB_MS)
        expect(page.get_by_text("not computed yet")).to_have_count(0, timeout=JOB_MS)
        drawn(page)
        assert page.evaluate("document.querySelector('.map-view').map.panels.length") == 2


@pytest.mark.slow
def test_a_grid_on_an_added_task_ends_in_a_report(
    page: Page, server: Server, library: TaskLibrary, tiny_encoder: Path
) -> None:
    """The form with an added task, a grid of λ, its cells, and the report that is downloaded."""
    texts, labels = zip(*[(f"{text} {i}", label) for i, (text, label) in enumerate(made_rows(80))], strict=True)
    task = library.add(Rows(texts, labels), name="Canteen", source="by hand")
    settings = {"phases.0.steps": 3, "encoder.id": tiny_encoder, "encoder.max_length": 8}
    asked = [("task", task.id), *(("set", f"{name}={value}") for name, value in settings.items())]
    settled(page, f"{server.url}/fine_tune?{urlencode(asked)}")
    page.get_by_role("button", name="Run as an experiment").click()
    page.get_by_role("link", name="Set up a grid").click()
    page.wait_for_url("**/experiments?new=grid*")
    expect(page.get_by_text("Canteen").first).to_be_visible()
    settled(page, f"{page.url}&seeds=1&x=phases.0.objective.lambda&xs=0.1,0.9")
    expect(page.get_by_text("Canteen").first).to_be_visible()
    expect(page.get_by_text("The link asks for")).to_have_count(0)
    start = page.get_by_role("button", name="Start the experiment")
    expect(start).to_be_enabled()
    start.click()
    expect(page.get_by_text("2 of 2 runs finished")).to_be_visible(timeout=JOB_MS)
    quiet(page)
    cells = page.locator(".cell-table button")
    cells.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("cell=1"))
    page.reload()
    expect(page.locator(".cell-table button[aria-pressed=true]")).to_have_count(1)
    page.goto(re.sub(r"&cell=1", "&show=report", page.url))
    frame = page.frame_locator(".report iframe")
    expect(frame.get_by_text("2 of 2 runs have finished.")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as one HTML file").click()
    report = Path(download.value.path()).read_text(encoding="utf-8")
    assert "Canteen" in report
    read = re.sub(r"<pre.*?</pre>", "", report, flags=re.DOTALL)  # except the settings as JSON
    assert "own-" not in re.sub(r"<[^>]*>", " ", read)


@pytest.mark.slow
def test_a_run_goes_to_another_machine(
    page: Page, server: Server, server_store: Store, runs: list[RunRecord], tmp_path: Path
) -> None:
    """Export as a replay, import on Runs, view, and from Home to the lessons."""
    settled(page, f"{server.url}/fine_tune?run={runs[0].id}")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("combobox", name="Export as").click()
    page.get_by_role("option", name="Replay", exact=True).click()
    expect(page.get_by_text("Import it on Runs, here or on another machine")).to_be_visible()
    quiet(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download", exact=True).click()
    assert waiting.value.suggested_filename == f"{file_stem(runs[0])}.zip"
    waiting.value.save_as(tmp_path / "film <b>.zip")
    page.goto(f"{server.url}/runs")
    page.get_by_role("button", name="Import a run").click()
    page.locator('[data-testid="stFileUploader"] input').set_input_files(tmp_path / "film <b>.zip")
    page.wait_for_url("**/fine_tune?run=*")
    expect(page.get_by_role("heading", name=runs[0].title, exact=True)).to_be_visible()
    replay = server_store.run(page.url.split("run=")[1])
    assert "replay" in replay.tags
    link(page, "Explore").click()
    drawn(page)

    settled(page, server.url)
    page.get_by_role("button", name="Take a lesson").click()
    page.wait_for_url("**/lessons*")


@pytest.mark.slow
def test_a_list_of_runs_is_put_in_order(page: Page, server: Server, server_store: Store, runs: list[RunRecord]) -> None:
    """A run is named and tagged, found by its tag, deleted, restored and opened."""
    settled(page, f"{server.url}/runs")
    open_names(page)
    page.get_by_role("textbox", name="Name").fill("<b>Mine</b>")
    page.get_by_role("combobox", name="Tags").fill("thesis")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # closes the list; Escape could close the form as well
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)  # the form closes
    page.get_by_role("button", name="thesis", exact=True).click()
    page.wait_for_url("**/runs?tags=thesis")
    run = server_store.run(runs[1].id)
    assert (run.title, run.tags) == ("<b>Mine</b>", ("thesis",))
    press(page, 15, row=1)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert runs[1].id not in [one.id for one in server_store.runs()]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert server_store.run(runs[1].id).title == "<b>Mine</b>"
    press(page, 120, row=1)
    page.wait_for_url(f"**/fine_tune?run={runs[1].id}")
