"""The loss lab on its page: pass the browser's requests to the lab process, and keep the address current."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st
from pydantic import ValidationError

from core.errors import PlaygroundError
from core.figures.lab_curves import lab_figure
from core.figures.map_script import MARKS, WORDS
from core.figures.template import class_colour, class_symbol
from core.lab.choices import MOST_MOVES, Move, Setting, Stage, lab_losses, loss_names
from core.lab.process import LabProcess
from core.messages import _, script_messages
from pages.ui import state
from pages.ui.address import LossLab
from pages.ui.live_figure import plotly_url
from pages.ui.parts import UI, component

# The scripts are joined into one module, with the marks and icons of the maps.
SCRIPTS = ("../plotly.js", "../softmax_bars.js", "picture.js", "knobs.js", "words.js", "lab.js", "main.js")
KEY = "lab.view"
SHOWN = "lab.shown"
MOST_STEPS = 3000
# Initial settings: by space, in all other spaces, and of the second panel.
FIRST = {"simplex": Setting(loss="rdrop", learning_rate=5.0)}
USUAL = Setting()
SECOND = Setting(temperature=0.5)

_mount = component(
    "lab_view",
    '<div class="lab-view" role="group"></div>',
    [*WORDS, *MARKS, *(UI / "lab" / name for name in SCRIPTS)],
    [UI / "lab" / "style.css", UI / "softmax_bars.css"],
)


@dataclass
class _LabState:
    """State of the lab in this browser: the latest settings, and the last answer."""

    settings: list[Setting]
    moves: tuple[Move, ...]
    anchor: int | None
    step: int
    origin: str = ""
    number: int = 0
    answer: str = ""
    problem: str = ""


@st.cache_resource(show_spinner=False)
def lab_process() -> LabProcess:
    """Return the lab process, one for the server."""
    return LabProcess()


def lab(stage: Stage, beside: bool) -> None:
    """Draw the lab of a stage. Args: beside: whether to show a second setting from the same start."""
    lab_process().warm_up()
    first, points = FIRST.get(stage.space), stage.points - 1
    # Initially from the address, afterwards from the browser's last action.
    shown = state.session_value(
        SHOWN,
        lambda: _LabState(
            [LossLab.FIRST.read(read_setting, first or USUAL), LossLab.SECOND.read(read_setting, first or SECOND)],
            LossLab.MOVED.read(lambda text: read_moves(text, stage.points), ()),
            LossLab.ANCHOR.read(lambda text: _number(text, points), None),
            LossLab.STEP.read(lambda text: _number(text, MOST_STEPS), 0) or 0,
        ),
    )
    while len(shown.settings) < 2:
        shown.settings.append(shown.settings[0].model_copy(update={"temperature": SECOND.temperature}))
    known, fitting = loss_names(stage.space), first or USUAL
    shown.settings = [one if one.loss in known else fitting for one in shown.settings][: 2 if beside else 1]
    begun = json.dumps([stage.model_dump(), beside])
    if shown.origin and shown.origin != begun:  # another stage restarts the lab
        shown.moves, shown.step, shown.anchor = (), 0, None
        shown.number, shown.answer = 0, ""
    shown.origin = begun
    _put(shown)
    st.fragment(_view)(stage, shown)


def forget_lab() -> None:
    """Reset the lab to the state in the address."""
    state.forget(SHOWN)


def _view(stage: Stage, shown: _LabState) -> None:
    _take(shown, stage)
    losses = {
        name: {
            "label": loss.label,
            "about": loss.about,
            "symbol": loss.entry.symbol,
            "on_vectors": loss.entry.contrastive,
            "has_temperature": "temperature" in loss.entry.defaults,
            "extra": loss.extra
            and {
                "label": _(loss.extra.label),
                "help": _(loss.extra.help),
                "range": loss.extra.slider,
                "default": loss.extra.default,
            },
        }
        for name, loss in lab_losses().items()
    }
    _mount(
        key=KEY,
        # A list, because Streamlit would load pandas to check a dictionary's values for data frames.
        data=[
            {
                "origin": shown.origin,
                "stage": stage.model_dump(),
                "settings": [setting.model_dump() for setting in shown.settings],
                "losses": losses,
                "offered": loss_names(stage.space),
                "moves": [move.model_dump() for move in shown.moves],
                "anchor": shown.anchor,
                "step": shown.step,
                "colours": [class_colour(label) for label in range(stage.classes)],
                "symbols": [class_symbol(label) for label in range(stage.classes)],
                "figure": lab_figure(
                    len(shown.settings),
                    measured=stage.space != "simplex",
                    height=320 if stage.space == "simplex" else 470,
                ),
                "plotly": plotly_url(),
                "number": shown.number,
                "answer": shown.answer,
                "problem": shown.problem,
                "words": script_messages("pages/ui/lab/") | script_messages("pages/ui/plotly.js"),
            }
        ],
        on_asked_change=lambda: None,
    )


def _take(shown: _LabState, stage: Stage) -> None:
    """Answer the browser's last request, unless it is answered already, and store the browser's current step."""
    held = state.widget_value(KEY)
    report = held.get("asked") if isinstance(held, Mapping) else None
    # There is no report, or it is invalid or belongs to an earlier start.
    if not isinstance(report, Mapping) or report.get("origin") != shown.origin or type(report.get("number")) is not int:
        return
    question = report.get("question")
    if isinstance(question, Mapping) and report["number"] != shown.number:
        shown.number, shown.answer, shown.problem = report["number"], "", ""
        try:
            # The page's stage overrides any stage that the browser sends.
            shown.answer = lab_process().ask(json.dumps({**question, "stage": stage.model_dump()}))
        except PlaygroundError as error:
            shown.problem = str(error)
            return
        shown.settings = [Setting.model_validate(setting) for setting in question["settings"]]
        anchor = question.get("anchor")
        shown.anchor = anchor if isinstance(anchor, int) else None
    shown.moves = ()
    with suppress(ValueError, TypeError):  # invalid moves
        text = moves_text([Move.model_validate(move) for move in report.get("moves") or ()])
        shown.moves = (read_moves(text, stage.points) or ()) if text else ()
    shown.step = report["step"] if type(report.get("step")) is int and 0 <= report["step"] <= MOST_STEPS else 0
    if question is None:  # the browser is idle; an address for every slider tick would fill its history
        _put(shown)


def _number(text: str, most: int) -> int | None:
    return int(text) if text.isdecimal() and int(text) <= most else None


def _put(shown: _LabState) -> None:
    """Write the state to the address."""
    LossLab.FIRST.put(setting_text(shown.settings[0]))
    LossLab.SECOND.put(setting_text(shown.settings[1]) if len(shown.settings) > 1 else None)
    LossLab.MOVED.put(moves_text(shown.moves))
    LossLab.ANCHOR.put(shown.anchor)
    LossLab.STEP.put(shown.step or None)


BETWEEN, POINTS_BETWEEN = "_", "~"


def setting_text(setting: Setting) -> str:
    """Format a setting, such as `out_1_0.1_0.5`: loss, λ, τ, learning rate and, if the loss has one, its extra knob."""
    parts = [setting.loss, *(f"{value:g}" for value in (setting.weight, setting.temperature, setting.learning_rate))]
    if setting.extra is not None and setting.lab_loss.extra is not None:
        parts.append(f"{setting.extra:g}")
    return BETWEEN.join(parts)


def read_setting(text: str) -> Setting | None:
    """Parse a setting; return None if the text is invalid."""
    # The name of an external loss may contain the separator.
    loss = next((name for name in sorted(lab_losses(), key=len, reverse=True) if text.startswith(name + BETWEEN)), "")
    parts = text.removeprefix(loss + BETWEEN).split(BETWEEN)
    if not loss or not 3 <= len(parts) <= 4:
        return None
    given = {"loss": loss} | dict(zip(("weight", "temperature", "learning_rate", "extra"), parts, strict=False))
    try:
        return Setting.model_validate(given)
    except (ValidationError, PlaygroundError):
        return None


def moves_text(moves: Sequence[Move]) -> str:
    return POINTS_BETWEEN.join(
        BETWEEN.join([str(move.text), str(move.view), *(f"{value:g}" for value in move.to)]) for move in moves
    )


def read_moves(text: str, points: int) -> tuple[Move, ...] | None:
    """Parse moves; return None if one is invalid or there are too many."""
    found = []
    for part in text.split(POINTS_BETWEEN):
        number, view, *to = part.split(BETWEEN) if part.count(BETWEEN) >= 3 else ("", "")
        try:
            # Converted to numbers, since a view must be one of two integers.
            move = Move.model_validate({"text": int(number), "view": int(view), "to": tuple(map(float, to))})
        except (ValidationError, ValueError):
            return None
        if move.text >= points:
            return None
        found.append(move)
    return tuple(found) if len(found) <= MOST_MOVES else None
