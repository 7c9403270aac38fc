"""The display of values in error messages, and the exceptions that a page may catch."""

from __future__ import annotations

from pathlib import Path

from core import errors
from core.errors import SHOWN_CHARS, ConfigError, PlaygroundError, quote_value
from tests.cases import each


@each("value", ["cats", "", 3, None, 0.5, "two\nlines", ["a", "b"], {"a": "b\nc", "d": ["e\n"]}, "a\0b"])
def test_a_value_is_shown_whole_in_one_line_or_cut(value: object) -> None:
    assert quote_value(value) == repr(value)
    assert "\n" not in quote_value(Path("a\nb"))
    assert quote_value("x" * 10_000) == "'" + "x" * (SHOWN_CHARS - 1) + "…"


def test_a_config_error_is_one_sentence_with_field_value_and_remedy() -> None:
    error = ConfigError("batch_size", 0, "give at least 1.")
    assert str(error) == "batch_size = 0 cannot be used: give at least 1."
    assert (error.field, error.value, str(error.remedy)) == ("batch_size", 0, "give at least 1.")
    assert isinstance(error, ValueError)


def test_every_error_of_ours_can_be_caught_as_one() -> None:
    ours = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert len(ours) > 5
    assert all(issubclass(error, PlaygroundError) for error in ours)
