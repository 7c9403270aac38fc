"""Tests of every page: empty, with finished runs and during a run, in English, Chinese and Korean, on three screens.

Key elements lie above the fold, nothing is wider than its screen, axe-core reports nothing serious in light or dark,
no page requests another host or offers to send data to one, and no sentence is still in English. One pass opens
the pages that draw classes with a task of 77 classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from core.store import Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.language import NATIVE, left_in_english
from tests.browser.outside import stays_inside
from tests.browser.prepared import finished_runs
from tests.browser.seen import (
    LIGHT_AND_DARK,
    PHONE,
    PLAYER,
    WIDE,
    at_rest,
    bottom,
    box_of,
    fits,
    many_classes_csv,
    resized,
    settled,
)
from tests.cases import slow_but

MAPS, LOSSES = ".map-stages", ".live-figure .xy .gridlayer"
LAUNCH, TABLE = ".st-key-before_launch button", "[data-testid=stDataFrame] canvas"
# Each page, and the elements that must be visible without scrolling; {0} and {1} are runs, {2} is an experiment.
EMPTY: dict[str, tuple[str, ...]] = {
    "/": (PLAYER,),
    "/runs": ("text=No runs yet",),
    "/explore": (),
    "/tokens": (),
    "/compare": (),
    "/experiments": (),
}
PAGES: dict[str, tuple[str, ...]] = {
    "/": (PLAYER,),
    "/fine_tune": (LAUNCH,),
    "/fine_tune?run={0}": (PLAYER, LOSSES),
    "/runs": (TABLE,),
    "/explore?run={0}": (PLAYER, MAPS, ".text-table th"),
    "/tokens?run={0}": (".token-text",),
    "/compare?runs={0},{1}&show=scores": ("[data-testid=stButtonGroup]",),
    "/experiments": (TABLE,),
    "/experiments?experiment={2}": (".cell-table",),
    "/data?view=file": ("[data-testid=stFileUploader]",),
    "/loss_lab": (".lab-canvas", ".lab-play"),
    "/lessons": (".st-key-lessons-margin button",),
}
# With other views of a page that the fast tests check.
FILLED = PAGES | {
    "/explore?run={0}&panel=classes": (PLAYER,),
    "/explore?run={0}&panel=forces&sel=0": (PLAYER,),
    "/explore?run={0}&panel=neighbours&sel=0": (PLAYER,),
    "/tokens?run={0}&view=classes": (),
    "/compare?runs={0},{1}": (PLAYER, MAPS),
    "/compare?runs={0},{1}&show=curves": (LOSSES,),
    "/compare?runs={0},{1}&show=twin": (),
    "/experiments?experiment={2}&show=chart": (".drawing svg",),
    "/experiments?experiment={2}&show=table": (TABLE,),
    "/experiments?experiment={2}&show=report": (),
    "/experiments?new=few-shot": (LAUNCH,),
    "/experiments?new=grid&x=phases.0.objective.lambda&y=phases.0.batch_size": (LAUNCH,),
    "/data?task=nli": (),
    "/data?view=hub": (),
    "/loss_lab?beside=on&anchor=3": (".lab-canvas",),
    "/loss_lab?space=sphere&classes=4&anchor=3": (".lab-canvas",),
    "/loss_lab?space=simplex": (".lab-canvas",),
    "/loss_lab?lesson=margin.1&a=ce_1_0.1_0.5": (".lab-canvas", ".st-key-lesson"),
}
CLASSES = (
    "/fine_tune?run={0}",
    "/explore?run={0}",
    "/explore?run={0}&panel=classes",
    "/tokens?run={0}&view=classes",
    "/compare?runs={0},{1}",
    "/compare?runs={0},{1}&show=scores",
)
TRAINING: dict[str, tuple[str, ...]] = {
    "/": (PLAYER,),
    "/fine_tune?run={0}": (PLAYER, LOSSES),
    "/runs": (TABLE,),
    "/explore?run={0}": (PLAYER, MAPS),
    "/tokens?run={0}": (),
    "/compare": (),
}
LONG = 100_000  # steps: the run outlasts the tests
# True once the page is drawn in a colour scheme and no transition is running.
IS_IN = """scheme => {
    const [red, green, blue] = getComputedStyle(document.querySelector("h1")).color.match(/[\\d.]+/g).map(Number);
    const fading = document.getAnimations().some((one) =>
        one.playState === "running" && one.effect.getTiming().iterations !== Infinity);
    return !fading && (red + green + blue > 3 * 127) === (scheme === "dark");
}"""
NOTHING_STALE = "() => !document.querySelector('[data-stale=true]')"
REFUSED = frozenset({"serious", "critical"})
# Only colours differ between light and dark.
RULES: dict[str, dict[str, Any]] = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}


@pytest.fixture(scope="module")
def many(
    session_server: Server, draft: Any, tmp_path_factory: pytest.TempPathFactory, finished: list[str]
) -> list[str]:
    """Return the ids of two finished runs of 77 classes, and of their experiment."""
    task = {"path": str(many_classes_csv(tmp_path_factory.mktemp("many")))}
    return finished_runs(session_server.store_folder, partial(draft, task=task))


@pytest.fixture(scope="module")
def training(server: Server, finished: list[str], draft: Any) -> Iterator[str]:
    """Return the id of a run that trains while its pages are tested."""
    store = Store(server.store_folder)
    frames = {"frame_steps": list(range(0, LONG, 100))}
    run_id = LocalEngine(store).submit(draft(steps=LONG, more={"probe": frames}))
    wait_for(store, run_id, lambda run: run.last_step > 50)
    yield run_id
    store.send(run_id, "stop")
    wait_for(store, run_id, lambda run: run.status.ended)
    store.close()


@pytest.fixture(scope="module")
def seen(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """Yield one page that visits address after address, and its requests, WebSockets included."""
    asked: list[str] = []
    context = browser.new_context()
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.set_default_timeout(60_000)
    yield page, asked
    context.close()


@pytest.fixture
def asked(seen: tuple[Page, list[str]]) -> list[str]:
    """Clear the list of the screen's requests. Returns: the list."""
    seen[1].clear()
    return seen[1]


