"""A run as it happens: progress, knobs, map and curves, drawn again a few times a second until it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import streamlit as st

from core.advice.newest_contrast import newest_contrast
from core.advice.pace import PACE_STEPS, Pace, closing_work, pace
from core.advice.starving import STEPS_IN_A_ROW, starving_sentences
from core.artifacts.maps import LIVE, map_request
from core.artifacts.waiting_time import Place, places
from core.config import KnobTurn, RunConfig
from core.config.describe import objective_label, row_labels, trainable_label, value_text
from core.config.schedule import objective_at
from core.config.score_source import (
    classifier_learned,
    classifier_learns_from,
    classifier_note,
    is_first_note,
    outcome_sentence,
    scored,
    scorers,
)
from core.errors import PlaygroundError, StoreError
from core.events import BASELINE, BASELINE_TEST, VALIDATION, Evaluation, Step
from core.figures.curves import HEIGHT_PX, curves_figure
from core.figures.smoothing import RAW, Smoothing
from core.messages import ENGLISH, N_, Message, _, listed, ngettext, sentences
from core.quantities import percent
from core.representation.projections import MapSpec, Points
from core.representation.verdict import Geometry, Outcome, verdict
from core.settings import LOCAL, settings
from core.store import RunRecord, RunSummary, Status, Store
from core.store.budget import dropped_sentence
from core.store.records import KnobState
from core.tasks.task_label import task_label
from core.workers import Engine
from core.workers.limits import most_of_visitor
from core.workers.machine import slots
from pages.ui import reads
from pages.ui.address import FineTune
from pages.ui.controls import disk_line, draw_knobs, export_menu, pending_words, run_buttons, show_notice
from pages.ui.explore import run_reads
from pages.ui.explore.frame_map import panel_of
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.live_figure import as_text, live_figure
from pages.ui.map_view import map_view
from pages.ui.parts import duration, escaped, probe_label, status_badge, tab_title
from pages.ui.reads import cached
from pages.ui.waiting import beat, complete_since, ensure_job

# Before the first step somebody waits for it; afterwards a new step is soon enough within a second.
WAITING_POLL_S = 0.3
# Each look takes a quarter of a second of one core, most of it in the browser, which training on a laptop has to share.
POLL_S, SLOWEST_POLL_S, RECENT_STEPS = 1.0, 3.0, 5
# A slim rail of what can be turned, the map, and the curves.
COLUMNS = (9, 26, 27)
# With the header, the scores and the player around it the map fills the screen.
MAP_HEIGHT = "max(18rem, 100dvh - 22rem)"
# Translators: of curves.
CURVES = {"smooth": N_("Smooth"), "raw": N_("Raw")}
SMOOTHING = Smoothing("exponential", 0.9)
# How the vectors were made that a linear probe reads.
POOLED = {"cls": "[CLS]", "mean": N_("mean of tokens"), "auto": N_("the encoder’s own pooling")}
UMAP = MapSpec("umap")
METHODS = {"pca": "PCA", "umap": "UMAP"}
LOG_BYTES = 8_000


def live_view(engine: Engine, run: RunRecord) -> None:
    """The page of one run. Polls while somebody works on it, and draws once more when it ends."""
    tab_title(run.title, _("Fine-tune"))
    waiting, polling = run.probe is None, not run.status.ended
    st.fragment(_watch)(engine, run.id, polling, waiting)


def _watch(engine: Engine, run_id: str, polling: bool, waiting: bool) -> None:
    with st.container(key="live"):
        steps = _draw(engine, run_id, polling, waiting)
    if polling:
        beat(WAITING_POLL_S if waiting else _poll_s(steps), key="live.beat")


def _poll_s(steps: Sequence[Step]) -> float:
    """No oftener than steps come: most looks would find what is drawn already."""
    recent = [step.values["step_s"] for step in steps[-RECENT_STEPS:] if "step_s" in step.values]
    return min(SLOWEST_POLL_S, max(POLL_S, median(recent))) if recent else POLL_S


def _draw(engine: Engine, run_id: str, polling: bool, waiting: bool) -> Sequence[Step]:
    """Returns: the steps that are drawn."""
    store = engine.store
    try:
        run = store.run(run_id)
    except PlaygroundError as error:
        st.error(escaped(str(error)))
        return ()
    if polling and (run.status.ended or (waiting and run.probe is not None)):
        st.rerun()  # once, without the timer or at its usual pace
    if run.status == Status.QUEUED:
        engine.dispatch()
    config = run.effective
    steps, knobs = reads.steps(store, run), store.knob_state(run_id)
    evaluations = store.evaluations(run_id)
    scores = scored(config, evaluations)
    with st.container(gap="xsmall", key="run_head"):
        _header(engine, run)
        outcome = outcome_sentence(config, evaluations) if run.status.ended else None
        if outcome is None:
            _progress(store, run, steps, knobs, evaluations)
        else:
            words = _pace_words(store, run, steps, {})
            st.markdown(f"**{escaped(outcome)}** :gray[{' · '.join(words)}]")
    starving = _starving(run, steps)
    _message(run, config, shown=starving)
    if run.probe is None:
        st.caption(_waiting(engine, run))
        return steps
    rail, left, right = st.columns(COLUMNS, gap="small")
    with rail, st.container(key="live_rail"):
        if run.status.ended:
            _next_steps(run)
        else:
            draw_knobs(engine, run, knobs)
        method = _choice(_("Map"), METHODS, "live.method")
        how = _choice(_("Curves"), CURVES, "live.how")
    with left:
        with st.container(horizontal=True, gap="medium"):
            _scores(run, config, scores)
        _map(engine, run, method)
        _verdict(store, run, config, steps, evaluations)
    with right:
        _curves(engine, run, steps, scores, SMOOTHING if how == "smooth" else RAW)
        _files(engine, run)  # below what keeps its height: the sentences below the map do not
    return steps


def _choice(label: str, options: Mapping[str, str], key: str) -> str:
    """One of a few ways to look, the first at first."""
    names, words = list(options), {name: _(text) for name, text in options.items()}
    return st.segmented_control(label, names, default=names[0], format_func=words.__getitem__, required=True, key=key)


def _header(engine: Engine, run: RunRecord) -> None:
    config = run.config
    # Longer with every knob that is turned: a third line would push the map down under somebody's hand.
    objective = objective_label(run.effective if run.status.ended else config)
    rows = row_labels(config.task)
    parts = [task_label(config), *rows, config.encoder.id, trainable_label(config), objective]
    batches = dict.fromkeys(phase.batch_size for phase in config.phases)
    # Translators: the size of a batch, or those of two phases: "batch 16 → 64".
    parts.append(_("batch {sizes}", sizes=" → ".join(map(str, batches))))
    parts += [_("seed {number}", number=config.seed), *([_device(run)] if run.device else [])]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(escaped(run.title), anchor=False, width="content")
        status_badge(run)
        st.caption(" · ".join(escaped(part) for part in parts), width="stretch")
        run_buttons(engine, run)
        export_menu(engine.store, run)
        if st.button(_("New run"), icon=":material/add:", type="tertiary"):
            FineTune.RUN.forget()
            st.rerun(scope="app")
    show_notice()


def _device(run: RunRecord) -> str:
    """Where a run computes; and the encoder's precision, unless it is older than that setting."""
    precision = run.config.precision
    parts = [
        str(run.device),
        *([] if precision == "auto" else [precision]),
        *([_("node {name}", name=run.place)] if run.place else []),
    ]
    return listed(parts)


