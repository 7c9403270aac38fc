"""Checks before launch: the encoder's fit to the texts, positives in a batch, encodings per step, the classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest
from statistics import mean
from typing import Any

import pandas as pd
import streamlit as st

from core.advice.defaults import MANY_CLASSES
from core.advice.estimate import SAMPLED_TEXTS, estimated_tokens
from core.advice.idle_terms import inert_terms, slow_queues
from core.advice.positives import (
    ClassViews,
    TokenCounts,
    anchors_without_positive,
    class_shares,
    count_tokens,
    expected_positives,
    same_label_share,
    token_class_views,
)
from core.advice.score_source import classifier_learns_from, classifier_note
from core.catalogue.encoders import CHINESE, KOREAN, LISTED, MANY
from core.config import PhaseConfig, RunConfig
from core.config.plan import TermPlan, plan_phase
from core.messages import N_, _, ngettext, pgettext, sentences
from core.models.source import encoder_shape, tokenizer_file
from core.parameters import integer_setting, number
from core.quantities import PERCENT_CELLS, hundredths, percent
from core.tasks import TaskData
from core.tasks.batches import CLASSES_AT_ONCE, SMALLEST_BALANCED
from core.tasks.dataset import Split
from core.tasks.registry import expectation
from core.tasks.survey import language_of
from pages.ui import state
from pages.ui.parts import card, escaped
from pages.ui.reads import cached

LANGUAGES = {"zh": CHINESE, "ko": KOREAN}
CUT = 0.05
MAX_EXAMPLES = 12
# Headings of the example table, by column name.
COLUMNS = {
    "Label": N_("Label"),
    "Label was": N_("Original label"),
    "Text": N_("Text"),
    "Text was": N_("Original text"),
    "Second text": N_("Second text"),
    "Second text was": N_("Original second text"),
}
NARROW = ("Label", "Label was")
STARVING = 0.1
# Test accuracy of CE + SCL with 400 rows of 80 classes, see "Many classes" in benchmarks/README.md.
RANDOM_START, PROBE_OF_STUDY = 0.609, 0.904
# Test accuracy of the defaults minus that of the probe, in points, over 14 sets of 7 to 99 classes (same section).
LEAST_ABOVE_PROBE, MOST_ABOVE_PROBE = -4.0, 10.7
MAX_CLASS_ROWS, TABLE_PX = 5, 180


def task_audit(config: RunConfig, data: TaskData) -> None:
    """Show notes on the task and problems under this encoder; draw nothing if there are none."""
    for note in data.notes:
        st.caption(escaped(note))
    language, trained_on = LANGUAGES.get(language_of(data.train.texts)), LISTED.get(config.encoder.id)
    if language is not None and trained_on is not None and trained_on not in (language, MANY):
        # Translators: languages, such as Korean and English; below are buttons with the names of encoders.
        problem = _(
            "These texts are {language}, but {encoder} was trained on {trained_on}. Choose another encoder:",
            language=_(language),
            encoder=escaped(config.encoder.id),
            trained_on=_(trained_on),
        )
        st.warning(problem)
        with st.container(horizontal=True):
            known = [name for name, trained in LISTED.items() if trained in (language, MANY)]
            for name in sorted(known, key=lambda name: LISTED[name] != language)[:3]:  # that language alone first
                st.button(name, key=f"offer.{name}", on_click=state.set_widget, args=(state.form_key("encoder"), name))
    read, most = config.encoder.max_length, encoder_shape(config.encoder.id).positions
    cut = mean(count > read for count in estimated_tokens(data.train.display_texts, SAMPLED_TEXTS))
    if cut >= CUT:
        cut_sentence = _(
            "About {share} of the texts have more than {read} tokens and are truncated. The encoder reads up to "
            "{most}.",
            share=percent(cut),
            read=read,
            most=f"{most:,}",
        )
        st.info(cut_sentence)
    if cut >= CUT and (more := min(most, 2 * read)) > read:
        # Translators: a button: have the encoder read that many tokens of each text.
        label = _("Read {count} tokens", count=more)
        st.button(label, on_click=state.set_widget, args=(state.form_key("max_length"), more))
    if sentence := expectation(config.task.id, data):
        st.info(sentence)
    if data.clean is not None:
        st.caption(noise_sentence(data))


def noise_sentence(data: TaskData) -> str:
    """Count the training rows with a wrong label or changed words, in a sentence."""
    assert data.clean is not None
    rows = len(data.train)
    labels = sum(now != was for now, was in zip(data.train.labels, data.clean.labels, strict=True))
    texts = sum(now != was for now, was in zip(data.train.inputs, data.clean.inputs, strict=True))
    numbers = {
        "rows": f"{rows:,}",
        "wrong": f"{labels:,}",
        "wrong_share": percent(labels / rows),
        "changed": f"{texts:,}",
        "changed_share": percent(texts / rows),
    }
    if labels and texts:
        return _(
            "Training rows: {rows}, {wrong} with a wrong label ({wrong_share}) and {changed} with changed words "
            "({changed_share}).",
            **numbers,
        )
    if labels:
        return _("Training rows: {rows}, {wrong} with a wrong label ({wrong_share}).", **numbers)
    if texts:
        return _("Training rows: {rows}, {changed} with changed words ({changed_share}).", **numbers)
    return _("Training rows: {rows}, none of them noisy yet.", **numbers)


def training_examples(data: TaskData) -> None:
    """Show some training rows. With noise, show changed rows beside their originals."""
    now, was = data.train, data.clean
    with st.expander(_("Sample of the training rows")):
        if was is None:
            rows = [_row(data, now, i) for i in range(min(MAX_EXAMPLES, len(now)))]
        else:
            wrong = [i for i, label in enumerate(now.labels) if label != was.labels[i]]
            reworded = [
                i for i, text in enumerate(now.inputs) if text != was.inputs[i] and now.labels[i] == was.labels[i]
            ]
            # Alternate rows with a wrong label and rows with changed words.
            both = chain.from_iterable(zip_longest(wrong, reworded))
            changed = [i for i in both if i is not None][:MAX_EXAMPLES]
            st.caption(sentences([noise_sentence(data), _("For example:") if changed else ""]))
            rows = []
            for i in changed:
                before, after = _row(data, was, i), _row(data, now, i)
                rows.append(
                    {key: cell for name in after for key, cell in ((name, after[name]), (f"{name} was", before[name]))}
                )
        st.dataframe(
            rows,
            hide_index=True,
            column_config={
                name: st.column_config.TextColumn(_(label), width="small" if name in NARROW else None)
                for name, label in COLUMNS.items()
            },
        )


def _row(data: TaskData, split: Split, i: int) -> dict[str, Any]:
    row = {"Label": data.classes[split.labels[i]], "Text": split.texts[i]}
    return row if split.seconds is None else row | {"Second text": split.seconds[i]}


def batch_audit(config: RunConfig, data: TaskData) -> None:
    """Show the expected positives of an anchor by class, given views and levels, with warnings and remedies."""
    blocks = encoder_shape(config.encoder.id).blocks
    for place, phase in enumerate(config.phases):
        plan = plan_phase(phase.objective, blocks)
        audited = [t for t in plan.terms if t.term.entry.contrastive]
        if not audited:
            continue
        heading = _("Positives in a batch")
        if len(config.phases) > 1:
            heading = _("Positives in a batch, phase {number}", number=place + 1)
        st.markdown(f"**{heading}**", help=card("positive"))
        weighted = [t for t in audited if t.term.weight > 0] or audited[:1]
        for term in {
            (t.views, t.term.entry.reads, t.term.entry.uses_labels, t.term.parameters.get("label_filter")): t
            for t in weighted
        }.values():
            _audit_term(config, phase, data, term)
        if plan.reads_triplets:
            st.caption(_("Each step encodes a premise and two sentences."))
        elif plan.reads_pairs:
            st.caption(_("Each step encodes the two texts of every pair in its batch."))
        elif plan.readings == 2:
            st.caption(_("Each step encodes every text of its batch twice."))
        elif plan.readings > 2:
            st.caption(_("Each step encodes every text of its batch {count} times.", count=plan.readings))
        for label in inert_terms(phase, blocks):
            st.warning(
                _("{loss} has no effect, because all layers it contrasts are frozen. Train more blocks.", loss=_(label))
            )
        for slow in slow_queues(phase):
            st.warning(str(slow))
        largest = max((k for _layer, k in plan.tokens), default=0)
        if largest and largest >= (words := mean(_tokens(config, data).tokens)):
            everything = _(
                "Texts have about {tokens:.0f} tokens, so k = {k} takes nearly all of them and attention selects "
                "nothing. Choose a smaller k or longer texts.",
                tokens=words,
                k=largest,
            )
            st.info(everything)


def classifier_audit(config: RunConfig, classes: int, *, scored: bool) -> None:
    """Draw the score to expect from the classifier's initialisation, when it learns, and what is scored until then."""
    if classes >= MANY_CLASSES and config.classifier_start == "probe":
        st.info(
            _(
                "With {classes} classes, expect a score near the linear probe of the encoder before training: in "
                "our study of 7 to 99 classes, the defaults ended between {least:.0f} points below it and "
                "{most:.0f} points above it on test.",
                classes=classes,
                least=-LEAST_ABOVE_PROBE,
                most=MOST_ABOVE_PROBE,
            )
        )
    elif classes >= MANY_CLASSES and config.classifier_start == "random" and len(config.phases) == 1:
        st.warning(
            _(
                "With {classes} classes, a randomly initialised classifier ends below the encoder before "
                "training: in our study of 80 classes it reached {random} on test, and the linear probe {probe}.",
                classes=classes,
                random=percent(RANDOM_START),
                probe=percent(PROBE_OF_STUDY),
            )
        )
        key = state.form_key("classifier_start")
        st.button(_("Initialise it as a linear probe"), on_click=state.set_widget, args=(key, "probe"))
    note = classifier_note(config, scored=scored)
    if note is not None:
        never_learns = not scored and classifier_learns_from(config) is None
        (st.warning if never_learns else st.info)(str(note))


