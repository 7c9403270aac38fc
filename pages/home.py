"""Home: an introduction to the app, the recent runs and an animated replay."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core import __version__
from core.artifacts.replay import TAG, Replay, open_replay, read_replay
from core.artifacts.shipped import SHIPPED
from core.config.describe import objective_label
from core.config.score_source import score_note
from core.figures.map_data import examples_bundle, label_colours, places_bundle
from core.messages import N_, _
from core.tasks.task_label import task_label
from pages.ui import reads, state
from pages.ui.address import Home
from pages.ui.bound import bound
from pages.ui.map_view import Panel, map_view
from pages.ui.parts import escaped, status_badge
from pages.ui.reads import cached

# Pages that open a replay like any other run.
OPENED_IN = (("explore", N_("Explore"), "scatter_plot"), ("tokens", N_("Tokens"), "format_ink_highlighter"))


def page() -> None:
    store = reads.open_engine().store
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.title(_("Watch a text encoder learn"))
        st.write(
            _(
                "Pick a text task, mix cross-entropy with a contrastive loss, and start a short fine-tune on this "
                "machine. Watch the embedding map, the losses and the gradients change while it learns, then scrub "
                "through the frames."
            )
        )
        runs = [run for run in store.runs() if not run.of_experiment and TAG not in run.tags][:5]
        # Without a run that has a probe set, the visitor explores the replay.
        newest = next((run for run in runs if run.probe_known), None)
        if st.button(_("What do λ and τ do on my data?"), type="primary", icon=":material/grid_on:"):
            st.switch_page("pages/experiments.py")
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
            name, status, about = st.columns([4, 2, 6], vertical_alignment="center", gap="small")
            with name:
                st.page_link("pages/fine_tune.py", label=escaped(run.title), query_params={"run": run.id})
            with status:
                status_badge(run)
            about.caption(escaped(f"{task_label(run.config)} · {objective_label(run.effective)}"))
        st.caption(_("Version {version}", version=__version__))
    with right:
        st.fragment(_replay)()


def _replay() -> None:
    """Draw the map of a bundled replay, which plays automatically."""
    name, tied = bound(Home.REPLAY, list(SHIPPED))
    st.pills(
        _("Replay"),
        list(SHIPPED),
        format_func=lambda one: _(SHIPPED[one].label),
        required=True,
        label_visibility="collapsed",
        **tied.by_default,
    )
    st.caption(_(SHIPPED[name].about))
    map_view(
        [replay_panel(name)],
        key="home.map",
        height="max(20rem, 100dvh - 16.5rem)",
        description=_(
            "A replay: the map of {count} texts during fine-tuning.",
            count=f"{len(replay(name).probe.ids):,}",
        ),
        trails=False,
        play=True,
        name=name,
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_("Hover a point to read its text."), width="stretch")
        for page, label, icon in OPENED_IN:
            if st.button(_(label), icon=f":material/{icon}:", type="tertiary", key=f"home.replay.{page}"):
                st.switch_page(f"pages/{page}.py", query_params={"run": _run_of(name)})
        if st.button(_("Compare all"), icon=":material/compare_arrows:", type="tertiary", key="home.replay.compare"):
            st.switch_page("pages/compare.py", query_params={"runs": ",".join(map(_run_of, SHIPPED))})


def _run_of(name: str) -> str:
    """Open a replay as a run, so that every page finds it; return the run's id."""
    return open_replay(reads.open_engine().store, SHIPPED[name].path)


@st.cache_resource(show_spinner=False)
def replay(name: str) -> Replay:
    return read_replay(SHIPPED[name].path)


@cached(16)
def replay_panel(name: str) -> Panel:
    played = replay(name)
    probe = played.probe
    return Panel(
        examples=examples_bundle(probe.ids, probe.texts, probe.labels, probe.classes, probe.splits),
        places=places_bundle(np.stack(played.maps)),
        colours=label_colours(probe.labels, probe.classes),
        steps=played.steps,
        notes=tuple("" if score is None else score_note(score) for score in played.scores),
    )


state.require_app()
page()
