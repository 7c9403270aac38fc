"""The registry of views: one entry for each further view of a text. Everything that lists views reads it.

An entry names its functions by their paths, such as "core.views.embedding:shuffle_tokens".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.messages import N_
from core.parameters import Parameter
from core.registry import Registry


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view as forms, the planner and the training loop use it. Its texts are marked with `N_`.

    Attributes:
        kind: what it changes, which determines its cost. "pass": nothing; the encoder reads the text again with other
            dropout masks. "text", "tokens" and "embedding": the input of a further pass. "head": the pooled vector of
            an existing pass, by a mask. "layers": nothing; it takes other blocks' outputs of that pass.
        text: path of the function (text, settings, generator) → text, for the kind "text".
        by_model: path of the function (settings, seed, file that stores texts, device) → an object with
            `translate_rows` as in RoundTrip; replaces `text`.
        tokens: path of the function (Tokens, ids of special tokens, generator) → Tokens, for the kind "tokens".
        embedding: path of the function (Embedded, settings) → the input [R, T, H] of the first block, for the kind
            "embedding".
        follows_gradient: whether its function needs the gradient of its term's loss, which takes further passes.
        preview: path of the function (entry, Subject) → previews of a text; "" if there is nothing to show.
        cost: a sentence on its cost beyond the passes; "" for none.
        others_compute: differences from other implementations; "" for none.
    """

    name: str
    label: str
    summary: str
    source: str
    kind: Literal["pass", "text", "tokens", "embedding", "head", "layers"]
    text: str = ""
    by_model: str = ""
    tokens: str = ""
    embedding: str = ""
    follows_gradient: bool = False
    preview: str = ""
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
    """Return the parameter of a rate. `about` is its help text, marked with `N_`."""
    return Parameter("rate", N_("Rate r"), default, about, low=0.0, high=1.0, below=True, slider=(0.0, 0.6))


CONSERT = "ConSERT: Yan et al. 2021, arXiv:2105.11741"