def _progress(
    store: Store, run: RunRecord, steps: Sequence[Step], knobs: KnobState, evaluations: Sequence[Evaluation]
) -> None:
    turned = [objective_label(run.effective)] if run.effective.knob_turns else []
    closing = closing_work(run.config, run.facts, evaluations) if run.status.active else {}
    words = [*_pace_words(store, run, steps, closing), *turned, *pending_words(knobs)]
    # The bar counts what follows the last step as steps, so that it still moves then.
    st.progress(min(1.0, run.last_step / (run.steps + len(closing))), " · ".join(words))


def _pace_words(store: Store, run: RunRecord, steps: Sequence[Step], closing: Mapping[str, float]) -> list[str]:
    words = [_("Step {step} of {steps}", step=f"{run.last_step:,}", steps=f"{run.steps:,}")]
    if len(run.config.phases) > 1:
        phase = run.config.phase_at(max(1, run.last_step)) + 1
        words.append(_("phase {number} of {count}", number=phase, count=len(run.config.phases)))
    if run.started_at:
        words.append(duration(run.elapsed_s))
    frames = store.frame_steps(run.id)
    found = pace(steps, store.newest_times(run.id, PACE_STEPS), frames, run.config, sum(closing.values()))
    if found is not None:
        rate = f"{found.texts_per_s:,.{0 if found.texts_per_s >= 10 else 1}f}"
        words.append(_("{rate} texts/s", rate=rate))
    if run.status == Status.RUNNING:
        if run.last_step == run.steps:
            at_frame = run.steps in (run.config.probe.frame_steps or ()) and run.steps not in frames
            words.append(_("measuring the last frame") if at_frame else _(next(iter(closing))))
        if found is not None or run.last_step < run.steps:
            words.append(_left(found, run))
    return words


