"""The bars of a softmax: the shares of an example, and their descriptions."""

from __future__ import annotations

import math

import numpy as np
from streamlit.testing.v1 import AppTest

from pages.ui.softmax_bars import BATCH, _example
from tests.cases import each
from tests.pages.conftest import Pages


def test_the_example_is_a_review_among_fifteen_others() -> None:
    similarities, positives = _example()
    assert len(similarities) == len(positives) == BATCH - 1
    assert 0 < sum(positives) < BATCH - 1
    assert np.abs(similarities).max() < 1


@each("temperature", [0.01, 0.3, 2.0])
def test_the_caption_says_the_largest_share(temperature: float) -> None:
    similarities, _ = _example()
    terms = [math.exp((s - max(similarities)) / temperature) for s in similarities]
    app = AppTest.from_string(
        f"from pages.ui.softmax_bars import example_softmax\nexample_softmax({temperature}, key='bars')",
        default_timeout=60,
    ).run()
    assert not app.exception
    largest = f"{100 / sum(terms):.1f}%"
    said = app.caption[0].value
    assert said.endswith(
        f"At τ {temperature:g}, the text most similar to the anchor gets {largest} of the probability."
    )


def test_dot_products_of_unnormalised_vectors_have_no_example_of_cosines(opened: Pages) -> None:
    for preset, shown in (("collapse", True), ("explosion", False)):
        said = [caption.value for caption in opened("fine_tune", set=[f"preset={preset}"]).caption]
        assert any("similar to the anchor" in one for one in said) == shown, preset
