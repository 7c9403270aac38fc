"""Tests of the map component in a small app, in Chromium."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.figures.map_script import WORDS
from tests.browser.apps.serving import served
from tests.browser.hostile import nothing_ran
from tests.browser.seen import box_of, drag, fits
from tests.cases import slow_but

APP = Path(__file__).with_name("apps") / "map_app.py"
MAP = ".map-view"
CANVAS = f"{MAP} .map-canvas"
# Frames of map_app: steps 0, 10, 20 …; the second one, step 10, has no map.
STEPS = [0, 20, 30, 40, 50]
FRAMES = "frames=6&points=60"
# Number of points that are not drawn.
HIDDEN = "[...document.querySelector('.map-view').map.panels[0].screen].filter(Number.isNaN).length / 3"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(APP, tmp_path_factory.mktemp("map") / "server.log") as url:
        yield url


def opened(page: Page, address: str, query: str = FRAMES) -> Page:
    page.goto(f"{address}/?{query}")
    drawn(page)
    return page


def drawn(page: Page) -> None:
    """Wait for a map. While a page replaces one map by another, both are there for a moment."""
    page.locator(f"{MAP}[data-updates]").first.wait_for()
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def place(page: Page, example: int, panel: int = 0) -> tuple[float, float]:
    """Return the position of an example on the screen."""
    script = """([id, index]) => {
        const panel = document.querySelector('.map-view').map.panels[index];
        const box = panel.canvas.getBoundingClientRect();
        const row = panel.rowOf.get(id);
        return [box.left + panel.screen[3 * row], box.top + panel.screen[3 * row + 1]];
    }"""
    x, y = page.evaluate(script, [example, panel])
    return x, y


def points_at_rest(page: Page) -> list[float]:
    """Return the positions of the points after their transition, which takes longer on a busy machine."""
    before: list[float] = []
    for _ in range(200):
        now = page.evaluate("Array.from(document.querySelector('.map-view').map.panels[0].screen)")
        if now and now == before:
            return list(now)
        before = now
        page.wait_for_timeout(150)
    raise AssertionError("the points never come to rest")


def lonely(page: Page, rank: int = 0) -> int:
    """Return the id of an example far from its neighbours on the first panel, so that a click hits only it."""
    points_at_rest(page)
    script = """(rank) => {
        const { screen, examples } = document.querySelector('.map-view').map.panels[0];
        const gap = examples.ids.map((_, i) => Math.min(...examples.ids.map((_, j) =>
            i === j ? Infinity : Math.hypot(screen[3 * i] - screen[3 * j], screen[3 * i + 1] - screen[3 * j + 1]))));
        return examples.ids[gap.map((_, i) => i).sort((a, b) => gap[b] - gap[a])[rank]];
    }"""
    return int(page.evaluate(script, rank))


def chosen(page: Page) -> list[int]:
    return sorted(page.evaluate("[...document.querySelector('.map-view').map.chosen]"))


def script_runs(page: Page) -> int:
    text = page.get_by_text(re.compile(r"^script runs \d+$")).inner_text()
    return int(text.split()[-1])


def step_of(page: Page) -> int:
    return int(page.locator(MAP).get_attribute("data-step") or -1)


def picture(page: Page, panel: int = 0) -> str:
    """Return the pixels of a panel, once the view has come to rest."""
    page.locator(f"{MAP}[data-settled=true]").wait_for()
    return str(page.locator(CANVAS).nth(panel).evaluate("canvas => canvas.toDataURL()"))


def test_scripts_use_the_messages_from_python(page: Page) -> None:
    said = page.evaluate(
        """code => new Function(`${code}; return [
            _("a {b} {c} {toString}", { b: 1, c: "{b}" }), _("toString"),
            speak({ "a {b}": "{b} 甲", "a": "{b}" }), _("a {b}", { b: 0 }), _("a"),
            speak(undefined), _("a {b}", { b: 2 }), byCount(1, "one", "many"), byCount(0, "one", "many"),
        ]`)()""",
        WORDS[0].read_text(encoding="utf-8"),
    )
    assert said == ["a 1 {b} {toString}", "toString", None, "0 甲", "{b}", None, "a 2", "one", "many"]


def test_scrubbing_asks_the_server_once_it_rests_and_skips_a_frame_without_a_map(page: Page, address: str) -> None:
    opened(page, address)
    assert step_of(page) == STEPS[-1]
    before, shown = script_runs(page), picture(page)
    page.get_by_label("Step", exact=True).focus()
    page.evaluate(
        """() => {
            const node = document.querySelector(".map-view");
            window.steps = [];
            new MutationObserver(() => window.steps.push(Number(node.dataset.step)))
                .observe(node, { attributes: true, attributeFilter: ["data-step"] });
        }"""
    )
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(page.locator(MAP)).to_have_attribute("data-step", str(STEPS[0]))
    # Presses faster than the screen's refresh are drawn as one.
    assert set(page.evaluate("window.steps")) <= set(STEPS)
    expect(page.get_by_text("frame 0 clicked")).to_be_visible()
    assert picture(page) != shown
    assert before < script_runs(page) <= before + 2
    expect(page.locator(".map-moment")).to_have_text("Step 0 · validation 50 %")
    expect(page.locator(".map-spoken")).to_have_text("Step 0 · validation 50 %")
    settled = script_runs(page)
    page.wait_for_timeout(700)
    assert script_runs(page) == settled


@pytest.mark.slow
def test_points_are_drawn_at_the_given_coordinates(page: Page, address: str) -> None:
    """Two points give scale and offset of an affine map, which must hold for all the others."""
    opened(page, address, "frames=6&points=60&frame=20")
    from tests.browser.apps.map_app import invented

    *_, raw = invented(0, 6, 60, 3, 2, False)
    frame = raw[2]
    seen = [place(page, 1000 + i) for i in range(60)]
    scale = (seen[1][0] - seen[0][0]) / (frame[1][0] - frame[0][0])
    for i in range(60):
        assert seen[i][0] - seen[0][0] == pytest.approx(scale * (frame[i][0] - frame[0][0]), abs=0.1)
        assert seen[i][1] - seen[0][1] == pytest.approx(-scale * (frame[i][1] - frame[0][1]), abs=0.1)


def test_playing_moves_between_frames_and_stops_at_the_end(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.wait_for_function("document.querySelector('.map-view').map.at % 1 > 0.2")
    page.get_by_label("Speed").select_option("4")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.get_by_text(f"frame {STEPS[-1]} clicked")).to_be_visible()
    assert step_of(page) == STEPS[-1]


@pytest.mark.slow
def test_playback_does_not_interpolate_under_reduced_motion(page: Page, address: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    opened(page, address)
    page.evaluate("""() => {
        const { map } = document.querySelector('.map-view');
        window.seen = [];
        const draw = map.drawNow.bind(map);
        map.drawNow = () => { draw(); window.seen.push(map.at); };
    }""")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    seen = page.evaluate("window.seen")
    assert len(set(seen)) == len(STEPS)
    assert all(at == int(at) for at in seen)


def test_a_click_selects_shift_adds_and_escape_clears(page: Page, address: str) -> None:
    opened(page, address)
    first, before = lonely(page), script_runs(page)
    page.mouse.click(*place(page, first))
    expect(page.get_by_text(f"selected [{first}]")).to_be_visible()
    expect(page.get_by_text(f"clicked {first} ")).to_be_visible()
    page.wait_for_timeout(800)
    assert script_runs(page) == before + 1  # the click and the selection come in one report
    page.keyboard.down("Shift")
    second = lonely(page, rank=1)
    page.mouse.click(*place(page, second))
    page.keyboard.up("Shift")
    expect(page.get_by_text(f"selected [{first}, {second}]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("selected []")).to_be_visible()


# Tools and axes. Both tools choose the points inside an outline, so one of them suffices in 3-D.
FLAT, DEEP = [("Select with a box", 2), ("Select with a lasso", 2)], ("Select with a box", 3)


@pytest.mark.parametrize(("tool", "axes"), slow_but(FLAT, [*FLAT, DEEP]))
def test_box_and_lasso_select_what_lies_inside(page: Page, address: str, tool: str, axes: int) -> None:
    opened(page, address, f"{FRAMES}&axes={axes}")
    box = box_of(page.locator(CANVAS))
    middle = box["x"] + box["width"] / 2
    left = [1000 + i for i in range(60) if place(page, 1000 + i)[0] < middle]
    page.get_by_role("button", name=tool).click()
    if "box" in tool:
        drag(page, page.locator(CANVAS), (0.01, 0.01), (0.5, 0.99))
    else:
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        page.mouse.down()
        for x, y in (
            (middle, box["y"] + 2),
            (middle, box["y"] + box["height"] - 2),
            (box["x"] + 2, box["y"] + box["height"] - 2),
        ):
            page.mouse.move(x, y, steps=3)
        page.mouse.up()
    assert 0 < len(left) < 60
    assert chosen(page) == left


def test_selection_zoom_and_node_outlive_frames_colours_and_search(page: Page, address: str) -> None:
    opened(page, address)
    page.evaluate("document.querySelector('.map-canvas').mark = 'mine'")
    page.mouse.click(*place(page, lonely(page)))
    page.get_by_role("button", name="Zoom in").click()
    drag(page, page.locator(CANVAS), (0.5, 0.5), (0.6, 0.55))
    selected = chosen(page)
    camera = page.evaluate("document.querySelector('.map-view').map.panels[0].camera")
    expect(page.get_by_text("view whole")).to_have_count(0)
    for colour in ("prediction", "confidence"):
        before = picture(page)
        page.get_by_text(colour, exact=True).click()
        page.wait_for_function("old => document.querySelector('.map-canvas').toDataURL() !== old", arg=before)
    page.get_by_label("Search").fill("Text 7")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.map-view').map.lit?.size > 0")
    page.get_by_role("button", name="Previous frame").click()
    assert page.locator(CANVAS).evaluate("canvas => canvas.mark") == "mine"
    assert chosen(page) == selected != []
    assert page.evaluate("document.querySelector('.map-view').map.panels[0].camera") == camera
    page.get_by_role("button", name="Fit the map to the view").click()
    expect(page.get_by_text("view whole")).to_be_visible()


@pytest.mark.slow
def test_the_page_can_select_and_a_click_afterwards_counts(page: Page, address: str) -> None:
    opened(page, address, f"{FRAMES}&select=1005")
    assert chosen(page) == [1005]
    page.get_by_role("button", name="Select three").click()
    page.wait_for_function("document.querySelector('.map-view').map.chosen.size === 3")
    expect(page.get_by_text("selected [1000, 1001, 1002]")).to_be_visible()
    one = lonely(page)
    page.mouse.click(*place(page, one))
    expect(page.get_by_text(f"selected [{one}]")).to_be_visible()


def test_the_address_is_restored_on_reload_without_endless_reruns(page: Page, address: str) -> None:
    opened(page, address, f"{FRAMES}&link=1")
    one = lonely(page)
    page.mouse.click(*place(page, one))
    page.get_by_role("button", name="Previous frame").click()
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_url(re.compile(r"frame=40"))
    expect(page.get_by_text(re.compile(r"view [-\d.]+_"))).to_be_visible()
    page.wait_for_timeout(600)
    settled = script_runs(page)
    page.wait_for_timeout(600)
    assert script_runs(page) == settled
    before = picture(page)
    page.mouse.move(5, 5)
    page.reload()
    drawn(page)
    assert (chosen(page), step_of(page)) == ([one], 40)
    page.wait_for_function("old => document.querySelector('.map-canvas').toDataURL() === old", arg=before)
    page.wait_for_timeout(600)
    assert script_runs(page) <= 2


def test_panels_share_steps_hover_and_selection(page: Page, address: str) -> None:
    opened(page, address, f"{FRAMES}&panels=2&height=300")
    page.get_by_label("Step", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    # The union of 0, 20 … 50 and 5, 25 … 55: the last but one is 50, where the second map still shows 45.
    expect(page.locator(".map-note").nth(0)).to_contain_text("step 50")
    expect(page.locator(".map-note").nth(1)).to_contain_text("step 45")
    one = lonely(page)
    before = picture(page, 1)
    page.mouse.move(*place(page, one))
    page.wait_for_function("old => document.querySelectorAll('.map-canvas')[1].toDataURL() !== old", arg=before)
    assert page.evaluate("document.querySelector('.map-view').map.hover") == one
    page.mouse.click(*place(page, one))
    assert chosen(page) == [one]
    page.keyboard.press("Home")
    page.get_by_label("Step", exact=True).evaluate(
        "node => { node.value = 0; node.dispatchEvent(new Event('input')); }"
    )
    expect(page.get_by_text("No frame at or before this step.").nth(1)).to_be_visible()
    expect(page.get_by_text("No frame at or before this step.").nth(0)).to_be_hidden()


@pytest.mark.slow
def test_no_webgl_context_is_made(page: Page, address: str) -> None:
    page.add_init_script("""
        window.contexts = 0;
        const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
          if (kind !== '2d') window.contexts += 1;
          return get.call(this, kind, ...more);
        };
    """)
    opened(page, address, "frames=30&points=2000&axes=3")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.map-view').map.at > 3")
    assert page.evaluate("window.contexts") == 0


def test_a_category_can_be_hidden_with_the_keyboard_which_stays_on_it(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_role("button", name="class 1").focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="class 1")).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("document.activeElement.textContent") == "class 1"
    page.wait_for_function(f"{HIDDEN} === 20")  # drawn before the next refresh of the screen


def test_a_category_is_lit_up_under_the_pointer_and_shown_alone_by_a_double_click(page: Page, address: str) -> None:
    opened(page, address)
    ink = """(() => {
        const canvas = document.querySelector('.map-canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return data.reduce((sum, value, i) => sum + (i % 4 === 3 ? value : 0), 0);
    })()"""
    count = page.evaluate("document.querySelector('.map-view').map.panels[0].places.points")
    item = page.get_by_role("button", name="class 1")
    all_ink = page.evaluate(ink)
    item.hover()
    page.wait_for_function(f"{ink} < 0.7 * {all_ink}")
    page.mouse.move(0, 0)
    page.wait_for_function(f"{ink} === {all_ink}")
    item.dblclick()
    page.wait_for_function(f"{HIDDEN} === {count} - 20")
    item.press("Shift+Enter")
    page.wait_for_function(f"{HIDDEN} === 0")


def test_arrows_centroids_and_a_sentence_of_ones_own_are_drawn(page: Page, address: str) -> None:
    opened(page, address, f"{FRAMES}&extras=1")
    expect(page.get_by_text("pulls")).to_be_visible()
    kinds = page.evaluate("""() => {
        const { map } = document.querySelector('.map-view');
        map.setHover(1003);
        return map.panels[0].arrows.length;
    }""")
    assert kinds == 15
    page.mouse.move(*place(page, 1000))
    expect(page.locator(".map-tip")).to_contain_text("pull or push 1")


def rings(page: Page, *examples: int) -> Counter[tuple[str, str]]:
    """Return radius and width of the rings around examples in a picture. Canvas and picture draw the same scene."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as SVG").click()
    found = ET.parse(download.value.path()).iter("{http://www.w3.org/2000/svg}circle")
    box = box_of(page.locator(CANVAS))
    places = [(x - box["x"], y - box["y"]) for x, y in (place(page, example) for example in examples)]
    return Counter(
        (ring.attrib["r"], ring.attrib["stroke-width"])
        for ring in found
        if any(math.dist(one, (float(ring.attrib["cx"]), float(ring.attrib["cy"]))) < 0.1 for one in places)
    )


