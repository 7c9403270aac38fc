"""Controls of a run: pause, stop and resume, name and tags, export and import, and undo of deletions."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from math import ceil
from pathlib import Path, PureWindowsPath

import streamlit as st

from core.artifacts.packed import BYTES_MAX
from core.artifacts.replay import open_replay
from core.errors import PlaygroundError
from core.exports.entry import Export, export_bytes, file_stem
from core.exports.registry import EXPORTS
from core.messages import N_, _, in_language, join_list, language, ngettext
from core.settings import settings
from core.store import (
    UNDO_S,
    Discarded,
    Experiment,
    LibraryTask,
    RunRecord,
    RunSummary,
    Status,
    Store,
    UnreadableRun,
)
from core.store.names import NAME_CHARS, TAGS_MAX, checked_name, checked_tags
from core.store.sizes import size_text
from core.workers import Engine
from pages.ui import state
from pages.ui.parts import escaped, page_link, show_errors
from pages.ui.visitor import owner_name, require_own, visitor

NOTICE_S = 12.0
SAVED = "rename.saved"
LOG_BYTES = 8_000
LEAST_BYTES_SHOWN = 50_000  # less is 0.0 MB


def run_buttons(engine: Engine, run: RunRecord | RunSummary) -> None:
    """Draw the buttons that the run's status allows: pause, resume, stop. Name the owner of another visitor's run."""
    me = visitor()
    if settings().shared and run.owner != me.id:
        st.caption(_("{owner}'s run", owner=escaped(owner_name(engine.store, run.owner))), width="content")
    if not me.may_change(run.owner):
        return
    going = run.status in (Status.RUNNING, Status.STARTING)
    # After its last step, a run only scores and saves, and no longer polls for requests.
    over, stopping = run.last_step >= run.steps, run.status == Status.STOPPING and run.responding
    stoppable = run.status.active or run.status == Status.QUEUED
    # Translators: a button that has a run go on.
    resume = _("Resume")
    buttons = (
        (_("Pause"), "pause", "pause", going, over, engine.pause),
        (resume, "continue", "play_arrow", run.status == Status.PAUSED, False, engine.unpause),
        (_("Stop"), "stop", "stop", stoppable, stopping, engine.stop),
        (resume, "again", "play_arrow", run.status.resumable, False, engine.resume),
    )
    with st.container(horizontal=True, width="content"):
        for label, key, icon, offered, disabled, act in buttons:
            if offered and st.button(label, key=f"{key}.{run.id}", icon=f":material/{icon}:", disabled=disabled):
                run_action(partial(act, run.id))


def run_action(action: Callable[[], object]) -> None:
    """Run the user's action, leave a notice if it fails, and rerun the page."""
    state.forget("notice")
    try:
        action()
    except PlaygroundError as error:
        leave_notice(str(error))
    st.rerun()


def leave_notice(sentence: str) -> None:
    """Store a sentence that the page shows from the next rerun on."""
    state.remember("notice", (sentence, time.monotonic()))


def show_notice() -> None:
    """Show the notice of the last action for `NOTICE_S` seconds, as a page may rerun itself meanwhile."""
    sentence, since = state.session_value("notice", lambda: ("", 0.0))
    if sentence and time.monotonic() - since < NOTICE_S:
        st.warning(escaped(sentence))


def delete_button(engine: Engine, runs: Sequence[RunSummary | UnreadableRun], label: str, key: str) -> None:
    """Draw the button that deletes runs, with the disk space that this frees. Args: label: translated."""
    runs = [run for run in runs if visitor().may_change(run.owner)]
    sizes = engine.store.sizes()
    freed = size_text(sum(sizes[run.id].total for run in runs if run.id in sizes))

    def delete() -> None:
        # The store keeps them for an undo unless the disk is nearly full.
        if not engine.store.discard(*(run.id for run in runs)):
            leave_notice(_("Deleted permanently, because the disk is nearly full."))

    about = _("Frees {size}. You can undo this for {minutes:.0f} minutes.", size=freed, minutes=UNDO_S / 60)
    if st.button(label, icon=":material/delete:", key=key, help=about if runs else None, disabled=not runs):
        run_action(delete)


def rename_button(engine: Engine, run: RunSummary, others: Sequence[RunSummary] = ()) -> None:
    """Draw the form for a run's name and tags. Args: others: runs whose tags are offered too."""
    if not visitor().may_change(run.owner):
        return
    known = sorted({tag for one in (run, *others) for tag in one.tags})
    key = f"rename.{run.id}"
    if state.session_value(SAVED, str) == run.id:
        state.forget(SAVED)
        state.set_widget(key, False)  # closed
    popover = st.popover(_("Name and tags"), icon=":material/edit:", key=key, on_change="rerun")
    with popover, st.form(f"name.{run.id}", border=False):
        # Beside the name: below the tags, the dropdown of known tags would cover the button.
        left, right = st.columns([5, 3], vertical_alignment="bottom")
        name = left.text_input(
            _("Name"), run.name, max_chars=NAME_CHARS, placeholder=_("Run {number}", number=run.number)
        )
        saved = right.form_submit_button(_("Save"), type="primary", width="stretch")
        tags = st.multiselect(
            _("Tags"),
            known,
            list(run.tags),
            accept_new_options=True,
            max_selections=TAGS_MAX,
            placeholder=_("e.g. thesis, draft"),
        )

        def save() -> None:
            """Save name and tags. Raises: ConfigError before either is stored."""
            checked_name(name)
            checked_tags(tags)
            engine.store.rename(run.id, name)
            engine.store.tag(run.id, tags)
            state.remember(SAVED, run.id)

        if saved:
            run_action(save)


