"""A run, or two side by side, as one self-contained HTML file that needs no server and no network.

The map uses the same script files as the app. The page embeds its data as compressed JSON. Untrusted text enters
only through the template, which escapes it, and through the script, which only sets text content.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup
from scipy.special import softmax

from core import __version__
from core.advice.score_source import score_notes_of, scored_evaluations, spearman_text
from core.artifacts.shared_examples import example_keys, find_shared_rows, find_turn, linked_ids
from core.artifacts.weights import probe_of
from core.config.compare import shared_steps
from core.config.describe import Setting, objective_label, settings
from core.config.run import without_folders
from core.errors import StoreError
from core.events import BASELINE_TEST, TEST, VALIDATION, Evaluation, FloatArray
from core.exports.entry import Export, file_stem, refuse_unended, text_writer
from core.figures.curves import curves_figure
from core.figures.figure_svg import figure_svg, with_shared_ranges
from core.figures.map_data import (
    Bundle,
    box_of,
    correct_colours,
    examples_bundle,
    label_colours,
    places_bundle,
    prediction_colours,
)
from core.figures.map_script import MAP, STYLE
from core.figures.template import thin_indices
from core.messages import N_, Message, _, join_phrase, language, ngettext, script_messages, sentences
from core.quantities import percent
from core.representation.attention import attention_over_layers, split_attention
from core.store import RunRecord, Store
from core.tasks.registry import task_label
from core.workers.run_rows import majority_rate

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "page"
SPLITS = {
    TEST: N_("Test, scored once at the end"),
    VALIDATION: N_("Validation, at the last frame"),
    BASELINE_TEST: N_("Test, linear probe of the encoder before training"),
}
MAJORITY = {TEST: N_("Test, majority class"), VALIDATION: N_("Validation, majority class")}
COLOURINGS = {"label": N_("Label"), "prediction": N_("Prediction"), "correct": N_("Correctness")}
NO_FRAMES = Message("{title} has no frames, which a page needs.")
# The 20-second animation cannot show more frames; longer sequences are thinned evenly.
FRAMES_MAX = 100
# Curves are drawn twice, for wide and narrow screens: width and height by CSS class.
CURVES = {"wide": (680, 810), "narrow": (350, 900)}
# Texts are beside one map, but below two maps; the height then leaves the top of the texts visible.
HEIGHTS = {1: "max(20rem, min(38rem, 100dvh - 16rem))", 2: "max(18rem, min(30rem, 100dvh - 23rem))"}


class _PageRun:
    """The data of one run on the page."""

    def __init__(self, store: Store, run: RunRecord) -> None:
        self.store, self.run = store, run
        self.config = without_folders(run.effective)
        self.probe = probe_of(run)
        reads = (store.map_points, store.logits)
        steps = [s for s in store.frame_steps(run.id) if all(np.isfinite(read(run.id, s)).all() for read in reads)]
        self.steps = [steps[place] for place in thin_indices(len(steps), FRAMES_MAX)]
        if not self.steps:
            raise StoreError(NO_FRAMES.fill(title=run.title))
        self.maps = [store.map_points(run.id, step).astype(np.float32) for step in self.steps]
        logits = np.stack([store.logits(run.id, step).astype(np.float64) for step in self.steps])  # [F, N, C]
        self.predicted = logits.argmax(2)  # [F, N]
        self.confidence = softmax(logits, axis=2).max(2)  # [F, N]
        self.evaluations = scored_evaluations(run.effective, store.evaluations(run.id))
        self.figure = curves_figure(
            store.steps(run.id),
            self.evaluations,
            store.knob_turns(run.id),
            run.facts,
            run.config.phase_ends,
            revision="",
            changes=run.effective.changes,
        )


def run_page(store: Store, runs: Sequence[RunRecord], index: str | None = None) -> str:
    """Return the page of one run, or of two side by side with maps aligned by shared examples.

    The page is in the user's language.

    Args:
        index: file name of a gallery's index, to which the page links.
    Raises: StoreError for a run without frames, or with frames that cannot be read.
    """
    shown = [_PageRun(store, run) for run in runs]
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in (*MAP, FOLDER / "page.js"))
    script = f"(() => {{\n{scripts}}})();"
    assert "</script" not in script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    known = _known(shown)
    text = json.dumps(known, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # mtime=0 makes the bytes reproducible.
    packed = base64.b64encode(gzip.compress(text.encode("utf-8", "surrogatepass"), 9, mtime=0)).decode()
    notes = [_("In brackets: 95% Wilson intervals for the sampled rows. Other seeds give other scores.")]
    if len(shown) > 1:
        notes.append(_("Differences smaller than these intervals do not distinguish two runs."))
    drawn = []
    for one, figure in zip(shown, with_shared_ranges([one.figure for one in shown]), strict=True):
        about = _(
            "Curves of {title} by step: loss and its terms, accuracy, gradient norm and learning rate.",
            title=one.run.title,
        )
        curves = "".join(
            f'<div class="{kind}">{figure_svg(figure, width=width, height=height, about=about)}</div>'
            for kind, (width, height) in CURVES.items()
        )
        # The labels of the curves are escaped where they are made.
        drawn.append({"title": one.run.title, "summary": run_summary(one.run), "curves": Markup(curves)})  # noqa: S704
    return template("page.html").render(
        title=join_phrase([one.run.title for one in shown]),
        style=Markup(STYLE.read_text(encoding="utf-8")) + page_style(),  # noqa: S704 ours
        script=Markup(script),  # noqa: S704 ours
        script_hash=Markup(f"sha256-{digest}"),  # noqa: S704 base64
        data=Markup(packed),  # noqa: S704 base64
        runs=drawn,
        colourings=[{"name": name, "label": _(label)} for name, label in COLOURINGS.items()],
        scores=_scores(shown),
        scores_note=sentences(notes),
        settings=_settings(shown),
        attention_note=_(
            "Darker words receive more [CLS] attention in the last block at the step shown (mean of all heads). "
            "Attention is not explanation."
        )
        if any("words" in one for one in known["runs"])
        else _("The attention of [CLS] was not recorded."),
        index=index,
        made_with=made_with(),
    )


def _known(shown: Sequence[_PageRun]) -> dict[str, Any]:
    """Return the data of the page's script."""
    ids = linked_ids([example_keys(one.probe) for one in shown])
    laid = _align_maps(shown)
    box = box_of(*laid)
    bundles: dict[str, str] = {}

    def kept(bundle: Bundle) -> str:
        bundles[bundle.id] = base64.b64encode(bundle.content).decode()
        return bundle.id

    panels, runs = [], []
    for one, of_run, stack in zip(shown, ids, laid, strict=True):
        probe = one.probe
        runs.append(
            {
                "title": one.run.title,
                "ids": of_run,
                "texts": probe.texts,
                "labels": probe.labels,
                "classes": probe.classes,
                "steps": one.steps,
                "predicted": one.predicted.tolist(),
                "confidence": np.rint(1000 * one.confidence).astype(int).tolist(),
                **_words(one),
            }
        )
        examples = examples_bundle(of_run, probe.texts, probe.labels, probe.classes, probe.splits)
        panels.append(
            {
                "examples": kept(examples),
                "places": kept(places_bundle(stack, box)),
                "steps": one.steps,
                "title": one.run.title if len(shown) > 1 else "",
                "notes": score_notes_of(one.run.effective, one.evaluations, one.steps),
                "space": "PCA",
                "arrows": [],
                "own": [],
                "centroids": False,
                "anchor": None,
            }
        )
    colours = (
        [label_colours(one.probe.labels, one.probe.classes) for one in shown],
        [prediction_colours(one.predicted, one.probe.classes) for one in shown],
        [correct_colours(one.predicted == np.asarray(one.probe.labels)) for one in shown],
    )
    return {
        "bundles": bundles,
        "panels": panels,
        "colourings": [
            {"name": name, "bundles": [kept(of_run) for of_run in found]}
            for name, found in zip(COLOURINGS, colours, strict=True)
        ],
        "runs": runs,
        "height": HEIGHTS[len(shown)],
        "name": "-and-".join(file_stem(one.run) for one in shown),
        "words": script_messages("assets/"),
        "description": _(
            "Map of {texts} during a fine-tune.",
            texts=ngettext("{count} text", "{count} texts", len(shown[0].probe.ids)),
        ),
    }


