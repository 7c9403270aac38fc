"""The visitor's sentence: its position on every map, its prediction, and the changes among its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.advice.score_source import classifier_learns_from
from core.artifacts import text_history as life
from core.artifacts.sentence import Inspected, check_text, read_inspected, takes_pairs
from core.artifacts.text_history import Biography, Place
from core.artifacts.weights import all_known, weight_stamps
from core.events import FloatArray
from core.figures.map_data import OwnPoint
from core.figures.words import confidence_figure
from core.messages import N_, _, join_list, ngettext, sentences
from core.quantities import percent
from core.representation.projections import MapSpec, Points
from core.settings import settings
from pages.ui import reads, state
from pages.ui.address import Explore
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped, missing_weights, page_link, show_errors
from pages.ui.tables import Cell, text_table
from pages.ui.waiting import complete_since, ensure_job

MAX_CHARS_IN_URL = 1_500
OWN = "explore.own"


@dataclass(frozen=True, slots=True)
class OwnText:
    """The visitor's text at every frame of a run."""

    text: str
    second: str | None
    life: Biography


def ask_sentence(frames: Frames) -> tuple[OwnText | None, bool]:
    """Draw the form. Return the text at every frame once it is known, and whether its job is still running."""
    reads.jobs().warm_up("model")  # before the visitor types
    if frames.layers_at is not None:
        st.caption(
            _("A sentence can be placed only at the steps of the run. Under More, set Frames to “Steps of the run”.")
        )
        return None, False
    pair = takes_pairs(frames.store, frames.run)
    with st.form("explore.sentence", border=False):
        given, given_second = Explore.SENTENCE.text or "", Explore.SECOND.text or ""
        most = settings().max_text_chars
        text = st.text_area(_("Your sentence"), given, max_chars=most, height=80, key=f"{OWN}.text")
        second = None
        if pair:
            second = st.text_area(_("Second text"), given_second, max_chars=most, height=80, key=f"{OWN}.second")
        asked = st.form_submit_button(_("Place it"), type="primary", icon=":material/add_location_alt:")
    missing_weights(frames.run)
    if asked:
        state.remember(OWN, (text, second))
        fits = _fits_in_url(text, second)
        Explore.SENTENCE.put(text if fits else None)
        Explore.SECOND.put(second if fits else None)
    text, second = state.session_value(OWN, lambda: (given, given_second if pair else None))
    if not text.strip():
        st.caption(_("Type a sentence and see where the encoder places it, from the first frame to the last."))
        return None, False
    busy, second = False, second if pair else None
    with show_errors(st.warning):
        check_text(text, second, pair=pair, most_chars=most)
        stamps = weight_stamps(frames.store, frames.run)
        found = read_inspected(frames.folder, text, second)
        if found is None or not all_known(frames.run, stamps, found.weights):
            request = {"run": frames.run.id, "what": "sentence", "text": text, "second": second}
            busy = ensure_job("inspect", request, N_("Reading your sentence"), since=complete_since(frames.run))
            found = read_inspected(frames.folder, text, second)
        if found is not None:
            return OwnText(text, second, _life(frames, frames.extent, text, second, found.stamps, found)), busy
    return None, busy


def _fits_in_url(text: str, second: str | None) -> bool:
    return len(text) + len(second or "") <= MAX_CHARS_IN_URL


@run_reads.cached_by_frames(max_entries=16)
def _life(
    frames: Frames, extent: str, text: str, second: str | None, stamps: tuple[int, ...], _found: Inspected
) -> Biography:
    def read(step: int) -> tuple[FloatArray, FloatArray]:
        return frames.store.embeddings(frames.run.id, step), frames.store.logits(frames.run.id, step)

    return life.biography(_found, frames.numbers, read)


def own_point(own: OwnText, frames: Frames, maps: Mapping[int, Points], spec: MapSpec) -> OwnPoint:
    """Return the sentence's point on every frame's map; frames without a map have none."""
    places = _path(frames, spec, str([*maps]), own.text, own.second, str(own.life.exact), own.life, maps)
    return OwnPoint(_("Your sentence"), own.text, tuple(places), own.life.exact)