@pytest.fixture
def screen(seen: tuple[Page, list[str]], asked: list[str]) -> Page:
    page, _ = seen
    page.set_viewport_size({"width": WIDE[0][0], "height": WIDE[0][1]})
    page.emulate_media(color_scheme=LIGHT_AND_DARK[0])
    return page


def misfits(page: Page, main: Sequence[str]) -> list[str]:
    """Return the key elements that lie below the fold of a wide screen, and the screens that are too narrow."""
    found = []
    for width, height in (*WIDE, PHONE):
        resized(page, width, height)
        if not fits(page):
            found.append(f"wider than {width}")
        if width > PHONE[0]:
            found += [f"{selector} below {width}×{height}" for selector in main if bottom(page, selector) > height]
    return found


def violations(page: Page) -> list[str]:
    """Return the serious and critical violations that axe-core reports, light and dark."""
    found = []
    at_rest(page)
    for scheme in LIGHT_AND_DARK:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IS_IN, arg=scheme)
        refused = refused_nodes(page, scheme)
        if refused:  # during a rerun, outdated elements are pale
            page.wait_for_function(NOTHING_STALE)
            page.wait_for_function(IS_IN, arg=scheme)
            refused = refused_nodes(page, scheme)
        found += refused
    return found


def refused_nodes(page: Page, scheme: str) -> list[str]:
    options = {"resultTypes": ["violations"], **RULES[scheme]}
    rules: list[dict[str, Any]] = Axe().run(page, options=options).response["violations"]
    return [
        f"{scheme}: {rule['id']}: {node['html'][:200]}"
        for rule in rules
        if rule["impact"] in REFUSED
        for node in rule["nodes"]
    ]


