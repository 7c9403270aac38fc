"""The runs' curves over steps, time or progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core.advice.score_source import scorers
from core.artifacts.measures import read_measures
from core.artifacts.seeds import seed_groups
from core.config.compare import same_loss, shared_steps
from core.events import GRADIENT_NORM, LOSS, SHARED_COSINE, SPEARMAN, OfTerm, Step
from core.figures.panels import Axis, axis_positions, axis_title
from core.figures.parts import part_label
from core.figures.run_curves import Curve, MeasurePanel, compare_figure, mean_curve
from core.figures.smoothing import RAW, Smoothing
from core.figures.template import thin_indices
from core.messages import N_, _, join_list, ngettext, sentences
from core.representation.metrics import METRICS
from core.representation.neural_collapse import COLLAPSE
from core.store import Store
from core.tasks.listing import csv_file
from pages.ui import reads
from pages.ui.address import Compare
from pages.ui.bound import bound_segments, bound_several, bound_slider, bound_switch
from pages.ui.compare.picking import Compared, group_name
from pages.ui.compare.scores import validation_sets
from pages.ui.live_figure import live_figure
from pages.ui.tables import csv_button

PANEL_PX, AROUND_PX = 210, 110
# Enough steps to find every measure of every phase.
SAMPLED_STEPS = 60
DEFAULT = ("validation.accuracy", "validation.probe.accuracy", f"validation.{SPEARMAN}", LOSS)
AXIS_LABELS: Mapping[str, str] = {"step": N_("Step"), "time": N_("Time"), "progress": N_("Progress")}
DESCRIBED: Mapping[Axis, str] = {
    "step": N_("{measures} of {runs} by step."),
    "time": N_("{measures} of {runs} by training time in seconds."),
    "progress": N_("{measures} of {runs} by fraction of the run."),
}
# Translators: how curves are smoothed: not at all, exponentially, or over a window.
SMOOTHINGS = {"none": N_("None"), "exponential": N_("Exponential"), "average": N_("Window")}
OF_STEPS = {
    LOSS: N_("Loss, nats"),
    GRADIENT_NORM: N_("Gradient norm before clipping"),
    "learning_rate": N_("Learning rate"),
    SHARED_COSINE: N_("Cosine between the gradients of the terms, on a shared block"),
    "lambda": N_("Weight λ"),
    "temperature": N_("Temperature τ"),
}
OF_FRAMES = {
    "accuracy": N_("Validation accuracy"),
    "macro_f1": N_("Validation macro-F1"),
    "cross_entropy": N_("Validation cross-entropy, nats"),
    "probe.accuracy": N_("Validation accuracy, linear probe"),
    "probe.macro_f1": N_("Validation macro-F1, linear probe"),
    "probe.cross_entropy": N_("Validation cross-entropy, linear probe, nats"),
    SPEARMAN: N_("Spearman's ρ on validation"),
    "mean_cosine": N_("Mean pairwise cosine"),
    "within_cosine": N_("Cosine within classes"),
    "between_cosine": N_("Cosine between classes"),
    "effective_rank": N_("Effective rank"),
    "view_cosine": N_("Cosine of two dropout passes, encoder output"),
    "view_cosine_logits": N_("Cosine of two dropout passes, logits"),
    "within_cosine_logits": N_("Cosine within classes, logits"),
    **COLLAPSE,
}
VALIDATION, MEASURE = "validation.", "measure."
SCORES = ("accuracy", "macro_f1", "cross_entropy")
LOGARITHMIC = (GRADIENT_NORM, f"{OfTerm.SHARED_GRADIENT}.", f"{VALIDATION}nc")
# Measured at some steps only; a line joins those.
SPARSE = (SHARED_COSINE, f"{OfTerm.SHARED_GRADIENT}.")
MEASURED_SHARES = (f"{MEASURE}{name}" for name, entry in METRICS.items() if entry.share)
SCORED_SHARES = (f"{VALIDATION}{of}{name}" for of in ("", "probe.") for name in ("accuracy", "macro_f1"))
SHARES = frozenset({*SCORED_SHARES, *MEASURED_SHARES})

# Steps and their values; None for a missing value.
Values = tuple[list[int], list[float | None]]


@dataclass(frozen=True, slots=True)
class Record:
    """Recorded values of one run: its steps, and the values of its frames by step."""

    one: Compared
    steps: Sequence[Step]
    frames: Mapping[int, Mapping[str, float | None]]

    def names(self) -> Iterable[str]:
        """Yield the names of the run's measures; a name may come more than once."""
        looked = [self.steps[i].values for i in thin_indices(len(self.steps), SAMPLED_STEPS)] if self.steps else []
        yield from (name for values in looked for name in values)
        yield from (name for values in self.frames.values() for name in values)

    def values(self, name: str) -> Values:
        if name.startswith((VALIDATION, MEASURE)):
            at = [step for step in sorted(self.frames) if name in self.frames[step]]
            return at, [self.frames[step][name] for step in at]
        steps = [step for step in self.steps if not name.startswith(SPARSE) or name in step.values]
        return [step.step for step in steps], [step.values.get(name) for step in steps]

    def curve(self, name: str, axis: Axis) -> Curve | None:
        at, values = self.values(name)
        if all(value is None for value in values):
            return None
        steps = [step.step for step in self.steps] if axis == "time" else []
        step_s = [step.values.get("step_s", 0.0) for step in self.steps] if axis == "time" else []
        return Curve(axis_positions(axis, at, total_steps=self.one.run.steps, steps=steps, step_s=step_s), values)


