"""The scripts and the style of the map, for the app's pages and for pages that open without a server."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "map"
STYLE = FOLDER / "style.css"


def _scripts(*names: str) -> list[Path]:
    return [FOLDER / f"{name}.js" for name in names]


# Concatenated, the files of a list form one module.
# Translation helpers. The page that mounts them must supply `script_messages`.
WORDS = _scripts("words")
# DOM nodes, for any component.
NODES = _scripts("nodes")
# Symbols and icons, which other figures with points use too.
MARKS = [*NODES, *_scripts("symbols", "elements")]
# The map without its Streamlit binding.
MAP = [
    *(*_scripts("bundles"), *WORDS, *MARKS),
    *_scripts("camera", "timeline", "scene", "paint", "tip", "legend"),
    *_scripts("pointer", "player", "download", "reports", "panels", "view"),
]
# The component that draws maps, and the one that transfers a bundle.
VIEW_COMPONENT = [*MAP, *_scripts("main")]
DATA_COMPONENT = _scripts("bundles", "data")
