"""The display of values in error messages, and the exceptions that a page may catch."""

from __future__ import annotations

from core import errors
from core.errors import SHOWN_CHARS, ConfigError, PlaygroundError, quote_value
from tests.cases import each


@each(
    ("value", "expected"),
    [
        ("cats", "'cats'"),
        ("", "''"),
        (3, "3"),
        (None, "None"),
        (0.5, "0.5"),
        ("two\nlines", r"'two\nlines'"),
        (["a", "b"], "['a', 'b']"),
    ],
)
def test_a_short_value_is_shown_whole(value: object, expected: str) -> None:
    assert quote_value(value) == expected


def test_a_long_value_is_cut() -> None:
    assert quote_value("x" * 10_000) == "'" + "x" * (SHOWN_CHARS - 1) + "…"


def test_a_value_never_breaks_the_line() -> None:
    assert "\n" not in quote_value({"a": "b\nc", "d": ["e\n"]})
    assert "\0" not in quote_value("a\0b")


def test_a_config_error_is_one_sentence_with_field_value_and_remedy() -> None:
    error = ConfigError("batch_size", 0, "give at least 1.")
    assert str(error) == "batch_size = 0 cannot be used: give at least 1."
    assert (error.field, error.value, str(error.remedy)) == ("batch_size", 0, "give at least 1.")
    assert isinstance(error, ValueError)


def test_every_error_of_ours_can_be_caught_as_one() -> None:
    ours = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert len(ours) > 5
    assert all(issubclass(error, PlaygroundError) for error in ours)
