"""Tokens: attention of [CLS] before and after training, tokens that a loss contrasts, deleted words, words by class."""

from __future__ import annotations

import streamlit as st

from core.config.score_source import classifier_learned
from core.messages import N_, _, ngettext, sentences
from core.store import Store
from pages.ui import reads, state
from pages.ui.address import Tokens
from pages.ui.bound import bound_segments, forget, pick_run
from pages.ui.parts import first_steps, page_head, show_errors, tab_title
from pages.ui.tokens.classes import draw_classes
from pages.ui.tokens.deletion import delete_a_word
from pages.ui.tokens.one_text import contrasts_tokens, draw_contrasted, one_text
from pages.ui.tokens.reads import TokenRun, attention_shape, token_run
from pages.ui.tokens.source import NOT_KEPT, choose, choose_text

VIEWS = {"text": N_("One text"), "delete": N_("Delete a word"), "classes": N_("By class")}
CONTRASTED = {"contrasted": N_("Contrasted tokens")}
MEAN_POOLING = N_(
    "The page shows attention from [CLS] to each word. This run classifies the mean of all token vectors, so "
    "that attention says little about its predictions."
)
UNTRAINED = N_(
    "At step {step:,} the classifier had learned nothing. Predictions for examples come from a linear probe if the "
    "run has one; those for your own texts and for deletions mean nothing."
)


def page() -> None:
    store = reads.open_engine().store
    head = page_head(_("Tokens"))
    named = Tokens.RUN.run(store)
    runs = [run for run in store.runs() if run.probe_known]
    if not runs:
        st.info(_("There is nothing to show yet. A run shows its attention from its first frame."))
        first_steps()
        return
    with head:
        run = pick_run(store, runs, named, key="tokens.run")
    if named is not None and named.id != run.id:
        forget(Tokens.of("run"))
    Tokens.RUN.put(run.id)
    tab_title(run.title, _("Tokens"))
    frames = tuple(store.frame_steps(run.id))
    with head:
        more = CONTRASTED if contrasts_tokens(run.effective) else {}
        view = bound_segments(_("Section"), Tokens.VIEW, VIEWS | more)
    if run.probe is None or not frames:
        st.info(_("This run has no frames yet. The first appears right after the first step."))
    else:
        known = token_run(store, run, run.probe, frames)
        with show_errors(st.warning):
            if view == "classes":
                shape = attention_shape(known, known.frames[-1]) if known.texts else None
                if shape is None:
                    st.info(sentences([_(NOT_KEPT), _("Open “One text” to enter a text of your own.")]))
                else:
                    draw_classes(known, choose(known, shape, known.frames, longest=known.longest))
            else:
                _text(known, view)
    if run.status.active:
        st.fragment(_watch, run_every=2.0)(store, run.id, frames)


def _text(known: TokenRun, view: str) -> None:
    reading = choose_text(known)
    if reading is None:
        return
    if view == "contrasted":
        draw_contrasted(known, reading)
        return
    compares = view == "text"
    longest = max(known.longest, len(reading.words))
    chosen = choose(known, reading.shape, reading.steps, longest=longest, with_before=compares)
    if known.run.config.encoder.pooling == "mean":
        st.caption(_(MEAN_POOLING))
    step = min(chosen.before, chosen.after) if compares else chosen.after
    if not classifier_learned(known.store.run(known.run.id).effective, step):
        st.caption(_(UNTRAINED, step=step))
    if compares:
        one_text(reading, chosen, known.probe.classes, known.run.id)
    else:
        delete_a_word(known, reading, chosen)


def _watch(store: Store, run_id: str, frames: tuple[int, ...]) -> None:
    """Tell the visitor that the run is still training; rerun the page once a frame is added or the run ends."""
    if tuple(store.frame_steps(run_id)) != frames or not store.run(run_id).status.active:
        st.rerun()
    known = ngettext("{count} frame", "{count} frames", len(frames))
    st.caption(_("This run is still training. {frames} so far; new ones appear by themselves.", frames=known))


state.require_app()
page()
