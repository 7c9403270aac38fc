"""The softmax over one anchor's similarities, as bars that follow the temperature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from core.artifacts.frame_loss import batch_rows
from core.artifacts.replay_file import read
from core.artifacts.shipped import SHIPPED
from core.messages import _, sentences
from core.quantities import percent
from core.representation.geometry import normalised
from pages.ui.parts import UI, component
from pages.ui.reads import cached

# The replay whose first frame has the example, and the size of the example's batch.
EXAMPLE, BATCH = "ce-scl", 16

_mount = component(
    "softmax_bars",
    '<div class="softmax-bars" role="img"></div>',
    [UI / "softmax_bars.js", UI / "softmax_bars_main.js"],
    [UI / "softmax_bars.css"],
)


def softmax_bars(
    similarities: ArrayLike, shares: ArrayLike, positives: Sequence[bool], temperature: float, *, key: str
) -> None:
    """Draw the bars and a caption that explains them.

    Args:
        similarities, shares, positives: values of the other texts of the anchor's batch, [N − 1] each.
    """
    alike, share = np.asarray(similarities, np.float64), np.asarray(shares, np.float64)
    bars = [
        {
            "share": float(share[i]),
            "positive": bool(positives[i]),
            "title": _("similarity {cosine}: {share}", cosine=f"{alike[i]:.2f}", share=percent(float(share[i]))),
        }
        for i in np.argsort(-alike, kind="stable").tolist()
    ]
    largest = percent(float(share.max(initial=0.0)))
    tau = f"{temperature:g}"
    label = _(
        "Softmax over the anchor's {count} similarities at temperature {temperature}; the largest probability is "
        "{share}.",
        count=len(bars),
        temperature=tau,
        share=largest,
    )
    _mount(key=key, data=[{"bars": bars, "label": label}], height=92)
    gets = _(
        "At τ {temperature}, the text most similar to the anchor gets {share} of the probability.",
        temperature=tau,
        share=largest,
    )
    about = _(
        "Each bar is the softmax probability of one of the {others} other texts in the anchor's batch, most "
        "similar first; they sum to 1. Filled bars are positives, hatched bars negatives.",
        others=len(bars),
    )
    st.caption(sentences([about, gets]))


def example_softmax(temperature: float, *, key: str) -> None:
    """Draw the bars of an example before training, for use before any launch. Args: temperature: > 0."""
    similarities, positives = _example()
    softmax_bars(similarities, softmax(similarities / temperature), positives, temperature, key=key)


@cached(1)
def _example() -> tuple[NDArray[np.float64], list[bool]]:
    """Return the cosines of a batch's first text with the others, and whether each of these has the same label."""
    contents = read(SHIPPED[EXAMPLE].path)
    rows = batch_rows(len(contents.probe.ids), BATCH)
    z = normalised(contents.arrays[f"embeddings.{contents.run.frames[0]}"][rows].astype(np.float64))
    labels = [contents.probe.labels[row] for row in rows]
    return z[1:] @ z[0], [label == labels[0] for label in labels[1:]]
