"""Tests of the loss lab in Chromium: it plays, responds to controls and drags, and its address restores it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from core.lab.answer import answer
from tests.browser.conftest import Server
from tests.browser.seen import JOB_MS, PHONE, box_of, quiet

# Time for the rerun of a late request to begin, if the server accepts it.
LATE_MS = 500
# The state of the lab, as its own script stores it.
STATE = """() => {
  const lab = document.querySelector(".lab-view").lab;
  const { at, history, anchor, panels } = lab;
  return {
    at,
    anchor,
    known: history.length,
    moments: history[at],
    settings: panels.map((panel) => panel.knobs.setting),
    ended: panels.map((panel) => panel.ended),
  };
}"""


@pytest.fixture
def page(laptop: Page) -> Iterator[Page]:
    problems: list[str] = []
    laptop.on("pageerror", lambda error: problems.append(str(error)))
    yield laptop
    assert problems == []


def open_lab(page: Page, server: Server, asked: str = "") -> Locator:
    page.goto(f"{server.url}/loss_lab{asked}")
    lab = page.locator(".lab-view")
    answered(page)
    return lab


def answered(page: Page) -> None:
    """Wait until the first answer is drawn. It may have to wait for torch."""
    lab = page.locator(".lab-view")
    expect(lab).to_have_attribute("data-answered", re.compile(r"\d+"), timeout=JOB_MS)
    expect(lab).to_have_attribute("data-updates", re.compile("[1-9]"))


def state(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(STATE)
    return found


def in_address(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def first_loss(**question: Any) -> float:
    found: float = json.loads(answer(json.dumps(question)))["panels"][0]["moments"][-1]["loss"]
    return found


def test_it_plays_pauses_steps_goes_back_and_says_what_acts_on_a_point(page: Page, server: Server) -> None:
    lab = open_lab(page, server)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(document.querySelector('.lab-view').dataset.step) > 50")
    page.get_by_role("button", name="Pause").click()
    expect(lab).to_have_attribute("data-playing", "false")
    at = state(page)["at"]
    page.get_by_role("button", name="One step").click()
    expect(lab).to_have_attribute("data-step", str(at + 1))
    # The picture matches the same steps computed without a browser.
    assert state(page)["moments"][0]["loss"] == pytest.approx(first_loss(steps=at + 1), rel=1e-3)
    page.get_by_role("button", name="Reset").click()
    expect(lab).to_have_attribute("data-step", "0")
    assert state(page)["moments"][0]["loss"] == pytest.approx(first_loss(), rel=1e-5)

    page.locator(".lab-canvas").focus()
    page.keyboard.press("n")
    forces = re.compile(r"^Point 1 \(class 1\): the strongest pulls \(gradient coefficients\) come from point \d+ \(\d")
    expect(page.locator(".lab-pulls")).to_have_text(forces)
    expect(page).to_have_url(re.compile("anchor=0"))
    strongest = max(state(page)["moments"][0]["pulls"], key=lambda pull: -pull[3])
    expect(page.locator(".lab-pulls")).to_contain_text(
        f"the strongest pulls (gradient coefficients) come from point {strongest[1] + 1} ("
    )


@pytest.mark.slow
def test_a_turned_temperature_and_a_dragged_point_answer_and_stay_after_a_reload(page: Page, server: Server) -> None:
    open_lab(page, server)
    before = state(page)["moments"][0]["loss"]
    slider = page.get_by_label("Temperature τ")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowRight")
    page.wait_for_function(f"() => document.querySelector('.lab-view').lab.history[0][0].loss !== {before}")
    page.wait_for_function("() => !document.querySelector('.lab-view').lab.asked")
    tau = state(page)["settings"][0]["temperature"]
    assert tau > 0.13
    expect(page).to_have_url(re.compile(rf"[?&]a=out_1_{re.escape(f'{tau:g}')}_0\.5(&|$)"))
    loss = state(page)["moments"][0]["loss"]
    assert loss == pytest.approx(first_loss(settings=[{"temperature": tau}]), rel=1e-5)
    expect(page.locator(".lab-numbers b").first).to_have_text(f"{float(f'{loss:.3g}'):g}")

    box = box_of(page.locator(".lab-canvas"))
    mark = page.evaluate(
        "() => { const { marks } = document.querySelector('.lab-view').lab.panels[0].picture;"
        " return marks.find(({ text }) => text === 4); }"
    )
    page.mouse.move(box["x"] + mark["x"], box["y"] + mark["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 10, box["y"] + 30, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile("moved=4_0_"))
    page.wait_for_function("() => !document.querySelector('.lab-view').lab.asked")
    x, y = state(page)["moments"][0]["points"][4][0]
    assert abs(x) < 0.25
    assert y > 0.95
    page.reload()
    answered(page)
    assert state(page)["settings"][0]["temperature"] == tau
    assert state(page)["moments"][0]["points"][4][0] == pytest.approx([x, y], abs=1e-3)


@pytest.mark.slow
def test_a_point_without_a_positive_says_so(page: Page, server: Server) -> None:
    open_lab(page, server, "?start=imbalanced&classes=2&points=6&anchor=5")
    expect(page.locator(".lab-pulls")).to_contain_text("it has no positive, so its own loss is 0")


@pytest.mark.slow
def test_two_settings_begin_at_the_same_points_and_part(page: Page, server: Server) -> None:
    open_lab(page, server, "?beside=on&a=out_1_0.1_0.5&b=in_1_0.5_0.5&step=25")
    found = state(page)
    assert found["at"] == 25
    assert [setting["loss"] for setting in found["settings"]] == ["out", "in"]
    first, second = found["moments"]
    assert first["points"] != second["points"]
    start = page.evaluate("() => document.querySelector('.lab-view').lab.history[0].map(({ points }) => points)")
    assert start[0] == start[1]
    expect(page.locator(".lab-chart .annotation")).to_have_count(4)


@pytest.mark.slow
def test_an_exploding_gradient_is_reported_and_stops_playback(page: Page, server: Server) -> None:
    lab = open_lab(page, server, "?space=plane&a=out_1_0.05_2")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".lab-message")).to_contain_text("The gradient exploded after step")
    expect(lab).to_have_attribute("data-playing", "false")
    assert state(page)["at"] == state(page)["ended"][0]


@pytest.mark.slow
def test_another_number_of_classes_keeps_the_settings(page: Page, server: Server) -> None:
    open_lab(page, server, "?a=in_0.5_0.3_2&moved=4_0_0_1&step=5")
    page.get_by_text("4", exact=True).click()
    expect(page).to_have_url(re.compile("classes=4"))
    expect(page).not_to_have_url(re.compile("moved="))
    page.wait_for_function("() => document.querySelector('.lab-view').lab.data.stage.classes === 4")
    page.wait_for_function("() => !document.querySelector('.lab-view').lab.asked")
    found = state(page)
    assert found["at"] == 0
    assert found["settings"][0] == {"loss": "in", "weight": 0.5, "temperature": 0.3, "extra": None, "learning_rate": 2}
    assert in_address(page)["a"] == "in_0.5_0.3_2"


@pytest.mark.slow
def test_invalid_values_in_the_address_are_reported(page: Page, server: Server) -> None:
    open_lab(page, server, "?a=<b>&moved=99_0_0_1&anchor=77&step=9999&space=torus")
    for name in ("a", "moved", "anchor", "step", "space"):
        expect(page.get_by_text(f"The link asks for {name} = ").first).to_be_visible()


@pytest.mark.slow
def test_with_reduced_motion_and_keys_alone_a_point_can_be_moved(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.emulate_media(reduced_motion="reduce")
    open_lab(page, server, "?anchor=2")
    before = state(page)["moments"][0]["points"][2][0]
    page.locator(".lab-canvas").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(
        f"() => document.querySelector('.lab-view').lab.history[0][0].points[2][0][0] !== {before[0]}"
    )
    page.wait_for_url(re.compile("moved=2_0_"))


@pytest.mark.slow
def test_a_late_request_of_the_previous_page_does_not_replace_the_next(page: Page, server: Server) -> None:
    questions: list[bytes] = []
    late: list[bytes] = []  # the request for another page, and the lab's last request, which is repeated after it
    begun: list[str] = []

    def between(socket: WebSocketRoute) -> None:
        behind = socket.connect_to_server()

        def asked(message: str | bytes) -> None:
            assert isinstance(message, bytes)
            behind.send(message)
            if BackMsg.FromString(message).rerun_script.fragment_id:
                questions.append(message)
            elif questions and page_of(message) != page_of(questions[-1]) and not late:
                late.extend((message, questions[-1]))
                behind.send(questions[-1])

        def answered(message: str | bytes) -> None:
            assert isinstance(message, bytes)
            found = ForwardMsg.FromString(message)
            if found.HasField("new_session"):
                begun.append(found.new_session.page_script_hash)
            socket.send(message)

        socket.on_message(asked)
        behind.on_message(answered)

    page.route_web_socket(re.compile("/_stcore/stream"), between)
    open_lab(page, server)
    quiet(page)
    page.get_by_role("link", name="Lessons", exact=True).click()
    expect(page.get_by_role("heading", name="Lessons", exact=True)).to_be_visible()
    page.wait_for_timeout(LATE_MS)
    expect(page.get_by_role("heading", name="Lessons", exact=True)).to_be_visible()
    wished, left = map(page_of, late)
    assert left not in begun[begun.index(wished) :]


@pytest.mark.slow
def test_a_press_sent_with_a_change_of_the_lab_is_handled(page: Page, server: Server) -> None:
    """A busy browser sends both in one message, attributed to the lab's fragment."""
    sent: list[bytes] = []

    def keep(message: bytes) -> None:
        sent.append(message)

    page.on("websocket", lambda socket: socket.on("framesent", keep))
    open_lab(page, server, "?lesson=margin.1&a=ce_1_0.1_0.5")
    panel = page.locator(".st-key-lesson")
    panel.get_by_text("Yes, at one position").click()
    reveal = panel.get_by_role("button", name="Reveal")
    expect(reveal).to_be_enabled()
    quiet(page)
    reveal.evaluate("""button => {
        const soon = window.setTimeout;
        window.setTimeout = (call, ms, ...more) => soon(call, ms || 1000, ...more);
        document.querySelector('[aria-label="One step"]').click();
        button.click();
    }""")
    expect(panel.get_by_text("You predicted: Yes, at one position")).to_be_visible()
    together = [BackMsg.FromString(one).rerun_script for one in sent if isinstance(one, bytes)]
    assert any(one.fragment_id and any(state.trigger_value for state in one.widget_states.widgets) for one in together)


def page_of(message: bytes) -> str:
    wanted: str = BackMsg.FromString(message).rerun_script.page_script_hash
    return wanted
