"""Tests of every lesson in Chromium, from its first part to its last, as a learner takes it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from core.lessons.lesson import Check, Lesson, Part, Prediction, TryButtons, lessons
from core.lessons.numbers import value_of
from core.store import Store
from pages.ui.lesson.panel import right_choices, selector
from tests.browser.conftest import Server
from tests.browser.seen import PHONE, box_of, fits, quiet, settled

MARGIN = "/loss_lab?lesson=margin.1&a=ce_1_0.1_0.5"


@pytest.fixture
def page(newcomer: Page) -> Page:
    """Yield a page of a new context, so that tests do not share answers or the language."""
    return newcomer


def panel(page: Page) -> Locator:
    return page.locator(".st-key-lesson")


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons())
def test_a_lesson_leads_from_its_first_part_to_its_last(
    page: Page, server: Server, server_store: Store, name: str
) -> None:
    lesson = lessons()[name]
    settled(page, f"{server.url}/lessons")
    page.locator(f".st-key-lessons-{name} button").click()
    for number, part in enumerate(lesson.parts, 1):
        expect(panel(page).get_by_role("heading", name=part.title)).to_be_visible()
        page.wait_for_url(re.compile(rf"/{part.shown.page}\?.*lesson={name}\.{number}\b"))
        shows_what_it_says(page, lesson, part)
        for place, block in enumerate(part.blocks):
            match block:
                case Prediction():
                    predicts(page, block)
                    for concealed in part.shown.conceals:
                        content = page.locator(f"{selector(part.shown.page, concealed)} > *").first
                        expect(content).to_have_css("visibility", "visible")
                case TryButtons():
                    tries(page, part, block)
                case Check():
                    answers(page, server_store, lesson, block, f"{name}.{number}.{place}")
        expect(panel(page).get_by_text(re.compile(r"\{\{|–%|None|nan"))).to_have_count(0)
        if number < len(lesson.parts):
            panel(page).get_by_role("button", name="Next", exact=False).click()
    expect(panel(page).get_by_role("button", name=re.compile("^Next$"))).to_have_count(0)


def kept(page: Page, said: str) -> None:
    """Wait until the browser's storage has this text. An answer is drawn a moment before it is stored."""
    page.wait_for_function("said => (localStorage.getItem('scl-playground.lessons') ?? '').includes(said)", arg=said)


def shows_what_it_says(page: Page, lesson: Lesson, part: Part) -> None:
    """Check that the element of a part is outlined and visible, and that hidden elements are absent."""
    shown = part.shown
    expect(page.get_by_text("The link asks for")).to_have_count(0)
    if shown.points_at is not None:
        target = page.locator(selector(shown.page, shown.points_at)).first
        expect(target).to_be_visible()
        expect(target).to_have_css("outline-style", "solid")
        expect(target).to_be_in_viewport()
    for hidden in (*lesson.hides, *shown.hides):
        assert page.locator(selector(shown.page, hidden)).locator("visible=true").count() == 0, hidden
    for concealed in shown.conceals:
        expect(page.locator(f"{selector(shown.page, concealed)} > *").first).to_have_css("visibility", "hidden")


def predicts(page: Page, block: Prediction) -> None:
    expect(panel(page).get_by_role("button", name="Reveal")).to_be_disabled()
    reveal(page, block.choices[0])


def reveal(page: Page, choice: str) -> None:
    panel(page).get_by_text(choice, exact=True).click()
    quiet(page)
    panel(page).get_by_role("button", name="Reveal").click()
    expect(panel(page).get_by_text(f"You predicted: {choice}")).to_be_visible()


def tries(page: Page, part: Part, block: TryButtons) -> None:
    """Check that every button of a block sets the address, and that the page stays the same."""
    for label, choice in block.choices.items():
        panel(page).get_by_role("button", name=label, exact=True).click()
        for name, value in choice.items():
            if not isinstance(value, list):
                said = f"{value:g}" if isinstance(value, float) else value
                expect(page).to_have_url(re.compile(rf"[?&]{name}={re.escape(str(said))}(&|$)|^(?!.*[?&]{name}=)"))
    assert part.shown.page in page.url