@run_reads.cached_by_frames(max_entries=16)
def _path(
    frames: Frames,
    spec: MapSpec,
    there: str,
    text: str,
    second: str | None,
    exact: str,
    _life: Biography,
    _maps: Mapping[int, Points],
) -> list[Place | None]:
    # Maps that are fitted once are fitted on the last frame, whose map then determines every position.
    reference = frames.numbers[-1] if spec.mode == "once" else None
    return life.path(_life, _maps, frames.vectors, linear=spec.entry.linear, reference=reference)


def sentence(own: OwnText, frames: Frames, number: int) -> None:
    """Draw the sentence's prediction and neighbours at a frame, and its class probabilities over the steps."""
    life, probe = own.life, frames.probe
    at = life.steps.index(number)
    predicted = predicted_steps(frames, life)
    since = life.steps.index(predicted[0]) if predicted else 0
    said = []
    if number in predicted:
        label, first = (probe.classes[life.predictions[place]] for place in (at, since))
        now = {"label": escaped(label), "share": percent(life.probabilities[at].max())}
        st.markdown(
            _("Predicted **{label}**, {share}, computed with the weights of this step.", **now)
            if life.exact[at]
            else _("Predicted **{label}**, {share}, estimated from nearby examples.", **now)
        )
        step = f"{life.steps[since]:,}"
        said.append(
            _("The predicted class is the same as at step {step}.", step=step)
            if first == label
            else _("At step {step}: {label}.", step=step, label=escaped(first))
        )
    else:
        st.markdown(_("The classifier had learned nothing at this step, so there is no prediction for your sentence."))
    said.append(
        _(
            "{stayed} of its {k} nearest examples were already neighbours at step {step}.",
            k=life.neighbours.shape[1],
            stayed=life.stayed[at],
            step=f"{life.steps[0]:,}",
        )
    )
    known = [step for step, exact in zip(life.steps, life.exact, strict=True) if exact]
    where_exact = ngettext(
        "Exact at step {steps}, where weights are stored (filled star). Elsewhere the position follows the nearest "
        "examples (hollow star).",
        "Exact at steps {steps}, where weights are stored (filled star). Elsewhere the position follows the "
        "nearest examples (hollow star).",
        len(known),
        steps=join_list(f"{step:,}" for step in known),
    )
    st.caption(sentences([*said, where_exact]))
    if predicted:
        live_figure(
            confidence_figure(
                predicted,
                life.probabilities[since:],
                probe.classes,
                life.exact[since:],
                number,
                revision=frames.run.id,
            ),
            key="explore.biography",
            height=260,
            description=_("Probability of each class for your sentence, by step."),
        )
    old = set(life.neighbours[0].tolist())
    rows = life.neighbours[at].tolist()
    columns: dict[str, list[Cell]] = {
        N_("New"): [row not in old for row in rows],
        N_("Label"): [probe.classes[probe.labels[row]] for row in rows],
        N_("Text"): [probe.texts[row] for row in rows],
    }
    text_table(columns, height=320, classes=probe.classes)
    query = {"run": frames.run.id, "source": "own"}
    if _fits_in_url(own.text, own.second):  # the visitor has to retype a longer text on that page
        query |= {"text": own.text, **({"second": own.second} if own.second else {})}
    page_link("tokens", _("Its words and the attention of [CLS]"), "format_ink_highlighter", query)


def predicted_steps(frames: Frames, life: Biography) -> tuple[int, ...]:
    """Return the steps with a meaningful prediction: from the first exact one at which the classifier has learned."""
    first = classifier_learns_from(frames.run.effective)
    known = zip(life.steps, life.exact, strict=True)
    since = next((step for step, exact in known if exact and first is not None and max(1, step) >= first), None)
    return () if since is None else tuple(step for step in life.steps if step >= since)
