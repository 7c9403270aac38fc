"""Before launch: will anchors find positives, and what will the run cost?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean

import pandas as pd
import streamlit as st

from core.artifacts.speed import estimated
from core.config import PhaseConfig, RunConfig
from core.encoders.source import encoder_shape, tokenizer_file
from core.parameters import number, whole
from core.quantities import PERCENT_CELLS, counted, hundredths, percent
from core.store import Store
from core.tasks import TaskData
from core.training.batches import SMALLEST_BALANCED
from core.training.momentum import slow_queues
from core.training.plan import Plan, TermPlan, plan_phase
from core.training.positives import ClassViews, anchors_without_positive, class_shares, expected_positives
from core.training.prepare import inert_terms
from core.training.score_source import classifier_learns_from, classifier_note
from core.training.token_views import TokenCounts, count_tokens, token_class_views
from core.workers.machine import has_gpu, memory_bytes
from pages.ui.caching import cached
from pages.ui.glossary import card
from pages.ui.parts import duration
from pages.ui.task_form import use_balanced_sampler

STARVING = 0.1
MAX_CLASS_ROWS, TABLE_PX = 5, 180


def batch_audit(config: RunConfig, data: TaskData) -> None:
    """What anchors will find in a batch: positives class by class, following views and levels, and a remedy."""
    blocks = encoder_shape(config.encoder.id).blocks
    for place, phase in enumerate(config.phases):
        where = f", phase {place + 1}" if len(config.phases) > 1 else ""
        plan = plan_phase(phase.objective, blocks)
        audited = [t for t in plan.terms if t.term.entry.contrastive]
        if not audited:
            continue
        st.markdown(f"**Positives in a batch{where}**", help=card("positive"))
        counted = [t for t in audited if t.term.weight > 0] or audited[:1]
        for term in {(t.views, t.term.entry.reads, t.term.entry.uses_labels): t for t in counted}.values():
            _audit_term(config, phase, data, term)
        st.caption(_readings(plan))
        for label in inert_terms(phase, blocks):
            st.warning(f"{label} will move nothing, because all it contrasts is frozen: train more blocks.")
        for sentence in slow_queues(phase):
            st.warning(sentence)
        if sentence := _selects_nothing(config, plan, data):
            st.info(sentence)


def classifier_audit(config: RunConfig) -> None:
    """Whether the classifier learns from the first step, and what is scored where it does not."""
    note = classifier_note(config)
    if note is not None and classifier_learns_from(config) is None:
        st.warning(note)
    elif note is not None:
        st.info(note)


def _readings(plan: Plan) -> str:
    times = {1: "once", 2: "twice"}.get(plan.readings, f"{plan.readings} times")
    read = "a premise and two sentences" if plan.reads_triplets else f"every text of its batch {times}"
    return f"Each step reads {read}."


def _selects_nothing(config: RunConfig, plan: Plan, data: TaskData) -> str:
    """Where k is not smaller than a text, the choice by attention chooses everything."""
    largest = max((k for _, k in plan.tokens), default=0)
    if not largest:
        return ""
    words = mean(_tokens(config, data).tokens)
    if largest < words:
        return ""
    return (
        f"A text here has about {words:.0f} tokens, so k = {largest} takes nearly all of them and attention selects "
        "nothing. A smaller k, or longer texts, would make it choose."
    )


def _audit_term(config: RunConfig, phase: PhaseConfig, data: TaskData, term: TermPlan) -> None:
    batch, sampler = phase.batch_size, config.task.sampler
    if term.term.entry.reads == "triplets":
        st.caption(
            f"One positive per premise, what it entails, against the other {batch - 1:,} and all {batch:,} "
            f"contradictions; {counted(len(data.triplets), 'triplet')} from the labels."
        )
        return
    if not term.term.entry.uses_labels:
        others = counted(batch - 1, "other text")
        st.caption(f"One positive per anchor, its own other view, against {others}. No labels are used.")
        return
    found = Counter(data.train.labels)
    counts = [found[label] for label in range(len(data.classes))]
    shares = class_shares(counts, batch, sampler, seed=config.seed)
    views: int | list[ClassViews] = term.views
    if term.term.level == "token":
        tokens = _tokens(config, data)
        views = token_class_views(tokens, term, len(counts))
        st.caption(_token_vectors(term, tokens, views, shares, batch))
    elif term.views > 1:
        st.caption(f"{term.views} views of a text: {batch * term.views:,} vectors are contrasted.")
    positives = expected_positives(counts, batch, sampler, views, seed=config.seed)
    starving = anchors_without_positive(counts, batch, sampler, views, seed=config.seed)
    queue = whole(term.term.parameters, "queue")
    columns = {"Class": data.classes, "Rows": counts, "Per anchor": positives}
    columns |= {"In the queue": [queue * share for share in shares]} if queue else {}
    if queue:
        _queue(phase, term, queue)
    elif max(starving) > STARVING and phase.objective.contrastive:
        _starving(sampler, batch, max(starving))
    _table(columns | {"No positive": hundredths(starving)})


def _table(columns: dict[str, Sequence[object]]) -> None:
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        height="content" if len(columns["Class"]) <= MAX_CLASS_ROWS else TABLE_PX,
        column_config={
            "Class": st.column_config.TextColumn(help="Training rows by class"),
            "Per anchor": st.column_config.NumberColumn(
                format="%.1f", help="Expected number of vectors of its class in an anchor's batch, itself aside"
            ),
            "In the queue": st.column_config.NumberColumn(
                format="%.0f", help="Expected number of vectors of its class in the queue, once that is full"
            ),
            "No positive": st.column_config.NumberColumn(
                format=PERCENT_CELLS,
                help="Chance that an anchor finds none in its batch; without a queue it then adds nothing to the "
                "contrastive loss",
            ),
        },
    )


def _starving(sampler: str, batch: int, share: float) -> None:
    if sampler == "class_balanced":
        st.warning("A class with a single training row has no positive in any batch: give it more rows.")
        return
    st.warning(
        f"In some classes {percent(share)} of the texts will find no other of their class in the batch, so nothing "
        "pulls them. A larger batch or class-balanced batches help."
    )
    if batch >= SMALLEST_BALANCED:
        st.button("Use class-balanced batches", on_click=use_balanced_sampler)


def _queue(phase: PhaseConfig, term: TermPlan, queue: int) -> None:
    """When the queue is full, and how fast the encoder behind it moves."""
    full, steps = -(-queue // phase.batch_size), phase.steps or 0
    held = (
        f"The queue is full, {queue:,} vectors, from step {full + 1:,} on"
        if full < steps
        else f"The queue never fills: it holds {phase.batch_size * (steps - 1):,} of {queue:,} vectors at the last step"
    )
    momentum = number(term.term.parameters, "momentum")
    st.caption(f"{held}. Its copy of the encoder keeps {momentum:g} of itself at each step.")


def _token_vectors(
    term: TermPlan, found: TokenCounts, views: Sequence[ClassViews], shares: Sequence[float], batch: int
) -> str:
    """How many vectors there are, where texts may have fewer tokens than are asked for."""
    k, clusters = whole(term.term.parameters, "k"), whole(term.term.parameters, "clusters")
    vectors = batch * sum(share * view.mean for share, view in zip(shares, views, strict=True))
    basis = "" if found.exact else " Tokens are estimated from characters until the encoder's tokenizer is here."
    if clusters:
        short = mean(min(tokens, k) < clusters for tokens in found.tokens)
        few = f"; {percent(short)} of the texts have too few tokens for that and none" if short else ""
        return f"{clusters} vectors of a text{few}: about {vectors:,.0f} in a batch.{basis}"
    of_a_text = mean(min(tokens, k) for tokens in found.tokens)
    return f"{of_a_text:.1f} of at most {k} tokens of a text: about {vectors:,.0f} vectors in a batch.{basis}"


def _tokens(config: RunConfig, data: TaskData) -> TokenCounts:
    file = tokenizer_file(config.encoder.id)
    stamp = file.stat().st_mtime_ns if file else 0
    return _counted_tokens(config.encoder.id, stamp, config.encoder.max_length, data)


@cached(16, spinner="Counting tokens")
def _counted_tokens(encoder: str, stamp: int, max_length: int, data: TaskData) -> TokenCounts:
    return count_tokens(encoder, data.train, max_length)


def cost(store: Store, config: RunConfig, data: TaskData) -> None:
    """Estimated time and memory, with where the numbers come from."""
    found = estimated(store, config, data, gpu=has_gpu())
    left, right = st.columns(2)
    left.metric("Time, about", duration(found.total_s))
    right.metric("Memory, about", f"{found.memory_bytes / 2**30:.1f} GB")
    frames = len(config.probe.frame_steps or ())
    points = (config.probe.size or 0) + (config.probe.train_size or 0)
    source = (
        "measured in an earlier run here"
        if found.measured
        else "assumed for this machine until a run has been measured"
    )
    st.caption(
        f"{counted(config.steps, 'step')} {duration(found.steps_s)} · {counted(frames, 'frame')} of "
        f"{counted(points, 'point')} {duration(found.frames_s)} · linear probe {duration(found.probe_s)} · "
        f"test {duration(found.test_s)}; speed {source}."
    )
    views = [view for phase in config.phases for term in phase.objective.terms for view in term.views]
    for cost in dict.fromkeys(view.entry.cost for view in views if view.entry.cost):
        st.caption(cost)
    if not has_gpu() and found.memory_bytes > memory_bytes():
        st.warning(f"{memory_bytes() / 2**30:.1f} GB are free: try a smaller batch, fewer blocks or a smaller encoder.")
