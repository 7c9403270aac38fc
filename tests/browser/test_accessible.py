"""Every page by axe-core: nothing serious or critical, light and dark, in the states that people meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from core.config import RunConfig
from core.store import Store
from tests.browser.conftest import Server
from tests.browser.seen import ADDRESSES, EMPTY, LIGHT_AND_DARK, settled
from tests.core.artifacts.made import MORE, recorded

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

expect.set_options(timeout=20_000)
REFUSED = frozenset({"serious", "critical"})


@pytest.fixture
def run_ids(server_store: Store, draft: Callable[..., RunConfig]) -> list[str]:
    """Two finished runs with words and weights."""
    return [recorded(server_store, draft(more=MORE | {"seed": seed})).id for seed in (0, 1)]


@pytest.fixture(params=LIGHT_AND_DARK)
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme=request.param)
    yield context.new_page()
    context.close()


def violations(page: Page) -> list[str]:
    """What axe-core holds against the page, serious or worse."""
    found: list[dict[str, Any]] = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]}" for rule in found if rule["impact"] in REFUSED for node in rule["nodes"]
    ]


# Before any run: the server of this module has none until `run_ids` makes some.
@pytest.mark.parametrize("address", EMPTY)
def test_an_empty_page(page: Page, server: Server, address: str) -> None:
    settled(page, server.url + address)
    assert violations(page) == []
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_with_runs(page: Page, server: Server, run_ids: list[str], address: str) -> None:
    settled(page, server.url + address.format(*run_ids))
    assert violations(page) == []
    assert page.locator("h1").count() == 1
    assert page.title().endswith("SCL Playground")


def test_a_run_that_is_going_on(page: Page, server: Server, server_store: Store, template: Any) -> None:
    from core.workers import LocalEngine
    from tests.browser.hostile import wait_for

    more = {"probe": {"frame_steps": list(range(0, 30_001, 100))}}
    run_id = LocalEngine(server_store).submit(server_store.run(template(steps=30_000, more=more)).config)
    wait_for(server_store, run_id, lambda run: run.last_step > 20)
    settled(page, f"{server.url}/fine_tune?run={run_id}")
    assert violations(page) == []
    server_store.send(run_id, "stop")
    wait_for(server_store, run_id, lambda run: run.status.ended)


def test_the_check_sees_a_violation(page: Page, server: Server) -> None:
    settled(page, server.url)
    page.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<p style=\"color:#999\">pale</p>')")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button></button>')")
    assert any(found.startswith("button-name") for found in violations(page))
