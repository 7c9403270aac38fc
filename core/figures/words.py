"""Charts of one text: attention over steps or layers, the top words, attention against effect, and predictions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.figures.panels import axis_title, value_at_step
from core.figures.template import (
    ACCENT,
    QUIET,
    Figure,
    axis_heading,
    base_layout,
    class_colour,
    class_symbol,
    curve,
    plain_text,
    rounded,
    row_axis,
    row_bars,
    short_text,
    thin_indices,
    upright,
)
from core.messages import N_, _, ngettext
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS, signed
from core.representation.attention import RankAgreement, entered_and_left

Array = NDArray[np.floating]

ROW_PX = 24
BARS_PX = 36
EDGES_PX = 100
LABEL_CHARS = 20
TICKS_MAX = 8
LABELLED_POINTS = 6
# Plot size on a phone. Names must not overlap each other or other points even there.
PLOT_PX, LETTER_PX, LINE_PX, MARKER_PX = (250, 260), 7.0, 16.0, 5.0
# From transparent to the accent, to fit light and dark pages.
SCALE = [[0, "rgba(47,111,159,0)"], [1, "rgba(47,111,159,1)"]]
CONTRARY = "#e69f00"
# The first eight classes have the first dash, the next eight the second: colours repeat after eight.
DASHES = ("solid", "dash", "dot", "dashdot")
CHOSEN_SIGN, ENTERED, LEFT = "●", "+", "−"
ATTENTION = N_("attention")
# Hover text of a bar, by the sign of its word.
SAID = {
    ENTERED: N_("{when}: {measure} {weight}, entered the top k"),
    LEFT: N_("{when}: {measure} {weight}, left the top k"),
    "": N_("{when}: {measure} {weight}, stayed in the top k"),
}
# Hover text of a heat map cell: outside and in the top k.
CELL = (N_("{column} {number}: {measure} {weight}"), N_("{column} {number}: {measure} {weight}, in the top k"))


def word_heatmap_figure(
    words: Sequence[str],
    weights: Array,
    columns: Sequence[int | str],
    *,
    column: str,
    revision: str,
    chosen: NDArray[np.bool_],
) -> Figure:
    """Draw a heat map of words (rows, first at the top) against steps or layers (columns of equal width).

    Args:
        words: W words; untrusted text.
        weights: [S, W], ≥ 0.
        columns: S names, e.g. the steps.
        column: name of the column axis, e.g. "step", in the user's language.
        chosen: [S, W], True for a word in the top k; it gets a dot.
    """
    measure, said = _(ATTENTION), [_(one) for one in CELL]
    heat = {
        "type": "heatmap",
        "z": [rounded(row) for row in weights.T.tolist()],
        "zmin": 0,
        "zmax": float(weights.max(initial=0.0)) or 1.0,
        "colorscale": SCALE,
        "colorbar": {"title": {"text": measure, "side": "right"}, "thickness": 12, "outlinewidth": 0, "nticks": 5},
        "text": np.where(chosen.T, CHOSEN_SIGN, "").tolist(),
        "texttemplate": "%{text}",
        "textfont": {"color": CONTRARY, "size": 11},
        "xgap": 1,
        "ygap": 1,
        "hovertext": [
            [
                f"<b>{plain_text(word)}</b><br>"
                + said[int(chosen[s, w])].format(
                    column=column, number=name, measure=measure, weight=f"{weights[s, w]:.4f}"
                )
                for s, name in enumerate(columns)
            ]
            for w, word in enumerate(words)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    ticks = thin_indices(len(columns), TICKS_MAX)
    axis = {"tickmode": "array", "tickvals": ticks, "ticktext": [str(columns[i]) for i in ticks], "tickangle": 0}
    layout = base_layout(
        **_frame(words, ROW_PX, revision),
        xaxis={"title": axis_heading(column), "showgrid": False, "zeroline": False, "ticks": ""} | axis,
    )
    return {"data": [heat] if weights.size else [], "layout": layout}


def top_words_figure(
    words: Sequence[str],
    before: Array,
    after: Array,
    k: int,
    *,
    revision: str,
    names: tuple[str, str],
    skip: Collection[int] = (),
) -> Figure:
    """Draw bars of the words in the top k before or after; signs mark words that entered or left.

    Args:
        words: W words; untrusted text.
        before, after: [W].
        k: ≥ 1.
        names: names of before and after, in the user's language.
        skip: positions of words excluded from the top k.
    """
    exchange = entered_and_left(before, after, k, skip)
    shown = [*sorted([*exchange.stayed, *exchange.entered], key=lambda place: (-after[place], place)), *exchange.left]
    signs = dict.fromkeys(exchange.entered, ENTERED) | dict.fromkeys(exchange.left, LEFT)
    looks: tuple[Figure, Figure] = ({"color": QUIET, "pattern": {"shape": "/", "fgopacity": 0.6}}, {"color": ACCENT})
    traces = []
    for when, weights, look in zip(map(short_text, names), (before, after), looks, strict=True):
        hovers = []
        for place in shown:
            weight = f"{weights[place]:.4f}"
            hover = _(SAID[signs.get(place, "")], when=when, measure=_(ATTENTION), weight=weight)
            hovers.append(f"<b>{plain_text(words[place])}</b><br>{hover}")
        traces.append(row_bars(rounded([float(weights[place]) for place in shown]), when, look, hovers))
    layout = base_layout(
        **_frame([words[place] for place in shown], BARS_PX, revision, [signs.get(place, "") for place in shown]),
        barmode="group",
        bargap=0.25,
        xaxis={"title": axis_heading(_(ATTENTION)), "rangemode": "tozero", "zeroline": False},
    )
    return {"data": traces if shown else [], "layout": layout}


def attention_against_effect_figure(
    words: Sequence[str], attention: Array, effects: Array, agreement: RankAgreement, *, revision: str
) -> Figure:
    """Draw a point for each word: attention of [CLS] against the effect of deleting it. A few points have names.

    Args:
        words: W words; untrusted text.
        attention: [W].
        effects: [W], drop in the predicted class's probability without the word; NaN omits the word.
        agreement: rank agreement of attention and effects, shown as the title.
    """
    measured = np.flatnonzero(~np.isnan(effects))
    named = _named(words, attention, effects, measured)
    traces = []
    for name, places, colour, symbol in (
        (_("less confident without it"), measured[effects[measured] >= 0], ACCENT, "circle"),
        (_("more confident without it"), measured[effects[measured] < 0], CONTRARY, "diamond"),
    ):
        hovers = []
        for place in places:
            shares = _("attention {share:.4f}", share=attention[place])
            drops = _("drop without it {drop}", drop=signed(effects[place], 4))
            hovers.append(f"<b>{plain_text(words[place])}</b><br>{shares}<br>{drops}")
        trace = {
            "type": "scatter",
            "mode": "markers+text",
            "name": name,
            "x": rounded(attention[places].tolist()),
            "y": rounded(effects[places].tolist()),
            "customdata": places.tolist(),
            "text": [short_text(words[place], LABEL_CHARS) if place in named else "" for place in places],
            "textposition": "top center",
            "marker": {"color": colour, "symbol": symbol, "size": 9, "opacity": 0.85},
            "hovertext": hovers,
            "hovertemplate": "%{hovertext}<extra></extra>",
            "cliponaxis": False,
        }
        traces += [trace] if len(places) else []
    layout = base_layout(
        uirevision=revision,
        hovermode="closest",
        title={
            "text": agreement_sentence(agreement),
            "font": {"size": 13, "color": QUIET},
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yanchor": "top",
            "pad": {"t": 8},
        },
        # Space for the title and, on a phone, a two-line legend.
        margin={"l": 60, "r": 24, "t": 84, "b": 40},
        xaxis={"title": axis_heading(_("attention of [CLS]")), "zeroline": False},
        yaxis={"title": axis_heading(_("drop without the word")), "zeroline": True, "zerolinecolor": QUIET},
    )
    return {"data": traces, "layout": layout}


def agreement_sentence(agreement: RankAgreement) -> str:
    """Format the rank agreement between attention and deletion as one line."""
    count = ngettext("{count} word", "{count} words", agreement.words)
    if agreement.kendall is None or agreement.spearman is None:
        return _("No rank correlation: {words}, too few or all equal.", words=count)
    return _(
        "Kendall τ-b {kendall}, Spearman ρ {spearman}, {words}",
        kendall=signed(agreement.kendall, 2),
        spearman=signed(agreement.spearman, 2),
        words=count,
    )


def confidence_figure(
    steps: Sequence[int],
    probabilities: ArrayLike,
    classes: Sequence[str],
    exact: Sequence[bool],
    shown: int,
    *,
    revision: str,
) -> Figure:
    """Draw the probability of each class over the steps.

    Args:
        probabilities: [F, C].
        exact: True for each step that was computed; estimates have hollow markers.
        shown: the displayed step, marked by a line.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    traces = []
    for label, name in enumerate(classes):
        line = {"color": class_colour(label), "width": 1.5, "dash": DASHES[label // 8 % len(DASHES)]}
        symbols = [class_symbol(label) + ("" if known else "-open") for known in exact]
        more = {
            "name": short_text(name),
            "marker": {"color": class_colour(label), "size": 7, "symbol": symbols},
            "hovertext": short_text(name),  # in the template itself, a name could be parsed as a placeholder
            "hovertemplate": f"{value_at_step('%{hovertext}', PERCENT_FORMAT)}<extra></extra>",
        }
        traces.append(curve(steps, values[:, label].tolist(), line, {}, mode="lines+markers", **more))
    layout = base_layout(
        uirevision=revision,
        margin={"l": 48, "r": 12, "t": 8, "b": 42},
        xaxis={"title": axis_heading(axis_title("step")), "rangemode": "tozero"},
        yaxis={"range": [-0.03, 1.03], "tickformat": PERCENT_TICKS},
        shapes=[upright(shown, {"color": QUIET, "width": 1})],
    )
    return {"data": traces, "layout": layout}


def _frame(words: Sequence[str], row_px: int, revision: str, signs: Sequence[str] = ()) -> Figure:
    """Return the layout shared by charts with a row for each word, the first at the top."""
    marks = [f"{sign} " if sign else "" for sign in signs] or [""] * len(words)
    labels = [mark + short_text(word, LABEL_CHARS) for mark, word in zip(marks, words, strict=True)]
    return {
        "uirevision": revision,
        "height": EDGES_PX + row_px * max(1, len(words)),
        "hovermode": "closest",
        "dragmode": False,
        "margin": {"l": 8, "r": 16, "t": 40, "b": 48},
        "yaxis": row_axis(labels),
    }


def _named(words: Sequence[str], shares: Array, drops: Array, measured: NDArray[np.integer]) -> set[int]:
    """Return the points to label: the most extreme in either direction whose names do not overlap others."""
    if not len(measured):
        return set()
    out = [np.abs(values[measured]) / (np.abs(values[measured]).max() or 1.0) for values in (shares, drops)]
    x, y = (
        (values - values.min()) / (np.ptp(values) or 1.0) * size  # pixels on an axis that spans exactly the values
        for values, size in zip((shares[measured], drops[measured]), PLOT_PX, strict=True)
    )
    half = np.array([LETTER_PX * min(len(words[place]), LABEL_CHARS) / 2 for place in measured])
    chosen: list[int] = []
    for i in np.argsort(-np.maximum(*out), kind="stable").tolist():
        over = y + MARKER_PX + LINE_PX / 2  # vertical centre of each name
        beside = np.abs(x[i] - x) < half[i] + MARKER_PX
        free = not (beside & (np.abs(over[i] - y) < LINE_PX / 2 + MARKER_PX)).any()
        apart = not any(abs(x[i] - x[j]) < half[i] + half[j] and abs(y[i] - y[j]) < LINE_PX for j in chosen)
        if free and apart:
            chosen.append(i)
        if len(chosen) == LABELLED_POINTS:
            break
    return set(measured[chosen].tolist())
