"""Names of a run's objective, and components, on pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from core.config import parse_config
from core.config.describe import objective_label
from pages.ui import parts
from tests.cases import each

MIX = {"terms": [{"loss": "supcon", "weight": 0.9, "temperature": 0.3}, {"loss": "cross_entropy", "weight": 0.1}]}
CE = {"terms": [{"loss": "cross_entropy"}]}
SIMCSE = {"terms": [{"loss": "simcse", "temperature": 0.05, "views": [{"view": "dropout"}]}]}
TOKENS = {"terms": [{"loss": "supcon", "level": "token"}], "combine": "additive"}
VIEWS = {"terms": [{"loss": "supcon", "views": [{"view": "dropout"}, {"view": "dropout"}]}], "combine": "additive"}
SMOOTHED = {"terms": [{"loss": "cross_entropy", "label_smoothing": 0.1}]}


@each(
    ("objectives", "turns", "label"),
    [
        ([MIX], [], "0.1 CE + 0.9 SCL, τ 0.3"),
        ([CE], [], "CE"),
        ([MIX], [(31, "temperature", 0.08)], "0.1 CE + 0.9 SCL, τ 0.3 → 0.08"),
        ([MIX], [(3, "temperature", 0.2), (31, "temperature", 0.08)], "0.1 CE + 0.9 SCL, τ 0.3 → 0.08"),
        ([MIX], [(31, "lambda", 0.5)], "(0.1 → 0.5) CE + (0.9 → 0.5) SCL, τ 0.3"),
        ([MIX], [(31, "lambda", 0.0)], "(0.1 → 1) CE + (0.9 → 0) SCL, τ 0.3"),
        ([MIX], [(31, "learning_rate", 0.5)], "0.1 CE + 0.9 SCL, τ 0.3, learning rate × 0.5"),
        ([MIX], [(3, "temperature", 0.2), (9, "temperature", 0.3)], "0.1 CE + 0.9 SCL, τ 0.3, turned and turned back"),
        ([SIMCSE, MIX], [(60, "temperature", 0.5)], "SimCSE, τ 0.05; then 0.1 CE + 0.9 SCL, τ 0.3 → 0.5"),
        ([TOKENS], [], "token SCL, τ 0.3"),
        ([VIEWS], [], "multi-view SCL, τ 0.3"),
        ([SIMCSE, MIX], [(9, "temperature", 0.5)], "SimCSE, τ 0.05 → 0.5; then 0.1 CE + 0.9 SCL, τ 0.3"),
    ],
)
def test_a_label_has_both_values_of_a_knob_that_was_turned(
    objectives: list[dict[str, Any]], turns: list[tuple[int, str, float]], label: str
) -> None:
    phases = [{"objective": objective, "steps": 50} for objective in objectives]
    made = [{"step": step, "name": name, "value": value} for step, name, value in turns]
    assert objective_label(parse_config({"phases": phases, "knob_turns": made})) == label


def test_a_knob_without_a_sign_of_its_own_is_named_once_it_was_turned() -> None:
    phases = [{"objective": SMOOTHED, "steps": 50}]
    turns = [{"step": 5, "name": "cross_entropy.label_smoothing", "value": 0.2}]
    assert objective_label(parse_config({"phases": phases})) == "CE"
    assert objective_label(parse_config({"phases": phases, "knob_turns": turns})) == "CE, Label smoothing ε 0.1 → 0.2"


def test_a_long_script_is_a_file_and_is_sent_only_if_the_file_cannot_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(st.components.v2, "component", lambda name, **given: sent.append(given["js"]))
    long = "// " + parts.INLINE_CHARS * "x"

    def register(script: str, folder: Path = tmp_path, *, serving: bool = True) -> str:
        monkeypatch.setattr(parts, "STATIC", folder)
        monkeypatch.setattr(st, "get_option", {"server.enableStaticServing": serving, "server.baseUrlPath": "lab"}.get)
        parts.component("drawing", "", [script])
        return sent[-1]

    assert register("// short") == "// short"
    for script in (long, long + "y"):
        loader = register(script)
        (name,) = re.findall(r'"/lab/app/static/(drawing\..+\.js)"', loader)
        assert (tmp_path / name).read_text(encoding="utf-8") == script
    assert len(list(tmp_path.iterdir())) == 2  # a server with older code keeps its file
    assert register(long, tmp_path / "absent") == register(long, serving=False) == long
