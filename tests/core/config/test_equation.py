"""The formula that is shown beside the form."""

from __future__ import annotations

import re
from typing import Any

from core.catalogue.losses import LOSSES
from core.config.describe import PLACE, term_latex, term_words, total_latex
from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS
from core.config.term import TermConfig
from tests.cases import each

DROPOUT = [{"view": "dropout"}]


def objective(*terms: dict[str, Any], combine: str = "additive") -> ObjectiveConfig:
    return build(ObjectiveConfig, {"terms": list(terms), "combine": combine})


def term(loss: str, **fields: Any) -> TermConfig:
    return build(TermConfig, {"loss": loss, "views": DROPOUT if LOSSES[loss].views[0] == 2 else [], **fields})


@each(
    ("made", "latex"),
    [
        (ObjectiveConfig(), r"\mathcal{L}=0.10\,\text{CE}+0.90\,\text{SCL}"),
        (objective({"loss": "cross_entropy"}), r"\mathcal{L}=\text{CE}"),
        (objective({"loss": "cross_entropy", "weight": 2}), r"\mathcal{L}=2.00\,\text{CE}"),
        (
            objective({"loss": "supcon"}, {"loss": "supcon", "weight": 0.125, "level": "token"}),
            r"\mathcal{L}=1.00\,\text{SCL}+0.125\,\text{SCL}_{2}^{\text{token}}",
        ),
        (
            objective({"loss": "cross_entropy"}, {"loss": "supcon", "weight": 0.001, "level": "logits"}),
            r"\mathcal{L}=1.00\,\text{CE}+0.001\,\text{SCL}^{\text{logits}}",
        ),
    ],
)
def test_the_total_has_every_weight_and_term(made: ObjectiveConfig, latex: str) -> None:
    assert total_latex(made) == latex


@each("loss", LOSSES)
def test_every_place_is_filled_with_the_number_that_holds(loss: str) -> None:
    entry = LOSSES[loss]
    values = {p.name: 0.123 for p in entry.parameters if p.knob and p.low is not None and p.name != "mixup"}
    lines = term_latex(term(loss, **values))
    names = {p.name for p in entry.parameters}
    assert not names & set(PLACE.findall(" ".join(lines)))
    for name in values:
        places = [line for line in (entry.latex, *entry.latex_notes.values()) if f"{{{name}}}" in line]
        assert not places or "0.123" in " ".join(lines)


@each("loss", LOSSES)
def test_braces_stay_balanced(loss: str) -> None:
    for line in term_latex(term(loss)):
        assert re.sub(r"\\[{}]", "", line).count("{") == re.sub(r"\\[{}]", "", line).count("}")


@each("name", PRESETS)
def test_every_preset_has_an_equation(name: str) -> None:
    for given in PRESETS[name].objectives:
        made = build(ObjectiveConfig, given)
        assert total_latex(made).startswith(r"\mathcal{L}=")
        assert all(term_latex(each) for each in made.terms)


def test_the_temperature_stands_where_it_divides() -> None:
    (line,) = term_latex(term("supcon", temperature=0.05))
    assert line.count("/0.05}") == 2


def test_the_variant_has_an_equation_of_its_own() -> None:
    assert term_latex(term("supcon", variant="in")) != term_latex(term("supcon"))
    assert r"\log\Big[" in term_latex(term("supcon", variant="in"))[0]


@each(
    ("setting", "value", "part"),
    [("label_smoothing", 0.1, "(1-0.10)"), ("margin", 0.5, "-0.50"), ("mixup", 0.2, r"\mathrm{Beta}(0.20,0.20)")],
)
def test_an_extra_of_cross_entropy_has_a_line_where_it_is_in_use(setting: str, value: float, part: str) -> None:
    plain, changed = term_latex(term("cross_entropy")), term_latex(term("cross_entropy", **{setting: value}))
    assert len(plain) == 1
    assert changed[0] == plain[0]
    assert part in changed[1]


@each(
    ("made", "words"),
    [
        (term("supcon"), ""),
        (term("supcon", level="token", k=9), "the 9 tokens that [CLS] attends to most"),
        (
            term("supcon", level="token", clusters=5, layers="last_third"),
            "the 30 tokens that [CLS] attends to most, grouped into 5; one loss per layer (last third)",
        ),
        (term("supcon", layers=[1, 2]), "one loss per layer (1, 2)"),
        (term("dscl", level="logits"), "the classifier's output; views: second dropout pass"),
    ],
)
def test_what_the_formula_does_not_say_is_said_in_words(made: TermConfig, words: str) -> None:
    assert term_words(made) == words
