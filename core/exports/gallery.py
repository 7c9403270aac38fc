"""Write the shipped replays as HTML pages with an index, for any static host.

Usage: `python -m core.exports.gallery [FOLDER]`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.errors import PlaygroundError, StoreError
from core.exports.run_page import made_with, page_style, run_page, run_summary, template
from core.messages import N_, _, join_phrase
from core.store import RunRecord, Store

DEFAULT_FOLDER = "gallery"
INDEX = "index.html"
# Pages of two runs, each with its question.
PAIRS = (
    (
        ("ce", "ce-scl"),
        N_("The same texts with cross-entropy alone and with added contrast: where do the classes end?"),
    ),
    (("ce-scl", "ce-scl-sharp"), N_("Two temperatures: how does τ change the nearest texts, and the whole map?")),
)


def write_gallery(folder: Path) -> list[Path]:
    """Write a page for every shipped replay and every pair, and an index.

    Returns: the files. Raises: StoreError if they cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="scl-gallery-") as place, closing(Store(Path(place) / "runs")) as store:
        runs = {name: store.run(open_replay(store, one.path)) for name, one in SHIPPED.items()}
        pages = [_page(store, [runs[name]], name, one.label, one.about) for name, one in SHIPPED.items()]
        for names, about in PAIRS:
            label = join_phrase([_(SHIPPED[name].label) for name in names])
            pages.append(_page(store, [runs[name] for name in names], "-and-".join(names), label, about))
    index = template(INDEX).render(style=page_style(), pages=pages, made_with=made_with())
    written = {page["file"]: page["text"] for page in pages} | {INDEX: index}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{folder.name} could not be written ({error.strerror}): give another folder.") from error
    return [folder / name for name in written]


def _page(store: Store, runs: Sequence[RunRecord], name: str, label: str, about: str) -> dict[str, str]:
    summary = run_summary(runs[0]) if len(runs) == 1 else _("Two runs side by side")
    said = {"label": _(label), "about": _(about), "summary": summary}
    return {"file": f"{name}.html", **said, "text": run_page(store, runs, INDEX)}


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0] if arguments else DEFAULT_FOLDER)
    try:
        written = write_gallery(folder)
    except PlaygroundError as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in written)
    made = f"{len(written) - 1} pages and an index, {size / 1e6:.1f} MB"
    print(f"{made}: open {folder / INDEX}, or put the folder on any host.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
