"""The head of a run's page: title, progress, place in the queue, outcome, warnings and newest scores."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.advice.idle_terms import STEPS_IN_A_ROW, starving_sentences
from core.advice.pace import PACE_STEPS, closing_work, pace
from core.advice.score_source import (
    classifier_learned,
    classifier_learns_from,
    classifier_note,
    is_first_note,
    outcome_sentence,
)
from core.artifacts.waiting_time import Place, places
from core.config.describe import objective_label, part_label, row_labels, value_text
from core.config.plan import objective_at
from core.events import BASELINE, BASELINE_TEST, SCORED_PAIRS, VALIDATION, Evaluation
from core.messages import ENGLISH, N_, Message, _, join_list, ngettext, sentences
from core.quantities import percent, signed
from core.settings import LOCAL, settings
from core.store import RunRecord, Status, Store
from core.store.budget import dropped_sentence
from core.tasks.registry import task_label
from core.workers import Engine
from core.workers.limits import most_of_visitor
from core.workers.machine import slots
from pages.ui.address import FineTune
from pages.ui.controls import export_menu, run_buttons, show_notice
from pages.ui.knobs import pending_words
from pages.ui.parts import duration, escaped, status_badge
from pages.ui.reads import RunNow

# The pooling of the vectors that a linear probe reads.
POOLED = {"cls": "[CLS]", "mean": N_("mean of tokens"), "auto": N_("the encoder’s own pooling")}


def draw_header(engine: Engine, run: RunRecord) -> None:
    """Draw the title of a run, its settings and its buttons."""
    config = run.config
    # Every turned knob lengthens the label; a third line would push the map down while the visitor uses it.
    objective = objective_label(run.effective if run.status.ended else config)
    trained = " → ".join(dict.fromkeys(part_label(phase.trainable) for phase in config.phases))
    parts = [task_label(config), *row_labels(config.task), config.encoder.id, trained, objective]
    batches = dict.fromkeys(phase.batch_size for phase in config.phases)
    # Translators: the size of a batch, or those of two phases: "batch 16 → 64".
    parts.append(_("batch {sizes}", sizes=" → ".join(map(str, batches))))
    parts.append(_("seed {number}", number=config.seed))
    if run.device:
        # The device, and the encoder's precision unless the run predates that setting.
        precision = [] if config.precision == "auto" else [config.precision]
        parts.append(join_list([run.device, *precision, *([_("node {name}", name=run.place)] if run.place else [])]))
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


def draw_progress(now: RunNow) -> None:
    """Draw the outcome of a run, or a progress bar if it has no outcome, and what there is to note about the run."""
    run = now.run
    outcome = outcome_sentence(now.config, now.evaluations) if run.status.ended else None
    if outcome is not None:
        st.markdown(sentences([f"**{escaped(outcome)}**", " · ".join(_pace_words(now, {})) + ".", *_notes(now)]))
        return
    closing = closing_work(run.config, run.facts, now.evaluations) if run.status.active else {}
    turned = [objective_label(now.config)] if now.config.knob_turns else []
    words = [*_pace_words(now, closing), *turned, *pending_words(now.knobs)]
    # The bar counts the work after the last step as further steps, so that it still moves then.
    st.progress(min(1.0, run.last_step / (run.steps + len(closing))), " · ".join(words))
    if notes := _notes(now):
        st.markdown(sentences(notes))
    if run.status == Status.FAILED:
        st.error(escaped(run.message or _("The run failed. Its log has the details.")))


def _pace_words(now: RunNow, closing: Mapping[str, float]) -> list[str]:
    """Describe the pace of a run. Args: closing: tasks after the last step, with the seconds that each takes."""
    store, run, phases = now.store, now.run, len(now.run.config.phases)
    words = [_("Step {step} of {steps}", step=f"{run.last_step:,}", steps=f"{run.steps:,}")]
    phase = run.config.phase_at(max(1, run.last_step)) + 1
    if phases > 1:
        words.append(_("phase {number} of {count}", number=phase, count=phases))
    if run.started_at:
        words.append(duration(run.elapsed_s))
    frames = store.frame_steps(run.id)
    found = pace(now.steps, store.newest_times(run.id, PACE_STEPS), frames, run.config, sum(closing.values()))
    if found is not None and run.status.active:
        rate = f"{found.texts_per_s:,.{0 if found.texts_per_s >= 10 else 1}f}"
        words.append(_("{rate} texts/s", rate=rate))
    if run.status != Status.RUNNING:
        return words
    if run.config.branch is not None and run.config.repeats(run.last_step + 1):
        words.append(_("repeating the shared steps up to {step}", step=f"{run.config.branch.step:,}"))
    if run.last_step == run.steps:
        at_frame = run.steps in (run.config.probe.frame_steps or ()) and run.steps not in frames
        words.append(_("measuring the last frame") if at_frame else _(next(iter(closing))))
    if found is not None:
        time = duration(max(1.0, found.remaining_s))
        words.append(
            _("about {time} left of phase {phase}", time=time, phase=phase)
            if phase < phases
            else _("about {time} left", time=time)
        )
    elif run.last_step < run.steps:
        words.append(_("estimating the time left"))
    return words


# Message of a run whose worker does not respond.
SILENT = Message(
    "The worker does not respond: it is suspended, or the machine is overloaded. Wait, or press Stop to end it; Resume "
    "then continues from the last checkpoint."
)


def _notes(now: RunNow) -> list[str]:
    """Return warnings of contrastive terms that are 0 for lack of positives, and the run's message and notes."""
    run, icon = now.run, ":material/warning: "
    used = objective_at(now.config, max(1, run.last_step))
    batch_size = run.config.phases[used.phase].batch_size
    recent = [step.values for step in now.steps[-STEPS_IN_A_ROW:]]
    starving = starving_sentences(recent, used.objective, batch_size, now.config.sampler_at(run.last_step))
    found = [icon + escaped(sentence) for sentence in starving]
    if not run.responding:
        found.append(icon + escaped(SILENT))
    elif run.status == Status.INTERRUPTED:
        gone = _(
            "The worker stopped unexpectedly. Saved data is safe; Resume continues from the start, on the same curve."
        )
        if run.checkpoint_step:
            gone = _(
                "The worker stopped unexpectedly. Saved data is safe; Resume continues from step {step}, on the "
                "same curve.",
                step=f"{run.checkpoint_step:,}",
            )
        found.append(icon + gone)
    elif (
        run.message
        and run.status != Status.FAILED
        and run.message not in (*starving, *(one.render(ENGLISH) for one in starving))
        and not is_first_note(run.message, run.config)
    ):
        found.append(escaped(run.message))
    others = (
        dropped_sentence(run),
        classifier_note(now.config, over=run.status.ended, scored=SCORED_PAIRS in run.facts),
    )
    return [*found, *(escaped(one) for one in others if one)]