def _align_maps(shown: Sequence[_PageRun]) -> list[FloatArray]:
    """Return the coordinates [F, N, 2] of each run, rotated as a whole onto the first run by shared examples."""
    first = shown[0]
    stacks = [np.stack(first.maps)]
    for one in shown[1:]:
        rows = find_shared_rows([example_keys(first.probe), example_keys(one.probe)])
        turn = find_turn(one.maps[-1][rows[1]], first.maps[-1][rows[0]])
        shared = shared_steps({panel.run.id: panel.run.config for panel in (first, one)}) is not None
        stacks.append(np.stack([points if shared else turn(points) for points in one.maps]))
    return stacks


def _words(one: _PageRun) -> dict[str, Any]:
    """Return the words of each text and their shares of the attention of [CLS] in the last block.

    Returns: `words`: by row of an example, its sides, the [side, start, end] of each word, and its greatest share in
        thousandths. `attention`: bytes, 255 for the greatest share, frame by frame. `places`: by row, the offset of
        its first byte. Empty if attention was not recorded.
    """
    tokens = one.store.tokens(one.run.id)
    if not tokens.rows:
        return {}
    frames = [one.store.attention(one.run.id, step) for step in one.steps]
    if any(frame is None for frame in frames):
        return {}
    lengths = [text.length for text in tokens.texts]
    by_frame = [split_attention(np.asarray(frame, np.float32), lengths) for frame in frames]
    words, places, parts, at = {}, {}, [], 0
    for number, (row, text) in enumerate(zip(tokens.rows, tokens.texts, strict=True)):
        spots = [word.places for word in text.words]
        shares = np.stack([attention_over_layers(frame[number], spots)[-1] for frame in by_frame])  # [F, W]
        most = max(float(shares.max(initial=0.0)), 1e-3)
        words[row] = {
            "sides": list(text.sides),
            "spans": [[word.side, word.start, word.end] for word in text.words],
            "most": round(1000 * most, 1),
        }
        places[row] = at
        parts.append(np.rint(255 * np.clip(shares / most, 0, 1)).astype(np.uint8).tobytes())
        at += shares.size
    return {"words": words, "places": places, "attention": base64.b64encode(b"".join(parts)).decode()}


