"""Home: an introduction to the app, the recent runs, and two bundled replays that play side by side."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core import __version__
from core.advice.score_source import score_note
from core.artifacts.replay import TAG, Replay, open_replay, read_replay
from core.artifacts.shared_examples import find_turn
from core.artifacts.shipped import SHIPPED
from core.config.describe import objective_label
from core.figures.map_data import box_of, examples_bundle, label_colours, places_bundle
from core.figures.run_curves import MOST_RUNS
from core.messages import N_, _, sentences
from core.store import Status
from core.tasks.registry import task_label
from pages.ui import reads, state
from pages.ui.address import Home
from pages.ui.bound import bound
from pages.ui.map_view import Panel, map_view
from pages.ui.parts import escaped, page_head, page_link, status_badge
from pages.ui.reads import cached

# Pages that open a replay; Compare opens it with the others.
OPENED_IN = (
    ("explore", N_("Explore"), "scatter_plot"),
    ("tokens", N_("Tokens"), "format_ink_highlighter"),
    ("compare", N_("Compare with other runs"), "compare_arrows"),
)
# The replay that the others are drawn beside.
BASELINE = "ce"


def page() -> None:
    store = reads.open_engine().store
    head = page_head(_("Watch a text encoder learn"))
    if head.button(_("Sweep loss weight λ and temperature τ on my data"), type="primary", icon=":material/grid_on:"):
        st.switch_page("pages/experiments.py")
    left, right = st.columns([5, 7], gap="large")
    with left:
        st.write(
            _(
                "Pick a text task, mix cross-entropy with a contrastive loss, and fine-tune an encoder on this "
                "machine. Watch the embedding map, the losses and the gradients change while it learns, then "
                "replay them frame by frame."
            )
        )
        runs = [run for run in store.runs() if not run.of_experiment and TAG not in run.tags][:5]
        # Without a run that has a probe set, the visitor explores the replay.
        newest = next((run for run in runs if run.probe_known and run.status != Status.FAILED), None)
        with st.container(horizontal=True):
            if st.button(_("Start a run"), icon=":material/rocket_launch:"):
                st.switch_page("pages/fine_tune.py")
            if st.button(_("Take a lesson"), icon=":material/school:"):
                st.switch_page("pages/lessons.py")
            label = _("Explore the replay") if newest is None else _("Explore {run}", run=escaped(newest.title))
            if st.button(label, icon=":material/scatter_plot:"):
                explored = newest.id if newest else _run_of(Home.REPLAY.default or "")
                st.switch_page("pages/explore.py", query_params={"run": explored})
        if runs:
            st.header(_("Recent runs"))
        for run in runs:
            name, status, about = st.columns([5, 2, 5], vertical_alignment="center")
            with name:
                page_link("fine_tune", escaped(run.title), query={"run": run.id})
            with status:
                status_badge(run)
            about.caption(escaped(f"{task_label(run.config)} · {objective_label(run.effective)}"))
        st.caption(_("Version {version}", version=__version__))
    with right, st.container(key="home_replay"):
        st.fragment(_replay)()


def _replay() -> None:
    """Draw the maps of the baseline and of another bundled replay, which play automatically in step."""
    name, tied = bound(Home.REPLAY, list(SHIPPED))
    st.pills(
        _("Replay"),
        list(SHIPPED),
        format_func=lambda one: _(SHIPPED[one].label),
        required=True,
        label_visibility="collapsed",
        **tied.by_default,
    )
    about = [_(SHIPPED[name].about)]
    ours, theirs = (replay(one).separations[-1] for one in (name, BASELINE))
    if name != BASELINE and ours is not None and theirs is not None:
        ratios = {"ours": f"{ours:.2f}", "theirs": f"{theirs:.2f}"}
        about.append(
            _(
                "The classes end tighter than with CE alone: spread ratio (within ÷ between classes; lower is "
                "tighter) {ours} against {theirs}. One seed each.",
                **ratios,
            )
            if ours < theirs
            else _(
                "The classes end no tighter than with CE alone: spread ratio (within ÷ between classes; lower is "
                "tighter) {ours} against {theirs}. One seed each.",
                **ratios,
            )
        )
    st.caption(sentences(about))
    panels = replay_panels(name)
    map_view(
        panels,
        key="home.map",
        height="min(max(18rem, 100dvh - 26rem), 52vw)",
        description=_(
            "A replay: the map of {count} texts during fine-tuning.",
            count=f"{len(replay(name).probe.ids):,}",
        ),
        trails=False,
        play=True,
        name=name,
        columns=len(panels),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_("Hover over a point to read its text."), width="stretch")
        for page, label, icon in OPENED_IN:
            if st.button(_(label), icon=f":material/{icon}:", type="tertiary", key=f"home.replay.{page}"):
                if page == "compare":
                    compared = [*dict.fromkeys((BASELINE, name, *SHIPPED))][:MOST_RUNS]
                    query = {"runs": ",".join(map(_run_of, compared))}
                else:
                    query = {"run": _run_of(name)}
                st.switch_page(f"pages/{page}.py", query_params=query)


def _run_of(name: str) -> str:
    """Open a replay as a run, so that every page finds it; return the run's id."""
    return open_replay(reads.open_engine().store, SHIPPED[name].path)


@st.cache_resource(show_spinner=False)
def replay(name: str) -> Replay:
    return read_replay(SHIPPED[name].path)


@cached(16)
def replay_panels(name: str) -> list[Panel]:
    """Build the maps of the baseline and of a replay, aligned to the baseline's last map, on one scale."""
    shown = [(_(SHIPPED[one].label), replay(one)) for one in dict.fromkeys((BASELINE, name))]
    probe, onto = shown[0][1].probe, shown[0][1].maps[-1]
    stacks = []
    for _label, played in shown:
        turn = find_turn(played.maps[-1], onto)
        stacks.append(np.stack([turn(points) for points in played.maps]))
    return [
        Panel(
            examples=examples_bundle(probe.ids, probe.texts, probe.labels, probe.classes, probe.splits),
            places=places_bundle(places, box_of(*stacks)),
            colours=label_colours(probe.labels, probe.classes),
            steps=played.steps,
            title=label,
            notes=tuple(
                " · ".join(
                    [
                        *([] if score is None else [score_note(score)]),
                        *([] if ratio is None else [_("spread ratio {ratio}", ratio=f"{ratio:.2f}")]),
                    ]
                )
                for score, ratio in zip(played.scores, played.separations, strict=True)
            ),
        )
        for (label, played), places in zip(shown, stacks, strict=True)
    ]


state.require_app()
page()
