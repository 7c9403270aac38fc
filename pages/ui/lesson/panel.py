"""The lesson beside its page: text, predictions and checks, and the controls that it outlines or hides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import streamlit as st

from core.errors import PlaygroundError
from core.lessons.lesson import Check, Lesson, Prediction, TryButtons, fill_placeholders, lessons, placeholders
from core.lessons.numbers import Number, value_of
from core.messages import N_, _, join_label, ngettext
from core.store import Store
from pages.ui import reads, state
from pages.ui.address import EveryPage
from pages.ui.lesson.position import (
    TABLES,
    LessonPosition,
    answers,
    change,
    continue_navigation,
    go_to,
    keep_answers,
    read_place,
)
from pages.ui.parts import escaped, scroll_into_view, show_errors
from pages.ui.reads import cached

Value = float | str | None
# Number of tries after which the visitor can reveal the answer.
TRIES = 2


def right_choices(check: Check, value: Callable[[str], Value]) -> list[str]:
    """Return the right choice, or several if their numbers are equal."""
    if not check.by_number:
        said = value(check.right)
        return [label for label, word in check.choices.items() if word == said]
    found = {label: value(name) for label, name in check.choices.items()}
    known = {label: one for label, one in found.items() if isinstance(one, float | int)}
    pick = max if check.right == "highest" else min
    return [label for label, one in known.items() if one == pick(known.values())]


def is_right(check: Check, answer: float | str, value: Callable[[str], Value], number: Number | None) -> bool:
    """Return whether an answer is right. Args: number: sets the scale; a visitor types 88.9 for a share of 0.889."""
    if check.number is None:
        return answer in right_choices(check, value)
    truth = value(check.number)
    assert number is not None
    assert check.within is not None
    # A typed number has few decimals, so a difference of exactly `within` is right.
    return isinstance(truth, float | int) and abs(float(answer) / number.scale - truth) <= check.within * (1 + 1e-9)


def answered_rightly(key: str, check: Check, numbers: Mapping[str, Number], value: Callable[[str], Value]) -> bool:
    """Return whether the stored answer is right. Without an answer, no number is read."""
    answered, tries = _answered(key, check)
    return tries > 0 and is_right(check, answered, value, numbers[check.number] if check.number is not None else None)


def draw_check(key: str, check: Check, numbers: Mapping[str, Number], value: Callable[[str], Value]) -> bool:
    """Ask a question and grade the answer. Returns: whether the answer was right or was revealed."""
    number = numbers[check.number] if check.number is not None else None
    answered, tries = _answered(key, check)
    done = answered_rightly(key, check, numbers, value)

    def keep() -> None:
        if (answer := state.widget_value(key)) is not None:
            answers().checked[key] = (answer, answers().checked.get(key, (0, 0))[1] + 1)

    st.markdown(f"**{check.question}**")
    if not done:
        answer: float | int | None  # the typed number, or the position of the choice; None if the field is empty
        if number is None:
            labels = list(check.choices)
            answer = st.radio(
                check.question,
                range(len(labels)),
                None,
                format_func=labels.__getitem__,
                label_visibility="collapsed",
                key=key,
            )
        else:
            units = {"percent": _("Your answer in %"), "points": _("Your answer in points")}
            label = units.get(number.form, _("Your answer"))
            answer = st.number_input(label, value=None, format="%g", key=key, width=220)
        # Translators: a button: see whether the answer is right.
        label = _("Check")
        st.button(label, disabled=answer is None, type="primary", key=f"{key}.check", on_click=keep)
        if not tries:
            return False
    if done:
        st.success(_("Right. {truth}", truth=_truth(check, numbers, value)), icon=":material/check:")
        return True
    said = f"{answered:,.10g}".replace("-", "−") if isinstance(answered, float) else answered
    # Translators: {answer} is what was answered, {hint} a sentence on where to look.
    wrong = _("Not quite: you answered “{answer}”. {hint}", answer=escaped(said), hint=check.hint)
    st.warning(wrong, icon=":material/search:")
    if key in answers().shown:
        st.info(_truth(check, numbers, value))
        return True
    if tries >= TRIES:
        st.button(_("Show the answer"), type="tertiary", key=f"{key}.show", on_click=answers().shown.add, args=(key,))
    return False


def _answered(key: str, check: Check) -> tuple[float | str, int]:
    """Return the stored answer, ready for grading, and the number of tries; 0 if its choice no longer exists."""
    held, tries = answers().checked.get(key, (0, 0))
    if check.number is not None:
        return float(held), tries
    choices = list(check.choices)
    return (choices[int(held)], tries) if held in range(len(choices)) else (choices[0], 0)


def _truth(check: Check, numbers: Mapping[str, Number], value: Callable[[str], Value]) -> str:
    """State the right answer, with every number that the question compares."""
    if check.number is not None:
        number = numbers[check.number]
        written = number.format_value(value(check.number))
        return (
            _("The runs' value is {number}.", number=written)
            if number.run is None
            else _("The run's value is {number}.", number=written)
        )
    if not check.by_number:
        return _("According to the runs: {choices}.", choices=" · ".join(right_choices(check, value)))
    return " · ".join(
        join_label(label, numbers[name].format_value(value(name))) for label, name in check.choices.items()
    )


def lesson_panel(page: str) -> None:
    """Draw the part of the lesson that the address names, if it names one and this is its page.

    Args:
        page: name of the current page.
    """
    at = EveryPage.LESSON.read(read_place, None)
    continue_navigation(at)
    if at is None:
        return
    if page != at.part.shown.page:
        EveryPage.LESSON.forget()
        return
    keep_answers()
    outline_target(at)
    with st.container(key="lesson"):
        # The buttons have a separate container, so that they stay in place while the text grows: a click is lost if
        # the button moves between press and release.
        text, way = st.container(key="lesson.text"), st.container(key="lesson.way")
        with text, show_errors():
            _draw(at)
        with way:
            _way_on(at)


def _draw(at: LessonPosition) -> None:
    part = at.part
    # Translators: the part of a lesson, such as "3 of 5".
    part_of = _("{number} of {count}", number=at.number, count=len(at.lesson.parts))
    st.caption(f"{at.lesson.title} · {part_of}")
    st.progress(at.number / len(at.lesson.parts))
    st.header(part.title, anchor=False)
    numbers, value = at.lesson.numbers, partial(number_of, at.lesson.name)
    for number, block in enumerate(part.blocks):
        key = f"{at.text}.{number}"
        match block:
            case str():
                if block:
                    known = {name: numbers[name].format_value(value(name)) for name in placeholders(block)}
                    st.markdown(fill_placeholders(block, known))
            case TryButtons():
                st.caption(block.label)
                with st.container(horizontal=True, key=f"{key}.try"):
                    for place, (label, choice) in enumerate(block.choices.items()):
                        st.button(label, key=f"{key}.{place}", on_click=change, args=(choice, part.shown.page))
            case Prediction():
                if not _predicted(block, key):
                    return
            case Check():
                if not draw_check(key, block, numbers, value):
                    return


def checks_of(lesson: Lesson) -> dict[str, Check]:
    """Return all checks of the lesson, by the keys of their answers."""
    return {
        f"{LessonPosition(lesson, number).text}.{place}": block
        for number, part in enumerate(lesson.parts, 1)
        for place, block in enumerate(part.blocks)
        if isinstance(block, Check)
    }


def right_checks(lesson: Lesson) -> set[str]:
    """Return the keys of the checks with a right answer. Raises: PlaygroundError if a number cannot be read."""
    value = partial(number_of, lesson.name)
    return {key for key, check in checks_of(lesson).items() if answered_rightly(key, check, lesson.numbers, value)}


def number_of(lesson: str, name: str) -> Value:
    """Return a number of a lesson; a part without numbers opens no store. Raises: PlaygroundError."""
    return _read_number(reads.open_engine().store, lesson, name)


@cached(512, spinner=N_("Reading the runs"))
def _read_number(store: Store, lesson: str, name: str) -> Value:
    return value_of(store, lessons()[lesson].numbers[name])


def _predicted(block: Prediction, key: str) -> bool:
    """Ask for a prediction. Returns: whether the visitor has made one."""
    said = answers().predicted.get(key)
    if said is not None and said in range(len(block.choices)):
        st.markdown(f"**{block.question}**  \n{_('You predicted: {answer}', answer=block.choices[said])}")
        return True

    def keep() -> None:
        if (chosen := state.widget_value(f"{key}.predicted")) is not None:
            answers().predicted[key] = int(chosen)

    places = range(len(block.choices))
    chosen = st.radio(block.question, places, None, format_func=block.choices.__getitem__, key=f"{key}.predicted")
    # Translators: a button: show what the prediction was about.
    label = _("Reveal")
    st.button(label, disabled=chosen is None, type="primary", key=f"{key}.reveal", on_click=keep)
    return False


def _way_on(at: LessonPosition) -> None:
    """Draw the buttons that go back, go on and leave."""
    every = list(lessons().values())
    after = every.index(at.lesson) + 1
    following = LessonPosition(every[after], 1) if after < len(every) else None
    if at.is_last and following is not None:
        # A check is open until its answer is right or revealed.
        still = 0
        with suppress(PlaygroundError):  # the panel has already named the number that cannot be read
            still = len(checks_of(at.lesson).keys() - right_checks(at.lesson) - answers().shown)
        if still:
            st.caption(
                ngettext(
                    "You have not answered {count} question of this lesson.",
                    "You have not answered {count} questions of this lesson.",
                    still,
                )
            )
    with st.container(horizontal=True):
        if at.number > 1:
            # Translators: a button: to the part of the lesson before.
            st.button(_("Back"), icon=":material/arrow_back:", key="lesson.back", on_click=go_to, args=(at.go(-1),))
        if not at.is_last:
            st.button(
                # Translators: a button: to the next part of the lesson.
                _("Next"),
                type="primary",
                icon=":material/arrow_forward:",
                icon_position="right",
                key="lesson.next",
                on_click=go_to,
                args=(at.go(1),),
            )
        elif following is not None:
            st.button(
                _("Next lesson"),
                type="primary",
                help=following.lesson.title,
                key="lesson.following",
                on_click=go_to,
                args=(following,),
            )
        st.button(
            # Translators: a button: out of the lesson.
            _("Leave"),
            type="tertiary",
            help=_("The page keeps its settings."),
            key="lesson.leave",
            on_click=EveryPage.LESSON.forget,
        )


# The theme's accent colour, which a style outside a component cannot read.
ACCENT = "light-dark(#2f6f9f, #6cb0de)"
MAP = "map_view"


def outline_target(at: LessonPosition) -> None:
    """Outline the target of the part, scroll it into view, and hide what the part does not need or not yet show."""
    shown = at.part.shown
    hidden = [selector(shown.page, name) for name in dict.fromkeys((*at.lesson.hides, *shown.hides))]
    target = None if shown.points_at is None else selector(shown.page, shown.points_at)
    rules = [f"{', '.join(hidden)} {{ display: none !important }}"] if hidden else []
    predicted = answers().predicted
    if any(isinstance(one, Prediction) and f"{at.text}.{i}" not in predicted for i, one in enumerate(at.part.blocks)):
        # The element keeps its size, so that nothing moves when its content appears.
        rules += [f"{selector(shown.page, name)} > * {{ visibility: hidden }}" for name in shown.conceals]
    if target is not None:
        rules.append(f"{target} {{ outline: 2px solid {ACCENT}; outline-offset: 6px; border-radius: 4px }}")
    with st.container(key="lesson_style"):
        if rules:
            st.html(f"<style>{' '.join(rules)}</style>")
    scroll_into_view(target, at.text)


def selector(page: str, name: str) -> str:
    """Return the CSS selector of a control by its name in the address, or of an element by its key or key prefix.

    The key of the map depends on its run, so the map has the name `map_view`.
    """
    if name == MAP:
        return ".map-view"
    if name in TABLES[page].items():
        return f'[class*="st-key-bound-{_class(name)}-"]'
    return f'[class*="st-key-{_class(name)}"]'


def _class(name: str) -> str:
    """Convert a key to a CSS class as Streamlit does."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", name)