def holds(page: Page, main: Sequence[str]) -> None:
    assert violations(page) == []
    assert misfits(page, main) == []
    assert page.locator("h1").count() == 1
    assert page.title().endswith("SCL Playground")


@pytest.mark.slow
@pytest.mark.parametrize("address", EMPTY)
def test_an_empty_page(screen: Page, fresh_server: Server, address: str) -> None:
    settled(screen, fresh_server.url + address)  # a deep link on a new server
    expect(screen.get_by_text("Page not found")).to_have_count(0)
    holds(screen, EMPTY[address])


@pytest.mark.parametrize("address", slow_but(PAGES, FILLED))
def test_a_page(screen: Page, asked: list[str], server: Server, finished: list[str], address: str) -> None:
    path = address.format(*finished)
    settled(screen, server.url + path)
    holds(screen, FILLED[address])
    resized(screen, *WIDE[0])
    stays_inside(screen, server, asked)


@pytest.mark.slow
@pytest.mark.parametrize("address", FILLED)
def test_a_page_in_other_languages(screen: Page, server: Server, finished: list[str], address: str) -> None:
    path = address.format(*finished)
    texts = from_outside(server, finished)
    for code in NATIVE:
        settled(screen, f"{server.url}{path}{'&' if '?' in path else '?'}lang={code}")
        assert left_in_english(screen, code, texts) == set(), code


def from_outside(server: Server, finished: list[str]) -> Sequence[str]:
    """Return texts of the probe and names of runs, which no language changes."""
    store = Store(server.store_folder)
    probe, names = store.run(finished[0]).probe, [run.title for run in store.runs()]
    store.close()
    assert probe is not None
    return [*probe.texts, *names]


@pytest.mark.slow
@pytest.mark.parametrize("address", CLASSES)
def test_a_page_of_77_classes(screen: Page, server: Server, many: list[str], address: str) -> None:
    settled(screen, server.url + address.format(*many))
    holds(screen, FILLED[address])


@pytest.mark.slow
@pytest.mark.parametrize("address", TRAINING)
def test_a_page_while_a_run_trains(screen: Page, server: Server, training: str, address: str) -> None:
    screen.goto(server.url + address.format(training))
    for selector in ("h1", *TRAINING[address]):
        screen.locator(selector).first.wait_for()
    holds(screen, TRAINING[address])


def test_knobs_pause_map_and_loss_of_a_run_are_on_the_screen_together(
    screen: Page, server: Server, training: str
) -> None:
    screen.goto(f"{server.url}/fine_tune?run={training}")
    together = [
        screen.get_by_role("button", name="Pause"),
        screen.get_by_role("slider", name="Temperature τ"),
        screen.get_by_role("slider", name="Weight λ"),
        screen.get_by_role("slider", name="Learning rate"),
        screen.get_by_text(re.compile(rf"Step [\d,]+ of {LONG:,}")),
        screen.locator(PLAYER),
        screen.locator(LOSSES),
    ]
    for element in together:
        expect(element.first).to_be_visible(timeout=60_000)
    for width, height in WIDE:
        resized(screen, width, height)
        for element in together:
            box = box_of(element.first)
            assert box["y"] > 0
            assert box["y"] + box["height"] <= height, (element, width)


@pytest.mark.slow
def test_the_page_checks_detect_faults(screen: Page, server: Server) -> None:
    settled(screen, server.url)
    screen.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<p style=\"color:#999\">pale</p>')")
    screen.evaluate("document.body.insertAdjacentHTML('beforeend', '<button></button>')")
    assert any("button-name" in found for found in violations(screen))
    wide = '<div style="width: 3000px">wide</div>'
    screen.evaluate("wide => document.querySelector('h1').insertAdjacentHTML('afterend', wide)", wide)
    screen.evaluate("document.querySelector('.map-player').style.marginTop = '900px'")
    assert len(misfits(screen, (PLAYER,))) == 2 * len(WIDE) + 1
