"""Where a further view of a text comes from: the literal list of views, readable without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.errors import ConfigError
from core.parameters import Parameter


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view as people, forms and the planner see it.

    Attributes:
        kind: what it changes, and so what it costs. "pass": nothing, the encoder reads the text again with other
            dropout masks; "text", "tokens" and "embedding": that, on the way into a further pass; "head": a mask on the
            pooled vector of the pass that is there; "layers": other blocks' outputs of that pass.
    """

    name: str
    label: str
    summary: str
    source: str
    kind: Literal["pass", "text", "tokens", "embedding", "head", "layers"]
    parameters: tuple[Parameter, ...] = ()
    others_compute: str = ""

    @property
    def runs_encoder(self) -> bool:
        return self.kind not in ("head", "layers")

    @property
    def changes_input(self) -> bool:
        return self.kind in ("text", "tokens", "embedding")


CONSERT = "ConSERT: Yan et al. 2021, arXiv:2105.11741"


def _rate(default: float, what: str) -> Parameter:
    return Parameter(
        "rate", "Rate r", default, f"The share of {what}.", low=0.0, high=1.0, below=True, slider=(0.0, 0.6)
    )


VIEWS: Mapping[str, ViewEntry] = {
    "dropout": ViewEntry(
        name="dropout",
        label="Second dropout pass",
        summary="The encoder reads the text once more, with other dropout masks.",
        source="SimCSE: Gao et al. 2021, arXiv:2104.08821; R-Drop two-stage",
        kind="pass",
    ),
    "head_dropout": ViewEntry(
        name="head_dropout",
        label="Head dropout",
        summary="One encoder pass; two dropout masks on the pooled vector.",
        source="R-Drop one-stage, from the notes",
        kind="head",
        parameters=(_rate(0.1, "the pooled vector's entries that a mask drops; losses on logits take the head's own"),),
    ),
    "layers": ViewEntry(
        name="layers",
        label="Layers as views",
        summary="The pooled vectors of other blocks as further views in one loss.",
        source="the multi-view notes",
        kind="layers",
        parameters=(
            Parameter("layers", "Layers", "every_third", "Blocks that are views beside the last one.", kind="layers"),
        ),
        others_compute="Not the same as one loss per layer, which is the term's own setting Layers.",
    ),
    "eda": ViewEntry(
        name="eda",
        label="Easy data augmentation",
        summary="Words replaced by synonyms, deleted, duplicated or swapped.",
        source="Wei & Zou 2019, arXiv:1901.11196",
        kind="text",
        parameters=(
            Parameter(
                "operation",
                "Operation",
                "mixed",
                "What is done to a text; mixed draws one of the four for each.",
                kind="choice",
                choices={
                    "mixed": "Mixed",
                    "replace": "Replace by synonyms",
                    "delete": "Delete",
                    "duplicate": "Duplicate",
                    "swap": "Swap",
                },
            ),
            _rate(0.1, "the words that are changed, at least one"),
        ),
        others_compute="The paper inserts random synonyms where the notes, and we, duplicate words.",
    ),
    "token_shuffle": ViewEntry(
        name="token_shuffle",
        label="Token shuffle",
        summary="The tokens take each other's positions.",
        source=CONSERT,
        kind="tokens",
        others_compute="ConSERT's code moves [CLS] and [SEP] too; here they stay.",
    ),
    "token_cutoff": ViewEntry(
        name="token_cutoff",
        label="Token cut-off",
        summary="The embeddings of some tokens are zeroed.",
        source=CONSERT,
        kind="embedding",
        parameters=(_rate(0.15, "the tokens that are zeroed"),),
    ),
    "feature_cutoff": ViewEntry(
        name="feature_cutoff",
        label="Feature cut-off",
        summary="Some features of the embeddings are zeroed, in all tokens of a text alike.",
        source=CONSERT,
        kind="embedding",
        parameters=(_rate(0.2, "the features that are zeroed"),),
    ),
    "embedding_dropout": ViewEntry(
        name="embedding_dropout",
        label="Embedding dropout",
        summary="Entries of the embeddings are dropped at random.",
        source=CONSERT,
        kind="embedding",
        parameters=(_rate(0.2, "the entries that are dropped"),),
    ),
    "adversarial": ViewEntry(
        name="adversarial",
        label="Adversarial step",
        summary="The embeddings take a small step up the contrastive loss; costs three more passes.",
        source=CONSERT,
        kind="embedding",
        parameters=(
            Parameter(
                "epsilon",
                "Step ε",
                0.01,
                "The step's length, as a share of each embedding's norm.",
                low=0.0,
                high=1.0,
                slider=(0.0, 0.1),
            ),
        ),
        others_compute="ConSERT scales the gradient itself; here its sign is taken, so that every feature moves alike.",
    ),
    "back_translation": ViewEntry(
        name="back_translation",
        label="Back-translation",
        summary="The text, translated into another language and back by sampling. Models come from the Hub.",
        source="Gunel et al. 2021, arXiv:2011.01403; CERT: Fang et al. 2020, arXiv:2005.12766",
        kind="text",
        parameters=(
            Parameter(
                "forward",
                "Model there",
                "Helsinki-NLP/opus-mt-en-de",
                "A Marian model on the Hub, or a folder.",
                kind="name",
            ),
            Parameter(
                "backward",
                "Model back",
                "Helsinki-NLP/opus-mt-de-en",
                "The Marian model for the way back.",
                kind="name",
            ),
            Parameter(
                "temperature",
                "Sampling temperature T",
                0.7,
                "Higher is bolder and noisier; the papers use 0.3, 0.5, 0.7 and 0.9.",
                low=0.0,
                high=10.0,
                above=True,
                slider=(0.1, 1.5),
            ),
        ),
    ),
}


def view_entry(name: object, field: str = "view") -> ViewEntry:
    """The entry of a view.

    Raises: ConfigError naming what exists.
    """
    if not isinstance(name, str) or name not in VIEWS:
        raise ConfigError(field, name, f"choose one of {', '.join(VIEWS)}.")
    return VIEWS[name]
