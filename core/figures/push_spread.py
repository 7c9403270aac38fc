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
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS


class Spread(Protocol):
    """The measures at one temperature, see `core.losses.forces.PushSpread`."""

    @property
    def losses(self) -> tuple[float, ...]: ...
    @property
    def entropy(self) -> float: ...
    @property
    def effective_negatives(self) -> float: ...
    @property
    def top_share(self) -> float: ...


class _Line(NamedTuple):
    label: str
    values: list[float]


class _Panel(NamedTuple):
    title: str
    lines: tuple[_Line, ...]
    percent: bool = False


GAP = 0.12
DASHES = ("solid", "dash")


def spread_figure(
    temperatures: Sequence[float],
    spreads: Sequence[Spread],
    losses: Sequence[str],
    chosen: float,
    own: float,
    *,
    revision: str,
) -> Figure:
    """Four small curves over τ on a logarithmic axis.

    Args:
        temperatures: T values, growing, each with its spread.
        losses: names of the spreads' losses; the first is solid.
        chosen: marked by a line; own: the run's own, dotted.
    """
    layout = base_layout(
        uirevision=revision, showlegend=False, margin={"l": 44, "r": 12, "t": 24, "b": 36}, hovermode="x"
    )
    traces: list[dict[str, Any]] = []
    layout["shapes"], layout["annotations"] = [], []
    for number, panel in enumerate(_panels(spreads, losses)):
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
            **({"tickformat": PERCENT_TICKS} if panel.percent else {}),
        }
        traces += [
            _trace(panel, line, dash, temperatures, suffix) for line, dash in zip(panel.lines, DASHES, strict=False)
        ]
        layout["shapes"] += [_line(own, suffix, "dot"), _line(chosen, suffix, "solid")]
        layout["annotations"].append(panel_title(panel.title, x[0], y[1]))
    return {"data": traces, "layout": layout}


def _panels(spreads: Sequence[Spread], losses: Sequence[str]) -> tuple[_Panel, ...]:
    dashed = f", dashed {losses[1]}" if len(losses) > 1 else ""
    loss = tuple(_Line(name, [spread.losses[place] for spread in spreads]) for place, name in enumerate(losses))
    return (
        _Panel(f"{losses[0]}{dashed}, nats", loss),
        _Panel("Entropy of p, nats", (_Line("entropy", [spread.entropy for spread in spreads]),)),
        _Panel(
            "Effective negatives", (_Line("effective negatives", [spread.effective_negatives for spread in spreads]),)
        ),
        _Panel("Push from the top 5%", (_Line("share", [spread.top_share for spread in spreads]),), percent=True),
    )


def _trace(panel: _Panel, line: _Line, dash: str, temperatures: Sequence[float], suffix: str) -> dict[str, Any]:
    form = PERCENT_FORMAT if panel.percent else ".3g"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": line.label,
        "x": rounded(temperatures),
        "y": rounded(line.values),
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "line": {"color": ACCENT, "width": 2, "dash": dash},
        "hovertemplate": f"{line.label} %{{y:{form}}} at τ %{{x:.3g}}<extra></extra>",
    }


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
