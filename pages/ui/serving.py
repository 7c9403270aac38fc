"""Limits on browsers: host names, upload sizes, page reruns and sessions that were left."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st
from streamlit import config, runtime
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.caching.ttl_cache import TTLCache, TTLCacheEvictionReason
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from core.artifacts.packed import BYTES_MAX
from core.errors import EngineError, quote_value
from core.settings import settings

UPLOAD_MB = "server.maxUploadSize"
# A page takes one file at a time.
UPLOADS_HELD = 4


def check_host() -> None:
    """Refuse a browser that opened the page under a host name that is not this server's.

    A hostile page can make its name resolve to this machine (DNS rebinding); the browser then sends that name.

    Raises: EngineError.
    """
    host: str | None = st.context.headers.get("Host")
    if host is None:  # not a browser: every browser sends a Host header
        return
    name, known = _name(f"//{host}"), settings()
    own = {"localhost", st.get_option("server.address"), st.get_option("browser.serverAddress")}
    own |= {_name(known.address or ""), *(known.host or "").replace(",", " ").split()}
    with suppress(ValueError):
        ip_address(name)
        return  # a hostile page cannot make an IP address resolve to this machine
    if name not in {one.lower() for one in own if one}:
        raise EngineError(
            "This server does not answer to {host}. Open it by its own name, or add this name to SCL_ADDRESS or "
            "SCL_HOST.",
            host=quote_value(name),
        )


def bound_uploads() -> None:
    """Refuse uploads above the largest limit of any page before they are in memory; keep only a session's newest."""
    most = max(settings().max_file_mb, BYTES_MAX // 2**20)
    if st.get_option(UPLOAD_MB) != most:
        config.set_option(UPLOAD_MB, most)
    if runtime.exists():
        manager = runtime.get_instance().uploaded_file_mgr
        if isinstance(manager, MemoryUploadedFileManager):
            manager.__class__ = NewestUploads


class NewestUploads(MemoryUploadedFileManager):
    """Store of a session's newest uploads; Streamlit's own store keeps all of them until the session ends."""

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        """Add a file; first remove the oldest of its session until count and total size are within the limits."""
        most = int(st.get_option(UPLOAD_MB)) * 2**20
        held = dict(self.file_storage.get(session_id, {}))
        for old in list(held):
            if len(held) < UPLOADS_HELD and sum(len(one.data) for one in (*held.values(), file)) <= most:
                break
            del held[old]
            self.remove_file(session_id, old)
        super().add_file(session_id, file)


def end_forgotten_sessions() -> None:
    """Shut sessions down when Streamlit forgets them, some minutes after their visitor has left.

    Streamlit 1.67 leaves that to the garbage collector, which may not see them for hours. Until then each keeps the
    three open files of its event loop.
    """
    if runtime.exists():
        manager = getattr(runtime.get_instance(), "_session_mgr", None)  # AppTest has none
        storage = getattr(manager, "_session_storage", None)
        if isinstance(storage, MemorySessionStorage):
            storage._cache.__class__ = LeftSessions


class LeftSessions(TTLCache[str, SessionInfo]):
    """Sessions whose visitors have left, and may return for a while."""

    def expire(self, at_time: float | None = None) -> list[tuple[str, SessionInfo]]:
        """Remove the sessions that were kept long enough, and shut them down."""
        removed = super().expire(at_time)
        for _id, info in removed:
            info.session.shutdown()
        return removed

    def _evict_lru(self, reason: TTLCacheEvictionReason) -> SessionInfo:
        info = super()._evict_lru(reason)
        info.session.shutdown()
        return info


def mend_reruns() -> None:
    """Correct two kinds of rerun requests that Streamlit 1.67 handles wrongly.

    - A map or a timer may request its fragment between the click on a link and the new page. Streamlit runs it after
      the new page, in the name of the previous page, and the browser then clears the new page. The request is refused.
    - Simultaneous changes arrive in one request, in the name of a fragment if one of its widgets is among them. Other
      changes, such as a pressed button of the page, would be lost. The whole page is run instead.
    """
    AppSession.request_rerun = _request_rerun  # type: ignore[assignment, method-assign]


_rerun = AppSession.request_rerun
# Kinds of values that components and buttons send only after an action; other widgets send their defaults too.
DONE = ("json_value", "json_trigger_value", "trigger_value", "string_trigger_value")


def _request_rerun(session: AppSession, asked: ClientState | None) -> None:
    if asked is not None:
        sent: dict[str, bytes] = session.__dict__.setdefault("widgets_sent", {})
        changed = []  # ids of the widgets that have changed since this session's previous request
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
        if asked.page_script_hash:
            wanted = session._client_state  # the state of the current or latest page
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


def _name(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""
