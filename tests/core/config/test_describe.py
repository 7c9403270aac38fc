"""A config in words: every field is described, values are readable, and the formula has every number."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from pydantic import BaseModel

from core.catalogue.losses import LOSSES
from core.config import OptimiserConfig, PhaseConfig, RunConfig, TaskConfig, parse_config
from core.config.describe import (
    ABSENT,
    number_text,
    settings,
    term_latex,
    term_words,
    total_latex,
    value_text,
)
from core.config.fields import fields_of
from core.config.objective import ObjectiveConfig, TermConfig
from core.config.presets import PRESETS
from tests.cases import each
from tests.core.config import made
from tests.core.config.made import CE, DROPOUT, SCL, objective

# Fields without effect on the weights, or described by another field.
LEFT_OUT = {
    "version",
    "name",
    "checkpoint.every_steps",
    "checkpoint.snapshot_steps",
    "resources.cpus",
    "resources.gpus",
    "task.name",
    "task.path",  # described by task.id
    "knob_turns",  # described by the settings they change
    "changes",  # likewise
}


def fields(part: type[BaseModel], path: str = "") -> set[str]:
    """Return the dotted paths of all fields of a config, except those of phases."""
    found = set()
    for name, field in part.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= fields(inner, f"{path}{name}.")
        else:
            found.add(f"{path}{name}")
    return found


def paths(**phase: Any) -> set[str]:
    config = parse_config({"phases": [phase]})
    return {setting.path for setting in settings(config)}


def test_no_field_of_a_run_is_forgotten() -> None:
    prepared = RunConfig(task=TaskConfig(content_hash="0" * 64))
    named = {setting.path for setting in settings(prepared) if not setting.path.startswith("phases.")}
    assert named | LEFT_OUT == fields(RunConfig) | {"task.id"}
    assert not named & LEFT_OUT


def test_no_field_of_a_phase_is_forgotten() -> None:
    parts = [{"part": part} for part in ("all", "last_blocks", "lora", "classifier")]
    named = set().union(*(paths(trainable=part) for part in parts))
    of_phase = fields(type(RunConfig().phases[0]), "phases.0.")
    missing = {path for path in of_phase if path not in named}
    assert missing == {"phases.0.objective.combine"}  # derived from the weights


@each("name", PRESETS)
def test_every_setting_has_its_own_path_and_can_be_read(name: str) -> None:
    found = settings(parse_config({"phases": PRESETS[name].phases({"steps": 20})}))
    assert len({setting.path for setting in found}) == len(found)
    assert all(setting.label and setting.text for setting in found)


def test_what_is_switched_off_is_no_setting() -> None:
    term = "phases.0.objective.terms.supcon."
    plain = paths()
    tokens = paths(objective={"terms": [SCL | {"level": "token"}]})
    assert {f"{term}k", f"{term}clusters"} <= tokens
    assert not {f"{term}k", f"{term}clusters", f"{term}momentum"} & plain
    assert f"{term}momentum" in paths(objective={"terms": [SCL | {"queue": 64}]})
    assert "phases.0.optimiser.bias_correction" not in paths(optimiser={"name": "adafactor"})
    assert not any("lora" in path or path.endswith(".blocks") for path in plain)


def test_uniform_leaves_the_own_view_no_weight_of_its_own() -> None:
    dscl = {"loss": "dscl", "views": DROPOUT}
    mixed, uniform = (paths(objective={"terms": [dscl | {"uniform": on}]}) for on in (False, True))
    assert mixed - uniform == {"phases.0.objective.terms.dscl.alpha"}


def test_a_number_is_as_short_as_it_can_be_but_not_rounded() -> None:
    shortest = ["0.3", "5e-05", "2e-04", "1", "0", "-0.5", "0.001"]
    assert [number_text(float(text)) for text in shortest] == shortest
    rng = np.random.default_rng(0)
    numbers = [*rng.normal(size=50), *(10.0 ** rng.uniform(-12, 12, 50)), 0.1 + 0.2, math.nextafter(0.3, 1)]
    assert [float(number_text(float(value))) for value in numbers] == numbers


def test_words_stand_for_values() -> None:
    plain = {None: ABSENT, True: "On", 1200: "1,200", (2, 4): "2, 4", "roberta": "roberta"}
    assert {value: value_text(value) for value in plain} == plain
    assert value_text(None, fields_of(TaskConfig)["train_size"]) == "All"
    assert value_text(None, fields_of(OptimiserConfig)["classifier_learning_rate"]) == "The default"
    assert value_text(False, fields_of(OptimiserConfig)["bias_correction"]) == "Off"
    assert value_text(None, fields_of(PhaseConfig)["epochs"]) == ABSENT
    layers = next(p for p in LOSSES["supcon"].parameters if p.name == "layers")
    assert value_text("last_third", layers) == "Last third"


def term(loss: str, **fields: Any) -> TermConfig:
    """Return a term with the views that its loss needs."""
    return made.term(loss, **{"views": DROPOUT if LOSSES[loss].views[0] == 2 else []} | fields)


@each(
    ("found", "latex"),
    [
        (ObjectiveConfig(), r"\mathcal{L}=0.10\,\text{CE}+0.90\,\text{SCL}"),
        (objective(CE), r"\mathcal{L}=\text{CE}"),
        (objective(CE | {"weight": 2}), r"\mathcal{L}=2.00\,\text{CE}"),
        (
            objective(SCL, SCL | {"weight": 0.125, "level": "token"}),
            r"\mathcal{L}=1.00\,\text{SCL}+0.125\,\text{SCL}_{2}^{\text{token}}",
        ),
        (
            objective(CE, SCL | {"weight": 0.001, "level": "logits"}),
            r"\mathcal{L}=1.00\,\text{CE}+0.001\,\text{SCL}^{\text{logits}}",
        ),
    ],
)
def test_the_total_has_every_weight_and_term(found: ObjectiveConfig, latex: str) -> None:
    assert total_latex(found) == latex


@each("loss", LOSSES)
def test_every_place_is_filled_with_the_number_that_holds(loss: str) -> None:
    entry = LOSSES[loss]
    values = {p.name: 0.123 for p in entry.parameters if p.knob and p.low is not None and p.name != "mixup"}
    lines = term_latex(term(loss, **values))
    assert not [p.name for p in entry.parameters if f"{{{p.name}}}" in " ".join(lines)]
    for name in values:
        places = [line for line in (entry.latex, *entry.latex_notes.values()) if f"{{{name}}}" in line]
        assert not places or "0.123" in " ".join(lines)
    assert all(is_balanced(line) for line in lines)


def is_balanced(latex: str) -> bool:
    braces = re.sub(r"\\[{}]", "", latex)
    return braces.count("{") == braces.count("}")


@each(
    ("loss", "setting", "value", "part"),
    [
        ("cross_entropy", "label_smoothing", 0.1, "(1-0.10)"),
        ("cross_entropy", "margin", 0.5, "-0.50"),
        ("cross_entropy", "mixup", 0.2, r"\mathrm{Beta}(0.20,0.20)"),
        ("cross_entropy", "cutmix", 0.2, r"\mathrm{Beta}(0.20,0.20)"),
        ("cross_entropy", "angle_margin", 2, r"\cos(2\,\theta_{y_i})-2k"),
        ("supcon", "reduction", "sum", "sum over the anchors"),
    ],
)
def test_a_setting_that_alters_the_equation_has_a_line_where_it_is_in_use(
    loss: str, setting: str, value: float | str, part: str
) -> None:
    plain, changed = term_latex(term(loss)), term_latex(term(loss, **{setting: value}))
    assert len(plain) == 1
    assert changed[0] == plain[0]
    assert part in changed[1]


@each(
    ("loss", "settings", "parts"),
    [
        ("supcon", {"base_temperature": 0.07}, [r"\frac{0.30}{0.07}\,\text{SCL}"]),
        ("supcon", {"reduction": "mean_all"}, ["mean over all anchors"]),
        ("dscl", {"base_temperature": 0.1}, [r"\frac{0.07}{0.10}\,\text{DSCL}"]),
        ("dscl", {"variant": "notes-formula"}, [r"w_i=(1-0.10)\,\frac{|P(i)|+1}{|P(i)|}"]),
        ("dscl", {"variant": "notes-code"}, [r"\frac{z_i\cdot z_a-\max_j z_i\cdot z_j}{0.07}", r"\max(|P(i)|-1,1)"]),
    ],
)
def test_the_equation_shows_what_the_notes_compute(loss: str, settings: dict[str, Any], parts: list[str]) -> None:
    lines = " ".join(term_latex(term(loss, **settings)))
    for part in parts:
        assert part in lines
        assert part not in " ".join(term_latex(term(loss)))
    assert is_balanced(lines)


@each(
    ("found", "words"),
    [
        (term("supcon"), ""),
        (term("supcon", level="token", k=9), "the 9 tokens with the highest [CLS] attention"),
        (
            term("supcon", level="token", clusters=5, layers="last_third"),
            "the 30 tokens with the highest [CLS] attention, grouped into 5 clusters; one loss per layer (last third)",
        ),
        (term("supcon", layers=[1, 2]), "one loss per layer (1, 2)"),
        (term("dscl", level="logits"), "the classifier's output; views: second dropout pass"),
    ],
)
def test_what_the_formula_does_not_say_is_said_in_words(found: TermConfig, words: str) -> None:
    assert term_words(found) == words