@pytest.mark.slow
def test_the_anchor_has_another_ring_than_other_selected_points_and_the_legend_says_so(
    page: Page, address: str
) -> None:
    opened(page, address, f"{FRAMES}&select=1000&select=1005")
    ((plain, count),) = rings(page, 1000, 1005).items()
    assert count == 2
    opened(page, address, f"{FRAMES}&extras=1&select=1000&select=1005&select=1007")
    assert rings(page, 1005, 1007) == {plain: 2}
    found = rings(page, 1000)
    assert len(found) == 2
    assert all(float(r) > float(plain[0]) + 1 and float(width) > float(plain[1]) for r, width in found)
    expect(page.locator(".map-legend-item", has_text="anchor")).to_be_visible()
    opened(page, address, f"{FRAMES}&select=1000&select=1005")
    expect(page.locator(".map-legend-item", has_text="anchor")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize(("colour", "heading"), [("label", "Label"), ("prediction", "Symbol: label")])
def test_each_task_has_a_legend_of_its_own(page: Page, address: str, colour: str, heading: str) -> None:
    opened(page, address, f"{FRAMES}&panels=3&tasks=2&height=300")
    page.get_by_text(colour, exact=True).click()
    page.wait_for_function(
        "kind => document.querySelector('.map-view').map.panels[0].colours.label === kind", arg=colour.capitalize()
    )
    rows = page.locator(".map-legend-row")
    expect(rows).to_have_count(3)
    expect(rows.nth(0).locator(".map-legend-of")).to_have_text("Run 1, Run 3")
    expect(rows.nth(1).locator(".map-legend-of")).to_have_text("Run 2")
    for row, classes in ((rows.nth(0), 3), (rows.nth(1), 4)):
        expect(row).to_contain_text(heading)
        shown = row.locator(".map-legend-item").evaluate_all(
            "items => items.map(item => [item.innerText.trim(), item.querySelector('path').getAttribute('d')])"
        )
        assert len(shown) == classes * (1 if colour == "label" else 2)
        # The symbols of a task differ from each other, and equal those of its points.
        symbols = [path for _, path in shown[-classes:]]
        assert len(set(symbols)) == classes


@pytest.mark.slow
def test_a_class_that_is_hidden_in_one_task_stays_in_another(page: Page, address: str) -> None:
    opened(page, address, f"{FRAMES}&panels=2&tasks=2&height=300")
    page.locator(".map-legend-row").nth(1).get_by_role("button", name="class 1").click()
    script = "map => map.panels.map(({ screen }) => screen.filter(Number.isNaN).length / 3)"
    page.wait_for_function(f"({script})(document.querySelector('.map-view').map)[1] === 15")
    assert page.evaluate(f"({script})(document.querySelector('.map-view').map)") == [0, 15]


@pytest.mark.parametrize(("button", "name"), [("Download as PNG", "map.png"), ("Download as SVG", "map.svg")])
def test_the_map_can_be_downloaded_as_an_image(page: Page, address: str, button: str, name: str) -> None:
    opened(page, address, f"{FRAMES}&extras=1&text=hostile")
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    assert download.value.suggested_filename == name
    content = Path(download.value.path()).read_bytes()
    size = box_of(page.locator(".map-stages"))
    if name.endswith("png"):
        assert content.startswith(b"\x89PNG")
        assert int.from_bytes(content[16:20], "big") == 2 * round(size["width"])
    else:
        marks = ET.fromstring(content).findall(".//{http://www.w3.org/2000/svg}path")
        assert len(marks) > 60
        assert b"<img" not in content


def test_hostile_texts_are_shown_as_text(page: Page, address: str) -> None:
    opened(page, address, f"{FRAMES}&panels=2&extras=1&text=hostile&height=300")
    one = lonely(page)
    page.mouse.move(*place(page, one))
    expect(page.locator(".map-tip").first).to_contain_text("<img src=x onerror=window.hacked=1> Text")
    expect(page.locator(".map-legend")).to_contain_text("<img src=x")
    expect(page.locator(".map-title").first).to_have_text("<img src=x onerror=window.hacked=1> Run 1")
    expect(page.locator(".map-note").first).to_contain_text("<img src=x")
    nothing_ran(page)
    assert fits(page)


def test_without_a_frame_the_map_says_so(page: Page, address: str) -> None:
    page.goto(f"{address}/?frames=0&points=5")
    expect(page.get_by_text("There are no frames yet.")).to_be_visible()
    expect(page.locator(".map-body")).to_be_hidden()


@pytest.mark.slow
def test_bundles_that_the_map_no_longer_uses_are_freed(page: Page, address: str) -> None:
    opened(page, address)
    assert page.evaluate("window.mapBundles.ready.size") == 3
    page.get_by_text("confidence", exact=True).click()
    expect(page.get_by_text("Confidence").last).to_be_visible()
    page.wait_for_function("document.querySelector('.map-view').map.panels[0].colours.kind === 'values'")
    page.wait_for_function("window.mapBundles.ready.size === 3")


def test_a_script_that_fails_to_load_is_named_and_loaded_with_the_next_change(page: Page, address: str) -> None:
    failures = iter([True])
    page.route("**/map_view.*.js*", lambda route: route.abort() if next(failures, False) else route.continue_())
    page.goto(f"{address}/?{FRAMES}")
    alert = page.get_by_role("alert").filter(has_text="map_view")
    alert.wait_for()
    page.get_by_text("confidence", exact=True).click()
    drawn(page)
    expect(alert).to_have_count(0)
