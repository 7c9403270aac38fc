"""The tokens of a text that a run's loss contrasts, and their clusters."""

from __future__ import annotations

import streamlit as st

from core.artifacts.cache import read
from core.artifacts.sentence import TokenChoice, TokenTerm, token_choice_path
from core.artifacts.weights import weight_stamps
from core.config import RunConfig
from core.config.plan import stages
from core.errors import PlaygroundError, quote_value
from core.figures.highlight import ATTENTION, highlighted_html
from core.messages import N_, _, ngettext, sentences
from pages.ui.address import Tokens
from pages.ui.bound import bound_nearest
from pages.ui.parts import escaped, missing_weights
from pages.ui.tokens.reads import Reading, TokenRun
from pages.ui.tokens.source import step_slider
from pages.ui.waiting import draw_job, start_job

EVALUATED = N_(
    "Computed without dropout and on the unchanged text; in training, dropout and changed texts may lead to other "
    "tokens. Framed: contrasted. Tokens such as [CLS] and [SEP] are never contrasted."
)
SEEDLESS = N_(
    "K-means starts from the token with the highest attention, then takes the token farthest from all centres so far, "
    "so it needs no random seed."
)


def contrasts_tokens(config: RunConfig) -> bool:
    """Return whether a term of any step contrasts tokens. Args: config: as run, with its knob turns."""
    return any(
        term.level == "token"
        for number in range(len(config.phases))
        for stage in stages(config, number)
        for term in stage.settings.objective.terms
    )


def draw_contrasted(known: TokenRun, reading: Reading) -> None:
    """Mark the tokens that each term contrasts at a step with stored weights."""
    try:
        stamps = weight_stamps(known.store, known.run)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
        return
    steps = list(stamps)
    if not steps:
        missing_weights(known.run)
        return
    step, to_step = bound_nearest(Tokens.AFTER, steps, steps[-1], known={*known.frames, *steps})
    step_slider(_("Step"), steps, to_step)
    missing_weights(known.run)
    first, second = reading.read.sides[0], reading.read.sides[1] if len(reading.read.sides) > 1 else None
    request = {"run": known.run.id, "what": "tokens", "text": first, "second": second, "step": step}
    if draw_job("inspect", request):
        return
    found = read(TokenChoice, token_choice_path(known.store.run_folder(known.run.id), first, second, step))
    if found is None or found.stamp != stamps[step]:
        st.markdown(_("Which tokens of this text does the loss contrast? The model reads the text once."))
        if st.button(_("Mark the tokens"), icon=":material/ink_highlighter:", type="primary", key="tokens.contrast"):
            start_job("inspect", request, N_("Selecting tokens of {text}"), text=quote_value(first))
    elif not found.terms:
        st.info(_("The objective of step {step} contrasts no tokens.", step=f"{step:,}"))
    else:
        # A word here is one token.
        tokens = [word.places[0] for word in found.read.words]
        for term, chosen, attention in zip(found.terms, found.chosen, found.attention, strict=True):
            title = _("{term}, block {block}, step {step}", term=term.name, block=term.layer, step=f"{step:,}")
            st.markdown(_about(term, found.candidates))
            st.html(
                highlighted_html(
                    found.read,
                    attention[tokens],
                    title=title,
                    measure=ATTENTION,
                    chosen=[i for i, token in enumerate(tokens) if chosen[token]],
                    groups=chosen[tokens].tolist() if 0 < term.clusters <= found.candidates else None,
                )
            )
        clusters = any(term.clusters for term in found.terms)
        st.caption(sentences([_(EVALUATED), _(SEEDLESS) if clusters else ""]))


def _about(term: TokenTerm, candidates: int) -> str:
    """Describe the rule of a term and what it means for a text with this number of tokens."""
    said = ngettext(
        "This term contrasts the token with the highest [CLS] attention in block {block}.",
        "This term contrasts the {count} tokens with the highest [CLS] attention in block {block}.",
        term.k,
        block=term.layer,
    )
    if candidates > term.k:
        has = ngettext("This text has {count} token.", "This text has {count} tokens.", candidates)
    else:
        has = ngettext(
            "This text has {count} token, so nothing is left out.",
            "This text has {count} tokens, so all are contrasted.",
            candidates,
        )
    if not term.clusters:
        return sentences([said, has])
    if candidates < term.clusters:
        groups = ngettext(
            "These are too few for {count} cluster, so the term leaves this text out.",
            "These are too few for {count} clusters, so the term leaves this text out.",
            term.clusters,
        )
    else:
        groups = ngettext(
            "K-means groups them into {count} cluster, and its mean is contrasted.",
            "K-means groups them into {count} clusters, and their means are contrasted.",
            term.clusters,
        )
    return sentences([said, has, groups])