_ENTRIES = (
    ViewEntry(
        name="dropout",
        label=N_("Second dropout pass"),
        summary=N_("The encoder reads the text again, with other dropout masks."),
        source=N_("SimCSE: Gao et al. 2021, arXiv:2104.08821; R-Drop two-stage"),
        kind="pass",
    ),
    ViewEntry(
        name="head_dropout",
        label=N_("Head dropout"),
        summary=N_("One encoder pass; two dropout masks on the pooled vector."),
        source=N_("R-Drop, one stage (the project's notes)"),
        kind="head",
        parameters=(
            rate_parameter(
                0.1,
                N_(
                    "Fraction of the pooled vector's entries that a mask drops. Losses on logits use the head's own "
                    "dropout."
                ),
            ),
        ),
    ),
    ViewEntry(
        name="layers",
        label=N_("Layers as views"),
        summary=N_("The pooled vectors of other blocks serve as further views in one loss."),
        source=N_("the project's notes on multi-view contrast"),
        kind="layers",
        parameters=(
            Parameter(
                "layers",
                N_("Layers"),
                "every_third",
                N_("Blocks that serve as views besides the last one."),
                kind="layers",
            ),
        ),
        others_compute=N_("Differs from one loss per layer, which the term's setting Layers gives."),
    ),
    ViewEntry(
        name="eda",
        label=N_("Easy data augmentation"),
        summary=N_("Words replaced by synonyms, deleted, duplicated or swapped."),
        source="Wei & Zou 2019, arXiv:1901.11196",
        kind="text",
        parameters=(
            Parameter(
                "operation",
                N_("Operation"),
                "mixed",
                N_("Operation on a text; mixed draws one of the four for each text."),
                kind="choice",
                choices={
                    "mixed": N_("Mixed"),
                    "replace": N_("Replace with synonyms"),
                    "delete": N_("Delete"),
                    "duplicate": N_("Duplicate"),
                    "swap": N_("Swap"),
                },
            ),
            rate_parameter(0.1, N_("Fraction of the words that are changed, at least one.")),
        ),
        others_compute=N_("The paper inserts random synonyms; the project's notes and this app duplicate words."),
        text="core.texts.eda:eda_view",
        preview="core.texts.preview:eda_previews",
    ),
    ViewEntry(
        name="token_shuffle",
        label=N_("Token shuffle"),
        summary=N_("Shuffles the positions of the tokens."),
        source=CONSERT,
        kind="tokens",
        others_compute=N_("ConSERT's code also moves [CLS] and [SEP]; here they keep their positions."),
        tokens="core.views.embedding:shuffle_tokens",
        preview="core.texts.preview:shuffle_previews",
    ),
    ViewEntry(
        name="token_cutoff",
        label=N_("Token cut-off"),
        summary=N_("Sets the embeddings of some tokens to zero."),
        source=CONSERT,
        kind="embedding",
        parameters=(rate_parameter(0.15, N_("Fraction of the tokens that are set to zero.")),),
        embedding="core.views.embedding:token_cutoff",
        preview="core.texts.preview:cutoff_previews",
    ),
    ViewEntry(
        name="feature_cutoff",
        label=N_("Feature cut-off"),
        summary=N_("Sets some embedding features to zero, the same in all tokens of a text."),
        source=CONSERT,
        kind="embedding",
        parameters=(rate_parameter(0.2, N_("Fraction of the features that are set to zero.")),),
        embedding="core.views.embedding:feature_cutoff",
    ),
    ViewEntry(
        name="embedding_dropout",
        label=N_("Embedding dropout"),
        summary=N_("Drops random entries of the embeddings."),
        source=CONSERT,
        kind="embedding",
        parameters=(rate_parameter(0.2, N_("Fraction of the entries that are dropped.")),),
        embedding="core.views.embedding:embedding_dropout",
    ),
    ViewEntry(
        name="adversarial",
        label=N_("Adversarial step"),
        summary=N_("Moves the embeddings a small step up the contrastive loss. Costs three more passes."),
        source=CONSERT,
        kind="embedding",
        parameters=(
            Parameter(
                "epsilon",
                N_("Step ε"),
                0.01,
                N_("Length of the step, as a fraction of each embedding's norm."),
                low=0.0,
                high=1.0,
                slider=(0.0, 0.1),
            ),
        ),
        others_compute=N_(
            "ConSERT scales the gradient itself; here its sign is used, so that every feature moves equally far."
        ),
        embedding="core.views.embedding:adversarial_step",
        follows_gradient=True,
    ),
    ViewEntry(
        name="back_translation",
        label=N_("Back-translation"),
        summary=N_("Translates the text into another language and back by sampling. The models come from the Hub."),
        source="Gunel et al. 2021, arXiv:2011.01403; CERT: Fang et al. 2020, arXiv:2005.12766",
        kind="text",
        parameters=(
            Parameter(
                "forward",
                N_("Forward model"),
                "Helsinki-NLP/opus-mt-en-de",
                N_("A Marian model on the Hub, or a folder."),
                kind="name",
            ),
            Parameter(
                "backward",
                N_("Backward model"),
                "Helsinki-NLP/opus-mt-de-en",
                N_("The Marian model that translates back."),
                kind="name",
            ),
            Parameter(
                "temperature",
                N_("Sampling temperature T"),
                0.7,
                N_("Higher values give more varied and noisier translations. The papers use 0.3, 0.5, 0.7 and 0.9."),
                low=0.0,
                high=10.0,
                above=True,
                slider=(0.1, 1.5),
            ),
        ),
        by_model="core.views.back_translation:round_trip",
        cost=N_(
            "Back-translation takes some additional seconds once for every batch of new texts; translations are stored."
        ),
    ),
    ViewEntry(
        name="paraphrase",
        label=N_("Paraphrase"),
        summary=N_(
            "Replaces the text by its paraphrase. Film reviews and natural language inference come with paraphrases."
        ),
        source=N_("written for this project, after CERT: Fang et al. 2020, arXiv:2005.12766"),
        kind="text",
        parameters=(
            Parameter(
                "strength",
                N_("Strength"),
                "weak",
                N_("A weak paraphrase keeps most of the words; a strong one says the same in other words."),
                kind="choice",
                choices={"weak": N_("Weak"), "strong": N_("Strong")},
            ),
        ),
        others_compute=N_("A text has one paraphrase of each strength, so its view is the same in every epoch."),
        text="core.texts.paraphrases:paraphrase_view",
        preview="core.texts.preview:paraphrase_previews",
    ),
)

# Other packages add views with `VIEWS.register`.
VIEWS: Registry[ViewEntry] = Registry("view", _ENTRIES)
EDA, BACK_TRANSLATION = VIEWS["eda"], VIEWS["back_translation"]
