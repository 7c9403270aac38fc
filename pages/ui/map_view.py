"""Maps whose frames the browser scrubs and plays without the server.

Large data is sent once, as bundles. What the page changes (colours, a selection, search hits) is sent on every change.
The points are drawn on a plain canvas. On a machine without a graphics card, it draws a frame of 2,000 points several
times faster than WebGL, and it has no context that could be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from core.figures.map_data import Arrow, Bundle, OwnPoint
from core.figures.map_script import DATA_COMPONENT, STYLE, VIEW_COMPONENT
from core.messages import _, join_list, script_messages, with_more
from core.representation.projections import MapSpec
from pages.ui import state
from pages.ui.parts import component

FIELDS = ("selected", "frame", "clicked", "view")
# Larger than any map. Limits the address, which has a bit for each id up to the largest.
IDS_MAX = 2**20


def map_name(spec: MapSpec, name: str) -> str:
    """Return a map's name with its settings, translated."""
    labels = {one.name: _(one.label).lower() for one in spec.entry.parameters}
    settings = join_list(f"{labels[setting]} {value:g}" for setting, value in spec.parameters)
    return with_more(name, settings) if settings else name


@dataclass(frozen=True, slots=True)
class Panel:
    """One map: F frames of a run, with the marks drawn on them.

    Attributes:
        examples, places, colours: bundles from `core.figures.map_data`.
        steps: the F steps of the frames, ascending.
        title: shown above the map if there are several.
        notes: F short texts such as "validation 84.0%", or none.
        about: a short text below the title, the same for all frames.
        space: name of the space, such as "PCA"; the zoom is kept while it stays the same.
        centroids: whether to mark the centre of every class.
        anchor: id of the example that the arrows start or end at; its ring has four ticks.
    """

    examples: Bundle
    places: Bundle
    colours: Bundle
    steps: tuple[int, ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    about: str = ""
    space: str = ""
    arrows: tuple[Arrow, ...] = ()
    own: tuple[OwnPoint, ...] = ()
    centroids: bool = False
    anchor: int | None = None

    def as_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        bundles = {name: values[name].id for name in ("examples", "places", "colours")}
        return values | bundles | {name: [asdict(one) for one in values[name]] for name in ("arrows", "own")}


@dataclass(frozen=True, slots=True)
class MapState:
    """State of the maps, as far as the page knows it.

    Attributes:
        selected: ids of the selected examples, in order of selection.
        frame: step that the scrubber rests on, None while there is no frame.
        clicked: id clicked last, None before any click.
        view: state of the cameras, "" for whole maps; pass it back as `view=`.
    """

    selected: tuple[int, ...] = ()
    frame: int | None = None
    clicked: int | None = None
    view: str = ""


@dataclass
class _Settled:
    """A value that both the page and the visitor set: the last change wins.

    Attributes:
        asked: value that the page requested last.
        number: increases when the page requests a new value, which the browser then adopts.
        answered: last answer to the page: the value, or the newest frame's step if no frame was requested.
        heard: number of the visitor's last report.
    """

    value: Any = None
    asked: Any = None
    answered: Any = None
    number: int = 0
    heard: int = 0

    def after(self, report: Mapping[str, Any] | None) -> Any:
        """Return the reported value if the report is new, the current value otherwise."""
        return report["value"] if report is not None and report["number"] > self.heard else self.value

    def settle(self, asked: Any, report: Mapping[str, Any] | None) -> Any:
        # A page that passes back an earlier answer, for example from its address, requests nothing new.
        if self.number == 0 or asked not in (self.asked, self.after(report), self.value, self.answered):
            self.value, self.number = asked, self.number + 1
        else:
            self.value = self.after(report)
        self.asked = asked
        self.heard = max(self.heard, report["number"] if report else 0)
        return self.value


def _reports(held: Any) -> dict[str, dict[str, Any]]:
    """Return the valid reports of the browser, which can send anything."""
    reports = held.get("reports") if isinstance(held, Mapping) else None
    if not isinstance(reports, Mapping):
        return {}
    found = {}
    for name, report in reports.items():
        if name not in FIELDS or not isinstance(report, Mapping) or not isinstance(report.get("number"), int):
            continue
        value = report.get("value")
        if name != "selected":
            if isinstance(value, str if name == "view" else int):
                found[name] = {"number": report["number"], "value": value}
        elif isinstance(value, list) and all(isinstance(i, int) and 0 <= i < IDS_MAX for i in value):
            found[name] = {"number": report["number"], "value": tuple(value)}
    return found


_mount_data = component(
    "map_data",
    '<div class="map-data" hidden></div>',
    DATA_COMPONENT,
    [".stElementContainer:has(.map-data) { display: none; }"],
)
_mount_view = component("map_view", '<div class="map-view" role="group"></div>', VIEW_COMPONENT, [STYLE])


def map_view(
    panels: Sequence[Panel],
    *,
    key: str,
    height: int | str,
    description: str,
    frame: int | None = None,
    selected: Sequence[int] = (),
    lit: Sequence[int] | None = None,
    view: str = "",
    trails: bool = True,
    play: bool = False,
    follow: bool = False,
    name: str = "map",
    unit: Literal["step", "layer"] = "step",
    columns: int | None = None,
) -> MapState:
    """Draw maps, or update those under `key` in place.

    Args:
        panels: one or more. With several, the scrubber has the union of their steps and each shows its latest frame.
        height: height of one map, in pixels or as a CSS length; reduced on a narrow page.
        description: description of the maps for screen readers.
        frame: step to show, None for the newest.
        selected: ids to select. Like `frame` and `view`, it takes effect only if the page requests a new value; passing
            back a returned value, from the address or elsewhere, changes nothing.
        lit: ids to highlight, with the others dimmed; None for no search.
        trails: whether to offer the switch for the paths of selected points.
        play: whether to loop the frames until the visitor pauses, unless they prefer reduced motion; the page gets no
            reports of it.
        follow: whether a visitor at the newest frame, even after scrubbing there, moves on to each new one.
        name: name of the exported PNG and SVG files.
        unit: unit of the frame numbers; the browser's scripts have the words for it.
        columns: number of maps in a row, on any page; by default two or three on a wide page.
    """
    bundles = {b.id: b for panel in panels for b in (panel.examples, panel.places, panel.colours)}
    for bundle in bundles.values():
        name_bytes = bundle.id.encode()
        _mount_data(key=f"{key}.{bundle.id}", data=bytes([len(name_bytes)]) + name_bytes + bundle.content)
    steps = [panel.steps[frame] for panel in panels for frame in panel.places.present]
    now = map_state(key=key, newest=max(steps, default=None), frame=frame, selected=selected, view=view)
    memory = _memory(key)
    _mount_view(
        key=key,
        # A list, because Streamlit would load pandas to check a dictionary's values for data frames.
        data=[
            {
                "panels": [panel.as_json() for panel in panels],
                "height": f"{height}px" if isinstance(height, int) else height,
                "description": description,
                "lit": None if lit is None else list(lit),
                "trails": trails,
                "play": play,
                "follow": follow,
                "name": name,
                "empty": _("There are no frames yet."),
                "unit": unit,
                "columns": columns,
                "selected": now.selected,
                "frame": memory["frame"].value,
                "view": now.view,
                "numbers": {name: memory[name].number for name in FIELDS},
                "words": script_messages("assets/map/"),
            }
        ],
        on_reports_change=lambda: None,
    )
    return now


def map_state(
    *, key: str, newest: int | None, frame: int | None = None, selected: Sequence[int] = (), view: str = ""
) -> MapState:
    """Return the state that `map_view` will return for the same arguments, for use before it is drawn.

    Args:
        newest: last step that has a map, None if there is none.
    """
    memory, reports = _memory(key), _reports(state.widget_value(key))
    asked = {"selected": tuple(selected), "frame": frame, "clicked": None, "view": view}
    settled = {name: memory[name].settle(asked[name], reports.get(name)) for name in FIELDS}
    shown = newest if settled["frame"] is None else settled["frame"]
    memory["frame"].answered = shown
    return MapState(settled["selected"], shown, settled["clicked"], settled["view"])


def map_now(key: str) -> MapState | None:
    """Return the state of the maps under a key, None before the visitor has changed anything there.

    From then on, a page passes this back instead of the state in its address: the address that a browser sends with a
    click can be several clicks old.
    """
    memory, reports = _memory(key), _reports(state.widget_value(key))
    if not reports:
        return None
    now = {name: memory[name].after(reports.get(name)) for name in FIELDS}
    return MapState(now["selected"] or (), now["frame"], now["clicked"], now["view"] or "")


def _memory(key: str) -> dict[str, _Settled]:
    return state.session_value(f"map.{key}", lambda: {name: _Settled() for name in FIELDS})
