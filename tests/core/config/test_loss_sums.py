"""Curves of a loss compare only where it is the same quantity."""

from __future__ import annotations

from typing import Any

from core.config import RunConfig, parse_config
from core.config.compare import is_loss, same_loss
from tests.cases import each

CE: dict[str, Any] = {"loss": "cross_entropy"}
SCL: dict[str, Any] = {"loss": "supcon", "temperature": 0.3}


def run(*terms: dict[str, Any], turns: tuple[tuple[int, str, float], ...] = (), **phase: Any) -> RunConfig:
    objective = {"terms": list(terms), "combine": "additive"}
    made = [{"step": step, "name": name, "value": value} for step, name, value in turns]
    return parse_config({"phases": [{"objective": objective, "steps": 10} | phase], "knob_turns": made})


PLAIN = run(CE, SCL)


@each(
    ("other", "total", "ce", "scl"),
    [
        (run(CE, SCL), True, True, True),
        (run(SCL, CE), True, True, True),
        (run(CE, SCL, optimiser={"learning_rate": 1e-3}), True, True, True),
        (run(CE, SCL | {"weight": 0.5}), False, True, True),
        (run(CE, SCL | {"temperature": 0.1}), False, True, False),
        (run(CE, SCL, batch_size=8), False, True, False),
        (run(CE | {"label_smoothing": 0.1}, SCL), False, False, True),
        (run(CE, SCL, turns=((3, "temperature", 0.1),)), False, True, False),
        (run(CE, SCL, turns=((3, "supcon.weight", 0.5),)), False, True, True),
        (run(CE, SCL, turns=((3, "learning_rate", 0.5),)), True, True, True),
    ],
)
def test_what_makes_a_loss_another_quantity(other: RunConfig, total: bool, ce: bool, scl: bool) -> None:
    found = [same_loss([PLAIN, other], name) for name in ("loss", "loss.cross_entropy", "loss.supcon")]
    assert found == [total, ce, scl]


def test_cross_entropy_alone_does_not_depend_on_the_batch() -> None:
    assert same_loss([run(CE), run(CE, batch_size=4)], "loss")


def test_a_part_is_the_same_in_whichever_phase_it_is() -> None:
    simcse = {"objective": {"terms": [{"loss": "simcse", "views": [{"view": "dropout"}]}]}, "steps": 5}
    plain = {"objective": {"terms": [CE]}, "steps": 5}
    one, two = parse_config({"phases": [plain]}), parse_config({"phases": [simcse, plain]})
    assert same_loss([one, two], "loss.cross_entropy")
    assert not same_loss([one, two], "loss")


def test_one_run_and_none_are_the_same() -> None:
    assert same_loss([PLAIN], "loss")
    assert same_loss([], "loss")


def test_pieces_of_a_part_go_with_it() -> None:
    rdrop = {"loss": "rdrop", "alpha": 1.0, "views": [{"view": "head_dropout"}]}
    assert same_loss([run(rdrop), run(rdrop | {"weight": 0.5})], "loss.rdrop.kl")
    assert not same_loss([run(rdrop), run(rdrop | {"alpha": 4.0})], "loss.rdrop.kl")
    assert [is_loss(name) for name in ("loss", "loss.rdrop.kl", "lambda", "validation.cross_entropy")] == [
        True,
        True,
        False,
        False,
    ]
