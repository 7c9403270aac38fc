"""The curves of one run, in stacked panels over the steps with reference lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from core.config import Change, KnobTurn
from core.events import GRADIENT_NORM, LOSS, SHARED_BLOCK, SHARED_COSINE, VALIDATION, Evaluation, OfTerm, Step
from core.figures.line_ends import line_ends, margin_px
from core.figures.panels import axes_of, axis_title, stack_panels
from core.figures.parts import REFERENCES, part_colour, part_dash, part_label
from core.figures.smoothing import RAW, Smoothing, smoothed
from core.figures.template import (
    ACCENT,
    CLASS_COLOURS,
    QUIET,
    Figure,
    axis_heading,
    band,
    base_layout,
    curve,
    note,
    rounded,
    thin_indices,
)
from core.messages import N_, _, join_list, join_phrase, ngettext
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS
from core.representation.neural_collapse import COLLAPSE

KNOB_SYMBOLS = {"lambda": "λ", "temperature": "τ", "learning_rate": "lr ×", "alpha": "α", "weight": N_("weight")}


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of the stack.

    Attributes:
        share: fraction of the total height.
        hint: a phrase on how to read the chart.
        axis: layout of the y axis.
    """

    title: str
    share: float
    hint: str
    axis: Mapping[str, Any] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        return f"<b>{_(self.title)}</b><span>  {_(self.hint)}</span>"


PANELS = (
    Panel(N_("Loss, nats"), 0.30, N_("should fall; single batches are noisy")),
    Panel(
        N_("Validation accuracy"),
        0.22,
        N_("if it is above the probe, fine-tuning improved on the encoder before training"),
        {"tickformat": PERCENT_TICKS},
    ),
    Panel(
        N_("Gradient norm"),
        0.22,
        N_("a spike marks an unstable step"),
        {"type": "log", "exponentformat": "none", "nticks": 3, "minor": {"showgrid": False}},
    ),
    Panel(
        N_("Cosine between the terms' gradients"),
        0.13,
        N_("negative where the terms conflict"),
        {"range": [-1, 1], "tickvals": [-1, 0, 1]},
    ),
    Panel(
        N_("Neural collapse on validation"),
        0.22,
        N_("0 when each class has collapsed to a vertex of a simplex"),
        {"type": "log", "exponentformat": "none", "nticks": 3, "minor": {"showgrid": False}},
    ),
    Panel(
        N_("Learning rate"),
        0.13,
        N_("each update is multiplied by it"),
        {"rangemode": "tozero", "exponentformat": "power", "nticks": 3},
    ),
)
CONTRASTIVE_HINT = N_("a contrastive term falls from its collapse line towards its lower bound")
HEIGHT_PX, TOP_PX, BOTTOM_PX = 880, 40, 40
GAP = 0.045
FAINT = 0.3
HOVER, SHARE_HOVER = "%{y:.4g}", f"%{{y:{PERCENT_FORMAT}}}"
PHASE_LINE = {"color": QUIET, "width": 1.2}
TURN_LINE = {"color": ACCENT, "width": 1, "dash": "dot"}
TICK_SIZE = 11
# Compared steps farther apart than this multiple of the median gap are not joined by a line, because no terms were
# compared in between.
GAP_FACTOR = 1.5
# Size of a knob label: its width as a share of the steps, and its line height.
LABEL_SHARE, LABEL_PX = 0.12, 13


