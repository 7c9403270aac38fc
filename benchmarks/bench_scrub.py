"""Frames per second of the map in a browser, during a drag of its slider and during playback.

100 frames of 2,000 points in Chromium without a graphics card, in 2-D, in 3-D, and as six maps of 2,000 points each.
Dragging sets the slider to each frame in turn, as fast as the browser shows them; playback interpolates between frames.
WebGL contexts are counted from the opening of the page. The script then times the opening of a page until its first
drawing for 200 frames of 2,000 points, with the server up and its arrays in memory, beside a map of five points.

Targets: at least 10 frames/s, at most one WebGL context, at most 2 s.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks.browsing import browsing, new_page, open_map
from benchmarks.measure import ROOT, options, own_folders, repeated, report, take_turns
from tests.browser.apps.serving import served

APP = ROOT / "tests" / "browser" / "apps" / "map_app.py"
SHAPES = {"2-D": "axes=2", "3-D": "axes=3", "six maps": "axes=2&panels=6&height=300"}
PLAY_S = 3
COUNT_CONTEXTS = """
    window.contexts = new Set();
    const get = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
      const context = get.call(this, kind, ...more);
      if (/webgl|webgpu/.test(kind) && context) window.contexts.add(context);
      return context;
    };
"""
# Request each frame only after the browser has shown the previous one.
DRAG = """async () => {
    const { map } = document.querySelector('.map-view');
    const { slider } = map.player;
    const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    slider.value = 0;
    slider.dispatchEvent(new Event('input'));
    await shown();
    const [start, before] = [performance.now(), map.drawings];
    for (let index = 0; index <= Number(slider.max); index += 1) {
      slider.value = index;
      slider.dispatchEvent(new Event('input'));
      await shown();
    }
    return (1000 * (map.drawings - before)) / (performance.now() - start);
}"""
PLAY = """async (seconds) => {
    const { map } = document.querySelector('.map-view');
    map.goTo(0);
    map.togglePlay();
    const [start, before] = [performance.now(), map.drawings];
    await new Promise((done) => setTimeout(done, 1000 * seconds));
    const rate = (1000 * (map.drawings - before)) / (performance.now() - start);
    map.togglePlay();
    return rate;
}"""


def opened(browser: Browser, address: str) -> tuple[Page, float]:
    """Open a page as a new visitor. Returns: the page with its map drawn, and the seconds this took."""
    page = new_page(browser)
    page.add_init_script(COUNT_CONTEXTS)
    return page, open_map(page, address) / 1000


def rates(page: Page) -> dict[str, float]:
    """Frames per second, and the number of WebGL contexts afterwards."""
    found = {"dragging": page.evaluate(DRAG), "playing": page.evaluate(PLAY, PLAY_S)}
    return found | {"contexts": float(page.evaluate("window.contexts.size"))}


def measure(browser: Browser, url: str, repeats: int, frames: int, points: int) -> None:
    for name, shape in SHAPES.items():
        page, _ = opened(browser, f"{url}/?{shape}&frames={frames}&points={points}&classes=6")
        found = [rates(page) for _ in range(repeats + 1)][1:]
        page.context.close()
        for kind in ("dragging", "playing"):
            report("frames/s", f"{kind}, {name}", [one[kind] for one in found], "≥ 10", 1)
        report("count", f"WebGL contexts, {name}", [one["contexts"] for one in found], "≤ 1", 0)


def main() -> None:
    given = options(__doc__, repeats=5, frames=100, points=2_000)
    with own_folders() as folder, served(APP, Path(folder).with_name("server.log")) as url, browsing() as browser:
        measure(browser, url, given.repeats, given.frames, given.points)
        big = f"{2 * given.frames} frames of {given.points:,} points"
        small = "2 frames of 5 points, the share of Streamlit"
        address = f"{url}/?classes=6&frames={2 * given.frames}&points={given.points}"

        def seconds_to_open(address: str) -> float:
            page, found = opened(browser, address)
            page.context.close()
            return found

        addresses = {big: address, small: f"{url}/?frames=2&points=5"}
        sides = {name: partial(seconds_to_open, one) for name, one in addresses.items()}
        seconds = repeated(given.repeats, lambda number: take_turns(number, sides), 2)
    report("seconds", f"opening {big}", seconds[big], "≤ 2", 2)
    report("seconds", f"opening {small}", seconds[small], "–", 2)


if __name__ == "__main__":
    main()
