"""Changed texts: a run's own table on Explore, the accuracies of several runs on Compare, and a task's on Data."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from core.artifacts.cache import read
from core.artifacts.changed_texts import CHANGED_TEXTS, TEXTS_MAX, Change, ChangedTexts
from core.artifacts.weights import weight_stamps
from core.errors import PlaygroundError
from core.messages import N_, _, ngettext, sentences
from core.quantities import percent
from core.representation.agreement import agreement
from core.representation.recall import recall
from core.store import RunRecord, Status, Store
from core.tasks.dataset import Input
from core.tasks.listing import csv_file
from core.workers.limits import check_model
from pages.ui.address import ON, Compare, Explore
from pages.ui.compare.picking import Compared
from pages.ui.parts import escaped, missing_weights
from pages.ui.tables import csv_button
from pages.ui.waiting import complete_since, draw_job, ensure_job, job_of, start_job

CHANGES = N_(
    "- Words are misspelt, deleted, replaced, swapped or duplicated.\n- Tokens are shuffled or cut off.\n- Token "
    "embeddings are perturbed, by random noise or by an adversarial step that increases the SimCSE loss.\n- Texts "
    "are back-translated, if the default translation models are on this machine."
)
UNCHANGED = N_("Unchanged")
ONE_HOT = N_(
    "For comparison: with one-hot vectors, a word and its replacement would always have cosine 0 and distance "
    "√2, whatever they mean."
)
# Texts of a task on Data.
SAMPLE = 200
HEIGHT_PX = 420


def changed_texts(store: Store, run: RunRecord) -> bool:
    """Draw the section of one run. Return whether it is being computed."""
    st.header(_("How far does a changed text move?"))
    found, busy = _found(store, run, wanted=Explore.CHANGED.text == ON)
    if found is None:
        return busy
    rows = pd.DataFrame(_table(found))
    st.dataframe(rows, hide_index=True, height=HEIGHT_PX, placeholder="", key="explore.changed")
    read_texts = ngettext("{count} test text", "{count} test texts", len(found.labels))
    notes = [
        _(
            "Mean over the changed texts among {texts}; accuracy over all of them, with a 95% Wilson interval.",
            texts=read_texts,
        ),
        _(ONE_HOT),
    ]
    if not found.plain.size:
        notes.append(_("The classifier was not trained, so there are no predictions."))
    st.caption(sentences(notes))
    csv_button("CSV", lambda: csv_file(_records(found)), f"{run.id}-changed-texts.csv", key="explore.changed.csv")
    return busy


def robustness(store: Store, runs: Sequence[Compared]) -> bool:
    """Draw the accuracies of runs on changed test texts. Return whether any are being computed."""
    st.header(_("Changed test texts"))
    if Compare.CHANGED.text != ON:
        _offer(Compare)
        return False
    busy, known = False, list[tuple[str, ChangedTexts]]()
    for one in runs:
        found, computing = _found(store, one.run, wanted=True, name=one.name)
        busy = busy or computing
        if found is not None and found.plain.size:
            known.append((one.name, found))
        elif found is not None:
            st.caption(_("{run}: the classifier was not trained, so there are no predictions.", run=one.name))
    if not known:
        return busy
    first = known[0][1]
    same_rows = all(np.array_equal(one.labels, first.labels) for _name, one in known)
    pair = len(known) == 2 and same_rows
    rows = []
    # Back-translation is missing where its models were.
    by_run = [(name, dict(zip([None, *one.changes], one.right, strict=True))) for name, one in known]
    for change in dict.fromkeys(change for _name, right in by_run for change in right):
        there = [right[change] for _name, right in by_run if change in right]
        row = {_("Change"): change_title(change)}
        row |= {name: percent(right[change].mean()) if change in right else "–" for name, right in by_run}
        if pair:
            row["p"] = f"{agreement(there).mcnemar_p:.3g}" if len(there) == 2 else "–"
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=HEIGHT_PX, key="compare.changed")
    words = [
        _(
            "Accuracy on changed texts, up to {count} of the test split, the same for all runs of a task. A run is "
            "robust if its accuracy falls little below that of the first row.",
            count=TEXTS_MAX,
        )
    ]
    if not same_rows:
        words.append(_("These runs read different texts, so their accuracies are not comparable."))
    if pair:
        words.append(
            _(
                "p: McNemar's exact test of this pair of runs on these texts. Of twenty such tests between "
                "equally good runs, about one has p below 0.05 by chance."
            )
        )
    st.caption(sentences(words))
    return busy


def _found(store: Store, run: RunRecord, *, wanted: bool, name: str = "") -> tuple[ChangedTexts | None, bool]:
    """Return a run's result, if any, and whether it is being computed. Explain why a run has none.

    Args: wanted: compute a missing result; if False, offer to.
    """
    path = store.run_folder(run.id) / CHANGED_TEXTS
    found, stamps, before = read(ChangedTexts, path), weight_stamps(store, run), f"{name}: " if name else ""
    if run.config.on_shared_trunk:
        st.caption(before + _("This cell was trained on shared frozen blocks. The test split is left for full runs."))
    elif run.status != Status.FINISHED:
        st.caption(before + _("Changed texts can be read once the run has finished."))
    elif found is not None and stamps.get(run.steps, found.stamp) == found.stamp:
        return found, False
    elif run.steps not in stamps:
        st.caption(before + _("The weights of the last step are not stored, so no further text can be encoded."))
        missing_weights(run)
    elif not wanted:
        _offer(Explore)
    else:
        request = {"run": run.id, "what": "changes"}
        busy = ensure_job("inspect", request, N_("Reading changed texts"), since=complete_since(run))
        return read(ChangedTexts, path), busy
    return None, False


def moves(texts: Sequence[Input], encoder: str) -> None:
    """Draw how far changes and views move a sample of a task's texts in an encoder before training."""
    st.header(_("How far does a changed text move?"))
    try:
        check_model("encoder", encoder)
    except PlaygroundError as error:
        st.caption(escaped(str(error)))
        return
    few = [texts[i] for i in np.linspace(0, len(texts) - 1, min(SAMPLE, len(texts))).round().astype(int).tolist()]
    request = json.loads(json.dumps({"encoder": encoder, "texts": few}))
    job = job_of("distances", request)
    if draw_job("distances", request):
        return
    read_texts = ngettext("{count} text", "{count} texts", len(few))
    if job is None or job.status != Status.FINISHED:
        st.caption(
            _about(
                _("Makes changed copies of {texts}; each copy has one kind of change:", texts=read_texts),
                _(
                    "Shows the cosine between each changed text and its original, computed with {encoder} before "
                    "training.",
                    encoder=escaped(encoder),
                ),
            )
        )
        if st.button(_("Measure changed texts"), icon=":material/spellcheck:", key="data.moves"):
            start_job("distances", request, N_("Changed texts in {encoder}"), encoder=encoder)
        return
    rows = [
        {
            _("Change"): change_title(Change(name, rate)),
            _("Changed texts"): percent(share),
            _("Cosine, before training"): "–" if cosine is None else f"{cosine:.3f}",
        }
        for name, rate, share, cosine in job.result["changes"]
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=HEIGHT_PX, key="data.moves.table")
    st.caption(
        sentences(
            [
                _(
                    "Mean cosine between {texts} and their changed versions in {encoder} before training; texts "
                    "that did not change are left out.",
                    texts=read_texts,
                    encoder=escaped(encoder),
                ),
                _(ONE_HOT),
            ]
        )
    )


