"""How a temperature spreads the push over the negatives of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from core.figures.panels import grid
from core.figures.template import ACCENT, QUIET, Figure, axis_heading, base_layout, rounded
from core.messages import _, pgettext
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


COLUMNS = 2
GAPS = (0.12, 0.12)
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
        uirevision=revision, showlegend=False, margin={"l": 44, "r": 12, "t": 24, "b": 42}, hovermode="x"
    )
    traces: list[dict[str, Any]] = []
    layout["shapes"], layout["annotations"] = [], []
    panels = _panels(spreads, losses)
    for number, (panel, place) in enumerate(zip(panels, grid(len(panels), COLUMNS, GAPS), strict=True)):
        x = {
            "type": "log",
            "tickvals": [0.01, 0.03, 0.1, 0.3, 1],
            "title": axis_heading("τ") if number >= COLUMNS else None,
        }
        ticks = {"tickformat": PERCENT_TICKS} if panel.percent else {}
        layout |= place.layout(x, {"rangemode": "tozero", "nticks": 5, **ticks})
        traces += [
            _trace(panel, line, dash, temperatures) | place.axes
            for line, dash in zip(panel.lines, DASHES, strict=False)
        ]
        layout["shapes"] += [
            place.upright(at, {"color": QUIET, "width": 1.2, "dash": dash})
            for at, dash in ((own, "dot"), (chosen, "solid"))
        ]
        layout["annotations"].append(place.title(panel.title))
    return {"data": traces, "layout": layout}


def _panels(spreads: Sequence[Spread], losses: Sequence[str]) -> tuple[_Panel, ...]:
    loss = tuple(_Line(name, [spread.losses[place] for spread in spreads]) for place, name in enumerate(losses))
    return (
        _Panel(_loss_title(losses), loss),
        _Panel(_("Entropy of p, nats"), (_Line(_("entropy"), [spread.entropy for spread in spreads]),)),
        _Panel(
            _("Effective negatives"),
            (_Line(_("effective negatives"), [spread.effective_negatives for spread in spreads]),),
        ),
        _Panel(
            _("Push from the top 5%"),
            (_Line(pgettext("part of a whole", "share"), [spread.top_share for spread in spreads]),),
            percent=True,
        ),
    )


def _loss_title(losses: Sequence[str]) -> str:
    if len(losses) > 1:
        return _("{loss}, dashed {other}, nats", loss=losses[0], other=losses[1])
    return _("{loss}, nats", loss=losses[0])


def _trace(panel: _Panel, line: _Line, dash: str, temperatures: Sequence[float]) -> dict[str, Any]:
    form = PERCENT_FORMAT if panel.percent else ".3g"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": line.label,
        "x": rounded(temperatures),
        "y": rounded(line.values),
        "line": {"color": ACCENT, "width": 2, "dash": dash},
        "hovertemplate": f"{_hover(line.label, form)}<extra></extra>",
    }


def _hover(name: str, form: str) -> str:
    """For Plotly to fill in."""
    return _("{name} {value} at τ {tau}", name=name, value=f"%{{y:{form}}}", tau="%{x:.3g}")
