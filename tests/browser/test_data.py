"""Tests of a visitor's own data in Chromium: from a file, and from a Hub on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.store import TaskLibrary
from core.tasks.rows import Rows
from core.workers import Jobs
from tests.browser.conftest import Server
from tests.browser.hostile import CLASSES, IMAGE, LONG, nothing_ran, shown_as_text
from tests.browser.seen import PHONE, box_of, quiet
from tests.conftest import made_rows
from tests.hub_server import OPINIONS, HubServer, add_tiny_sets, parquet_file


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    """Yield a Hub with small data sets, and one whose download takes minutes."""
    with HubServer() as made:
        add_tiny_sets(made)
        texts = [os.urandom(400).hex() for _ in range(8_000)]
        columns = {"text": texts, "label": [i % 2 for i in range(8_000)]}
        made.add("dataset", "acme/slow", {"train.parquet": parquet_file(columns, classes={"label": OPINIONS})})
        yield made


@pytest.fixture(scope="module")
def server(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server that uses the loopback Hub."""
    with Server(tmp_path_factory.mktemp("server"), **hub.environment(tmp_path_factory.mktemp("home"))) as made:
        yield made


@pytest.fixture
def phone(visit: Callable[..., Page]) -> Page:
    return visit(*PHONE)


@pytest.fixture
def hostile_task(library: TaskLibrary) -> str:
    """Return the id of a task whose texts, classes, name and source contain markup."""
    rows = [(f"{i} {text}", CLASSES[i % 2]) for i, (text, _) in enumerate(made_rows(40))]
    texts, labels = zip(*[(LONG, CLASSES[0]), *rows], strict=True)
    splits = ("train",) * 31 + ("test",) * 10  # the hostile text belongs to the training rows
    return library.add(Rows(texts, labels, splits=splits), name=f"{IMAGE} $z$ **b**", source=f"{IMAGE}.").id


def grid(page: Page, number: int = 0) -> str:
    """Return the cells of a table. It is drawn on a canvas that contains a table for screen readers."""
    canvas = page.get_by_test_id("data-grid-canvas").nth(number)
    canvas.locator("[role=gridcell]").first.wait_for(state="attached")
    return str(canvas.text_content())


def pick_row(page: Page, number: int) -> None:
    """Tick a row, counted from 0 among the visible ones."""
    frame = page.get_by_test_id("stDataFrame").first
    frame.scroll_into_view_if_needed()
    box = box_of(frame)
    page.mouse.click(box["x"] + 15, box["y"] + 35 * (number + 1) + 17)  # rows are 35 px high, the first is the header


def upload(page: Page, path: Path | dict[str, object]) -> None:
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(path)  # type: ignore[arg-type]


@pytest.mark.slow
def test_rows_are_downloaded_and_the_views_of_one_are_marked(page: Page, server: Server, library: TaskLibrary) -> None:
    heard = ["An accordion plays.", "No accordion, no joy.", "=SUM(1) accordion"]
    heard.append("Dark without being gloomy, funny without trying, and scored with the nicest accordion ever.")
    texts, labels = zip(*[*made_rows(40), *((text, "good") for text in heard)], strict=True)
    task = library.add(Rows(texts, labels), name="Accordions", source="by hand")
    page.goto(f"{server.url}/data?task={task.id}&q=accordion")
    expect(page.get_by_text("4 of 44 rows.")).to_be_visible()
    quiet(page)
    with page.expect_download() as coming:
        page.get_by_role("button", name="JSONL").click()
    assert coming.value.suggested_filename == f"{task.id}.jsonl"
    lines = Path(coming.value.path()).read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["text"] for line in lines]
    assert sorted(found) == sorted(heard)
    with page.expect_download() as coming:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert "'=SUM(1) accordion" in Path(coming.value.path()).read_text(encoding="utf-8")

    expect(page.get_by_text("Select a row to see")).to_be_visible()
    pick_row(page, found.index(heard[-1]))
    views = page.locator("table.views")
    expect(views).to_be_visible()
    assert views.locator("th").first.inner_text() == "Unchanged"
    assert views.locator("td").first.inner_text() == heard[-1]
    assert heard[-1] in grid(page)
    marks = {tag: views.locator(tag).count() for tag in ("mark", "ins", "del", "em")}
    assert all(marks.values()), marks
    before = views.inner_html()
    page.get_by_role("button", name="Draw again").click()
    page.wait_for_function("before => document.querySelector('table.views').innerHTML !== before", arg=before)
    assert views.locator("td").first.inner_text() == heard[-1]