def _audit_term(config: RunConfig, phase: PhaseConfig, data: TaskData, term: TermPlan) -> None:
    batch, sampler = phase.batch_size, config.task.sampler
    if term.term.entry.reads == "triplets":
        st.caption(
            _(
                "Each premise has one positive, the sentence it entails, against the other {others} and all {all} "
                "contradictions. The labels give {triplets}.",
                others=f"{batch - 1:,}",
                all=f"{batch:,}",
                triplets=ngettext("{count} triplet", "{count} triplets", len(data.triplets)),
            )
        )
        return
    if term.term.entry.reads == "scores":
        st.caption(
            _(
                "The loss compares the {batch} pairs of a batch with their scores. {pairs} can be drawn.",
                batch=f"{batch:,}",
                pairs=ngettext("{count} training pair", "{count} training pairs", len(data.pairs)),
            )
        )
        return
    found = Counter(data.train.labels)
    counts = [found[label] for label in range(len(data.classes))]
    if not term.term.entry.uses_labels:
        st.caption(_without_labels(counts, batch, sampler, config.seed, bool(term.term.parameters.get("label_filter"))))
        return
    shares = class_shares(counts, batch, sampler, seed=config.seed)
    views: int | list[ClassViews] = term.views
    if term.term.level == "token":
        tokens = _tokens(config, data)
        views = token_class_views(tokens, term, len(counts))
        st.caption(_token_vectors(term, tokens, views, shares, batch))
    elif term.views > 1:
        st.caption(
            _(
                "{views} views of a text: {vectors} vectors are contrasted.",
                views=term.views,
                vectors=f"{batch * term.views:,}",
            )
        )
    positives = expected_positives(counts, batch, sampler, views, seed=config.seed)
    starving = anchors_without_positive(counts, batch, sampler, views, seed=config.seed)
    queue = integer_setting(term.term.parameters, "queue")
    columns = {"Class": data.classes, "Rows": counts, "Positives per anchor": positives}
    columns |= {"In the queue": [queue * share for share in shares]} if queue else {}
    if queue:
        full, steps = -(-queue // batch), phase.steps or 0
        if full < steps:
            held = _(
                "The queue is full ({vectors} vectors) from step {step}.", vectors=f"{queue:,}", step=f"{full + 1:,}"
            )
        else:
            held = _(
                "The queue never fills: it holds {held} of {vectors} vectors at the last step.",
                held=f"{batch * (steps - 1):,}",
                vectors=f"{queue:,}",
            )
        momentum = number(term.term.parameters, "momentum")
        copy = _("The momentum encoder keeps {momentum:g} of its weights at each step.", momentum=momentum)
        st.caption(sentences([held, copy]))
    elif max(starving) > STARVING and phase.objective.contrastive and sampler in CLASSES_AT_ONCE:
        st.warning(_("A class with a single training row has no positive in any batch. Add more rows of it."))
    elif max(starving) > STARVING and phase.objective.contrastive:
        st.warning(
            _(
                "In some classes, up to {share} of the texts have no positive in their batch and are not pulled. "
                "Use a larger batch or class-balanced batches.",
                share=percent(max(starving)),
            )
        )
        if batch >= SMALLEST_BALANCED:
            balanced = (state.form_key("sampler"), "class_balanced")
            st.button(_("Use class-balanced batches"), on_click=state.set_widget, args=balanced)
    _table(columns | {"Anchors without positives": hundredths(starving)})


def _without_labels(counts: Sequence[int], batch: int, sampler: str, seed: int, filters: bool) -> str:
    """Describe the candidates of a contrast whose positives are views, and count the pairs of one label among them."""
    pairs, share = batch * (batch - 1) // 2, same_label_share(counts, batch, sampler, seed=seed)
    numbers = {"same": f"{share * pairs:,.0f}", "pairs": f"{pairs:,}", "share": percent(share)}
    if filters:
        return sentences(
            [
                _("Each anchor has one positive, its other view, against the texts of other labels."),
                _("About {same} of the {pairs} pairs of texts in a batch ({share}) are left out.", **numbers),
            ]
        )
    others = ngettext("{count} other text", "{count} other texts", batch - 1)
    return sentences(
        [
            _("Each anchor has one positive, its other view, against {others}. Labels are not used.", others=others),
            _(
                "About {same} of the {pairs} pairs of texts in a batch ({share}) have the same label, and contrast "
                "pushes them apart too.",
                **numbers,
            ),
        ]
    )


def _table(columns: dict[str, Sequence[object]]) -> None:
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        height="content" if len(columns["Class"]) <= MAX_CLASS_ROWS else TABLE_PX,
        column_config={
            "Class": st.column_config.TextColumn(_("Class"), help=_("Training rows by class")),
            "Rows": st.column_config.NumberColumn(pgettext("a count", "Rows")),
            "Positives per anchor": st.column_config.NumberColumn(
                # Translators: the heading of a column: how many positives an anchor finds in its batch.
                _("Positives per anchor"),
                format="%.1f",
                help=_("Expected number of other vectors of its class in an anchor's batch"),
            ),
            "In the queue": st.column_config.NumberColumn(
                _("In the queue"),
                format="%.0f",
                help=_("Expected number of vectors of its class in the queue, once it is full"),
            ),
            "Anchors without positives": st.column_config.NumberColumn(
                _("Anchors without positives"),
                format=PERCENT_CELLS,
                help=_(
                    "Probability that an anchor has no positive in its batch; without a queue it then adds nothing "
                    "to the contrastive loss"
                ),
            ),
        },
    )


