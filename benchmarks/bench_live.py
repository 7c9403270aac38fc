"""Delay of steps on a live page, and response time of controls: in Chromium, with the real server.

Steps: from the recording of a step until the line "Step N of M" reaches it, while the run trains and its UMAP computes
on the same machine. The figures cover all steps of a default run after the first one shown.

Controls: from the press until the control is drawn as pressed, on a finished run. This is the first visible response,
before the page shows a computed result.

Targets: at most 1 s, and at most 150 ms.
"""

from __future__ import annotations

from statistics import median

from playwright.sync_api import Browser, Locator, Page

from benchmarks.browsing import VIEW, awaited, browsing, new_page, rest, served_app, wait_until_quiet
from benchmarks.invented_run import make_run
from benchmarks.measure import WarmEngine, finished_run, options, own_folders, repeated, report
from core.config import parse_config
from core.store import Store
from core.workers import LocalEngine

REST_MS = 1_000
# Record the step and the time, by the store's clock, of every change of the line that counts steps.
WATCH_STEPS = r"""() => {
    window.steps = [];
    new MutationObserver(() => {
      const text = document.querySelector('[data-testid=stProgress]')?.textContent ?? '';
      const step = Number(/Step ([\d,]+) of/.exec(text)?.[1].replaceAll(',', ''));
      if (step > (steps.at(-1)?.[1] ?? 0)) steps.push([Date.now() / 1000, step]);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
# From the press until the control on the screen differs from its hovered state.
WATCH_PRESS = """(node) => {
    const style = getComputedStyle(node); // follows the node
    const look = () => [node.ariaChecked, node.className, style.backgroundColor, style.color].join();
    const before = look();
    let pressed = null;
    addEventListener('pointerdown', (event) => (pressed = event.timeStamp), { capture: true, once: true });
    window.seen = new Promise((done) => {
      const watch = () => {
        if (pressed !== null && look() !== before) afterPicture((now) => done(now - pressed));
        else requestAnimationFrame(watch);
      };
      watch();
    });
}"""
CONTROLS = (
    # page, label of the control, name of the measure
    ("explore?run={run}", "Neighbours", "a panel beside the map"),
    ("explore?run={run}", "UMAP", "another map"),
    ("tokens?run={run}", "Delete a word", "a section of Tokens"),
    ("data", "Add a file", "a section of Data"),
    ("fine_tune?run={run}", "Raw", "raw curves"),
)


def main() -> None:
    given = options(__doc__, repeats=5)
    with own_folders() as folder, served_app(folder.with_name("server.log")) as url, browsing() as browser:
        store = Store(folder)
        engine = WarmEngine(store)
        ages = steps_on_screen(browser, url, engine)
        report("seconds", "age of a step when it appears on the screen, while UMAP computes, all steps", ages, "≤ 1", 2)
        late = sum(age > 1 for age in ages)
        print(f"{late} of {len(ages)} steps took longer than 1 s; median {median(ages):.2f} s", flush=True)
        run = make_run(store, "finished", 200, 20, 200)
        for name, values in answers(browser, url, run, given.repeats).items():
            report("milliseconds", f"press to the first visible change, {name}", values, "≤ 150", 0)
        store.close()


def steps_on_screen(browser: Browser, url: str, engine: LocalEngine) -> list[float]:
    """Age in seconds of each step of a default run when the page shows it."""
    page = browser.new_context(viewport=VIEW).new_page()
    wait_until_quiet()
    run_id = engine.submit(parse_config({"task": {"id": "film_reviews"}}))
    page.goto(f"{url}/fine_tune?run={run_id}")
    page.get_by_text("UMAP", exact=True).click(timeout=60_000)
    page.evaluate(WATCH_STEPS)
    run = finished_run(engine.store, run_id, 0.5)
    shown = page.evaluate("steps")
    page.context.close()
    at = engine.store.newest_times(run_id, run.steps)
    return [
        next(seen for seen, newest in shown if newest >= step) - recorded
        for step, recorded in at.items()
        if shown[0][1] <= step <= shown[-1][1]
    ]


def answers(browser: Browser, url: str, run: str, repeats: int) -> dict[str, list[float]]:
    """Response times in milliseconds by control. Each repetition opens the pages in new contexts."""

    def pressed(_repetition: int) -> dict[str, float]:
        taken = {}
        for address, label, name in CONTROLS:
            page = new_page(browser)
            page.goto(f"{url}/{address.format(run=run)}")
            radio, button = (page.get_by_role(role, name=label, exact=True) for role in ("radio", "button"))
            control = radio.or_(button).first
            control.wait_for()
            rest(page)
            page.wait_for_timeout(REST_MS)
            taken[name] = _pressed(page, control)
            page.context.close()
        return taken

    return repeated(repeats, pressed, 0)


def _pressed(page: Page, control: Locator) -> float:
    box = control.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.wait_for_timeout(REST_MS)
    control.evaluate(WATCH_PRESS)
    page.mouse.click(x, y)
    return float(awaited(page, "seen"))


if __name__ == "__main__":
    main()