def curves_figure(
    steps: Sequence[Step],
    evaluations: Sequence[Evaluation],
    turns: Sequence[KnobTurn],
    facts: Mapping[str, float],
    phase_ends: Sequence[int],
    *,
    revision: str,
    smoothing: Smoothing = RAW,
    changes: Sequence[Change] = (),
) -> Figure:
    """Draw the loss and every part of every term, accuracy, gradients, neural collapse and the learning rate.

    Args:
        steps: the run's steps so far; long runs are thinned for the screen.
        evaluations: evaluations with meaningful scores; linear probe and classifier are separate lines.
        facts: "majority_rate", if present, adds a reference line.
        phase_ends: the last step of each phase; a line marks the start of the next.
        smoothing: applied to losses and the total gradient norm. Faint raw values stay
            visible and are shown on hover.
        changes: other losses or samplers, which a line marks like a knob turn.
        revision: Plotly keeps the zoom as long as this is unchanged; use one value per run.
    """
    shown = [steps[i] for i in thin_indices(len(steps))]
    total_steps, marked = phase_ends[-1], [*(turn.step for turn in turns), *(change.step for change in changes)]
    compared, pace = _compared(steps)
    traces = [
        *_loss_traces(shown),
        *_accuracy_traces(evaluations, facts, total_steps),
        *_gradient_traces(shown, compared, pace),
        *_collapse_traces(evaluations),
        _line(shown, "learning_rate", _("learning rate"), 6, QUIET),
    ]
    traces = [trace for trace in traces if trace["x"]]
    if smoothing != RAW:
        traces = [drawn for trace in traces for drawn in _smooth(trace, steps, smoothing)]
    panels = _panels(steps, evaluations, compared)
    if smoothing != RAW:
        panels[1] = replace(panels[1], title=_("Loss, nats, smoothed"))
    places = stack_panels(list(panels), GAP, [panel.share for panel in panels.values()])
    same = {"tickfont": {"size": TICK_SIZE}, "zeroline": False}
    # Not anchored to the lowest panel, which does not exist before the first step.
    of_x = {"title": axis_heading(axis_title("step")), "range": [0, total_steps], "anchor": "free", "position": 0}
    axes: dict[str, Any] = {"xaxis": same | of_x | {"hoverformat": "d"}}
    for place in places:
        axes |= place.layout({**same, "nticks": 4, "automargin": False, **panels[place.number].axis})
    layout = base_layout(
        uirevision=revision,
        hovermode="x unified",
        dragmode="zoom",
        showlegend=False,
        margin={"l": 60, "r": margin_px(traces), "t": TOP_PX, "b": BOTTOM_PX},
        shapes=[
            *(place.upright(end + 0.5, PHASE_LINE) for end in phase_ends[:-1] for place in places),
            *(place.upright(step - 0.5, TURN_LINE) for step in marked for place in places),
        ],
        annotations=[
            *(place.title(panels[place.number].heading) for place in places),
            *line_ends(traces, axes, HEIGHT_PX - TOP_PX - BOTTOM_PX),
            *(
                note(_("next phase"), end + 0.5, 0, "bottom", {"size": 11, "color": QUIET}, xref="x")
                for end in phase_ends[:-1]
            ),
            *_turn_labels(turns, total_steps),
        ],
        **axes,
    )
    return {"data": traces, "layout": layout}


def _measured(steps: Sequence[Step], measure: OfTerm) -> list[str]:
    """Return the keys of the terms with this measure, in order."""
    return measure.keys(name for step in steps for name in step.values)


def _loss_traces(steps: Sequence[Step]) -> list[Figure]:
    traces = [_line(steps, LOSS, _("total"), 1, ACCENT, width=2.2, end=_("total"))]
    for part in _measured(steps, OfTerm.LOSS):
        label, dash = part_label(part), part_dash(part)
        traces.append(_line(steps, OfTerm.LOSS.of(part), label, 1, part_colour(part), dash=dash, end=label))
    for measure, (of_part, end, dash) in REFERENCES.items():
        keys = _measured(steps, measure)
        for key in keys:
            name = _(of_part, part=part_label(key))
            label = name if len(keys) > 1 else _(end)
            traces.append(_line(steps, measure.of(key), name, 1, QUIET, dash=dash, end=label))
    return traces


def _smooth(trace: Figure, steps: Sequence[Step], smoothing: Smoothing) -> list[Figure]:
    """Split a loss or total-norm trace into a faint raw line and a smoothed line; return other traces unchanged."""
    measure = trace.get("uid", "")
    if measure not in (LOSS, GRADIENT_NORM) and not OfTerm.LOSS.keys([measure]):
        return [trace]
    values = {step.step: step.values[measure] for step in steps if measure in step.values}
    log = measure == GRADIENT_NORM
    smooth = dict(zip(values, smoothed(list(values.values()), smoothing, log=log), strict=True))
    # A hover template would list the raw line in spite of its `hoverinfo`.
    raw = {name: value for name, value in trace.items() if name not in ("meta", "hovertemplate")}
    raw |= {"uid": f"{measure} raw", "opacity": FAINT, "hoverinfo": "skip", "line": trace["line"] | {"width": 1}}
    shown = {"customdata": trace["y"], "hovertemplate": "%{customdata:.4g}"}
    return [raw, trace | shown | {"y": rounded([smooth[step] for step in trace["x"]])}]


def _compared(steps: Sequence[Step]) -> tuple[list[Step], int]:
    """Return the steps that compared the terms on a block, and the median number of steps between comparisons.

    An empty step is inserted in each gap.
    """
    having = [step for step in steps if SHARED_BLOCK in step.values]
    usual = median([after.step - before.step for before, after in pairwise(having)] or [1])
    gaps = [before.step for before, after in pairwise(having) if after.step - before.step > GAP_FACTOR * usual]
    found = []
    for before, after in pairwise([having[i] for i in thin_indices(len(having))]):
        broken = any(before.step <= gap < after.step for gap in gaps)
        found += [before, *([Step(before.step + 1, {})] if broken else [])]
    return found + having[-1:], int(usual)