def _left(found: Pace | None, run: RunRecord) -> str:
    """What is said of the time to come; nothing is known before a few steps were measured."""
    if found is None:
        return _("measuring its pace")
    phase, time = run.config.phase_at(max(1, run.last_step)), duration(max(1.0, found.remaining_s))
    if phase < len(run.config.phases) - 1:
        return _("about {time} left of phase {phase}", time=time, phase=phase + 1)
    return _("about {time} left", time=time)


def _starving(run: RunRecord, steps: Sequence[Step]) -> tuple[Message, ...]:
    """Warn of contrastive terms that are 0 for want of positives; returns the warnings."""
    used = objective_at(run.effective, max(1, run.last_step))
    batch_size = run.config.phases[used.phase].batch_size
    recent = [step.values for step in steps[-STEPS_IN_A_ROW:]]
    found = starving_sentences(recent, used.objective, batch_size, run.config.task.sampler)
    for sentence in found:
        st.warning(escaped(sentence))
    return found


def _message(run: RunRecord, config: RunConfig, shown: Sequence[Message]) -> None:
    """Show the outcome of a run, or its message unless that is among `shown`."""
    if run.status == Status.FAILED:
        st.error(escaped(run.message or _("The run failed: its log has the details.")))
    elif run.status == Status.INTERRUPTED:
        st.warning(_interrupted(run))
    elif (
        run.message
        and run.message not in (*shown, *(one.render(ENGLISH) for one in shown))
        and not is_first_note(run.message, run.config)
    ):
        st.info(escaped(run.message))
    if dropped := dropped_sentence(run):
        st.info(escaped(dropped))
    note = classifier_note(config, over=run.status.ended)
    if note is not None:
        st.info(str(note))


def _interrupted(run: RunRecord) -> str:
    if not run.checkpoint_step:
        return _(
            "The worker stopped unexpectedly. Nothing that was saved is lost; Resume continues from the start, on the "
            "same curve."
        )
    return _(
        "The worker stopped unexpectedly. Nothing that was saved is lost; Resume continues from step {step}, on the "
        "same curve.",
        step=f"{run.checkpoint_step:,}",
    )


