"""Checks that no page requests another host or offers to send data to one."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page

from tests.browser.conftest import Server
from tests.browser.seen import at_rest, quiet

# Hosts of the papers that the interface cites. Only a click follows a link to them.
SOURCES = frozenset({"arxiv.org"})
INSIDE = frozenset({"data", "blob", "about"})
OFFERS = re.compile(
    r"\bcloud\b|^share\b|chart studio|\bplotly\b|\bdeploy\b|\bpublish\b|uploaded to|\bgoogle\b|chatgpt|sign in|log in",
    re.IGNORECASE,
)
# Everything that can be pressed, shadow roots included, with its names and the target of a link.
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


def stays_inside(page: Page, server: Server, asked: list[str]) -> None:
    """Check a page with all its sections open and every button of its figures visible.

    Args:
        asked: the addresses that the page has requested.
    Raises: AssertionError naming the address or the control.
    """
    page.wait_for_load_state("networkidle")
    for expander in page.locator("summary").all():
        expander.click()
    at_rest(page)
    quiet(page)
    for figure in page.locator(".live-figure").all():
        figure.hover(force=True)  # Plotly shows its buttons on hover
    assert asked
    check(page, server, asked)


def check(page: Page, server: Server, asked: list[str]) -> None:
    """Check the requests and the controls of a page. Raises: AssertionError naming the address or the control."""
    own = urlsplit(server.url).netloc
    outside = {url for url in asked if (part := urlsplit(url)).scheme not in INSIDE and part.netloc != own}
    assert outside == set(), outside
    controls: list[Any] = page.evaluate(CONTROLS)
    assert controls
    offers = [text for control in controls for text in control["said"] if OFFERS.search(text)]
    assert offers == [], offers
    links = {urlsplit(control["link"]).netloc for control in controls if control["link"].startswith("http")}
    assert links <= {own, *SOURCES}, links