def _gradient_traces(steps: Sequence[Step], compared: Sequence[Step], pace: int) -> list[Figure]:
    """Return gradient norms and, on weights that several terms reach, each term's norm and the cosine."""

    def dotted(measure: str, name: str, panel: int, colour: str, **more: Any) -> Figure:
        """Return a line with markers, with a gap where terms were not compared."""
        name = _("{line}, every {count} steps", line=name, count=pace) if pace > 1 else name
        x, y = [step.step for step in compared], [step.values.get(measure) for step in compared]
        line = {"color": colour, "width": 1.5, "dash": "solid"}
        more |= {"name": name, "hovertemplate": HOVER, "marker": {"color": colour, "size": 4}}
        return curve(x, y, line, axes_of(panel), mode="lines+markers", **more)

    blocks = _blocks(compared)
    norms = [_line(steps, GRADIENT_NORM, _("all weights, before clipping"), 3, ACCENT, end=_("total"))]
    for key in _measured(compared, OfTerm.SHARED_GRADIENT):
        name = _("{part} on {blocks}", part=part_label(key), blocks=blocks)
        norms.append(dotted(OfTerm.SHARED_GRADIENT.of(key), name, 3, part_colour(key), meta=part_label(key)))
    # A logarithmic axis cannot show 0, the gradient of a contrastive term without positives: leave a gap.
    norms = [trace | {"y": [y if y is None or y > 0 else None for y in trace["y"]]} for trace in norms]
    return [*norms, dotted(SHARED_COSINE, _("cosine on {blocks}", blocks=blocks), 4, ACCENT)]


def _collapse_traces(evaluations: Sequence[Evaluation]) -> list[Figure]:
    """Return the measures of neural collapse over frames, with gaps at 0, which a logarithmic axis cannot show."""
    traces = []
    for (measure, label), colour in zip(COLLAPSE.items(), CLASS_COLOURS, strict=False):
        having = [e for e in evaluations if e.split == VALIDATION and measure in e.values]
        x, y = [e.step for e in having], [e.values[measure] or None for e in having]
        more = {"name": _(label), "meta": _(label).partition(":")[0], "hovertemplate": HOVER}
        line, marker = {"color": colour, "width": 1.5}, {"color": colour, "size": 4}
        traces.append(curve(x, y, line, axes_of(5), mode="lines+markers", marker=marker, **more))
    return traces


def _blocks(compared: Sequence[Step]) -> str:
    numbers = sorted({int(step.values[SHARED_BLOCK]) for step in compared if SHARED_BLOCK in step.values})
    return ngettext("block {numbers}", "blocks {numbers}", len(numbers), numbers=join_list(map(str, numbers)))


def _accuracy_traces(evaluations: Sequence[Evaluation], facts: Mapping[str, float], total_steps: int) -> list[Figure]:
    validation = [e for e in evaluations if e.split == "validation"]
    if having := [e for e in validation if e.spearman is not None]:
        start = [e.spearman for e in having if e.step == 0][:1] * 2
        more = {"hovertemplate": HOVER, "name": _("Spearman's ρ"), "meta": _("now")}
        line, marker = {"color": ACCENT, "width": 2, "dash": "solid"}, {"size": 5}
        x, y = [e.step for e in having], [e.spearman for e in having]
        now = curve(x, y, line, axes_of(2), mode="lines+markers", **more, marker=marker)
        more |= {"name": _("encoder before training"), "meta": _("at start")}
        ends = [0, total_steps][: len(start)]
        return [now, curve(ends, start, {"color": QUIET, "width": 1.2}, axes_of(2), **more)]
    of_probe = [e for e in validation if e.probe_rows is not None]
    of_classifier = [e for e in validation if e.probe_rows is None]
    probe = _with_rows(_("linear probe of the frame"), of_probe[-1]) if of_probe else ""
    traces = []
    for scored, name, dash, end in (
        (of_probe, probe, "dash", _("probe now")),
        (of_classifier, _("accuracy"), "solid", _("classifier")),
    ):
        points, names = [e.step for e in scored], ("accuracy", "accuracy_low", "accuracy_high")
        accuracy, low, high = ([e.values[one] for e in scored] for one in names)
        traces.append(band(points, low, high, "rgba(47,111,159,0.15)", axes_of(2)))
        more = {"name": name, "hovertemplate": SHARE_HOVER, "meta": end, "mode": "lines+markers"}
        line = {"color": ACCENT, "width": 2, "dash": dash}
        traces.append(curve(points, accuracy, line, axes_of(2), marker={"size": 5}, **more))
    # A frame's probe is fitted on fewer rows than the baseline, so the two must not be compared.
    baseline = [e for e in evaluations if e.split == "baseline" and (of_classifier or not of_probe)][:1]
    references = [(_("majority class"), facts.get("majority_rate"), "dashdot", _("majority"))]
    references += [
        (_with_rows(_("linear probe, encoder before training"), e), e.values["accuracy"], "longdash", _("probe"))
        for e in baseline
    ]
    for name, level, dash, end in references:
        if level is not None:
            line = {"color": QUIET, "width": 1.2, "dash": dash}
            more = {"name": name, "hovertemplate": SHARE_HOVER, "meta": end}
            traces.append(curve([0, total_steps], [level, level], line, axes_of(2), **more))
    return traces


