"""Fine-tune: configure, launch and watch a run on one page."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.artifacts.waiting_time import estimate_run
from core.config import FILE_TASK, RunConfig, TaskConfig
from core.config.describe import problem_text
from core.config.edit import OF_A_TASK
from core.errors import PlaygroundError
from core.messages import _, ngettext
from core.store import Store
from core.store.sizes import size_text
from core.tasks import TaskData
from core.workers import Engine
from core.workers.machine import has_gpu, memory_bytes
from pages.ui import reads, state
from pages.ui.address import FineTune
from pages.ui.audit import batch_audit, classifier_audit, task_audit, training_examples
from pages.ui.experiments.set_up import seeds_or_grid
from pages.ui.form import draft_form, usual_of
from pages.ui.form_start import forget_start, form_start, open_config, put_link
from pages.ui.live import live_view
from pages.ui.parts import duration, escaped, page_head, page_link, tab_title
from pages.ui.visitor import visitor


def page() -> None:
    engine = reads.open_engine()
    run = FineTune.RUN.run(engine.store)
    if run is not None:
        tab_title(run.title, _("Fine-tune"))
        st.fragment(live_view)(engine, run.id, polling=not run.status.ended, waiting=run.probe is None)
        return
    with page_head(_("Fine-tune")):
        st.caption(_("Pick a task and an objective, and watch the encoder learn."))
        st.space("stretch")
        # Translators: texts of one's own.
        page_link("data", _("Add your own data"), "add", {"view": "file"})
        open_config()
    start, origin = form_start(engine)
    task = FineTune.TASK.text
    if task is not None and task not in (start.task.id, FILE_TASK):
        rows = start.task.model_dump(exclude=OF_A_TASK)
        start = start.model_copy(update={"task": TaskConfig.model_validate({"id": task} | rows)})
    left, right = st.columns([3, 2], gap="large")
    draft, problem = None, ""
    with left:
        try:
            draft = draft_form(start, origin)
        except PlaygroundError as error:
            problem = problem_text(error)
        else:
            state.remember("draft", draft)
            FineTune.TASK.put(None if draft.task.id == FILE_TASK else draft.task.id)
            put_link(draft, usual_of(draft.task.id))
    with right, st.container(border=True, key="before_launch"):
        st.header(_("Before launch"))
        _launch_card(engine, draft, problem)
    if draft is not None:
        with suppress(PlaygroundError):  # the launch card shows it
            training_examples(reads.prepared(draft)[1])


def _launch_card(engine: Engine, draft: RunConfig | None, problem: str) -> None:
    ready: tuple[RunConfig, TaskData] | None = None
    if draft is not None:
        try:
            with st.spinner(_("Checking")):
                ready = reads.prepared(draft)
        except PlaygroundError as error:
            problem = problem_text(error)
    if ready is None:
        st.error(escaped(problem))
    else:
        config, data = ready
        st.caption(
            _(
                "{train} training, {validation} validation and {test} test texts; {classes} classes. The map shows "
                "validation texts, which are scored at every frame, and some training texts.",
                train=f"{len(data.train):,}",
                validation=f"{len(data.validation):,}",
                test=f"{len(data.test):,}",
                classes=len(data.classes),
            )
        )
        _cost(engine.store, config, data)
    icon = ":material/rocket_launch:"
    if st.button(_("Launch"), type="primary", disabled=ready is None, width="stretch", icon=icon):
        assert ready is not None
        try:
            run_id = engine.submit(ready[0], visitor().id)
        except PlaygroundError as error:
            st.error(escaped(problem_text(error)))
            return
        forget_start()
        FineTune.RUN.put(run_id)
        st.rerun()
    if draft is not None and ready is not None:
        seeds_or_grid(engine, draft)
        # Below the buttons, because a table of many classes would push them off the screen.
        task_audit(*ready)
        classifier_audit(ready[0], len(ready[1].classes), scored=bool(ready[1].pairs))
        with st.container(key="batch_audit"):
            batch_audit(*ready)


def _cost(store: Store, config: RunConfig, data: TaskData) -> None:
    """Draw the estimated time and memory, and the basis of the estimate."""
    found = estimate_run(store, config, data, gpu=has_gpu())
    left, right = st.columns(2)
    left.metric(_("Estimated time"), duration(found.total_s))
    right.metric(_("Estimated memory"), size_text(found.memory_bytes))
    frames = len(config.probe.frame_steps or ())
    points = (config.probe.size or 0) + (config.probe.train_size or 0)
    parts = [
        _(
            "{steps}: {time}",
            steps=ngettext("{count} step", "{count} steps", config.steps),
            time=duration(found.steps_s),
        ),
        _(
            "{frames} of {points}: {time}",
            frames=ngettext("{count} frame", "{count} frames", frames),
            points=ngettext("{count} point", "{count} points", points),
            time=duration(found.frames_s),
        ),
        # Translators: how long the linear probe takes.
        _("linear probe: {time}", time=duration(found.probe_s)),
        # Translators: how long the test at the end takes.
        _("test: {time}", time=duration(found.test_s)),
        # Translators: how long it takes to check and save the weights at the end.
        _("saving weights: {time}", time=duration(found.weights_s)),
    ]
    about = {"parts": " · ".join(parts)}
    st.caption(
        _("{parts}. Speed measured in an earlier run on this machine.", **about)
        if found.measured
        else _("{parts}. Speed assumed until a run has been measured here.", **about)
    )
    views = [view for phase in config.phases for term in phase.objective.terms for view in term.views]
    for sentence in dict.fromkeys(view.entry.cost for view in views if view.entry.cost):
        st.caption(_(sentence))
    if not has_gpu() and found.memory_bytes > memory_bytes():
        st.warning(
            _(
                "{size} are free. Try a smaller batch, fewer blocks or a smaller encoder.",
                size=size_text(memory_bytes()),
            )
        )


state.require_app()
page()