def curves(store: Store, runs: Sequence[Compared]) -> None:
    """Draw the controls and the chart."""
    records = [_record(store, one) for one in runs]
    labels = measure_labels({name for run in records for name in run.names()})
    if not labels:
        st.caption(_("No curves yet. The first values appear with a run's first step."))
        return
    groups = seed_groups([one.config for one in runs])
    chosen, axis, smoothing, gathered = _controls(labels, any(len(group) > 1 for group in groups))
    if not chosen:
        st.caption(_("Choose a measure to see its curves."))
        return
    lines = groups if gathered else [(number,) for number in range(len(runs))]
    names = [group_name([runs[number].name for number in group]) for group in lines]
    known = [(one.one.config, set(one.names())) for one in records]
    unlike = [  # losses that are not the same quantity in all runs that have them
        name
        for name in chosen
        if name.partition(".")[0] == LOSS
        and not same_loss([config for config, of_run in known if name in of_run], name)
    ]
    panels = []
    for name in sorted(chosen, key=unlike.__contains__):  # comparable measures first
        drawn: list[Curve | None] = []  # by line: the curve of a run, or the mean curve of several
        for group in lines:
            found = [curve for number in group if (curve := records[number].curve(name, axis)) is not None]
            drawn.append(mean_curve(found) if found and len(group) > 1 else next(iter(found), None))
        label = _("{measure} · not comparable", measure=labels[name]) if name in unlike else labels[name]
        panels.append(
            MeasurePanel(
                label,
                drawn,
                log=name.startswith(LOGARITHMIC),
                percent=name in SHARES,
                smooth=not name.startswith((VALIDATION, MEASURE)),
            )
        )
    # Equal steps may take different times, so the branch is at no single point of a time axis.
    branch_at, shared = None, shared_steps({one.run.id: one.config for one in runs})
    if shared is not None and len(runs) > 1 and axis != "time":
        [branch_at] = axis_positions(axis, [shared], total_steps=runs[0].run.steps)
    revision = f"{axis} {' '.join(chosen)} {' '.join(one.run.id for one in runs)}"
    live_figure(
        compare_figure(
            panels,
            names,
            axis=axis_title(axis),
            smoothing=smoothing,
            branch_at=branch_at,
            revision=revision,
        ),
        key="compare.figure",
        height=PANEL_PX * len(panels) + AROUND_PX,
        description=_(
            DESCRIBED[axis],
            runs=ngettext("{count} run", "{count} runs", len(names)),
            measures=join_list(labels[name] for name in chosen),
        ),
    )
    _explain(runs, unlike, smoothing, gathered, axis)
    csv_button(
        _("Curves as CSV"),
        lambda: records_csv(records, chosen, axis),
        "curves.csv",
        key="compare.curves.csv",
        help=_("Measured values without smoothing, one row per run, measure and step."),
    )


def measure_labels(names: Iterable[str]) -> dict[str, str]:
    """Return the labels of the measures that can be chosen, in display order."""
    known = set(names)
    shared = OfTerm.SHARED_GRADIENT
    pulls = {
        shared.of(key): _("Gradient norm of {part}, on a shared block", part=part_label(key))
        for key in shared.keys(sorted(known))
    }
    ordered = {
        LOSS: _(OF_STEPS[LOSS]),
        **{OfTerm.LOSS.of(part): _("{part}, nats", part=part_label(part)) for part in OfTerm.LOSS.keys(sorted(known))},
        **{f"{VALIDATION}{name}": _(label) for name, label in OF_FRAMES.items()},
        **{name: _(label) for name, label in OF_STEPS.items() if name != LOSS},
        **pulls,
        **{f"{MEASURE}{entry.name}": _("{measure}, measured", measure=_(entry.label)) for entry in METRICS.values()},
    }
    return {name: label for name, label in ordered.items() if name in known}


