"""A finished run on changed test texts: the distance of each change from its text, and predictions that flip.

`inspect_job` computes them. The changes are drawn from the row alone, so all runs of a task read the same texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.catalogue.views import BACK_TRANSLATION, EDA, VIEWS
from core.events import FloatArray
from core.messages import N_
from core.models.source import TRANSLATION_MODEL, is_downloaded
from core.texts.eda import CHANGES, eda, row_generator, stream
from core.texts.paraphrases import have_paraphrases, paraphrase
from core.texts.typos import typos

CHANGED_TEXTS = "changed-texts.safetensors"
# Maximum number of test texts, spaced evenly over the split.
TEXTS_MAX = 400
# Shares of the words that change.
RATES = (0.1, 0.2, 0.4)
TYPOS = "typos"
PARAPHRASES = {"weak_paraphrase": N_("Weak paraphrase"), "strong_paraphrase": N_("Strong paraphrase")}

Text = str | tuple[str, str]


class Change(NamedTuple):
    """A change of a text.

    Attributes:
        name: TYPOS, an operation of EDA, a key of PARAPHRASES, or a view, among them back-translation.
        rate: share of the words that change; None for paraphrases, and for views, which use their defaults.
    """

    name: str
    rate: float | None

    @property
    def label(self) -> str:
        """The label, marked for translation."""
        if self.name == TYPOS:
            return N_("Misspelt words")
        if self.name in PARAPHRASES:
            return PARAPHRASES[self.name]
        return dict(EDA.parameters[0].choices or {}).get(self.name) or VIEWS[self.name].label

    @property
    def is_of_words(self) -> bool:
        """True if it changes the text, which is then encoded as usual; False for a view in the encoder."""
        return self.rate is not None or self.name in PARAPHRASES or self.name == BACK_TRANSLATION.name

    def apply(self, text: Text, row: int) -> Text:
        """Return the changed text, for a change of words but back-translation, which is made of all texts together.

        A pair's texts share one generator, as in training.
        """
        rng, changed = row_generator(0, 0, row, stream(self.name)), []
        for side in (text,) if isinstance(text, str) else text:
            if self.rate is None:
                changed.append(paraphrase(side, self.name.removesuffix("_paraphrase")))
            elif self.name == TYPOS:
                changed.append(typos(side, rate=self.rate, rng=rng))
            else:
                changed.append(eda(side, operation=self.name, rate=self.rate, rng=rng))
        return changed[0] if isinstance(text, str) else (changed[0], changed[1])


def changes(texts: Sequence[str]) -> list[Change]:
    """Return changes of words at several rates, paraphrases, and the views of tokens and embeddings at their defaults.

    Back-translation is among them if the models of its defaults are on this machine.

    Args:
        texts: all texts to change, which may have paraphrases.
    """
    words = [Change(name, rate) for name in (TYPOS, *CHANGES) for rate in RATES]
    words += [Change(name, None) for name in PARAPHRASES if have_paraphrases(texts)]
    translators = [str(one.default) for one in BACK_TRANSLATION.parameters if one.name in ("forward", "backward")]
    if all(is_downloaded(name, TRANSLATION_MODEL) for name in translators):
        words.append(Change(BACK_TRANSLATION.name, None))
    views = [one for one in VIEWS.values() if one.kind in ("pass", "tokens", "embedding")]
    return [*words, *(Change(one.name, None) for one in views)]


@dataclass(frozen=True, slots=True)
class ChangedTexts:
    """M test texts under K changes, before the first step and at the end of a run.

    Attributes:
        names, rates: of the changes.
        rows: rows of the test split, of which M are read.
        labels: [M].
        changed: [K, M] whether the encoder's input differs.
        cosines: [2, K, M] cosine of the changed text and the text, untrained and at the end.
        plain: [M] predictions of the texts; [0] if the classifier never learned.
        predicted: [K, M] predictions of the changed texts; [0, 0] without a classifier.
        stamp: identifies the last weights.
    """

    names: tuple[str, ...]
    rates: tuple[float | None, ...]
    rows: int
    labels: NDArray[np.int64]
    changed: NDArray[np.bool_]
    cosines: FloatArray
    plain: NDArray[np.int64]
    predicted: NDArray[np.int64]
    stamp: int

    @property
    def changes(self) -> list[Change]:
        return [Change(name, rate) for name, rate in zip(self.names, self.rates, strict=True)]

    @property
    def predictions(self) -> NDArray[np.int64]:
        """[1 + K, M] predictions, of the texts first; [1, 0] without a classifier."""
        return np.vstack([self.plain[None], self.predicted]) if self.plain.size else self.plain[None]

    @property
    def right(self) -> NDArray[np.bool_]:
        """[1 + K, M] whether the prediction is right, of the texts first; [1, 0] without a classifier."""
        return self.predictions == self.labels if self.plain.size else np.zeros((1, 0), bool)