def answers(page: Page, store: Store, lesson: Lesson, block: Check, key: str) -> None:
    """Give a wrong answer first, then the right one."""
    question = panel(page).get_by_text(block.question, exact=True).first
    expect(question).to_be_visible()
    if block.number is not None:
        truth, number = value_of(store, lesson.numbers[block.number]), lesson.numbers[block.number]
        assert isinstance(truth, float | int)
        field = panel(page).get_by_role("spinbutton").last
        for typed, said in ((truth * number.scale + 77, "Not quite"), (truth * number.scale, "Right.")):
            field.fill(f"{typed:.6f}")
            field.press("Enter")
            panel(page).get_by_role("button", name="Check").last.click()
            expect(panel(page).get_by_text(said).last).to_be_visible()
        return
    right = right_choices(block, lambda name: value_of(store, lesson.numbers[name]))
    wrong = next(label for label in block.choices if label not in right)
    for label, said in ((wrong, "Not quite"), (right[0], "Right.")):
        panel(page).locator(f".st-key-{key.replace('.', '-')}").get_by_text(label, exact=True).click()
        panel(page).locator(f".st-key-{key.replace('.', '-')}-check").get_by_role("button").click()
        expect(panel(page).get_by_text(said).last).to_be_visible()


@pytest.mark.slow
def test_answers_outlive_a_reload_and_a_lesson_resumes_until_they_are_forgotten(page: Page, server: Server) -> None:
    settled(page, server.url + MARGIN)
    # A press is lost if its button is replaced or moves before the release.
    button = panel(page).get_by_role("button", name="Next")
    before = button.bounding_box()
    button.evaluate("button => { button.mark = true; }")
    reveal(page, "Yes, at one position")
    expect(panel(page).get_by_text("They slow down long before that")).to_be_visible()
    assert button.evaluate("button => button.mark") is True
    assert button.bounding_box() == before
    kept(page, '"predicted":{"margin.1')
    page.reload()
    expect(panel(page).get_by_text("You predicted: Yes, at one position")).to_be_visible()

    settled(page, f"{server.url}/lessons?open=collapse.2")
    expect(panel(page).get_by_text("2 of")).to_be_visible()
    page.get_by_role("link", name="Lessons").click()
    quiet(page)
    page.get_by_role("button", name=re.compile("^Continue “Collapse")).click()
    expect(panel(page).get_by_text("2 of")).to_be_visible()
    panel(page).get_by_role("button", name="Leave").click()
    expect(panel(page)).to_have_count(0)
    assert "loss_lab" in page.url
    assert "lesson=" not in page.url

    settled(page, f"{server.url}/lessons")
    page.get_by_role("button", name="Forget my answers").click()
    page.get_by_role("button", name="Restore my answers").click()
    page.get_by_role("button", name="Forget my answers").click()
    expect(page.get_by_role("button", name="Restore my answers")).to_be_visible()
    settled(page, server.url + MARGIN)
    expect(panel(page).get_by_role("button", name="Reveal")).to_be_visible()


@pytest.mark.slow
def test_answers_given_in_two_tabs_are_both_kept(page: Page, server: Server) -> None:
    other = page.context.new_page()
    for tab in (page, other):
        settled(tab, server.url + MARGIN)
        expect(panel(tab).get_by_role("button", name="Reveal")).to_be_visible()
    reveal(page, "Yes, at one position")
    predicted = '"predicted":{"margin.1'
    kept(other, predicted)  # a tab receives what another stores a moment later
    # The other tab's session does not know this answer yet, and is about to store its own state.
    panel(other).get_by_role("button", name="Next").click()
    kept(other, '"last":"margin.2"')
    kept(other, predicted)
    page.reload()
    expect(panel(page).get_by_text("You predicted: Yes, at one position")).to_be_visible()
    other.close()


@pytest.mark.slow
def test_on_a_phone_a_lesson_lies_below_the_page(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    settled(page, server.url + MARGIN)
    expect(panel(page).get_by_role("heading")).to_be_in_viewport(ratio=1)
    box = box_of(panel(page))
    assert (box["x"], box["width"]) == (0, PHONE[0])
    assert box["y"] > PHONE[1] / 2
    expect(page.locator(".lab-play")).to_be_in_viewport(ratio=1)
    expect(panel(page).get_by_role("button", name="Next")).to_be_in_viewport()
    assert fits(page)