def _waiting(engine: Engine, run: RunRecord) -> str:
    if run.status == Status.QUEUED:
        if run.config.start is not None:
            return _("Waiting for run {run}, from which it starts.", run=run.config.start)
        on_cluster = settings().engine != LOCAL
        place = places(engine.store, len(slots()), most_of_visitor()).get(run.id)
        return _in_line(place, on_cluster)
    if run.status == Status.STARTING:
        if settings().engine != LOCAL and run.place is None:
            return _("On its way to a node of the cluster.")
        return _("Loading the encoder. One that was never used here is downloaded first, which can take minutes.")
    return _("The run ended before its first step.") if run.status.ended else _("Starting.")


def _in_line(place: Place | None, on_cluster: bool) -> str:
    """How many runs begin before this one, and when it will, by the pace of the runs so far."""
    before = 0 if place is None else place.before
    if on_cluster:  # where nobody here knows how many runs go on at a time
        if not before:
            return _("Next in line, waiting for room on the cluster.")
        return ngettext(
            "Waiting for room on the cluster; {count} run begins before it.",
            "Waiting for room on the cluster; {count} runs begin before it.",
            before,
        )
    if not before:
        words = _("Next in line, waiting for a free place.")
    else:
        words = ngettext(
            "Waiting for a free place; {count} run begins before it.",
            "Waiting for a free place; {count} runs begin before it.",
            before,
        )
    if place is None or not place.seconds:
        return words
    begins = _("It begins in about {time}, by the pace of earlier runs.", time=duration(max(1.0, place.seconds)))
    return sentences([words, begins])


def _scores(run: RunRecord, config: RunConfig, evaluations: Sequence[Evaluation]) -> None:
    """Tiles of the newest scores, each saying whether the classifier was scored or a linear probe."""
    last = {evaluation.split: evaluation for evaluation in evaluations}
    validation, test = last.get("validation"), last.get("test")
    probe, probe_test = last.get(BASELINE), last.get(BASELINE_TEST)
    probed = _by_probe(validation, learned=classifier_learned(config, run.last_step))
    test_probed = _by_probe(test, learned=classifier_learns_from(config) is not None)
    # The probe of a frame is fitted on fewer rows than the one to beat, so it is compared with that of frame 0.
    at_start = next((e for e in evaluations if e.split == "validation" and e.step == 0 and probed), None)
    noise = _noise_of_probe(config.task.label_noise)
    metrics = [
        (
            _("Probe now") if probed else _("Validation"),
            _percent(validation),
            sentences([_about(validation, probed), noise if probed else "", _at_frames(validation)]),
            None,
        ),
        (
            _("Macro-F1"),
            percent(validation.values["macro_f1"]) if validation else "–",
            _("Of the same, on validation."),
            None,
        ),
        (
            _("Probe at step 0"),
            _percent(at_start),
            sentences([_about_start(at_start), noise, _majority(run)]),
            None,
        )
        if at_start is not None
        else (
            _("Probe to beat"),
            _percent(probe),
            sentences([_about_baseline(probe, _(POOLED[config.encoder.pooling])), noise, _majority(run)]),
            None,
        ),
        (
            _("Probe, test") if test_probed else _("Test"),
            # Translators: when the test split is scored.
            _percent(test) if test or run.status == Status.FINISHED else _("at the end"),
            sentences([_about(test, test_probed), noise if test_probed else "", _test_split(test_probed)]),
            _("to beat {score}", score=_percent(probe_test)) if test and probe_test and not test_probed else None,
        ),
    ]
    for label, value, about, beside in metrics:
        st.metric(label, value, beside, "off", help=about, width="content", delta_arrow="off")


def _by_probe(evaluation: Evaluation | None, *, learned: bool) -> bool:
    """Whether a linear probe was scored, or will be where nothing was scored yet."""
    return not learned if evaluation is None else evaluation.probe_rows is not None


def _percent(evaluation: Evaluation | None) -> str:
    return "–" if evaluation is None else percent(evaluation.values["accuracy"])


def _noise_of_probe(rate: float) -> str:
    """The labels that a linear probe learns from; empty for a run without label noise."""
    return (
        _("The probe learns from the same noisy labels as the run (ρ {rate}).", rate=value_text(rate)) if rate else ""
    )