def _about(texts: str, result: str) -> str:
    return f"{texts}\n{_(CHANGES)}\n\n{result}"


def _offer(page: type[Explore] | type[Compare]) -> None:
    st.caption(
        _about(
            _("Makes changed copies of up to {count} test texts; each copy has one kind of change:", count=TEXTS_MAX),
            _(
                "Shows how far the vectors move and how many predictions flip. Takes about a minute, longer with "
                "back-translation; the result is stored."
            ),
        )
    )
    if st.button(_("Measure changed texts"), icon=":material/spellcheck:", key="changed.read"):
        page.CHANGED.put(True)
        st.rerun()


def change_title(change: Change | None) -> str:
    """Return the label of a change, with its rate; None is the unchanged text."""
    if change is None:
        return _(UNCHANGED)
    label = _(change.label)
    return label if change.rate is None else _("{change}, rate {rate:g}", change=label, rate=change.rate)


def _table(found: ChangedTexts) -> list[dict[str, str]]:
    """Return the rows of a run's table."""
    rows = []
    for place, change in enumerate([None, *found.changes]):
        before, now, share, flips = [""] * 4
        if change is not None:
            which = found.changed[place - 1]
            share, before, now = percent(which.mean()), *["–"] * 2
            if which.any():
                before, now = (f"{value:.3f}" for value in found.cosines[:, place - 1, which].mean(1))
            if found.plain.size:
                flipped = (found.predicted[place - 1] != found.plain)[which]
                flips = percent(flipped.mean()) if which.any() else "–"
        row = {
            _("Change"): change_title(change),
            _("Changed texts"): share,
            _("Cosine, before training"): before,
            _("Cosine, trained"): now,
        }
        if found.plain.size:
            row[_("Flipped predictions")] = flips
            _rows, *numbers = recall(found.labels, found.predictions[place], found.labels.tolist())
            right, low, high = map(percent, numbers)
            row[_("Accuracy")] = _("{share} ({low} to {high})", share=right, low=low, high=high)
        rows.append(row)
    return rows


def _records(found: ChangedTexts) -> list[dict[str, str]]:
    """Return the table as records of a CSV file: one row per change and text."""
    return [
        {
            "change": change.name,
            "rate": "" if change.rate is None else str(change.rate),
            "text": str(column),
            "label": str(found.labels[column]),
            "changed": str(bool(found.changed[place, column])),
            "cosine_untrained": f"{found.cosines[0, place, column]:.6f}",
            "cosine_trained": f"{found.cosines[1, place, column]:.6f}",
            "prediction": str(found.plain[column]) if found.plain.size else "",
            "prediction_changed": str(found.predicted[place, column]) if found.plain.size else "",
        }
        for place, change in enumerate(found.changes)
        for column in range(len(found.labels))
    ]
