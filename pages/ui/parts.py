"""Elements that several pages share: page heads, tab titles, status badges, text formats and glossary cards."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.atomic import atomic_write
from core.config import FILE_TASK, TaskConfig
from core.errors import PlaygroundError
from core.events import Probe
from core.glossary import GLOSSARY, WORDS, Term
from core.messages import Text, _, ngettext, with_more
from core.store import LibraryTask, RunSummary, Status
from core.store.budget import missing_sentence
from core.tasks import TASKS

Entry = TypeVar("Entry")
BadgeColour = Literal["gray", "blue", "green", "red", "orange", "violet", "yellow"]
STATUS_COLOURS: Mapping[Status, BadgeColour] = {
    Status.QUEUED: "gray",
    Status.STARTING: "blue",
    Status.RUNNING: "blue",
    Status.PAUSED: "orange",
    Status.STOPPING: "orange",
    Status.INTERRUPTED: "orange",
    Status.STOPPED: "gray",
    Status.FAILED: "red",
    Status.FINISHED: "green",
}
COLUMNS = 3


def distinct(labels: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Return labels of options; a label that occurs more than once gets its mark.

    A browser identifies an option by its label, so equal labels could select the wrong option.
    """
    count = Counter(labels)
    return [label if count[label] == 1 else with_more(label, mark) for label, mark in zip(labels, marks, strict=True)]


def task_names(own: Mapping[str, LibraryTask], start: TaskConfig | None = None) -> dict[str, str]:
    """Return the displayed names of the bundled tasks, of users' tasks and, if `start` is a file, of that file."""
    # Translators: a task that the user added, in the list of all tasks.
    added = distinct([_("{task} (added)", task=task.name) for task in own.values()], list(own))
    names = {name: _(entry.label) for name, entry in TASKS.items()} | dict(zip(own, added, strict=True))
    if start is not None and start.id == FILE_TASK:
        names[FILE_TASK] = _("{path} (a file)", path=start.path)
    return names


def run_titles(runs: Sequence[RunSummary]) -> list[str]:
    """Return the runs' titles; equal titles get the run's number."""
    return distinct([run.title for run in runs], [_("run {number}", number=run.number) for run in runs])


def missing_weights(run: RunSummary) -> None:
    """Draw which weights of a run the disk budget dropped, and how to restore them; draw nothing if none."""
    sentence = missing_sentence(run)
    if sentence is not None:
        st.caption(escaped(sentence))


def summarised(values: Sequence[str], key: str) -> DeltaGenerator:
    """Return an expander labelled with the values inside; the key keeps it open while they change."""
    return st.expander(escaped(" · ".join(values)), key=key)


def page_link(page: str, label: str, icon: str = "", query: Mapping[str, Any] | None = None, **look: Any) -> None:
    """Draw a link to a page.

    Args:
        icon: name of a Material icon, "" for none; query: parameters of the address.
        look: further arguments of `st.page_link`.
    """
    symbol = f":material/{icon}:" if icon else None
    st.page_link(f"pages/{page}.py", label=label, icon=symbol, query_params=query, **look)


def first_steps() -> None:
    """Draw the links for a server without runs: start one, or open a finished one on Home."""
    with st.container(horizontal=True):
        page_link("fine_tune", _("Start a run"), "rocket_launch")
        page_link("home", _("Open a finished run on Home"), "replay")


def status_badge(run: RunSummary) -> None:
    if run.responding:
        st.badge(_(str(run.status)), color=STATUS_COLOURS[run.status])
    else:
        st.badge(_("not responding"), color="red")


