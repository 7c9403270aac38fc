"""Assemble the map's JavaScript from one folder, for the app's pages and for pages that open without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "map"
# Concatenated, these files form one module.
SHARED = ("bundles.js",)
WORDS = ("words.js",)
MARKS = ("symbols.js", "elements.js")
VIEW = (
    *(*WORDS, *MARKS, "camera.js", "timeline.js", "scene.js", "paint.js", "tip.js", "legend.js"),
    *("pointer.js", "player.js", "download.js", "reports.js", "panels.js", "view.js"),
)


def data_component() -> str:
    """Return the JavaScript module of the component that transfers a bundle."""
    return _joined([*SHARED, "data.js"])


def view_component() -> str:
    """Return the JavaScript module of the component that draws maps."""
    return _joined([*SHARED, *VIEW, "main.js"])


def map_classes() -> str:
    """Return the map code without its Streamlit binding."""
    return _joined([*SHARED, *VIEW])


def map_marks() -> str:
    """Return only the symbols and icons, for other figures with points."""
    return _joined(MARKS)


def script_words() -> str:
    """Return the translation helpers of a script. The page that mounts it must supply `script_messages`."""
    return _joined(WORDS)


def map_style() -> str:
    return (FOLDER / "style.css").read_text(encoding="utf-8")


def _joined(names: Sequence[str]) -> str:
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)