def _token_vectors(
    term: TermPlan, found: TokenCounts, views: Sequence[ClassViews], shares: Sequence[float], batch: int
) -> str:
    """Describe the number of vectors in a batch; a short text may have fewer tokens than k."""
    k, clusters = integer_setting(term.term.parameters, "k"), integer_setting(term.term.parameters, "clusters")
    vectors = f"{batch * sum(share * view.mean for share, view in zip(shares, views, strict=True)):,.0f}"
    short = mean(min(known, k) < clusters for known in found.tokens)
    if not clusters:  # without clustering, each token is a vector
        sentence = _(
            "On average {count:.1f} tokens per text (at most {k}), so about {vectors} vectors per batch.",
            count=mean(min(known, k) for known in found.tokens),
            k=k,
            vectors=vectors,
        )
    elif short:
        sentence = _(
            "{clusters} vectors per text, but none for the {share} of the texts that have too few tokens, so about "
            "{vectors} vectors per batch.",
            clusters=clusters,
            share=percent(short),
            vectors=vectors,
        )
    else:
        sentence = _(
            "{clusters} vectors per text, so about {vectors} vectors per batch.", clusters=clusters, vectors=vectors
        )
    basis = _("Token counts are estimated from characters until the encoder's tokenizer is downloaded.")
    return sentence if found.exact else sentences([sentence, basis])


def _tokens(config: RunConfig, data: TaskData) -> TokenCounts:
    file = tokenizer_file(config.encoder.id)
    stamp = file.stat().st_mtime_ns if file else 0
    return _counted_tokens(config.encoder.id, stamp, config.encoder.max_length, data)


@cached(16, spinner=N_("Counting tokens"))
def _counted_tokens(encoder: str, stamp: int, max_length: int, data: TaskData) -> TokenCounts:
    return count_tokens(encoder, data.train, max_length)
