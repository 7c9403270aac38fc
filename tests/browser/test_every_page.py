"""Every page: empty, with 2 and with 77 classes, finished and training, on two wide screens and on a phone.

What matters lies above the fold, nothing is wider than its screen, and axe-core finds nothing serious, light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from core.config import RunConfig, parse_config
from core.config.validation import build
from core.experiments.design import Design
from core.store import ExperimentTable, Store
from core.workers import LocalEngine
from tests.browser.conftest import Server
from tests.browser.hostile import wait_for
from tests.browser.seen import (
    LIGHT_AND_DARK,
    PHONE,
    PLAYER,
    REFLOW_MS,
    WIDE,
    bottom,
    fits,
    many_classes_csv,
    resized,
    settled,
)
from tests.core.artifacts.made import MORE, recorded

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

MAPS, LOSSES = ".map-stages", ".live-figure .xy"
LAUNCH, TABLE = ".st-key-before_launch button", "[data-testid=stDataFrame] canvas"
# Each page, and what has to be seen of it without scrolling; {0} and {1} are runs, {2} is an experiment.
EMPTY = {
    "/": (PLAYER,),
    "/fine_tune": (),
    "/runs": (),
    "/explore": (),
    "/tokens": (),
    "/compare": (),
    "/data": (),
    "/experiments": (),
    "/loss_lab": (".lab-canvas", ".lab-play"),
    "/loss_lab?beside=on&anchor=3": (".lab-canvas",),
    "/loss_lab?space=sphere&classes=4&anchor=3": (".lab-canvas",),
    "/loss_lab?space=simplex": (".lab-canvas",),
    "/lessons": (".st-key-lessons-margin button",),
    "/loss_lab?lesson=margin.1&a=ce_1_0.1_0.5": (".lab-canvas", ".st-key-lesson"),
}
FINISHED: dict[str, tuple[str, ...]] = {
    "/": (PLAYER,),
    "/fine_tune": (LAUNCH,),
    "/fine_tune?run={0}": (PLAYER, LOSSES),
    "/runs": (TABLE,),
    "/explore?run={0}": (PLAYER, MAPS, ".text-table th"),
    "/explore?run={0}&panel=classes": (PLAYER,),
    "/explore?run={0}&panel=forces&sel=0": (PLAYER,),
    "/tokens?run={0}": (".token-text",),
    "/tokens?run={0}&view=classes": (),
    "/compare?runs={0},{1}": ("[data-testid=stButtonGroup]",),
    "/compare?runs={0},{1}&show=curves": (LOSSES,),
    "/compare?runs={0},{1}&show=maps": (PLAYER, MAPS),
    "/compare?runs={0},{1}&show=twin": (),
    "/experiments": (TABLE,),
    "/experiments?experiment={2}": (".cell-table",),
    "/experiments?experiment={2}&show=chart": (".drawing svg",),
    "/experiments?experiment={2}&show=table": (TABLE,),
    "/experiments?experiment={2}&show=report": (),
    "/experiments?new=few-shot": (LAUNCH,),
    "/experiments?new=grid&x=phases.0.objective.lambda&y=phases.0.batch_size": (LAUNCH,),
    "/data?task=nli": (),
    "/data?view=file": ("[data-testid=stFileUploader]",),
    "/data?view=hub": (),
}
TRAINING: dict[str, tuple[str, ...]] = {
    "/": (PLAYER,),
    "/fine_tune?run={0}": (PLAYER, LOSSES),
    "/runs": (TABLE,),
    "/explore?run={0}": (PLAYER, MAPS),
    "/tokens?run={0}": (),
    "/compare": (),
}
LONG = 100_000  # steps: longer than the tests look at a run
# Whether the page is drawn in a colour scheme, and nothing fades from one to the other any more.
IS_IN = """scheme => {
    const [red, green, blue] = getComputedStyle(document.querySelector("h1")).color.match(/[\\d.]+/g).map(Number);
    const fading = document.getAnimations().some((one) =>
        one.playState === "running" && one.effect.getTiming().iterations !== Infinity);
    return !fading && (red + green + blue > 3 * 127) === (scheme === "dark");
}"""
REFUSED = frozenset({"serious", "critical"})


def set_up(encoder: Path, rows: Path, *, steps: int = 8, **more: Any) -> RunConfig:
    """A run of these rows on the tiny encoder."""
    return parse_config(
        {
            "task": {"id": "file", "path": str(rows)},
            "encoder": {"id": str(encoder), "max_length": 32},
            "phases": [{"steps": steps, "batch_size": 8}],
            "device": "cpu",
            **more,
        }
    )


@pytest.fixture(scope="module", params=[2, 77], ids=["2 classes", "77 classes"])
def rows(request: pytest.FixtureRequest, small_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_csv if request.param == 2 else many_classes_csv(tmp_path_factory.mktemp("many"))


@pytest.fixture(scope="module")
def finished(server: Server, tiny_encoder: Path, rows: Path) -> list[str]:
    """The ids of two finished runs with words and weights, and of their experiment."""
    store = Store(server.store_folder)
    ids = [recorded(store, set_up(tiny_encoder, rows, seed=seed, **MORE)).id for seed in (0, 1)]
    experiment_id = _experiment(store, set_up(tiny_encoder, rows), ids)
    store.close()
    return [*ids, experiment_id]


def _experiment(store: Store, base: RunConfig, ids: Sequence[str]) -> str:
    """The id of an experiment of one cell with two seeds, whose runs are these, and of another that has none."""
    axes = [{"setting": "lambda", "values": [0.1, 0.9]}]
    given = {"base": base.model_dump(mode="json"), "axes": axes, "seeds": 2, "baseline": {"Weight λ": "0.1"}}
    table = ExperimentTable(store.folder)
    experiment_id = table.create("λ at work", build(Design, given).to_json())
    table.want(experiment_id, False)
    for seed, run_id in enumerate(ids):
        table.put_run(experiment_id, 0, seed, run_id)
    return experiment_id


@pytest.fixture(scope="module")
def training(server: Server, tiny_encoder: Path, rows: Path) -> Iterator[str]:
    """The id of a run that trains while its pages are looked at."""
    store = Store(server.store_folder)
    frames = {"frame_steps": list(range(0, LONG, 100))}
    run_id = LocalEngine(store).submit(set_up(tiny_encoder, rows, steps=LONG, probe=frames))
    wait_for(store, run_id, lambda run: run.last_step > 50)
    yield run_id
    store.send(run_id, "stop")
    wait_for(store, run_id, lambda run: run.status.ended)
    store.close()


@pytest.fixture
def screen(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDE[0][0], "height": WIDE[0][1]})
    yield context.new_page()
    context.close()


def misfits(page: Page, main: Sequence[str]) -> list[str]:
    """What lies below the fold of a wide screen although it matters, and which screens are too narrow."""
    found = []
    for width, height in (*WIDE, PHONE):
        resized(page, width, height)
        if not fits(page):
            found.append(f"wider than {width}")
        if width > PHONE[0]:
            found += [f"{selector} below {width}×{height}" for selector in main if bottom(page, selector) > height]
    resized(page, *WIDE[0])
    return found


def violations(page: Page) -> list[str]:
    """What axe-core holds against the page, serious or worse, light and dark."""
    found = []
    for scheme in LIGHT_AND_DARK:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IS_IN, arg=scheme)
        page.wait_for_timeout(REFLOW_MS)
        rules: list[dict[str, Any]] = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        found += [
            f"{scheme}: {rule['id']}: {node['html'][:200]}"
            for rule in rules
            if rule["impact"] in REFUSED
            for node in rule["nodes"]
        ]
    return found


def holds(page: Page, main: Sequence[str]) -> None:
    assert misfits(page, main) == []
    assert violations(page) == []
    assert page.locator("h1").count() == 1
    assert page.title().endswith("SCL Playground")


# Before any run: the server of this module has none until a fixture makes some.
@pytest.mark.parametrize("address", EMPTY)
def test_an_empty_page(screen: Page, server: Server, address: str) -> None:
    settled(screen, server.url + address)
    holds(screen, EMPTY[address])


@pytest.mark.parametrize("address", FINISHED)
def test_a_page_of_finished_runs(screen: Page, server: Server, finished: list[str], address: str) -> None:
    settled(screen, server.url + address.format(*finished))
    holds(screen, FINISHED[address])


@pytest.mark.parametrize("address", TRAINING)
def test_a_page_while_a_run_trains(screen: Page, server: Server, training: str, address: str) -> None:
    screen.goto(server.url + address.format(training))
    for selector in ("h1", *TRAINING[address]):
        screen.locator(selector).first.wait_for(timeout=60_000)
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
            box = element.first.bounding_box()
            assert box is not None
            assert box["y"] > 0
            assert box["y"] + box["height"] <= height, (element, width)


def test_the_checks_see_what_they_look_for(screen: Page, server: Server) -> None:
    settled(screen, server.url)
    screen.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<p style=\"color:#999\">pale</p>')")
    screen.evaluate("document.body.insertAdjacentHTML('beforeend', '<button></button>')")
    assert any("button-name" in found for found in violations(screen))
    wide = '<div style="width: 3000px">wide</div>'
    screen.evaluate("wide => document.querySelector('h1').insertAdjacentHTML('afterend', wide)", wide)
    screen.evaluate("document.querySelector('.map-player').style.marginTop = '900px'")
    assert len(misfits(screen, (PLAYER,))) == 2 * len(WIDE) + 1
