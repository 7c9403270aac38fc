"""How a temperature spreads the push over the negatives of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from core.figures.template import (
    ACCENT,
    QUIET,
    Figure,
    base_layout,
    panel_title,
    rounded,
)


class Spread(Protocol):
    """The measures at one temperature, see `core.losses.forces.PushSpread`."""

    @property
    def loss_in(self) -> float: ...
    @property
    def loss_out(self) -> float: ...
    @property
    def entropy(self) -> float: ...
    @property
    def effective_negatives(self) -> float: ...
    @property
    def top_share(self) -> float: ...


class _Panel(NamedTuple):
    title: str
    lines: tuple[tuple[str, str, str], ...]
    percent: bool = False


PANELS = (
    _Panel("Loss, nats", (("loss_out", "L_out", "solid"), ("loss_in", "L_in", "dash"))),
    _Panel("Entropy of p, nats", (("entropy", "entropy", "solid"),)),
    _Panel("Effective negatives", (("effective_negatives", "effective negatives", "solid"),)),
    _Panel("Push from the top 5 %", (("top_share", "share", "solid"),), percent=True),
)
GAP = 0.12


def spread_figure(
    temperatures: Sequence[float], spreads: Sequence[Spread], chosen: float, own: float, *, revision: str
) -> Figure:
    """Four small curves over τ on a logarithmic axis.

    Args:
        temperatures: T values, growing, each with its spread.
        chosen: marked by a line; own: the run's own, dotted.
    """
    layout = base_layout(
        uirevision=revision, showlegend=False, margin={"l": 44, "r": 12, "t": 24, "b": 36}, hovermode="x"
    )
    traces: list[dict[str, Any]] = []
    layout["shapes"], layout["annotations"] = [], []
    for number, panel in enumerate(PANELS):
        suffix = "" if number == 0 else str(number + 1)
        x, y = _domain(number % 2), _domain(1 - number // 2)
        layout[f"xaxis{suffix}"] = {
            "type": "log",
            "domain": x,
            "anchor": f"y{suffix}",
            "tickvals": [0.01, 0.03, 0.1, 0.3, 1],
            "title": {"text": "τ", "standoff": 4} if number >= 2 else None,
        }
        layout[f"yaxis{suffix}"] = {
            "domain": y,
            "anchor": f"x{suffix}",
            "rangemode": "tozero",
            "nticks": 5,
            **({"tickformat": ".0%"} if panel.percent else {}),
        }
        form = ".0%" if panel.percent else ".3g"
        for name, label, dash in panel.lines:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": label,
                    "x": rounded(temperatures),
                    "y": rounded([getattr(spread, name) for spread in spreads]),
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "line": {"color": ACCENT, "width": 2, "dash": dash},
                    "hovertemplate": f"{label} %{{y:{form}}} at τ %{{x:.3g}}<extra></extra>",
                }
            )
        layout["shapes"] += [_line(own, suffix, "dot"), _line(chosen, suffix, "solid")]
        layout["annotations"].append(panel_title(panel.title, x[0], y[1]))
    return {"data": traces, "layout": layout}


def _domain(place: int) -> list[float]:
    half = (1 - GAP) / 2
    return [place * (half + GAP), place * (half + GAP) + half]


def _line(temperature: float, suffix: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": temperature,
        "x1": temperature,
        "y0": 0,
        "y1": 1,
        "xref": f"x{suffix}",
        "yref": f"y{suffix} domain",
        "line": {"color": QUIET, "width": 1.2, "dash": dash},
    }