def run_summary(run: RunRecord) -> str:
    """Summarise a run in one line."""
    config = without_folders(run.effective)
    parts = [
        task_label(config),
        config.encoder.id,
        objective_label(config),
        ngettext("{count} step", "{count} steps", run.last_step),
    ]
    return " · ".join([*parts, _("seed {number}", number=config.seed), _(str(run.status))])


def _scores(shown: Sequence[_PageRun]) -> list[dict[str, Any]]:
    newest = [{one.split: one for one in each.evaluations} for each in shown]
    rows = [
        {"name": _(name), "texts": [_score(of_run.get(split)) for of_run in newest]}
        for split, name in SPLITS.items()
        if any(split in of_run for of_run in newest)
    ]
    for split, name in MAJORITY.items():
        rates = [majority_rate(each.store.folder, each.run, split) for each in shown]
        rows.append({"name": _(name), "texts": ["–" if rate is None else percent(rate) for rate in rates]})
    return rows


def _score(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "–"
    if evaluation.spearman is not None:
        return spearman_text(evaluation.spearman)
    values = evaluation.values
    text = percent(values["accuracy"])
    if "accuracy_low" in values:
        low, high = percent(values["accuracy_low"]), percent(values["accuracy_high"])
        text = _("{share} ({low} to {high})", share=text, low=low, high=high)
    # The name of the baseline's row states its scorer.
    named = evaluation.probe_rows is None or evaluation.split == BASELINE_TEST
    return text if named else _("{score}, by a linear probe", score=text)


def _settings(shown: Sequence[_PageRun]) -> list[dict[str, Any]]:
    found = [{one.path: one for one in settings(each.config)} for each in shown]
    paths: dict[str, Setting] = {path: one for of_run in reversed(found) for path, one in of_run.items()}
    order = [*found[0], *(path for path in paths if path not in found[0])]
    rows = []
    for path in order:
        texts = ["–" if path not in of_run else of_run[path].text for of_run in found]
        differs = len(set(texts)) > 1
        # A setting of only one run is listed if it is not at its default.
        if any(path in of_run and of_run[path].listed for of_run in found) or (
            differs and all(path in of_run for of_run in found)
        ):
            rows.append({"label": paths[path].label, "texts": texts, "differs": differs})
    return rows


@lru_cache
def template(name: str) -> Template:
    """Return a template of assets/page, with autoescaping."""
    made = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    # The functions are evaluated at render time, in the user's language.
    made.globals |= {"_": _, "language": language}
    return made.get_template(name)


def page_style() -> Markup:
    return Markup((FOLDER / "page.css").read_text(encoding="utf-8"))  # noqa: S704 ours


def made_with() -> str:
    return _(
        "Made with SCL Playground {version}, torch {torch}, transformers {transformers}.",
        version=__version__,
        torch=version("torch"),
        transformers=version("transformers"),
    )


ENTRIES = (
    Export(
        name="html",
        label=N_("Page"),
        place=35,
        about=N_("One HTML file that plays the run anywhere, without a server or network. Send it, or put it online."),
        suffix=".html",
        mime="text/html",
        translated=True,
        write=text_writer(lambda store, run: run_page(store, [run])),
        refusal=lambda store, run: (
            refuse_unended(store, run) or (None if run.probe else NO_FRAMES.fill(title=run.title))
        ),
        write_pair=text_writer(run_page),
    ),
)