def _majority(run: RunRecord) -> str:
    return _("The majority class alone gets {share}.", share=percent(run.facts.get("majority_rate", 0.0)))


def _at_frames(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return _("Scored on validation at every frame.")
    return _("Scored on validation at every frame, last at step {step}.", step=f"{evaluation.step:,}")


def _about_start(evaluation: Evaluation) -> str:
    """Of the probe of frame 0, which is the same as that of the frames after it."""
    if evaluation.probe_rows is None:
        return _("The same on the untrained encoder's vectors.")
    return _("The same on the untrained encoder's vectors, fitted on {rows} training rows.", rows=_fitted(evaluation))


def _about_baseline(evaluation: Evaluation | None, pooling: str) -> str:
    if evaluation is None or evaluation.probe_rows is None:
        return _(
            "Logistic regression on the untrained encoder's vectors ({pooling}), scored on validation.", pooling=pooling
        )
    return _(
        "Logistic regression on the untrained encoder's vectors ({pooling}), fitted on {rows} training rows, scored on "
        "validation.",
        pooling=pooling,
        rows=_fitted(evaluation),
    )


def _test_split(probed: bool) -> str:
    if probed:
        return _("The test split is scored once, at the end.")
    return _("The test split is scored once, at the end; next to it, the linear probe of the untrained encoder.")


def _about(evaluation: Evaluation | None, probed: bool) -> str:
    if evaluation is None:
        return _("The classifier has learned nothing, so it is not scored.") if probed else ""
    interval = _interval(evaluation.values)
    if evaluation.probe_rows is None:
        return interval
    regression = _(
        "The classifier has learned nothing, so this scores a logistic regression on the encoder's present vectors, "
        "fitted on {rows} training rows.",
        rows=_fitted(evaluation),
    )
    return sentences([regression, interval])


def _fitted(evaluation: Evaluation) -> str:
    """How many rows a linear probe was fitted on."""
    return f"{evaluation.probe_rows:,}"


def _interval(values: Mapping[str, float]) -> str:
    low, high = percent(values["accuracy_low"]), percent(values["accuracy_high"])
    return _("95% Wilson interval {low} to {high}.", low=low, high=high)


def _map(engine: Engine, run: RunRecord, method: str) -> None:
    assert run.probe is not None
    frames = frames_of(engine.store, run, None)
    if not frames.numbers:
        st.caption(_("The first frame comes right after the first step."))
        return
    try:
        spec, maps, about = _newest_maps(frames, MapSpec(method))
        panel = panel_of(frames, spec, maps)
    except StoreError as error:
        st.warning(escaped(str(error)))
        return
    map_view(
        [panel],
        key=f"live.map.{run.id}",
        height=MAP_HEIGHT,
        description=_("Map of {texts} texts, coloured by label.", texts=f"{len(run.probe.ids):,}"),
        trails=False,
        follow=True,
        name=f"{run.id}-{spec.method}",
    )
    # Translators: which texts are on a map, whose colours are the labels.
    shown = _("{texts}, by label.", texts=probe_label(run.probe))
    turned = _("Each frame is turned onto the one before, so points move because the model moved.")
    st.caption(sentences([shown, about, turned]))


def _newest_maps(frames: Frames, wanted: MapSpec) -> tuple[MapSpec, dict[int, Points], str]:
    """The maps to show and what they are: UMAP is some frames behind, PCA until its first. Raises: StoreError."""
    if wanted == UMAP:
        placed = run_reads.maps(frames, UMAP)
        if len(placed) < len(frames.numbers):
            ensure_job("map", map_request(frames.run, UMAP), "UMAP", since=complete_since(frames.run))
        if placed:
            behind = _("UMAP of the normalised vectors, some frames behind.")
            return UMAP, placed, sentences([behind, _(UMAP.entry.caution)])
    return LIVE, run_reads.maps(frames, LIVE), _("First two principal components of the normalised vectors.")


def _verdict(
    store: Store, run: RunRecord, config: RunConfig, steps: Sequence[Step], evaluations: Sequence[Evaluation]
) -> None:
    """Draw the verdict of loss, geometry and predictions on one contrastive term of the phase."""
    scores = {e.step: e for e in evaluations if e.split == VALIDATION}
    if not steps or not scores or run.probe is None:
        return
    newest = scores[max(scores)]
    contrast = newest_contrast(steps, objective_at(config, steps[-1].step).objective, len(run.probe.classes))
    if contrast is None:
        return
    start = _geometry(scores[0].values) if 0 in scores else None
    found = verdict(contrast, _geometry(newest.values), start, _largest_prediction(store, run, config, newest))
    if found.outcome == Outcome.COLLAPSED:
        st.warning(_(found.sentence))
    else:
        st.markdown(_(found.sentence))
    st.caption(_("Validation texts, last block's pooled vectors: {numbers}", numbers=found.numbers))


def _largest_prediction(store: Store, run: RunRecord, config: RunConfig, frame: Evaluation) -> float | None:
    """The share of the validation texts that a frame's classifier gives one class; None where it learned nothing."""
    assert run.probe is not None
    if scorers(config, [frame]) != ["classifier"]:
        return None
    try:
        predicted = store.logits(run.id, frame.step)[: run.probe.held_out].argmax(1)
    except StoreError:  # the map says so
        return None
    return float(np.bincount(predicted).max() / len(predicted))


def _geometry(values: Mapping[str, float]) -> Geometry:
    return Geometry(
        values["mean_cosine"], values["effective_rank"], values.get("within_cosine"), values.get("between_cosine")
    )


def _curves(
    engine: Engine, run: RunRecord, steps: list[Step], evaluations: Sequence[Evaluation], smoothing: Smoothing
) -> None:
    turns = tuple(engine.store.knob_turns(run.id))
    seen = Seen(run, steps, evaluations, turns, smoothing)
    live_figure(
        _figure(seen),
        key="live.curves",
        height=HEIGHT_PX,
        version=seen.key,
        description=_("Curves over the steps: loss and its parts, validation accuracy, gradient norms, learning rate."),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """What the curves show."""

    run: RunRecord
    steps: Sequence[Step]
    evaluations: Sequence[Evaluation]
    turns: Sequence[KnobTurn]
    smoothing: Smoothing

    @property
    def key(self) -> str:
        """What has come so far, by its number: it is only added to."""
        counts = f"{len(self.steps)} {len(self.evaluations)} {len(self.turns)}"
        return f"{self.run.id} {self.run.begun_attempt} {counts} {self.smoothing.kind}"


# The many who watch one run see the same.
@cached(32, Seen)
def _figure(seen: Seen) -> str:
    run, ends = seen.run, seen.run.config.phase_ends
    figure = curves_figure(
        seen.steps, seen.evaluations, seen.turns, run.facts, ends, revision=run.id, smoothing=seen.smoothing
    )
    return as_text(figure)


def _next_steps(run: RunRecord) -> None:
    links = [
        (_("Explore"), "explore", "scatter_plot", "run"),
        (_("Tokens"), "tokens", "format_ink_highlighter", "run"),
        (_("Compare"), "compare", "compare_arrows", "runs"),
        (_("Use again"), "fine_tune", "replay", "from"),
    ]
    with st.container(gap="xxsmall", key="next_steps"):
        for label, page, icon, name in links:
            st.page_link(f"pages/{page}.py", label=label, icon=f":material/{icon}:", query_params={name: run.id})


def _files(engine: Engine, run: RunRecord) -> None:
    disk_line(engine, run)
    with st.expander(_("Log")):
        st.code(log_tail(engine, run) or _("The log is empty."), language=None)


def log_tail(engine: Engine, run: RunSummary) -> str:
    """The end of a run's log."""
    path = engine.store.log_path(run.id)
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        return file.read().decode("utf-8", errors="replace")