def _record(store: Store, one: Compared) -> Record:
    frames: dict[int, dict[str, float | None]] = {}
    validation = [e for e in store.evaluations(one.run.id) if e.split == "validation"]
    for evaluation, by in zip(validation, scorers(one.config, validation), strict=True):
        # Scores come from a linear probe or the classifier; those of an untrained classifier are skipped.
        of_frame = frames[evaluation.step] = {}
        left_out = SCORES if evaluation.spearman is not None else ()
        for name in (name for name in OF_FRAMES if name in evaluation.values and name not in left_out):
            if name not in SCORES or by is not None:
                prefix = f"{VALIDATION}probe." if name in SCORES and by == "linear probe" else VALIDATION
                of_frame[f"{prefix}{name}"] = evaluation.values[name]
    if one.frames is not None:
        for step in one.frames.numbers:
            found = read_measures(one.frames.folder, one.run.begun_attempt, step)
            if found is not None:
                frames.setdefault(step, {}).update({f"{MEASURE}{name}": v for name, v in found.values.items()})
    return Record(one, reads.steps(store, one.run), frames)


def _controls(labels: Mapping[str, str], seeds: bool) -> tuple[list[str], Axis, Smoothing, bool]:
    names = list(labels)
    chosen, tied = bound_several(Compare.CURVES, names, [name for name in DEFAULT if name in labels] or names[:1])
    st.multiselect(
        _("Measures"),
        names,
        format_func=lambda name: labels[name],
        placeholder=_("Choose measures"),
        **tied.by_default,
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        look = {"label_visibility": "visible", "wrap": None}
        # Translators: over steps, time or the share of a run.
        axis = bound_segments(_("X axis"), Compare.AXIS, AXIS_LABELS, **look)
        kind = bound_segments(_("Smoothing"), Compare.SMOOTHING, SMOOTHINGS, **look)
        smoothing = RAW
        if kind == "exponential":
            beta = bound_slider("β", Compare.BETA, 0.0, 0.99, step=0.01, width=180)
            smoothing = Smoothing("exponential", beta)
        elif kind == "average":
            label = _("Values in the window")
            window = bound_slider(label, Compare.WINDOW, 1.0, 101.0, step=2.0, format="%d", width=180)
            smoothing = Smoothing("average", window)
        gathered = False
        if seeds:
            about = _("Combines runs that differ only in the seed into one line with a band of one standard deviation.")
            over_time = axis == "time"
            gathered = bound_switch(_("Mean ± std over seeds"), Compare.MEAN, disabled=over_time, help=about)
            gathered = gathered and not over_time
    return chosen, axis, smoothing, gathered  # type: ignore[return-value]


def _explain(runs: Sequence[Compared], unlike: Sequence[str], smoothing: Smoothing, gathered: bool, axis: Axis) -> None:
    """Draw why the losses `unlike` do not compare, and whether validation scores do; then how curves are made."""
    if unlike:
        named = [_("Loss") if name == LOSS else part_label(name.removeprefix(OfTerm.LOSS.of(""))) for name in unlike]
        heights = _(
            "{losses}: the terms of these runs differ (task, objective, temperature or batch size), so compare the "
            "shape of the curves, not their height.",
            losses=join_list(named),
        )
        scores = _(
            "Validation scores are not comparable either, because the runs were scored on different validation rows."
        )
        if len(set(validation_sets(runs))) == 1:
            scores = _("Validation scores are comparable.")
        st.caption(sentences([heights, scores]))
    words, amount = [], smoothing.amount
    if smoothing.kind == "exponential":
        about = _(
            "Exponential moving average with β {amount:g} of values that runs report at every step.", amount=amount
        )
        words.append(about)
    if smoothing.kind == "average":
        about = _("Mean over {amount:g} neighbouring values, for values that runs report at every step.", amount=amount)
        words.append(about)
    if gathered:
        words.append(
            _("Bands show the mean ± one standard deviation over seeds (n − 1), where every seed has a value.")
        )
    if axis == "time":
        words.append(_("Time is the training time of the steps, without loading, frames and pauses."))
    st.caption(sentences([*words, _("Drag to zoom; double-click to reset.")]))


def records_csv(records: Sequence[Record], names: Sequence[str], axis: Axis) -> bytes:
    """Return the unsmoothed values as CSV, one line per run, measure and step."""
    lines = []
    for run in records:
        for name in names:
            curve = run.curve(name, axis)
            if curve is None:
                continue
            at, values = run.values(name)
            lines += [
                {"run": run.one.name, "id": run.one.run.id, "measure": name, "step": str(step), axis: f"{place:.9g}"}
                | {"value": "" if value is None else f"{value:.9g}"}
                for step, place, value in zip(at, curve.x, values, strict=True)
            ]
    return csv_file(lines)