def _with_rows(name: str, evaluation: Evaluation) -> str:
    """Append to a line's name the number of rows on which the probe was fitted."""
    rows = evaluation.probe_rows
    return (
        name if rows is None else _("{name}, {detail}", name=name, detail=ngettext("{count} row", "{count} rows", rows))
    )


def _line(
    steps: Sequence[Step],
    measure: str,
    name: str,
    panel: int,
    colour: str,
    *,
    width: float = 1.5,
    dash: str = "solid",
    end: str = "",
) -> Figure:
    """Return the line of one measure. Args: end: the label at the line's end, "" for none."""
    having = [step for step in steps if measure in step.values]
    x, y = [step.step for step in having], [step.values[measure] for step in having]
    mode = "lines" if len(having) > 1 else "markers"
    more = {"uid": measure, "name": name, "hovertemplate": HOVER, "marker": {"color": colour}, "meta": end}
    return curve(x, y, {"color": colour, "width": width, "dash": dash}, axes_of(panel), mode=mode, **more)


def _panels(steps: Sequence[Step], evaluations: Sequence[Evaluation], compared: Sequence[Step]) -> dict[int, Panel]:
    """Return the panels to draw, by axis number; cosines and neural collapse are left out if not measured."""
    panels = dict(enumerate(PANELS, start=1))
    if not any(COLLAPSE.keys() & e.values.keys() for e in evaluations):
        del panels[5]
    validation = [e.probe_rows is not None for e in evaluations if e.split == "validation"]
    if any(validation):
        only, then = _("Validation accuracy: linear probe"), _("Validation accuracy: linear probe, then classifier")
        panels[2] = replace(PANELS[1], title=only if all(validation) else then)
    if any(e.spearman is not None for e in evaluations if e.split == "validation"):
        hint = N_("if it is above that of the encoder before training, training helped")
        panels[2] = Panel(N_("Spearman's ρ on validation"), PANELS[1].share, hint)
    if _measured(steps[-1:], OfTerm.COLLAPSE_LINE):
        panels[1] = replace(PANELS[0], hint=CONTRASTIVE_HINT)
    keys = _measured(compared, OfTerm.SHARED_GRADIENT)
    if keys:
        blocks = _blocks(compared)
        terms = join_phrase([f"“{part_label(key)}”" for key in keys])
        title = _("Gradient norm (“total”: all weights; {terms}: only {blocks})", terms=terms, blocks=blocks)
        panels[3] = replace(PANELS[2], title=title)
        parts = join_phrase([part_label(key) for key in keys[:2]])
        panels[4] = replace(
            PANELS[3], title=_("Cosine between {parts} gradients ({blocks})", parts=parts, blocks=blocks)
        )
    else:
        del panels[4]
    return panels


def _turn_labels(turns: Sequence[KnobTurn], total_steps: int) -> list[Figure]:
    """Label the knob changes.

    Of several changes of one knob within a label's width, only the last is labelled. Other labels that would overlap
    move to the next row.
    """
    ordered = sorted(turns, key=lambda turn: turn.step)
    room = LABEL_SHARE * total_steps
    last = [
        turn
        for place, turn in enumerate(ordered)
        if not any(later.name == turn.name and later.step - turn.step < room for later in ordered[place + 1 :])
    ]
    labels: list[Figure] = []
    rows: list[int] = []  # step of the last label in each row
    for turn in last:
        row = next((row for row, step in enumerate(rows) if turn.step - step >= room), len(rows))
        rows[row : row + 1] = [turn.step]
        key, _dot, setting = turn.name.rpartition(".")
        owner = f"{part_label(key)} " if key else ""
        text = f"{owner}{_(KNOB_SYMBOLS.get(setting, setting.replace('_', ' ')))} {turn.value:g}"
        font = {"size": 11, "color": ACCENT}
        labels.append(note(text, turn.step - 0.5, 1, "top", font, xref="x", yshift=-LABEL_PX * row))
    return labels