def waiting_words(store: Store, run: RunRecord) -> str:
    """Describe what a run waits for before its first step."""
    on_cluster = settings().engine != LOCAL
    if run.status == Status.QUEUED:
        if run.config.start is not None:
            return _("Waiting for run {run}, whose weights it starts from.", run=run.config.start)
        return queue_words(places(store, len(slots()), most_of_visitor()).get(run.id), on_cluster)
    if run.status == Status.STARTING:
        if on_cluster and run.place is None:
            return _("Being sent to a node of the cluster.")
        return _("Loading the encoder. If it is new here, it is downloaded first, which can take minutes.")
    return _("The run ended before its first step.") if run.status.ended else _("Starting.")


def queue_words(place: Place | None, on_cluster: bool) -> str:
    """Describe how many runs are ahead of this one, and when it starts, estimated from earlier runs."""
    before = 0 if place is None else place.before
    if on_cluster:  # the server does not know how many runs the cluster takes at a time
        if not before:
            return _("Next in the queue, waiting for the cluster.")
        return ngettext(
            "Waiting for the cluster; {count} run starts before it.",
            "Waiting for the cluster; {count} runs start before it.",
            before,
        )
    if not before:
        words = _("Next in the queue, waiting for a free slot.")
    else:
        words = ngettext(
            "Waiting for a free slot; {count} run starts before it.",
            "Waiting for a free slot; {count} runs start before it.",
            before,
        )
    if place is None or not place.seconds:
        return words
    begins = _("It starts in about {time}, estimated from earlier runs.", time=duration(max(1.0, place.seconds)))
    return sentences([words, begins])


