"""Tests of the checks for outgoing requests and offers to send data. test_every_page.py applies them to every page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from pages.ui.live_figure import plotly_script
from tests.browser.conftest import Server
from tests.browser.outside import check, stays_inside


@pytest.mark.slow
def test_the_check_sees_a_request_and_an_offer(page: Page, server: Server) -> None:
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/data?task=nli")
    page.locator(".live-figure[data-updates]").first.wait_for()
    stays_inside(page, server, asked)
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
    """A new release may rename its buttons, so their names are read from it."""
    from pages.ui.parts import UI

    text = plotly_script().read_text(encoding="utf-8")
    names = set(re.findall(r'\{name:"(\w+)",title:', text)) | set(re.findall(r'\.(\w+)=\{name:"\1"', text))
    assert "toImage" in names
    sending = {name for name in names if re.search("cloud|studio|share|edit", name, re.IGNORECASE)}
    assert sending
    assert sending <= set(re.findall(r'"(\w+)"', (UI / "plotly.js").read_text(encoding="utf-8")))
