"""Limits on what a browser may ask of this server: its names, the size of uploads, reruns of pages."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st
from streamlit import config, runtime
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from core.artifacts.packed import BYTES_MAX
from core.errors import EngineError, shown
from core.settings import settings

UPLOAD_MB = "server.maxUploadSize"
# A page takes one file at a time.
UPLOADS_HELD = 4


def check_host() -> None:
    """Refuse a browser whose page was opened by a name that is not this server's.

    A page elsewhere can have its own name lead to this machine (DNS rebinding); its browser then sends that name.

    Raises: EngineError.
    """
    host = _called_by()
    if host is None:  # no browser: each of them sends one
        return
    name, known = _name(f"//{host}"), settings()
    own = {"localhost", st.get_option("server.address"), st.get_option("browser.serverAddress")}
    own |= {_name(known.address or ""), *(known.host or "").replace(",", " ").split()}
    with suppress(ValueError):
        ip_address(name)
        return  # no other page can make an IP address lead here
    if name not in {one.lower() for one in own if one}:
        raise EngineError(
            "This server is not called {host}: open it by its own name, or name that one in SCL_ADDRESS or SCL_HOST.",
            host=shown(name),
        )


def bound_uploads() -> None:
    """Refuse uploads that no page takes before they are in memory, and hold only the newest of a session."""
    most = max(settings().max_file_mb, BYTES_MAX // 2**20)
    if st.get_option(UPLOAD_MB) != most:
        config.set_option(UPLOAD_MB, most)
    if runtime.exists():
        manager = runtime.get_instance().uploaded_file_mgr
        if isinstance(manager, MemoryUploadedFileManager):
            manager.__class__ = NewestUploads


class NewestUploads(MemoryUploadedFileManager):
    """Streamlit's store of uploads, which by itself holds whatever a session sends until it ends."""

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        """Add a file; the oldest of its session go until all together are as large as one upload may be."""
        most = int(st.get_option(UPLOAD_MB)) * 2**20
        held = dict(self.file_storage.get(session_id, {}))
        for old in list(held):
            if len(held) < UPLOADS_HELD and sum(len(one.data) for one in (*held.values(), file)) <= most:
                break
            del held[old]
            self.remove_file(session_id, old)
        super().add_file(session_id, file)


def mend_reruns() -> None:
    """Carry out what a browser asks for where Streamlit 1.67 does too much or too little.

    - A map or a timer may ask for its fragment between the press on a link and the new page. That is carried out after
      the new page's own run and in the name of the page that was left, whereupon the browser clears the new one:
      refused.
    - Changes of one moment are sent together, in the name of one fragment where a widget of a fragment is among them;
      the others, such as a pressed button of the page, would not be seen: the whole page is run.
    """
    AppSession.request_rerun = _request_rerun  # type: ignore[assignment, method-assign]


_rerun = AppSession.request_rerun
# What components and buttons send, and only when something was done with them; others send their defaults too.
DONE = ("json_value", "json_trigger_value", "trigger_value", "string_trigger_value")


def _request_rerun(session: AppSession, asked: ClientState | None) -> None:
    if asked is not None:
        changed = _changed(session, asked)
        if asked.page_script_hash:
            wanted = session._client_state  # this is the page that runs, or ran last
            if not asked.fragment_id:
                wanted.page_script_hash = asked.page_script_hash
            elif asked.page_script_hash != wanted.page_script_hash:
                return
        metadata = session._session_state._new_widget_state.widget_metadata
        if asked.fragment_id and any(
            widget in metadata and metadata[widget].fragment_id != asked.fragment_id for widget in changed
        ):
            asked.fragment_id = ""
    _rerun(session, asked)


def _changed(session: AppSession, asked: ClientState) -> list[str]:
    """The ids of the widgets that are not as this session's browser last sent them."""
    sent: dict[str, bytes] = session.__dict__.setdefault("widgets_sent", {})
    changed = []
    for one in asked.widget_states.widgets:
        kind = one.WhichOneof("value")
        if one.id in sent:
            differs = sent[one.id] != one.SerializeToString()
        else:
            differs = kind in DONE and bool(getattr(one, kind))
        if differs:
            changed.append(one.id)
    sent.clear()
    sent |= {one.id: one.SerializeToString() for one in asked.widget_states.widgets}
    return changed


def _called_by() -> str | None:
    host: str | None = st.context.headers.get("Host")
    return host


def _name(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""
