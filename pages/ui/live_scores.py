"""The newest scores of a run as tiles; each says whether the classifier or a linear probe was scored."""

from __future__ import annotations

import streamlit as st

from core.config.describe import value_text
from core.config.score_source import classifier_learned, classifier_learns_from
from core.events import BASELINE, BASELINE_TEST, VALIDATION, Evaluation
from core.messages import N_, _, sentences
from core.quantities import percent
from core.store import Status
from pages.ui.reads import RunNow

# The pooling of the vectors that a linear probe reads.
POOLED = {"cls": "[CLS]", "mean": N_("mean of tokens"), "auto": N_("the encoder’s own pooling")}


def draw_scores(now: RunNow) -> None:
    """Draw the tiles: current validation accuracy and macro-F1, the probe to beat, and test accuracy."""
    run, config = now.run, now.config
    last = {evaluation.split: evaluation for evaluation in now.scores}
    validation, test, probe_test = last.get(VALIDATION), last.get("test"), last.get(BASELINE_TEST)
    learned, learns = classifier_learned(config, run.last_step), classifier_learns_from(config) is not None
    # True if a linear probe was scored, or will be if nothing was scored yet.
    probed = not learned if validation is None else validation.probe_rows is not None
    test_probed = not learns if test is None else test.probe_rows is not None
    noise = ""
    if rate := config.task.label_noise:
        noise = _("The probe learns from the same noisy labels as the run (ρ {rate}).", rate=value_text(rate))
    at_frames = (
        _("Scored on validation at every frame.")
        if validation is None
        else _("Scored on validation at every frame, last at step {step}.", step=f"{validation.step:,}")
    )
    # A frame's probe is fitted on fewer rows than the probe to beat, so it is compared with the probe of step 0.
    at_start = next((e for e in now.scores if e.split == VALIDATION and e.step == 0 and probed), None)
    reference = at_start or last.get(BASELINE)
    majority = _("The majority class alone gets {share}.", share=percent(run.facts.get("majority_rate", 0.0)))
    about_test = (
        _("The test split is scored once, at the end.")
        if test_probed
        else _("The test split is scored once, at the end; next to it, the linear probe of the untrained encoder.")
    )
    _tile(
        _("Probe now") if probed else _("Validation"),
        _accuracy(validation),
        [_about(validation, probed), noise if probed else "", at_frames],
    )
    macro_f1 = percent(validation.values["macro_f1"]) if validation else "–"
    _tile(_("Macro-F1"), macro_f1, [_("Of the same, on validation.")])
    _tile(
        _("Probe to beat") if at_start is None else _("Probe at step 0"),
        _accuracy(reference),
        [_about_reference(reference, at_start is not None, _(POOLED[config.encoder.pooling])), noise, majority],
    )
    _tile(
        _("Probe, test") if test_probed else _("Test"),
        # Translators: when the test split is scored.
        _accuracy(test) if test or run.status == Status.FINISHED else _("at the end"),
        [_about(test, test_probed), noise if test_probed else "", about_test],
        _("to beat {score}", score=_accuracy(probe_test)) if test and probe_test and not test_probed else None,
    )


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
        "The classifier has learned nothing, so this scores a logistic regression on the encoder's present vectors, "
        "fitted on {rows} training rows.",
        rows=f"{evaluation.probe_rows:,}",
    )
    return sentences([regression, interval])


def _about_reference(evaluation: Evaluation | None, at_start: bool, pooling: str) -> str:
    """Describe the probe that a score is compared with. Args: at_start: whether it is the probe of step 0."""
    rows = None if evaluation is None or evaluation.probe_rows is None else f"{evaluation.probe_rows:,}"
    if at_start and rows is None:
        return _("The same on the untrained encoder's vectors.")
    if at_start:
        return _("The same on the untrained encoder's vectors, fitted on {rows} training rows.", rows=rows)
    if rows is None:
        return _(
            "Logistic regression on the untrained encoder's vectors ({pooling}), scored on validation.", pooling=pooling
        )
    return _(
        "Logistic regression on the untrained encoder's vectors ({pooling}), fitted on {rows} training rows, scored on "
        "validation.",
        pooling=pooling,
        rows=rows,
    )