def draw_scores(now: RunNow) -> None:
    """Draw the tiles: current validation accuracy and macro-F1, the probe before training, and test accuracy."""
    run, config = now.run, now.config
    last = {evaluation.split: evaluation for evaluation in now.scores}
    validation, test, probe_test = last.get(VALIDATION), last.get("test"), last.get(BASELINE_TEST)
    if SCORED_PAIRS in run.facts:
        _draw_spearman(now, validation, test, probe_test)
        return
    learned, learns = classifier_learned(config, run.last_step), classifier_learns_from(config) is not None
    # True if a linear probe was scored, or will be if nothing was scored yet.
    probed = not learned if validation is None else validation.probe_rows is not None
    test_probed = not learns if test is None else test.probe_rows is not None
    noise = ""
    if rate := config.task.label_noise:
        noise = _("The probe is trained on the same noisy labels as the run (ρ {rate}).", rate=value_text(rate))
    at_frames = (
        _("Scored on validation at every frame.")
        if validation is None
        else _("Scored on validation at every frame, last at step {step}.", step=f"{validation.step:,}")
    )
    # A frame's probe is fitted on fewer rows than the untrained one, so it is compared with the probe of step 0.
    at_start = next((e for e in now.scores if e.split == VALIDATION and e.step == 0 and probed), None)
    reference = at_start or last.get(BASELINE)
    majority = _("The majority class alone scores {share}.", share=percent(run.facts.get("majority_rate", 0.0)))
    about_test = (
        _("The test split is scored once, at the end.")
        if test_probed
        else _(
            "The test split is scored once, at the end, together with the linear probe of the encoder before training."
        )
    )
    _tile(
        _("Probe now") if probed else _("Validation"),
        _accuracy(validation),
        [_about(validation, probed), noise if probed else "", at_frames],
    )
    macro_f1 = percent(validation.values["macro_f1"]) if validation else "–"
    _tile(_("Macro-F1"), macro_f1, [_("Macro-F1 of the same model, on validation.")])
    _tile(
        _("Probe at start") if at_start is None else _("Probe at step 0"),
        _accuracy(reference),
        [_about_reference(reference, at_start is not None, _(POOLED[config.encoder.pooling])), noise, majority],
    )
    _tile(
        _("Probe, test") if test_probed else _("Test"),
        # Translators: when the test split is scored.
        _accuracy(test) if test or run.status.ended else _("at the end"),
        [_about(test, test_probed), noise if test_probed else "", about_test],
        _("probe: {score}", score=_accuracy(probe_test)) if test and probe_test and not test_probed else None,
    )


def _draw_spearman(
    now: RunNow, validation: Evaluation | None, test: Evaluation | None, untrained_test: Evaluation | None
) -> None:
    """Draw the tiles of a task with similarity scores."""
    about = _("Spearman's ρ between the cosines of the validation pairs and their scores, at every frame.")
    _tile(_("Spearman, validation"), _spearman(validation), [about])
    start = next((one for one in now.scores if one.split == VALIDATION and one.step == 0), None)
    _tile(_("Before training"), _spearman(start), [_("The same before the first step: the score to beat.")])
    _tile(
        _("Spearman, test"),
        _spearman(test) if test or now.run.status.ended else _("at the end"),
        [_("The test split is scored once, at the end.")],
        _("before training: {score}", score=_spearman(untrained_test)) if test and untrained_test else None,
    )


def _spearman(evaluation: Evaluation | None) -> str:
    return "–" if evaluation is None or evaluation.spearman is None else signed(evaluation.spearman, 3)


def _tile(label: str, value: str, about: list[str], beside: str | None = None) -> None:
    st.metric(label, value, beside, "off", help=sentences(about), width="content", delta_arrow="off")


def _accuracy(evaluation: Evaluation | None) -> str:
    return "–" if evaluation is None else percent(evaluation.values["accuracy"])


def _about(evaluation: Evaluation | None, probed: bool) -> str:
    if evaluation is None:
        return _("The classifier has learned nothing, so it is not scored.") if probed else ""
    low, high = percent(evaluation.values["accuracy_low"]), percent(evaluation.values["accuracy_high"])
    interval = _("95% Wilson interval {low} to {high}.", low=low, high=high)
    if evaluation.probe_rows is None:
        return interval
    regression = _(
        "The classifier has learned nothing, so this is the score of a logistic regression on the encoder's "
        "current vectors, fitted on {rows} training rows.",
        rows=f"{evaluation.probe_rows:,}",
    )
    return sentences([regression, interval])


def _about_reference(evaluation: Evaluation | None, at_start: bool, pooling: str) -> str:
    """Describe the probe that a score is compared with. Args: at_start: whether it is the probe of step 0."""
    rows = None if evaluation is None or evaluation.probe_rows is None else f"{evaluation.probe_rows:,}"
    if at_start and rows is None:
        return _("The same probe on the vectors of the encoder before training.")
    if at_start:
        return _(
            "The same probe on the vectors of the encoder before training, fitted on {rows} training rows.", rows=rows
        )
    if rows is None:
        return _(
            "Logistic regression on the vectors of the encoder before training ({pooling}), scored on validation.",
            pooling=pooling,
        )
    return _(
        "Logistic regression on the vectors of the encoder before training ({pooling}), fitted on {rows} "
        "training rows, scored on validation.",
        pooling=pooling,
        rows=rows,
    )
