"""Map, verdict and curves of a run, on its live page."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from core.advice.newest_contrast import newest_contrast
from core.advice.score_source import scorers
from core.artifacts.maps import LIVE, map_request
from core.config.plan import objective_at
from core.errors import StoreError
from core.events import VALIDATION, Evaluation
from core.figures.curves import HEIGHT_PX, curves_figure
from core.figures.smoothing import RAW, Smoothing
from core.messages import N_, _, join_list, sentences
from core.quantities import percent
from core.representation.attention import punctuation, top_words, word_attention
from core.representation.neural_collapse import COLLAPSE
from core.representation.projections import MapSpec
from core.representation.verdict import Geometry, Outcome, verdict
from pages.ui.explore import run_reads
from pages.ui.explore.frame_map import panel_of
from pages.ui.explore.run_reads import Frames, frames_of
from pages.ui.live_figure import as_text, live_figure
from pages.ui.map_view import MapState, map_view
from pages.ui.parts import escaped, probe_label, show_errors
from pages.ui.reads import RunNow, cached
from pages.ui.tables import truncate
from pages.ui.tokens.reads import example_row, token_run
from pages.ui.tokens.source import NOT_KEPT
from pages.ui.waiting import complete_since, ensure_job

# Set in the style of the page, which reserves the room before the first frame.
MAP_HEIGHT = "var(--live-map)"
METHODS = {"pca": "PCA", "umap": "UMAP"}
UMAP = MapSpec("umap")
# Translators: of curves.
CURVES = {"smooth": N_("Smooth"), "raw": N_("Raw")}
SMOOTHINGS = {"smooth": Smoothing("exponential", 0.9), "raw": RAW}
# Words named below the map, and the length at which their text is cut.
TOP_WORDS, TEXT_CHARS = 5, 200


def draw_map(now: RunNow, method: str) -> None:
    """Draw the map of the frames so far: UMAP, which lags some frames behind, or PCA until UMAP has a map."""
    run = now.run
    assert run.probe is not None
    frames = frames_of(now.store, run, None)
    # Neither the map's progress nor its data, which arrive as further elements, move it.
    above, below = st.container(gap=None, key="live_map"), st.container()
    if not frames.numbers:
        above.caption(
            _("Computing the first frame.")
            if run.last_step
            else _("The first frame appears right after the first step.")
        )
        return
    spec, about = LIVE, _("First two principal components of the normalised vectors.")
    try:
        maps = None
        if MapSpec(method) == UMAP:
            maps = run_reads.maps(frames, UMAP)
            if len(maps) < len(frames.numbers):
                with below:
                    ensure_job("map", map_request(run, UMAP), "UMAP", since=complete_since(run))
            if maps:
                behind = _("UMAP of the normalised vectors, a few frames behind.")
                spec, about = UMAP, sentences([behind, _(UMAP.entry.caution)])
        panel = panel_of(frames, spec, maps or run_reads.maps(frames, LIVE))
    except StoreError as error:
        st.warning(escaped(str(error)))
        return
    with above:
        on_map = map_view(
            [panel],
            key=f"live.map.{run.id}",
            height=MAP_HEIGHT,
            description=_("Map of {texts} texts, coloured by label.", texts=f"{len(run.probe.ids):,}"),
            trails=False,
            follow=True,
            name=f"{run.id}-{spec.method}",
        )
    with st.container(key="live_words"), show_errors(st.warning):
        st.caption(_attended(now, frames, on_map))
    # Translators: which texts are on a map, whose colours are the labels.
    shown = _("{texts}, coloured by label.", texts=probe_label(run.probe))
    turned = _("Each frame is aligned with the one before, so points move only because the encoder changed.")
    st.caption(sentences([shown, about, turned]))


def _attended(now: RunNow, frames: Frames, on_map: MapState) -> str:
    """List the words that [CLS] attends to most in the clicked text, or in the first one, at the step of the map."""
    known = token_run(now.store, now.run, frames.probe, frames.numbers)
    place = known.ids.index(on_map.clicked) if on_map.clicked in known.ids else 0
    row = example_row(known, on_map.frame, place) if known.texts and on_map.frame is not None else None
    if row is None:
        return _(NOT_KEPT)
    attention, text = row[0], known.texts[place]
    words = [text.surface(word) for word in text.words]
    weights = word_attention(attention, [word.places for word in text.words], layer=len(attention)).words
    top = top_words(weights, TOP_WORDS, punctuation(words))
    listed = join_list(f"**{escaped(words[one])}** {percent(weights[one])}" for one in top)
    cut = escaped(truncate(" ".join(text.sides), TEXT_CHARS))
    # Translators: {words} are the words of a text with the most attention, with their shares.
    if now.run.config.encoder.pooling == "mean":
        return _(
            "Example: in “{text}”, [CLS] attends most to {words}. This classifier does not use [CLS].",
            words=listed,
            text=cut,
        )
    return _("Example: in “{text}”, [CLS] attends most to {words}.", words=listed, text=cut)


def draw_verdict(now: RunNow) -> None:
    """Draw the verdict on one contrastive term of the phase, based on its loss, the geometry and the predictions."""
    run, config = now.run, now.config
    scores = {e.step: e for e in now.evaluations if e.split == VALIDATION}
    if not now.steps or not scores or run.probe is None:
        return
    newest = scores[max(scores)]
    contrast = newest_contrast(now.steps, objective_at(config, now.steps[-1].step).objective, len(run.probe.classes))
    if contrast is None:
        return
    largest = None  # fraction of the texts in the class that the classifier predicts most
    if scorers(config, [newest]) == ["classifier"]:
        try:
            predicted = now.store.logits(run.id, newest.step)[: run.probe.held_out].argmax(1)
            largest = float(np.bincount(predicted).max() / len(predicted))
        except StoreError:  # the map reports it
            pass
    start = _geometry(scores[0].values) if 0 in scores else None
    found = verdict(contrast, _geometry(newest.values), start, largest)
    if found.outcome == Outcome.COLLAPSED:
        st.warning(_(found.sentence))
    else:
        st.markdown(_(found.sentence))
    st.caption(_("Validation texts, pooled vectors of the last block: {numbers}", numbers=found.numbers))


def _geometry(values: Mapping[str, float]) -> Geometry:
    return Geometry(
        values["mean_cosine"], values["effective_rank"], values.get("within_cosine"), values.get("between_cosine")
    )


# All visitors who watch a run share its figure.
@cached(32, RunNow)
def _figure(now: RunNow, kind: str) -> str:
    run = now.run
    figure = curves_figure(
        now.steps,
        now.scores,
        now.turns,
        run.facts,
        run.config.phase_ends,
        revision=run.id,
        smoothing=SMOOTHINGS[kind],
        changes=now.config.changes,
    )
    return as_text(figure)


def draw_curves(now: RunNow, kind: str) -> None:
    """Draw the curves. Args: kind: a key of CURVES."""
    live_figure(
        _figure(now, kind),
        key="live.curves",
        height=HEIGHT_PX,
        version=f"{now.key} {kind}",
        description=_("Curves by step: loss and its terms, validation accuracy, gradient norms, learning rate."),
    )
    scored = [e for e in now.evaluations if e.split == VALIDATION]
    if scored and (agreement := _agreement(scored[-1])):
        st.caption(agreement)
    if scored:
        collapse = [_(label) for measure, label in COLLAPSE.items() if any(measure in e.values for e in scored)]
        if "nc1" in scored[-1].values and "nc2_norms" not in scored[-1].values:
            collapse.append(_("NC2: always 0 for two classes, so not drawn"))
        none = _("No neural-collapse measures: the run predates them, or a class has a single validation text.")
        st.caption(" · ".join(collapse) or none)


def _agreement(scored: Evaluation) -> str:
    """Describe how alike two dropout passes over a text are; "" if this was not measured."""
    before, after = (scored.values.get(name) for name in ("view_cosine", "view_cosine_logits"))
    if before is None:
        return ""
    if after is None:
        return _("Cosine of two dropout passes over a text: {before:.3f} at the encoder's output.", before=before)
    own = _(
        "Cosine of two dropout passes over a text: {before:.3f} at the encoder's output, {after:.3f} at the logits.",
        before=before,
        after=after,
    )
    alike, alike_after = (scored.values.get(name) for name in ("within_cosine", "within_cosine_logits"))
    if alike is None or alike_after is None:
        return own
    of_label = _("Two texts of one class: {before:.3f} and {after:.3f}.", before=alike, after=alike_after)
    return sentences([own, of_label])