@pytest.mark.slow
def test_hostile_rows_are_text_and_nothing_else(phone: Page, server: Server, hostile_task: str) -> None:
    phone.goto(f"{server.url}/data?task={hostile_task}&q=film")
    quiet(phone)
    phone.locator(".live-figure[data-updates]").first.wait_for()
    expect(phone.get_by_text(f"{IMAGE}. 41 texts")).to_be_visible()
    expect(phone.get_by_role("combobox", name=re.compile("Task"))).to_have_value(f"{IMAGE} $z$ **b** (added)")
    assert IMAGE in grid(phone)
    assert CLASSES[0] in grid(phone)
    expect(phone.locator(".live-figure").first).to_contain_text("<img src=x")
    shown_as_text(phone)

    # At the top of the page, because scrolling closes a list.
    phone.get_by_role("combobox", name=re.compile("Task")).fill("onerror")
    expect(phone.get_by_role("option", name=re.compile("onerror"))).to_be_visible()
    nothing_ran(phone)
    phone.keyboard.press("Escape")

    pick_row(phone, 0)
    views = phone.locator("table.views")
    expect(views.locator("td").first).to_have_text(LONG)
    shown_as_text(phone)

    phone.goto(f"{server.url}/fine_tune?task={hostile_task}")
    quiet(phone)
    phone.get_by_role("button", name="Help for Task").click()
    expect(phone.get_by_text(f"41 rows. {IMAGE}")).to_be_visible()
    shown_as_text(phone)


@pytest.mark.slow
def test_a_hostile_file_is_text_in_every_step_of_its_upload(phone: Page, server: Server, library: TaskLibrary) -> None:
    lines = ['"<b>text</b> $x$","label"', f'"{LONG}","{CLASSES[0]}"', f'"","{CLASSES[1]}"']
    lines += [f'"row {i}","{CLASSES[i % 2]}"' for i in range(30)]
    name = f"{IMAGE} $x$.csv"
    phone.goto(f"{server.url}/data?view=file")
    upload(phone, {"name": name, "mimeType": "text/csv", "buffer": "\n".join(lines).encode()})
    expect(phone.get_by_text("Rows without a text: 1.")).to_be_visible()
    expect(phone.get_by_text(f"{name}: CSV")).to_be_visible()
    shown_as_text(phone)
    phone.get_by_role("button", name="Drop 1 row and add 31").click()
    expect(phone.get_by_text(f"{IMAGE} $x$ was added, with 31 rows.")).to_be_visible()
    shown_as_text(phone)
    phone.get_by_role("button", name="Browse it").click()
    phone.wait_for_url("**/data?task=own-*")
    expect(phone.get_by_role("combobox", name=re.compile("Task"))).to_have_value(f"{IMAGE} $x$ (added)")
    shown_as_text(phone)
    phone.get_by_role("button", name="Delete").click()
    expect(phone.get_by_role("combobox", name=re.compile("Task"))).to_have_value("Film reviews")
    phone.get_by_role("button", name="Undo").click()
    expect(phone.get_by_role("combobox", name=re.compile("Task"))).to_have_value(f"{IMAGE} $x$ (added)")
    nothing_ran(phone)


# Hugging Face Hub


@pytest.fixture
def fetch(page: Page, server: Server) -> Iterator[Callable[..., None]]:
    """Return a function that fills the form for any data set and submits it."""

    def send(repository: str, rows: int = 1_000) -> None:
        page.goto(f"{server.url}/data?view=hub")
        field = page.get_by_role("spinbutton", name="Maximum rows per split")
        field.fill(str(rows))
        field.press("Enter")
        quiet(page)
        for label, value in (
            ("Repository", repository),
            ("Text column", "text"),
            ("Label column", "label"),
            ("Test split", ""),
        ):
            page.get_by_role("textbox", name=label, exact=True).fill(value)
        page.get_by_test_id("stForm").get_by_role("button", name="Fetch").click()

    yield send
    jobs = Jobs(server.store_folder)
    for job in jobs.jobs():
        jobs.cancel(job.id)
        jobs.dismiss(job.id)


@pytest.mark.slow
def test_a_fetched_data_set_can_be_browsed(
    page: Page, server: Server, library: TaskLibrary, fetch: Callable[..., None]
) -> None:
    fetch("acme/tiny")
    line = page.get_by_test_id("stMain").get_by_text("tiny", exact=True)
    expect(line).to_be_visible()
    expect(page.get_by_text("was downloaded ")).to_be_visible()
    quiet(page)
    page.get_by_role("button", name="Browse it").click()
    page.wait_for_url("**/data?task=own-*")
    task = library.task(page.url.split("task=")[1])
    assert task.rows == 60
    quiet(page)
    expect(
        page.get_by_text(re.compile(r"acme/tiny from the Hugging Face Hub, revision \w{7}; 60 train\. 60 texts: "))
    ).to_be_visible()
    assert re.search(r"text \d+ is (dull|lovely)", grid(page))
    expect(page.get_by_text("was downloaded ")).to_have_count(0)


@pytest.mark.slow
def test_a_slow_fetch_shows_its_progress_and_can_be_cancelled(
    page: Page, server: Server, hub: HubServer, library: TaskLibrary, fetch: Callable[..., None]
) -> None:
    before = library.tasks()
    hub.bytes_per_s = 400_000
    try:
        fetch("acme/slow")
        line = page.get_by_text(re.compile(r"downloading train, [\d.]+ of [\d.]+ MB"))
        expect(line).to_be_visible(timeout=60_000)
        first = line.inner_text()
        expect(line).not_to_have_text(first)
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Cancelled.")).to_be_visible()
    finally:
        hub.bytes_per_s = None
    assert not [job for job in Jobs(server.store_folder).jobs() if job.active]
    quiet(page)
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("Cancelled.")).to_have_count(0)
    assert library.tasks() == before
