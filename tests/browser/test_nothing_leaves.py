"""Nothing leaves the machine: no page asks another host for anything, or offers to send something there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from core.config import RunConfig
from core.store import Store
from pages.ui.live_figure import plotly_script
from tests.browser.conftest import Server
from tests.core.artifacts.made import MORE, recorded

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


# Where the papers are that the interface cites; a link there is followed by a click alone.
SOURCES = frozenset({"arxiv.org"})
INSIDE = frozenset({"data", "blob", "about"})
OFFERS = re.compile(
    r"\bcloud\b|^share\b|chart studio|\bplotly\b|\bdeploy\b|\bpublish\b|uploaded to|\bgoogle\b|chatgpt|sign in|log in",
    re.IGNORECASE,
)
# Everything that can be pressed, shadow roots included, with what it says of itself, and where links lead.
CONTROLS = """() => {
  const found = [];
  const visit = (root) => {
    for (const node of root.querySelectorAll("*")) {
      if (node.shadowRoot) visit(node.shadowRoot);
      const pressed = node.matches("button, a, [role=button], [role=link], [role=menuitem], [data-title], .modebar *");
      if (!pressed && !node.hasAttribute("title")) continue;
      const names = ["title", "aria-label", "data-title", "data-val", "data-attr", "href"];
      const said = names.map((name) => node.getAttribute(name) || "");
      if (pressed) said.push(node.textContent);
      found.push({ said: said.map((text) => text.trim()), link: node.href || "" });
    }
  };
  visit(document);
  return found;
}"""


@pytest.fixture
def run_ids(server_store: Store, draft: Callable[..., RunConfig]) -> list[str]:
    """Two finished runs with words and weights."""
    return [recorded(server_store, draft(more=MORE | {"seed": seed})).id for seed in (0, 1)]


@pytest.fixture
def watched(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page, and every address that it has asked for, WebSockets included."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.set_default_timeout(30_000)
    yield page, asked
    context.close()


def drawn(page: Page, figure: str) -> None:
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    for place in range(page.locator(figure).count()):
        node = page.locator(figure).nth(place)
        expect(node).to_have_attribute("data-updates", re.compile(r"\d+"))
        node.hover(force=True)  # Plotly shows its buttons under a pointer


def check(page: Page, server: Server, asked: list[str]) -> None:
    """Raises: AssertionError naming the address or the control."""
    own = urlsplit(server.url).netloc
    outside = {url for url in asked if (part := urlsplit(url)).scheme not in INSIDE and part.netloc != own}
    assert outside == set()
    controls: list[Any] = page.evaluate(CONTROLS)
    assert controls
    offers = [text for control in controls for text in control["said"] if OFFERS.search(text)]
    assert offers == []
    links = {urlsplit(control["link"]).netloc for control in controls if control["link"].startswith("http")}
    assert links <= {own, *SOURCES}


@pytest.mark.parametrize(
    ("address", "figure"),
    [
        ("/", ".map-view"),
        ("/fine_tune", ""),
        ("/fine_tune?run={0}", ".live-figure, .map-view"),
        ("/runs", ""),
        ("/data?task=nli", ".live-figure"),
        ("/data?view=file", ""),
        ("/data?view=hub", ""),
        ("/explore?run={0}&panel=forces&sel=0", ".live-figure, .map-view"),
        ("/tokens?run={0}", ".live-figure"),
        ("/compare?runs={0},{1}", ""),
        ("/compare?runs={0},{1}&show=curves", ".live-figure"),
        ("/compare?runs={0},{1}&show=maps", ".map-view"),
    ],
)
def test_no_page_asks_or_offers_another_host(
    watched: tuple[Page, list[str]], server: Server, run_ids: list[str], address: str, figure: str
) -> None:
    page, asked = watched
    page.goto(server.url + address.format(*run_ids))
    page.get_by_role("link", name="Fine-tune").first.wait_for()
    page.wait_for_load_state("networkidle")
    if figure:
        page.locator(figure).first.wait_for()
        drawn(page, figure)
    for expander in page.locator("summary").all():
        expander.click()
    page.wait_for_timeout(500)
    assert len(asked) > 5
    check(page, server, asked)


def test_the_check_sees_a_request_and_an_offer(watched: tuple[Page, list[str]], server: Server) -> None:
    page, asked = watched
    page.goto(f"{server.url}/data?task=nli")
    page.locator(".live-figure[data-updates]").first.wait_for()
    drawn(page, ".live-figure")
    check(page, server, asked)
    page.evaluate(
        "async () => { const node = document.querySelector('.live-figure');"
        " const config = { showSendToCloud: true, modeBarButtonsToRemove: [] };"
        " await Plotly.newPlot(node, node.data, node.layout, config); }"
    )
    with pytest.raises(AssertionError, match="Share chart"):
        check(page, server, asked)
    asked.append("https://cdn.plot.ly/un/world_110m.json")
    with pytest.raises(AssertionError, match=r"cdn\.plot\.ly"):
        check(page, server, asked)


def test_every_button_of_plotly_that_sends_a_figure_away_is_named() -> None:
    """Another release may name its buttons otherwise: those that it has are read from it."""
    from pages.ui.live_figure import SCRIPTS

    text = plotly_script().read_text(encoding="utf-8")
    names = set(re.findall(r'\{name:"(\w+)",title:', text)) | set(re.findall(r'\.(\w+)=\{name:"\1"', text))
    assert "toImage" in names
    sending = {name for name in names if re.search("cloud|studio|share|edit", name, re.IGNORECASE)}
    assert sending
    assert sending <= set(re.findall(r'"(\w+)"', "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)))
