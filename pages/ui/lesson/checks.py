"""A question at the end of a lesson, graded by the numbers of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from core.lessons.lesson import Check
from core.lessons.numbers import Number
from core.messages import _, called
from pages.ui import state
from pages.ui.lesson.place import answers
from pages.ui.parts import escaped

Value = float | str | None
# From this try on the answer is offered.
TRIES = 2


def right_choices(check: Check, value: Callable[[str], Value]) -> list[str]:
    """Which of the choices is right; two where their numbers are equal."""
    if not check.by_number:
        said = value(check.right)
        return [label for label, word in check.choices.items() if word == said]
    found = {label: value(name) for label, name in check.choices.items()}
    known = {label: one for label, one in found.items() if isinstance(one, float | int)}
    pick = max if check.right == "highest" else min
    return [label for label, one in known.items() if one == pick(known.values())]


def is_right(check: Check, answer: float | str, value: Callable[[str], Value], number: Number | None) -> bool:
    """Args: number: how the one that is asked for is written; people type 88.9 for a share of 0.889."""
    if check.number is None:
        return answer in right_choices(check, value)
    truth = value(check.number)
    assert number is not None
    assert check.within is not None
    # What was typed has few decimals, so a difference of exactly `within` is right.
    return isinstance(truth, float | int) and abs(float(answer) / number.scale - truth) <= check.within * (1 + 1e-9)


def answered_rightly(key: str, check: Check, numbers: Mapping[str, Number], value: Callable[[str], Value]) -> bool:
    """Whether the answer that is held is right; no number is asked for where there is none."""
    answered, tries = _answered(key, check)
    return tries > 0 and is_right(check, answered, value, numbers[check.number] if check.number is not None else None)


def draw_check(key: str, check: Check, numbers: Mapping[str, Number], value: Callable[[str], Value]) -> bool:
    """Ask, and grade what was answered. Returns: whether it was answered rightly, or its answer was shown."""
    number = numbers[check.number] if check.number is not None else None
    answered, tries = _answered(key, check)
    done = answered_rightly(key, check, numbers, value)
    st.markdown(f"**{check.question}**")
    if not done:
        answer = _ask(key, check, number)
        # Translators: a button: see whether the answer is right.
        label = _("Check")
        st.button(
            label, disabled=answer is None, type="primary", key=f"{key}.check", on_click=_keep_answer, args=(key,)
        )
        if not tries:
            return False
    if done:
        st.success(_("Right. {truth}", truth=_truth(check, numbers, value)), icon=":material/check:")
        return True
    # Translators: {answer} is what was answered, {hint} a sentence on where to look.
    wrong = _("Not yet: {answer} is not it. {hint}", answer=escaped(_said(answered)), hint=check.hint)
    st.warning(wrong, icon=":material/search:")
    if key in answers().shown:
        st.info(_truth(check, numbers, value))
        return True
    if tries >= TRIES:
        st.button(_("Show the answer"), type="tertiary", key=f"{key}.show", on_click=answers().shown.add, args=(key,))
    return False


def _answered(key: str, check: Check) -> tuple[float | str, int]:
    """What was answered, as it is graded, and in how many tries."""
    held, tries = _held(key, check)
    return float(held) if check.number is not None else list(check.choices)[int(held)], tries


def _held(key: str, check: Check) -> tuple[float | int, int]:
    """What was answered and in how many tries; nothing where a lesson has changed since."""
    held, tries = answers().checked.get(key, (0, 0))
    known = check.number is not None or held in range(len(check.choices))
    return (held, tries) if known else (0, 0)


def _keep_answer(key: str) -> None:
    if (answer := state.widget_value(key)) is not None:
        tries = answers().checked.get(key, (0, 0))[1]
        answers().checked[key] = (answer, tries + 1)


def _ask(key: str, check: Check, number: Number | None) -> float | int | None:
    """Returns: the number that was typed, or the place of what was chosen."""
    if number is None:
        labels = list(check.choices)
        places = range(len(labels))
        return st.radio(
            check.question, places, None, format_func=labels.__getitem__, label_visibility="collapsed", key=key
        )
    label = {"percent": _("Your answer in %"), "points": _("Your answer in points")}.get(number.form, _("Your answer"))
    typed = st.number_input(label, value=None, format="%g", key=key, width=220)
    return None if typed is None else float(typed)


def _said(answered: float | str) -> str:
    return f"{answered:,.10g}".replace("-", "−") if isinstance(answered, float) else answered


def _truth(check: Check, numbers: Mapping[str, Number], value: Callable[[str], Value]) -> str:
    """What the runs say, with every number that the question compares."""
    if check.number is not None:
        number = numbers[check.number]
        written = number.written(value(check.number))
        return (
            _("The runs say {number}.", number=written)
            if number.run is None
            else _("The run says {number}.", number=written)
        )
    if not check.by_number:
        return _("The runs say: {choices}.", choices=" · ".join(right_choices(check, value)))
    return " · ".join(called(label, numbers[name].written(value(name))) for label, name in check.choices.items())