def duration(seconds: float) -> str:
    """Format seconds, such as under 1 s, 42 s, 3 min 20 s, 2 h 5 min."""
    if 0 < seconds < 0.5:
        return _("under 1 s")
    seconds = max(0, round(seconds))
    if seconds < 60:
        return _("{seconds} s", seconds=seconds)
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        if rest and minutes < 5:
            return _("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
        return _("{minutes} min", minutes=minutes)
    hours, minutes = divmod(minutes, 60)
    return _("{hours} h {minutes} min", hours=hours, minutes=minutes) if minutes else _("{hours} h", hours=hours)


def ago(moment: float) -> str:
    seconds = time.time() - moment
    return _("just now") if seconds < 60 else _("{time} ago", time=duration(seconds // 60 * 60))


def escaped(text: Text) -> str:
    """Escape untrusted text for Streamlit's Markdown: no markup, no formula, no HTML, no directive."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#+-.!|~$:&" else c for c in " ".join(str(text).split()))


@contextmanager
def show_errors(
    draw: Callable[[str], object] = st.error, words: Callable[[PlaygroundError], str] = str
) -> Iterator[None]:
    """Show on the page why the block cannot go on, and skip the rest of it."""
    try:
        yield
    except PlaygroundError as error:
        draw(escaped(words(error)))


def probe_label(probe: Probe) -> str:
    """Describe the texts on a map."""
    train = len(probe.ids) - probe.held_out
    held_out = ngettext("{count} validation text", "{count} validation texts", probe.held_out)
    if not train:
        return held_out
    # Translators: the symbols of the training texts on the map are open, not filled.
    return _(
        "{held_out} and {train} (open symbols)",
        held_out=held_out,
        train=ngettext("{count} training text", "{count} training texts", train),
    )


APP_NAME = "SCL Playground"
UI = Path(__file__).parent
STATIC = UI.parents[1] / "static"
# Streamlit sends the script of a component with every change of its data. A longer script than this is a static file,
# which browsers keep.
INLINE_CHARS = 4_000


def static_url(name: str, content: bytes) -> str:
    """Write a file to static/, unless it is there, and return its URL.

    Its name contains a hash of its content, so that a server with older code keeps its own file.
    """
    path = STATIC / f"{Path(name).stem}.{hashlib.sha256(content).hexdigest()[:12]}{Path(name).suffix}"
    if not path.exists():
        with atomic_write(path) as partial:
            partial.write_bytes(content)
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"{'/' + base if base else ''}/app/static/{path.name}"


def component(name: str, html: str, js: Sequence[str | Path], css: Sequence[str | Path] = ()) -> Callable[..., Any]:
    """Register a component that is part of the page's document. Args: js, css: texts and files, which are joined."""
    script, styles = (
        "\n".join(one if isinstance(one, str) else one.read_text(encoding="utf-8") for one in parts)
        for parts in (js, css)
    )
    if len(script) > INLINE_CHARS and st.get_option("server.enableStaticServing"):
        with suppress(OSError):  # a folder that is not writable: the script stays in the messages
            url = static_url(f"{name}.js", script.encode())
            script = (UI / "loader.js").read_text(encoding="utf-8").replace("ADDRESS", url)
    return st.components.v2.component(name, html=html, css=styles or None, js=script, isolate_styles=False)


_scroll = component("scroll", "<div></div>", [UI / "scroll.js"])


def scroll_into_view(target: str | None, reason: str) -> None:
    """Scroll the element with this CSS selector into view, once for each reason; None scrolls nowhere."""
    with st.container(key="scroll"):
        _scroll(key="scroll.mount", data=[{"target": target, "reason": reason}])


def page_head(title: str) -> DeltaGenerator:
    """Draw the page's `<h1>`; return the container that continues its line."""
    head = st.container(horizontal=True, vertical_alignment="center", gap="medium", key="page_head")
    head.title(title, anchor=False, width="content")
    return head


def in_columns(entries: Iterable[Entry]) -> Iterator[tuple[DeltaGenerator, Entry]]:
    """Yield a card for each entry, row by row, so that a narrow screen keeps the order."""
    for number, entry in enumerate(entries):
        if number % COLUMNS == 0:
            columns = st.columns(COLUMNS)
        yield columns[number % COLUMNS].container(border=True, height="stretch"), entry


def tab_title(*parts: str) -> None:
    """Set the title of the browser's tab: the most specific part first, the app last."""
    st.set_page_config(page_title=" · ".join([*parts, APP_NAME]))


def card(name: str, before: str = "") -> str:
    """Return the card of a glossary term, as Markdown for a help text.

    Args:
        before: help text above the card; translated here if it is only marked.
    """
    return "\n\n".join(filter(None, [_(before), _as_markdown(GLOSSARY[name])]))


def draw_cards(*names: str) -> None:
    """Draw a line of terms, each of which opens its card."""
    with st.container(horizontal=True, key=f"explained_{names[0]}"):
        for name in names:
            st.caption(_(GLOSSARY[name].title), help=card(name), width="content")


def glossary() -> None:
    """Draw the cards of all terms, and the words of the app below them."""
    for card_place, term in in_columns(GLOSSARY.values()):
        card_place.markdown(_as_markdown(term))
    st.markdown("\n".join(f"- **{_(word)}**: {_(meaning)}" for word, meaning in WORDS.items()))


def _as_markdown(term: Term) -> str:
    picture = f"![{_(term.picture)}](app/static/glossary/{term.path.name})"
    return f"**{_(term.title)}**  \n{_(term.sentence)}\n\n$${term.formula}$$\n\n{picture}"