def draw_files(engine: Engine, run: RunSummary) -> None:
    """Draw the disk usage of a run, the toggle that keeps its weights, and the end of its log."""
    # The key contains the stored value, so that a click in another tab moves this toggle too.
    key = f"keep.{run.id}.{run.keep_weights}"

    def turned() -> None:
        try:
            require_own(run.owner)
            engine.store.keep_weights(run.id, bool(state.widget_value(key)))
        except PlaygroundError as error:
            leave_notice(str(error))

    size = engine.store.size(run.id)
    parts = [
        _(words, size=size_text(part))
        for words, part in (
            (N_("weights {size}") if run.status == Status.FINISHED else N_("checkpoint {size}"), size.weights),
            (N_("weights saved at earlier steps {size}"), size.snapshots),
            (N_("frames {size}"), size.frames),
            (N_("other files {size}"), size.others),
        )
        if part >= LEAST_BYTES_SHOWN
    ]
    on_disk = _("On disk: {size}", size=size_text(size.total))
    if parts:
        on_disk = _("On disk: {size} ({parts})", size=size_text(size.total), parts=join_list(parts))
    with st.container(horizontal=True, vertical_alignment="center"):
        if run.weights_dropped_at is None and visitor().may_change(run.owner):
            st.toggle(
                _("Protect this run's weights from automatic deletion"),
                run.keep_weights,
                key=key,
                on_change=turned,
                help=_(
                    "Turn this on to keep this run's weights. If all runs together take more than {budget:g} GB "
                    "(server setting SCL_DISK_GB), weights of the oldest finished runs are deleted: first the "
                    "weights saved at earlier steps, then those of the last step.",
                    budget=settings().disk_gb,
                ),
            )
        st.caption(on_disk, width="content")
    path, text = engine.store.log_path(run.id), ""
    if path.exists():
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    with st.expander(_("Log")):
        st.code(text or _("The log is empty."), language=None)


def draw_links(run: RunSummary) -> None:
    """Draw the links from a run to other pages."""
    for label, page, icon, name in (
        (_("Explore"), "explore", "scatter_plot", "run"),
        (_("Tokens"), "tokens", "format_ink_highlighter", "run"),
        (_("Compare"), "compare", "compare_arrows", "runs"),
        (_("Reuse settings"), "fine_tune", "replay", "from"),
    ):
        page_link(page, label, icon, {name: run.id})


def offer_undo_of_runs(engine: Engine) -> None:
    """Draw an undo button for each group of runs that were deleted together."""
    own = [run for run in engine.store.discarded() if visitor().may_change(run.owner)]
    for at, group in groupby(own, key=lambda run: run.at):
        runs = list(group)
        words = _(
            "Deleted {names}. You can undo this for {minutes}; then its disk space is freed ({size}).",
            names=join_list(f"“{escaped(run.title)}”" for run in runs),
            minutes=_time_left(at),
            size=size_text(sum(run.size for run in runs)),
        )
        _undo_line(words, str(at), runs, engine.store.restore)


def offer_undo(sentence: str, deleted: Iterable[LibraryTask | Experiment], restore: Callable[[str], object]) -> None:
    """Draw an undo button for each of these. Args: sentence: marked with `N_`."""
    for one in deleted:
        if visitor().may_change(one.owner):
            name = f"“{escaped(one.name if isinstance(one, LibraryTask) else one.title)}”"
            words = _(sentence, name=name, minutes=_time_left(one.discarded_at))
            _undo_line(words, one.id, [one], restore)


def _time_left(discarded_at: float | None) -> str:
    return ngettext(
        "{count} minute", "{count} minutes", max(1, ceil(((discarded_at or 0.0) + UNDO_S - time.time()) / 60))
    )


def _undo_line(
    words: str, key: str, deleted: Sequence[Discarded | LibraryTask | Experiment], restore: Callable[[str], object]
) -> None:
    """Draw a sentence, and the button that restores what was deleted."""

    def undo() -> None:
        # A callback runs before the page is drawn, so that a click on an expired button still gets an answer.
        try:
            for one in deleted:
                require_own(one.owner)
                restore(one.id)
        except PlaygroundError as error:
            leave_notice(str(error))

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words, width="content")
        st.button(_("Undo"), key=f"undo.{key}", icon=":material/undo:", on_click=undo)


def export_menu(store: Store, run: RunRecord) -> None:
    """Draw the menu of export formats; an unavailable one says why."""
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
    """Draw the button that saves two runs side by side as one standalone page."""
    page = EXPORTS["html"]
    why_not = page.refusal(store, first) or page.refusal(store, second)
    st.download_button(
        # Translators: a button that saves one page about two runs.
        _("Export both as a web page"),
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
    """Draw the form that imports a replay as a run of this visitor."""
    with st.popover(_("Import a run"), icon=":material/upload:"):
        st.caption(_("A replay is a run without its weights. Use Export on a run's page to make one."))
        file = st.file_uploader(
            _("Replay"), ["zip"], label_visibility="collapsed", max_upload_size=BYTES_MAX // 2**20, key="runs.import"
        )
        if file is None:
            return
        with show_errors():
            # The uploaded file's name, without folders and characters that a file system may refuse.
            plain = "".join(sign for sign in PureWindowsPath(file.name).name if sign.isprintable())[-80:]
            with tempfile.TemporaryDirectory(prefix="scl-import-") as folder:
                path = Path(folder) / (plain if plain.strip(". ") else "replay.zip")
                path.write_bytes(file.getvalue())
                run_id = open_replay(store, path, visitor().id)
            st.switch_page("pages/fine_tune.py", query_params={"run": run_id})


def _made(code: str, export: Export, store: Store, *run_ids: str) -> bytes:
    """Return the bytes of a download. It runs in a thread without a session, so the caller passes the language."""
    with in_language(code):
        return export_bytes(export, store, *run_ids)
