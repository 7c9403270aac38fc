"""What scripts are composed of: definitions without what a run never does, and the calls that losses come to."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from core.catalogue.losses import LOSSES
from core.config.term import TermConfig
from core.exports.script.composing import Composer
from core.exports.script.english import in_english
from core.exports.script.folding import folded
from core.exports.script.line_breaks import broken
from core.exports.script.source_file import Home, Outside, source_file
from core.exports.script.tracing import Text, tensor, traced
from core.losses.evaluate import Contrasted, TermInput
from core.registry import load

UNIT = "core.losses.unit"
LABELS = torch.tensor([0, 1, 0, 1, 1])
FUNCTION = '''def give(a: int, b: int = 1, *, c: int = 2) -> int:
    """A sum.

    Args:
        a: the first.
        b: the second,
            which goes on here.
    """
    # A remark about d.
    d = a * 2
    if c > 1:
        # A remark inside.
        return a
    elif b:
        return b
    log(c)
    return d if b else a
'''


def compiled(text: str) -> Any:
    names: dict[str, Any] = {}
    exec(text, names)
    return names["give"]


class TestEnglish:
    @pytest.mark.parametrize(
        ("translated", "plain"),
        [
            ('x = _("a")', 'x = "a"'),
            ('x = N_("a") + _(y)', 'x = "a" + y'),
            ('x = _("{a:,} is {{b}} {a}", a=f(1))', 'x = f"{f(1):,} is {{b}} {f(1)}"'),
            ('x = _("{a} is {b}", a=f(1), b="c, d")', 'x = "{a} is {b}".format(a=f(1), b="c, d")'),
            ('x = _("{a}", a=_("b"))', 'x = "{a}".format(a="b")'),
            (
                'x = f(\n    _(\n        "a "\n        "b",\n    )\n)',
                'x = f(\n    (\n        "a "\n        "b"\n    )\n)',
            ),
            (
                'x = _(\n    "{a}, "\n    "b",\n    a=1,\n)',
                'x = (\n    f"{1}, "\n    "b"\n)',
            ),
            ('x = _("{a}", **known)', 'x = "{a}".format(**known)'),
            ('x = _("{a}", a=repr(b))', 'x = f"{b!r}"'),
            ('raise E(\n    _("{a}", a=1)\n)', 'raise E(f"{1}")'),
            ('x = _("{a}", a=listed(b for b in c))', 'x = "{a}".format(a=", ".join(b for b in c))'),
            ("x = f(_)", "x = f(_)"),
        ],
    )
    def test_messages_are_plain_text(self, translated: str, plain: str) -> None:
        assert in_english(translated) == plain


class TestFolding:
    def test_without_facts_nothing_changes(self) -> None:
        assert folded(FUNCTION, {}) == FUNCTION

    def test_dead_branches_go_with_what_they_alone_read(self) -> None:
        text = folded(FUNCTION, {"c > 1": False, "b": False, "log(c)": ""})
        assert text.splitlines()[-1] == "    return a"
        assert "d = " not in text
        assert "A remark" not in text
        assert compiled(text)(7) == 7

    def test_a_branch_that_is_always_taken_takes_the_place_of_its_condition(self) -> None:
        text = folded(FUNCTION, {"c > 1": True})
        assert text.splitlines()[-2:] == ["    # A remark inside.", "    return a"]

    def test_an_argument_that_is_never_given_leaves_signature_and_docstring(self) -> None:
        text = folded(FUNCTION, {"(b)": "", "doc b:": "", "(c)": "", "c > 1": True})
        assert text.startswith("def give(a: int) -> int:\n")
        assert "second" not in text
        assert "goes on" not in text
        assert "a: the first." in text
        assert compiled(text)(3) == 3

    def test_conditions_are_simplified(self) -> None:
        text = "def give(a, b):\n    return 1 if a and b and not a else 2\n"
        assert folded(text, {"not a": True}).splitlines()[1] == "    return 1 if a and b else 2"
        assert folded(text, {"b": False}).splitlines()[1] == "    return 2"

    def test_characters_of_several_bytes_do_not_move_an_edit(self) -> None:
        assert folded('def give(a):\n    return "τλ", a.b if a else "λ"\n', {"a": True}).splitlines()[1] == (
            '    return "τλ", a.b'
        )


class TestComposing:
    def test_what_is_reached_comes_in_an_order_that_runs(self) -> None:
        composed = Composer().compose([Home("core.losses.supcon", "supcon_loss")], "")
        text = "\n".join(["import math, warnings, torch", "from collections.abc import Iterator, Sequence"])
        text += "\nfrom functools import cache\nfrom typing import Any, Literal, NamedTuple\nfrom torch import Tensor\n"
        names: dict[str, Any] = {}
        exec("from __future__ import annotations\n" + text + "\n".join(part for _, part in composed.parts), names)
        vectors = torch.randn(5, 2, 4, dtype=torch.float64)
        entry = LOSSES["supcon"]
        term = TermConfig.model_validate({"loss": "supcon", "temperature": 0.2})
        expected = load(entry.compute)(TermInput(layers=(Contrasted(vectors),)), LABELS, term.parameters)
        torch.testing.assert_close(names["supcon_loss"](vectors, LABELS, temperature=0.2), expected)

    def test_imports_from_outside_are_named(self) -> None:
        outside = Composer().compose([Home(UNIT, "unit_rows")], "").outside
        assert outside == {Outside("torch", None, ""), Outside("torch", "Tensor", "")}

    def test_private_names_that_two_modules_have_get_their_module_behind_them(self) -> None:
        roots = [Home("core.losses.supcon", "supcon_loss"), Home("core.losses.dscl", "dscl_loss")]
        text = "\n".join(part for _, part in Composer().compose(roots, "").parts)
        assert "def _check_supcon(" in text
        assert "def _check_dscl(" in text
        assert "def _check(" not in text

    def test_a_name_that_the_lines_around_use_is_left_to_them(self) -> None:
        composer = Composer(taken=frozenset({"unit_rows"}))
        text = "\n".join(part for _, part in composer.compose([Home(UNIT, "unit_rows")], "").parts)
        assert "def unit_rows_" in text
        assert "def unit_rows(" not in text

    def test_a_class_has_the_methods_that_something_calls(self) -> None:
        roots = [Home("core.encoders.tokenizer", "Tokenizer")]
        without = "\n".join(part for _, part in Composer().compose(roots, "tokenizer(texts)").parts)
        assert "def __call__(" in without
        assert "def words(" not in without
        assert "def words(" in "\n".join(part for _, part in Composer().compose(roots, "tokenizer.words(x)").parts)

    def test_a_module_is_read_with_the_comments_above_its_definitions(self) -> None:
        constants = source_file("core.encoders.packing").definitions
        assert constants["ATTENTION_LENGTH"].startswith("# The row length at which")


def cases() -> list[tuple[str, dict[str, Any], int]]:
    """Losses on vectors with settings and the number of views."""
    return [
        ("supcon", {"temperature": 0.2, "variant": "in"}, 2),
        ("dscl", {"alpha": 0.3}, 3),
        ("dscl", {"uniform": True}, 2),
        ("simcse", {"symmetric": True}, 2),
        ("simcse", {"candidates": "all"}, 2),
        ("simcse_supervised", {"hard_negative_weight": 0.5}, 3),
    ]


class TestTracing:
    @pytest.mark.parametrize(("loss", "settings", "views"), cases())
    @pytest.mark.parametrize("layers", [1, 2])
    def test_a_call_on_vectors_is_the_loss(self, loss: str, settings: dict[str, Any], views: int, layers: int) -> None:
        given = [torch.randn(5, views, 6) for _ in range(layers)]
        term = TermConfig.model_validate(
            {"loss": loss, **settings, "views": [{"view": "dropout"}] * (views - 1)}
            if loss in ("dscl", "simcse")
            else {"loss": loss, **settings}
        )
        names = [f"vectors_{place}" for place in range(layers)]
        found = traced(
            term, TermInput(layers=tuple(Contrasted(tensor(name, views)) for name in names)), term.parameters
        )
        own = load(term.entry.compute)(TermInput(layers=tuple(map(Contrasted, given))), LABELS, term.parameters)
        functions = {home.name: getattr(__import__(home.module, fromlist=[""]), home.name) for home in found.functions}
        value = eval(found.call, functions | dict(zip(names, given, strict=True)) | {"labels": LABELS})
        torch.testing.assert_close(value, own)

    def test_pieces_and_knobs_are_named(self) -> None:
        term = TermConfig.model_validate({"loss": "rdrop", "views": [{"view": "head_dropout"}]})
        logits = (tensor("one"), tensor("two"))
        found = traced(term, TermInput(logits=logits), term.parameters | {"alpha": Text('knobs["rdrop.alpha"]')})
        assert found.call == 'rdrop_loss(one, two, labels, alpha=knobs["rdrop.alpha"])'
        assert found.total.format(value="rdrop") == "rdrop.total"
        assert {name: piece.format(value="rdrop") for name, piece in found.pieces.items()} == {
            "ce": "rdrop.ce",
            "kl": "rdrop.kl",
        }


def test_a_line_that_is_too_long_is_broken_at_its_commas() -> None:
    line = f'found = give([{", ".join(["alpha"] * 12)}], "a, b", {{"key": (1, 2)}})'
    lines = broken(line, behind=60)
    assert max(map(len, lines)) <= 60
    assert lines[0] == "found = give("
    assert '    "a, b",' in lines
    assert "".join(lines).replace(" ", "").replace(",]", "]").replace(",)", ")") == line.replace(" ", "")
