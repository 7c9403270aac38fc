"""Home: what this is, in three sentences and one moving picture."""

from __future__ import annotations

import streamlit as st

from core.figures.map import hover_texts, map_extent, map_figure
from core.quantities import percent
from core.replay import Replay, bundled_replay
from core.store import Store
from pages.ui import reads, state
from pages.ui.live_figure import live_figure
from pages.ui.parts import ago, escaped, objective_label, status_badge, task_label

FRAME_S = 0.9
MAP_HEIGHT = 440
RECENT = 5


def page() -> None:
    store = reads.open_engine().store
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.title("Watch a text encoder learn")
        st.write(
            "Pick a text task, mix cross-entropy with a contrastive loss, and start a short fine-tune on this machine. "
            "While it learns you see its map of texts, its losses and its gradients move. "
            "Then scrub back and forth through what happened."
        )
        st.page_link("pages/fine_tune.py", label="**Start your own**", icon=":material/rocket_launch:")
        st.page_link("pages/explore.py", label="Explore a finished run", icon=":material/scatter_plot:")
        _recent(store)
    with right:
        st.fragment(_replay, run_every=FRAME_S)(bundled())


@st.cache_resource(show_spinner=False)
def bundled() -> Replay:
    return bundled_replay()


def _replay(replay: Replay) -> None:
    """One frame further at every tick, with a rest on the last one."""
    tick: int = state.remembered("tick", lambda: 0)
    state.remember("tick", tick + 1)
    frame = min(tick % (len(replay.steps) + 4), len(replay.steps) - 1)
    step, accuracy = replay.steps[frame], replay.accuracies[frame]
    live_figure(
        map_figure(
            replay.maps[frame], replay.probe, hover_texts(replay.probe), map_extent(replay.maps), revision="home"
        ),
        key="home.map",
        height=MAP_HEIGHT,
        description="A replay: the map of 120 film reviews while an encoder is fine-tuned.",
    )
    st.caption(
        f"A replay: {escaped(replay.title)}. Step {step:,} of {replay.steps[-1]:,}, "
        f"validation accuracy {percent(accuracy)}. Every point is one review; hover to read it."
    )


def _recent(store: Store) -> None:
    runs = store.runs()[:RECENT]
    if not runs:
        return
    st.subheader("Recent runs")
    for run in runs:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link("pages/fine_tune.py", label=escaped(run.title), query_params={"run": run.id}, width="content")
            status_badge(run)
            st.caption(
                escaped(f"{task_label(run.config)} · {objective_label(run.effective)} · {ago(run.created_at)}"),
                width="content",
            )


state.require_app()
page()
