"""Visitors of a shared server, and the runs and experiments that they own.

Streamlit's login identifies a visitor if it is configured; otherwise a cookie does, which the server has signed.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import streamlit as st
from itsdangerous import BadSignature, URLSafeSerializer

from core.config.describe import problem_text
from core.errors import EngineError
from core.messages import _, ngettext
from core.settings import settings
from core.store import Store, default_folder
from core.store.names import NAME_CHARS, new_id
from core.store.secret import server_secret
from core.workers.limits import ask_for_trust
from pages.ui import state
from pages.ui.parts import UI, component, escaped, show_errors

COOKIE, SALT, YEAR_S = "scl_visitor", "visitor", 365 * 86_400
ADMIN, VISITOR = "visitor.admin", "visitor.id"
# Keys of the browser component, of the cookie that it last sent, and of the cookie that it may replace.
KEEPING, TAKEN, REPLACED = "visitor", "visitor.taken", "visitor.replaced"
NAME_POPOVER, NAMED = "visitor.name_popover", "visitor.named"
# Delay after each wrong key, against guessing.
WRONG_KEY_S = 1.0
# This many wrong keys within LOCKED_S lock the field for LOCKED_S, for all visitors: a guesser can change browsers.
WRONG_KEYS_MOST, LOCKED_S = 10, 600.0
_wrong_keys_at: deque[float] = deque(maxlen=WRONG_KEYS_MOST)

_mount = component("visitor", "<span hidden></span>", [UI / "visitor.js"])


@dataclass(frozen=True, slots=True)
class Visitor:
    """The visitor of a page. Attributes: id: None on a server that is not shared, where every visitor is an admin."""

    id: str | None
    is_admin: bool

    def may_change(self, owner: str | None) -> bool:
        """Return whether this visitor may stop, turn, rename or delete what belongs to `owner`."""
        return self.is_admin or (self.id is not None and self.id == owner)


def visitor() -> Visitor:
    """Return the visitor of this page: by login, by a cookie that this server has signed, or a new one."""
    known = settings()
    if not known.shared:
        return Visitor(None, is_admin=True)
    email = _email()
    if email is not None:
        return Visitor(f"login:{email}", is_admin=email in known.admins or state.session_value(ADMIN, bool))
    known_id = state.session_value(VISITOR, lambda: _visitor_of(st.context.cookies.get(COOKIE) or "") or new_id())
    return Visitor(known_id, is_admin=state.session_value(ADMIN, bool))


def recognise_browser() -> None:
    """Recognise a browser without a login by its cookie, and renew that cookie."""
    ask_for_trust(lambda: not state.in_session() or visitor().is_admin)
    if not settings().shared or _email() is not None:
        return
    held = (state.widget_value(KEEPING) or {}).get("held")
    if held is not None and held != state.session_value(TAKEN, lambda: None):
        state.remember(TAKEN, held)
        known = _visitor_of(str(held))
        if known is None:
            state.remember(REPLACED, held)
        else:
            state.remember(VISITOR, known)
    _mount(
        key=KEEPING,
        data={
            "name": COOKIE,
            "value": _signed(str(visitor().id)),
            "replaced": state.session_value(REPLACED, str),
            "max_age_s": YEAR_S,
        },
        on_held_change=lambda: None,
    )


def require_own(owner: str | None) -> None:
    """Check that this visitor may change what belongs to `owner`, as the page in the browser may be outdated.

    Raises: EngineError if it belongs to another visitor.
    """
    if not visitor().may_change(owner):
        raise EngineError(
            "This belongs to another visitor. Only its owner or an admin can change it; start your own instead."
        )


def owner_name(store: Store, owner: str | None) -> str:
    """Return the displayed name of an owner; "" on a server that is not shared."""
    return owner_names(store, [owner])[0]


def owner_names(store: Store, owners: list[str | None]) -> list[str]:
    """Return the displayed names of several owners, as in `whose`."""
    if not settings().shared:
        return [""] * len(owners)
    me, names = visitor(), store.visitor_names()
    return [_named(owner, me, names) for owner in owners]


def _named(owner: str | None, me: Visitor, names: Mapping[str, str]) -> str:
    if owner is None:
        # Translators: whose a run is.
        return _("the server")
    if owner == me.id:
        # Translators: whose a run is.
        return _("you")
    return names.get(owner) or (owner.removeprefix("login:") if "@" in owner else default_name(owner))


def default_name(visitor_id: str) -> str:
    """Return the name of a visitor who has given none. It is made of digits, as random letters may spell a word."""
    number = int.from_bytes(hashlib.sha256(visitor_id.encode()).digest()[:4]) % 10_000
    # Translators: a visitor without a name, such as "visitor 0381".
    return _("visitor {number}", number=f"{number:04d}")


def who_am_i(store: Store) -> None:
    """Draw the visitor's public name and the admin form; draw nothing on a server that is not shared."""
    known, me = settings(), visitor()
    if not known.shared or me.id is None:
        return
    my_id, name = me.id, store.visitor_names().get(me.id, "")

    def forget() -> None:
        store.name_visitor(my_id, "")
        state.remember(REPLACED, _signed(my_id))
        state.remember(VISITOR, new_id())
        state.remember(ADMIN, False)

    if state.session_value(NAMED, bool):
        state.forget(NAMED)
        state.set_widget(NAME_POPOVER, False)  # closed
    with st.container(horizontal=True, vertical_alignment="center"):
        called = escaped(_named(me.id, Visitor(None, is_admin=False), {me.id: name}))
        if me.is_admin:
            may = _("You are {name}, an admin. You may stop, change, rename and delete everything.", name=called)
        else:
            may = _("You are {name}. You may watch all runs and change your own.", name=called)
        st.caption(may, width="content")
        popover = st.popover(_("Your name"), icon=":material/badge:", key=NAME_POPOVER, on_change="rerun")
        with popover, st.form("visitor.name", border=False):
            about = _("Other visitors see it beside your runs.")
            given = st.text_input(_("Name"), name, max_chars=NAME_CHARS, help=about)
            if st.form_submit_button(_("Save"), type="primary"):
                with show_errors(words=problem_text):
                    store.name_visitor(me.id, given)
                    state.remember(NAMED, True)
                    st.rerun()
        if _email() is None:
            with st.popover(_("Forget me"), icon=":material/person_off:"):
                st.caption(
                    _(
                        "This browser becomes a new visitor without a name. Your runs stay under {visitor}, and only "
                        "an admin can change them.",
                        visitor=default_name(me.id),
                    )
                )
                st.button(_("Forget me"), type="primary", key="visitor.forget", on_click=forget)
        if known.admin_key is not None and not me.is_admin:
            _admin_form(known.admin_key.get_secret_value())
        if state.session_value(ADMIN, bool) and st.button(_("Stop being an admin"), type="tertiary"):
            state.remember(ADMIN, False)
            st.rerun()


