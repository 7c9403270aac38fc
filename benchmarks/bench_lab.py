"""The loss lab in Chromium, with the real server: updates per second, and the response to a dragged τ.

Updates: drawings per second while 30 points play for five seconds, at four times the speed, so that the pace of the
steps does not limit them. The script counts drawings that show a new step; the lab's own counter counts requests to
draw. Response: from an event of the slider during a drag until the arrows and numbers that the server computed for it
are on the screen. The first repetition does not count.

Targets: at least 20 a second, and at most 150 ms.
"""

from __future__ import annotations

from playwright.sync_api import Browser, Page

from benchmarks.browsing import awaited, browsing, new_page, served_app
from benchmarks.measure import options, own_folders, report

PLAY_S = 5.0
DRAGS = 20
READY = "() => document.querySelector('.lab-view[data-answered]') && !document.querySelector('.lab-view').lab.asked"
# Set each value as a pointer would, and wait for the answer before the next.
TURN = """async (drags) => {
    const lab = document.querySelector('.lab-view').lab;
    const slider = document.querySelector('input[aria-label="Temperature τ"]');
    window.turned = (async () => {
      const taken = [];
      for (let i = 0; i < drags; i += 1) {
        const before = lab.node.dataset.answered;
        const began = performance.now();
        slider.value = 40 + 5 * i;
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        while (lab.node.dataset.answered === before) await new Promise((next) => requestAnimationFrame(next));
        await new Promise((done) => afterPicture(done));
        taken.push(performance.now() - began);
        await new Promise((next) => setTimeout(next, 50));
      }
      return taken;
    })();
}"""


def main() -> None:
    given = options(__doc__, repeats=5)
    with own_folders() as folder, served_app(folder.with_name("server.log")) as url, browsing() as browser:
        rates, answers = [], []
        for repetition in range(given.repeats + 1):
            page = opened(browser, url)
            rates += [updates_per_s(page)] if repetition else []
            page.context.close()
            page = opened(browser, url)
            page.evaluate(TURN, DRAGS)
            turned = awaited(page, "turned")
            answers += turned if repetition else []
            page.context.close()
        report("updates/s", "moving points, 30 on the circle", rates, "≥ 20", 1)
        report("milliseconds", "a dragged τ to its answer on the screen", answers, "≤ 150", 0)


def opened(browser: Browser, url: str) -> Page:
    page = new_page(browser)
    page.goto(f"{url}/loss_lab")
    page.wait_for_function(READY)
    page.wait_for_timeout(1_500)
    return page


def updates_per_s(page: Page) -> float:
    """Drawings of a new step per second during playback."""
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(document.querySelector('.lab-view').dataset.step) > 20")
    seen = page.evaluate(
        """(ms) => new Promise((done) => {
            const lab = document.querySelector('.lab-view').lab;
            const { drawNow } = lab;
            let [pictures, step] = [0, lab.at];
            lab.drawNow = () => {
              drawNow.call(lab);
              if (lab.at !== step) [pictures, step] = [pictures + 1, lab.at];
            };
            const began = performance.now();
            setTimeout(() => done((1000 * pictures) / (performance.now() - began)), ms);
        })""",
        1000 * PLAY_S,
    )
    return float(seen)


if __name__ == "__main__":
    main()
