"""Registry entry of a view: label, effect, settings, and the functions that compute it.

Functions are named by their paths, such as "core.views.embedding:shuffle_tokens".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.messages import N_
from core.parameters import Parameter


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view as forms, the planner and the training loop use it. Its texts are marked with `N_`.

    Attributes:
        place: position in lists.
        kind: what it changes, which determines its cost. "pass": nothing; the encoder reads the text again with other
            dropout masks. "text", "tokens" and "embedding": the input of a further pass. "head": the pooled vector of
            an existing pass, by a mask. "layers": nothing; it takes other blocks' outputs of that pass.
        text: path of the function (text, settings, generator) → text, for the kind "text".
        by_model: path of the function (settings, seed, file that stores texts, device) → an object with
            `translate_rows` as in RoundTrip; replaces `text`.
        tokens: path of the function (Tokens, ids of special tokens, generator) → Tokens, for that kind.
        embedding: path of the function (Embedded, settings) → [R, T, H] that the first block reads, for that kind.
        follows_gradient: whether its function needs the gradient of its term's loss, which takes further passes.
        preview: path of the function (entry, Subject) → previews of a text; "" if there is nothing to show.
        notice: path of the function () → a sentence shown while a run uses it, or None.
        cost: a sentence on its cost beyond the passes; "" for none.
    """

    name: str
    label: str
    place: int
    summary: str
    source: str
    kind: Literal["pass", "text", "tokens", "embedding", "head", "layers"]
    text: str = ""
    by_model: str = ""
    tokens: str = ""
    embedding: str = ""
    follows_gradient: bool = False
    preview: str = ""
    notice: str = ""
    cost: str = ""
    parameters: tuple[Parameter, ...] = ()
    others_compute: str = ""

    @property
    def runs_encoder(self) -> bool:
        return self.kind not in ("head", "layers")

    @property
    def changes_input(self) -> bool:
        return self.kind in ("text", "tokens", "embedding")


def rate_parameter(default: float, about: str) -> Parameter:
    """Return the parameter of a rate. `about` says what it is a share of, in a sentence marked with `N_`."""
    return Parameter("rate", N_("Rate r"), default, about, low=0.0, high=1.0, below=True, slider=(0.0, 0.6))


CONSERT = "ConSERT: Yan et al. 2021, arXiv:2105.11741"