def _admin_form(key: str) -> None:
    with st.popover(_("Admin"), icon=":material/key:"), st.form("visitor.admin", border=False):
        about = _("From the server’s settings. You stay an admin until this tab is closed or reloaded.")
        # Translators: a secret that makes its owner an admin.
        typed = st.text_input(_("Key"), type="password", help=about)
        if st.form_submit_button(_("Become an admin"), type="primary"):
            guesses = _wrong_keys_at
            locks = len(guesses) == WRONG_KEYS_MOST and guesses[-1] - guesses[0] <= LOCKED_S
            if locks and (locked_s := guesses[-1] + LOCKED_S - time.monotonic()) > 0:
                st.error(
                    _(
                        "After {count} wrong keys the field is locked for {minutes}. Try again later.",
                        count=WRONG_KEYS_MOST,
                        minutes=ngettext("{count} minute", "{count} minutes", ceil(locked_s / 60)),
                    )
                )
                return
            if hmac.compare_digest(typed.encode(), key.encode()):
                state.remember(ADMIN, True)
                st.rerun()
            guesses.append(time.monotonic())
            time.sleep(WRONG_KEY_S)
            st.error(_("This is not the admin key. Ask the administrator of this server."))


def _email() -> str | None:
    """Return the email of a visitor who is logged in by Streamlit's login, otherwise None."""
    user = st.user.to_dict()
    email = user.get("email") if user.get("is_logged_in") else None
    return str(email) if email else None


def _visitor_of(signed: str) -> str | None:
    """Return the visitor's id in a cookie, None if this server has not signed it."""
    try:
        return str(_signer().loads(signed))
    except BadSignature:
        return None


def _signed(visitor_id: str) -> str:
    return str(_signer().dumps(visitor_id))


def _signer() -> URLSafeSerializer:
    return URLSafeSerializer(server_secret(default_folder()), salt=SALT)
