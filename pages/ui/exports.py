"""A run as files, and a replay from elsewhere as a run."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path, PureWindowsPath

import streamlit as st

from core.artifacts.packed import BYTES_MAX
from core.artifacts.replay import open_replay
from core.errors import PlaygroundError
from core.exports.entry import Export, export_bytes, file_stem
from core.exports.registry import EXPORTS
from core.messages import _, in_language, language
from core.store import RunRecord, Store
from pages.ui.parts import escaped
from pages.ui.visitor import visitor

NAME_CHARS = 80


def export_menu(store: Store, run: RunRecord) -> None:
    """Every form in which a run can be saved; what cannot be had now says why."""
    with st.popover(_("Export"), icon=":material/download:", key=f"export.{run.id}"):
        name = st.selectbox(
            _("Export as"), list(EXPORTS), format_func=lambda one: _(EXPORTS[one].label), key=f"export.{run.id}.form"
        )
        chosen = EXPORTS[name]
        why_not = chosen.refusal(store, run)
        st.caption(escaped(why_not or _(chosen.about)))
        st.download_button(
            _("Download"),
            partial(_made, language(), chosen, store, run.id),
            f"{chosen.file_name(run)}{'.zip' if chosen.folder else ''}",
            chosen.mime,
            key=f"export.{run.id}.{name}",
            type="primary",
            disabled=why_not is not None,
            on_click="ignore",
        )


def pair_page(store: Store, first: RunRecord, second: RunRecord) -> None:
    """Two runs side by side as one page that opens anywhere."""
    page = EXPORTS["html"]
    why_not = page.refusal(store, first) or page.refusal(store, second)
    st.download_button(
        # Translators: a button that saves one page about two runs.
        _("Page of both"),
        partial(_made, language(), page, store, first.id, second.id),
        f"{file_stem(first)}-and-{page.file_name(second)}",
        page.mime,
        key="compare.page",
        icon=":material/download:",
        type="tertiary",
        help=escaped(why_not or _(page.about)),
        disabled=why_not is not None,
        on_click="ignore",
    )


def import_menu(store: Store) -> None:
    """Open a replay that somebody sent; it becomes a run of the visitor's."""
    with st.popover(_("Import a replay"), icon=":material/upload:"):
        st.caption(_("A replay is a run without its weights. Export on a run's page makes one."))
        file = st.file_uploader(
            _("Replay"), ["zip"], label_visibility="collapsed", max_upload_size=BYTES_MAX // 2**20, key="runs.import"
        )
        if file is None:
            return
        try:
            with tempfile.TemporaryDirectory(prefix="scl-import-") as folder:
                path = Path(folder) / _safe_name(file.name)
                path.write_bytes(file.getvalue())
                run_id = open_replay(store, path, visitor().id)
        except PlaygroundError as error:
            st.error(escaped(str(error)))
            return
        st.switch_page("pages/fine_tune.py", query_params={"run": run_id})


def _made(code: str, export: Export, store: Store, *run_ids: str) -> bytes:
    """What a download brings. The thread that makes it serves nobody, so it is given the language."""
    with in_language(code):
        return export_bytes(export, store, *run_ids)


def _safe_name(name: str) -> str:
    """What a browser calls its file, without folders and signs that a disk may refuse."""
    plain = "".join(sign for sign in PureWindowsPath(name).name if sign.isprintable())[-NAME_CHARS:]
    return plain if plain.strip(". ") else "replay.zip"
