"""One text: the words that [CLS] attends to, over steps and layers, and the tokens that a loss contrasts."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from scipy.special import softmax

from core.artifacts.cache import read
from core.artifacts.sentence import TokenChoice, TokenTerm, token_choice_path
from core.artifacts.weights import weight_stamps
from core.config import RunConfig
from core.config.plan import stages
from core.errors import quote_value
from core.figures.highlight import ATTENTION, before_and_after_html, highlighted_html
from core.figures.words import top_words_figure, word_heatmap_figure
from core.messages import ENGLISH, N_, _, in_language, ngettext, pgettext, sentences
from core.quantities import percent
from core.representation.attention import (
    WordAttention,
    attention_over_layers,
    attention_over_steps,
    effective_words,
    in_top,
    most_attended,
    word_attention,
)
from core.tasks.listing import csv_file
from pages.ui.address import Tokens
from pages.ui.bound import bound_nearest, bound_segments
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped, missing_weights
from pages.ui.tables import csv_button
from pages.ui.tokens.reads import Reading, TokenRun
from pages.ui.tokens.source import Settings, step_slider
from pages.ui.waiting import draw_job, start_job

# A longer text scrolls in a box, so that the content below it stays within reach.
LONG_CHARS, LONG_PX = 2_500, 700
OVER = {"steps": N_("By step"), "layers": N_("By layer")}
EVALUATED = N_(
    "Computed without dropout and on the unchanged text; in training, dropout and changed texts may lead to other "
    "tokens. Framed: contrasted. Tokens such as [CLS] and [SEP] are never contrasted."
)
SEEDLESS = N_(
    "K-means starts from the token with the highest attention, then takes the token farthest from all centres so far, "
    "so it needs no random seed."
)


def one_text(reading: Reading, chosen: Settings, classes: tuple[str, ...], name: str) -> None:
    """Draw one text. Args: name: of the run, for file names."""
    before, after = (
        word_attention(reading.at(step), reading.places, layer=chosen.layer, head=chosen.head)
        for step in (chosen.before, chosen.after)
    )
    skip = chosen.skipped(reading.words)
    said = []
    for step in dict.fromkeys((chosen.before, chosen.after)):
        shares = softmax(reading.logits[reading.steps.index(step)].astype(np.float64))
        label, share = escaped(classes[int(shares.argmax())]), percent(float(shares.max()))
        said.append(_("**{label}** {share} at step {step}", label=label, share=share, step=f"{step:,}"))
    outcome = _("Predicted: {predictions}", predictions=" → ".join(said))
    if reading.label is not None:
        label = escaped(classes[reading.label])
        outcome = _("Predicted: {predictions} · labelled **{label}**", predictions=" → ".join(said), label=label)
    st.markdown(outcome)
    left, right = st.columns([3, 2], gap="large")
    with left:
        long = sum(map(len, reading.read.sides)) > LONG_CHARS
        titles = (
            _("Before (step {step})", step=f"{chosen.before:,}"),
            _("After (step {step})", step=f"{chosen.after:,}"),
        )
        with st.container(height=LONG_PX if long else "content", border=False, key="tokens.text"):
            st.html(before_and_after_html(reading.read, before.words, after.words, chosen.k, titles=titles, skip=skip))
        # float16 attention sums to one only approximately.
        special = [percent(min(1.0, max(0.0, one.special_share))) for one in (before, after)]
        st.caption(
            _(
                "{settings}. Attention on special tokens such as [CLS] and [SEP]: {special_before} before, "
                "{special_after} after. Effective number of words (as many as would share the rest equally): "
                "{words_before:.0f} before, {words_after:.0f} after.",
                settings=_capital(chosen.sentence),
                special_before=special[0],
                special_after=special[1],
                words_before=effective_words(np.delete(before.words, list(skip))),
                words_after=effective_words(np.delete(after.words, list(skip))),
            )
        )
        _heat(reading, chosen)
    with right:
        figure = top_words_figure(
            reading.words,
            before.words,
            after.words,
            chosen.k,
            revision=reading.key,
            names=(_("step {step}", step=f"{chosen.before:,}"), _("step {step}", step=f"{chosen.after:,}")),
            skip=skip,
        )
        about = _("The top {k} words by attention, before and after.", k=chosen.k)
        live_figure(figure, key="tokens.top", description=about)
        csv_button(
            _("Words as CSV"),
            lambda: csv_file(_records(reading, chosen, before, after)),
            f"{name}-words.csv",
            key="tokens.words.csv",
            on_click="ignore",
        )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _heat(reading: Reading, chosen: Settings) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        over = bound_segments(_("Heat map"), Tokens.HEAT_MAP, OVER)
        what = chosen.where
        if over == "layers":
            what = _("step {step}, {head}", step=f"{chosen.after:,}", head=chosen.which_head)
        about = _("{what}; dots mark the top {k} of each column.", what=_capital(what), k=chosen.k)
        st.caption(about, width="stretch")
    weights: NDArray[np.float64]
    if over == "steps":
        weights = attention_over_steps(reading.attention, reading.places, layer=chosen.layer, head=chosen.head)
        columns = list(reading.steps)
        column = pgettext("axis", "step")
        description = _("Attention of [CLS] to each word, by step.")
    else:
        weights = attention_over_layers(reading.at(chosen.after), reading.places, head=chosen.head)
        columns = list(range(1, chosen.layers + 1))
        column = pgettext("axis", "layer")
        description = _("Attention of [CLS] to each word, by layer.")
    skipped = chosen.skipped(reading.words)
    shown = [place for place in range(len(reading.words)) if place not in skipped]
    places = [shown[one] for one in most_attended(weights[:, shown], 40)]
    figure = word_heatmap_figure(
        [reading.words[place] for place in places],
        weights[:, places],
        columns,
        column=column,
        revision=f"{reading.key}.{over}",
        chosen=in_top(weights, chosen.k, skipped)[:, places],
    )
    live_figure(figure, key=f"tokens.heat.{over}", description=description)
    if len(places) < len(shown):
        st.caption(
            _(
                "The {shown} words with the highest attention, of {words}.",
                shown=len(places),
                words=f"{len(shown):,}",
            )
        )


@in_language(ENGLISH)
def _records(reading: Reading, chosen: Settings, before: WordAttention, after: WordAttention) -> list[dict[str, str]]:
    tops = in_top(np.stack([before.words, after.words]), chosen.k, chosen.skipped(reading.words))
    return [
        {
            "position": str(i + 1),
            "word": word,
            f"attention_step_{chosen.before}_before": f"{before.words[i]:.6f}",
            f"attention_step_{chosen.after}_after": f"{after.words[i]:.6f}",
            f"in_top_{chosen.k}_before": str(int(tops[0, i])),
            f"in_top_{chosen.k}_after": str(int(tops[1, i])),
            "settings": chosen.where,
        }
        for i, word in enumerate(reading.words)
    ]


def contrasts_tokens(config: RunConfig) -> bool:
    """Return whether a term of any step contrasts tokens. Args: config: as run, with its knob turns."""
    return any(
        term.level == "token"
        for number in range(len(config.phases))
        for stage in stages(config, number)
        for term in stage.settings.objective.terms
    )


def draw_contrasted(known: TokenRun, reading: Reading) -> None:
    """Mark the tokens that each term contrasts at a step with stored weights. Raises: TrainingError."""
    stamps = weight_stamps(known.store, known.run)
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
