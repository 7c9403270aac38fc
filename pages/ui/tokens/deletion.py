"""The effect of deleting each word of a text on the prediction, compared with attention."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from core.artifacts.cache import read
from core.artifacts.sentence import Deletions, deletions_path
from core.artifacts.weights import weight_stamps
from core.errors import quote_value
from core.figures.highlight import highlighted_html
from core.figures.words import attention_against_effect_figure
from core.messages import N_, _, join_list, ngettext, sentences, with_more
from core.quantities import percent, signed
from core.representation.attention import (
    RankAgreement,
    deletion_effects,
    rank_agreement,
    top_words,
    word_attention,
)
from core.tasks.listing import csv_file
from pages.ui.bound import nearest
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped, missing_weights
from pages.ui.tables import csv_button, truncate
from pages.ui.tokens.reads import Reading, TokenRun
from pages.ui.tokens.source import Settings
from pages.ui.waiting import draw_job, start_job

Doubles = NDArray[np.float64]

# Number of top words compared between the two rankings; at most half of the words of a short text.
COMPARED = 5
FLIPS_SHOWN = 12
SOURCES = N_(
    "Sources: [Jain and Wallace 2019](https://arxiv.org/abs/1902.10186) compare attention with the effect of deleting "
    "words; [Wiegreffe and Pinter 2019](https://arxiv.org/abs/1908.04626) discuss what such a comparison does not "
    "show."
)
WORD, ATTENTION, RANK, DROP = N_("Word"), N_("Attention"), N_("Rank"), N_("Drop")
RANK_OF_CHANGE, PREDICTION = N_("Rank by change"), N_("Prediction without it")


def delete_a_word(known: TokenRun, reading: Reading, chosen: Settings) -> None:
    """Draw the effect of deleting each word, or offer to compute it. Raises: TrainingError."""
    stamps = weight_stamps(known.store, known.run)
    both = [step for step in reading.steps if step in stamps]
    if not both:
        st.info(_("No step has both attention and weights for this text, so nothing can be compared."))
        missing_weights(known.run)
        return
    step = nearest(both, chosen.after)
    if step == chosen.after:
        st.caption(_("Step {step}, with stored weights.", step=f"{step:,}"))
    else:
        st.caption(
            ngettext(
                "**Step {step}**, not {wanted}: the model has to read the text again, and weights are stored only "
                "for step {steps}.",
                "**Step {step}**, not {wanted}: the model has to read the text again, and weights are stored only "
                "for steps {steps}.",
                len(stamps),
                step=f"{step:,}",
                wanted=f"{chosen.after:,}",
                steps=join_list(f"{known:,}" for known in stamps),
            )
        )
    missing_weights(known.run)
    first, second = reading.read.sides[0], reading.read.sides[1] if len(reading.read.sides) > 1 else None
    request = {"run": known.run.id, "what": "deletions", "text": first, "second": second, "step": step}
    if draw_job("inspect", request):
        return
    found = read(Deletions, deletions_path(known.store.run_folder(known.run.id), first, second, step))
    if found is None or found.stamp != stamps[step]:
        st.markdown(
            ngettext(
                "Which words does the prediction depend on? The model rereads the text {count} time, leaving out its "
                "only word.",
                "Which words does the prediction depend on? The model rereads the text {count} times, leaving out one "
                "word each time.",
                len(reading.words),
            )
        )
        if st.button(_("Delete each word in turn"), icon=":material/content_cut:", type="primary", key="tokens.delete"):
            start_job("inspect", request, N_("Deleting words of {text}"), text=quote_value(first))
    elif len(found.read.words) != len(reading.words):
        st.warning(_("The tokenizer now splits this text differently, so nothing can be compared."))
    else:
        _draw(known, reading, chosen, step, found)


def _draw(known: TokenRun, reading: Reading, chosen: Settings, step: int, found: Deletions) -> None:
    classes = known.probe.classes
    target = int(found.base.argmax())
    effects = deletion_effects(found.base, found.deleted, target)
    attention = word_attention(reading.at(step), reading.places, layer=chosen.layer, head=chosen.head).words
    agreement = rank_agreement(attention, np.abs(effects))
    st.markdown(_verdict(reading, found, classes))
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.html(
            highlighted_html(
                reading.read,
                effects,
                title=_(
                    "Drop in P({label}) when each word is deleted, step {step}", label=classes[target], step=f"{step:,}"
                ),
                # Translators: how far a probability falls, in front of its value
                measure=_("drop"),
                chosen=top_words(attention, chosen.k, chosen.skipped(reading.words)),
            )
        )
        about = _(
            "Blue: less confident without the word. Orange, underlined: more confident. Framed: top {k} by "
            "attention ({where}).",
            k=chosen.k,
            where=chosen.where,
        )
        ends = [0] * len(reading.read.sides)  # of what the encoder reads
        for word in reading.read.words:
            ends[word.side] = max(ends[word.side], word.end)
        cut_off = ""
        if any(side[end:].strip() for side, end in zip(reading.read.sides, ends, strict=True)):
            cut_off = _("If a text is truncated, another word may take the place of the deleted one.")
        st.caption(sentences([about, cut_off]))
        with st.container(border=True):
            st.markdown(_("**Attention is not explanation**"))
            st.markdown(_evidence(attention, effects, agreement))
            where = _("{said}.", said=f"{chosen.where[:1].upper()}{chosen.where[1:]}")
            st.caption(sentences([where, _(SOURCES)]))
    with right:
        figure = attention_against_effect_figure(
            reading.words, attention, effects, agreement, revision=f"{reading.key}.{step}"
        )
        live_figure(
            figure,
            key="tokens.effect",
            height=420,
            description=_("Attention to each word against what deleting it does."),
        )
        st.caption(_("The correlations compare attention with the absolute change."))
    _table(known, reading, step, found, attention, effects)


def _verdict(reading: Reading, found: Deletions, classes: tuple[str, ...]) -> str:
    target = int(found.base.argmax())
    said = _("Predicted: **{label}** {share}.", label=escaped(classes[target]), share=percent(found.base[target]))
    flips = np.flatnonzero(found.deleted.argmax(1) != target).tolist()
    if not flips:
        return sentences([said, _("Deleting any single word does not change this.")])
    words = join_list(
        with_more(f"**{escaped(truncate(reading.words[w], 40))}**", escaped(classes[int(found.deleted[w].argmax())]))
        for w in flips[:FLIPS_SHOWN]
    )
    if len(flips) > FLIPS_SHOWN:
        words = _("{words} and {more} more", words=words, more=f"{len(flips) - FLIPS_SHOWN:,}")
    turns = ngettext(
        "It changes if this word is deleted: {words}.",
        "It changes if any of these {count} words is deleted: {words}.",
        len(flips),
        words=words,
    )
    return sentences([said, turns])


def _evidence(attention: Doubles, effects: Doubles, agreement: RankAgreement) -> str:
    """Describe how far attention and effect agree on this text."""
    most = min(COMPARED, len(attention) // 2)
    if most < 1 or agreement.kendall is None or agreement.spearman is None:
        return _("This text has too few distinct words to compare attention with deletion.")
    shared = len({*top_words(attention, most)} & {*top_words(np.abs(effects), most)})
    correlations = _(
        "Kendall τ = {kendall}, Spearman ρ = {spearman} over {words}. 1 is the same order, 0 is no relation.",
        kendall=signed(agreement.kendall, 2),
        spearman=signed(agreement.spearman, 2),
        words=ngettext("{count} word", "{count} words", agreement.words),
    )
    # Mean overlap of two random choices of this many words.
    chance = f"{most * most / len(attention):.1f}"
    if most == 1 and shared:
        overlap = _(
            "The word with the most attention is also the one whose deletion changes the prediction most ({chance} "
            "expected by chance).",
            chance=chance,
        )
    elif most == 1:
        overlap = _(
            "The word with the most attention is not the one whose deletion changes the prediction most ({chance} "
            "expected by chance).",
            chance=chance,
        )
    elif not shared:
        overlap = _(
            "None of the {most} words with the most attention is among the {most} whose deletion changes the "
            "prediction most ({chance} expected by chance).",
            most=most,
            chance=chance,
        )
    else:
        overlap = ngettext(
            "{count} of the {most} words with the most attention is among the {most} whose deletion changes the "
            "prediction most ({chance} expected by chance).",
            "{count} of the {most} words with the most attention are among the {most} whose deletion changes the "
            "prediction most ({chance} expected by chance).",
            shared,
            most=most,
            chance=chance,
        )
    return sentences([overlap, correlations])


def _table(
    known: TokenRun, reading: Reading, step: int, found: Deletions, attention: Doubles, effects: Doubles
) -> None:
    ranks = [
        pd.Series(values).rank(ascending=False, method="first").astype(int) for values in (attention, np.abs(effects))
    ]
    predicted = [known.probe.classes[label] for label in found.deleted.argmax(1)]
    table = pd.DataFrame(
        {
            WORD: [truncate(word, 40) for word in reading.words],
            ATTENTION: attention,
            RANK: ranks[0],
            DROP: effects,
            RANK_OF_CHANGE: ranks[1],
            PREDICTION: predicted,
        }
    ).sort_values(RANK_OF_CHANGE)
    order = table.index.tolist()
    with st.expander(_("All {words} as a table", words=ngettext("{count} word", "{count} words", len(table)))):
        st.dataframe(
            table,
            hide_index=True,
            column_config={
                **{name: _(name) for name in (WORD, RANK, RANK_OF_CHANGE, PREDICTION)},
                ATTENTION: st.column_config.NumberColumn(
                    _(ATTENTION), format="%.4f", help=_("Fraction of [CLS] attention on the word.")
                ),
                DROP: st.column_config.NumberColumn(
                    _(DROP), format="%.4f", help=_("Decrease of the predicted class's probability without the word.")
                ),
            },
        )
        csv_button(
            _("Deletions as CSV"),
            lambda: csv_file(
                [
                    {
                        "position": str(i + 1),
                        "word": reading.words[i],
                        "attention": f"{attention[i]:.6f}",
                        "drop": f"{effects[i]:.6f}",
                        "prediction_without": predicted[i],
                    }
                    for i in order
                ]
            ),
            f"{known.run.id}-deletions-step-{step}.csv",
            key="tokens.deletions.csv",
            on_click="ignore",
        )
