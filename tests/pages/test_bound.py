"""Controls that the address restores."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import bound


def script() -> None:
    import streamlit as st

    from pages.ui.bound import bound

    value, to_k = bound("k", range(1, 21), 10, "it is 1 to 20")
    st.slider("Neighbours", 1, 20, **to_k)
    st.text(f"k is {value}")


def test_a_value_is_given_again_for_a_moment_and_then_left_to_the_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that gets two answers at once draws the second alone, and would show the slider's lowest value."""
    app = AppTest.from_function(script)
    app.query_params["k"] = "7"
    for _ in range(2):
        app.run()
        assert app.slider[0].proto.set_value
        assert app.slider[0].value == 7
    monkeypatch.setattr(bound, "AGAIN_S", 0.0)
    app.run()
    assert not app.slider[0].proto.set_value
    app.slider[0].set_value(3).run()
    assert app.text[0].value == "k is 3"
    assert app.query_params["k"] in ("3", ["3"])


def test_a_choice_made_within_that_moment_counts() -> None:
    app = AppTest.from_function(script).run()
    app.slider[0].set_value(3).run()
    assert app.text[0].value == "k is 3"
    assert app.slider[0].value == 3
