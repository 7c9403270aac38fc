"""Measures of the vectors of training rows, at the end of one run on Explore or of several on Compare."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core.artifacts.cache import read
from core.artifacts.measures import TRAINING_MEASURES, TRAINING_ROWS_MAX, TrainingMeasures
from core.artifacts.weights import weight_stamps
from core.messages import N_, _, join_list, ngettext, sentences
from core.quantities import percent, signed
from core.representation.metrics import METRICS
from core.store import RunRecord, Status, Store
from pages.ui.address import ON, Compare, Explore
from pages.ui.parts import missing_weights
from pages.ui.waiting import complete_since, ensure_job

ABOUT = N_(
    "Measures accuracy of a linear SVM and of 1-NN, agreement of clusters with labels and so on for the vectors of up "
    "to {count} training rows, with the weights of the last step. Takes seconds to minutes; the result is stored."
)
FLATTERING = N_(
    "The encoder has learned from these rows, so training rows flatter the vectors: compare with the validation texts."
)
MEASURE = N_("Measure")


def training_measures(store: Store, runs: Mapping[str, RunRecord], page: type[Explore] | type[Compare]) -> bool:
    """Draw the measures of runs by name, or offer to compute them. Return whether any are being computed."""
    st.header(_("Vectors of training rows"))
    if page.TRAINING.text != ON:
        st.caption(_(ABOUT, count=f"{TRAINING_ROWS_MAX:,}"))
        if st.button(_("Measure training rows"), icon=":material/straighten:", key="training.measure"):
            page.TRAINING.put(True)
            st.rerun()
        return False
    known, busy = dict[str, TrainingMeasures](), False
    for name, run in runs.items():
        path, stamps = store.run_folder(run.id) / TRAINING_MEASURES, weight_stamps(store, run)
        found = read(TrainingMeasures, path)
        if found is not None and stamps.get(run.steps, found.stamp) == found.stamp:
            known[name] = found
        elif run.status != Status.FINISHED:
            st.caption(_("{run}: training rows can be measured once the run has finished.", run=name))
        elif run.steps not in stamps:
            st.caption(_("{run}: the weights of the last step are not stored.", run=name))
            missing_weights(run)
        else:
            request = {"run": run.id, "what": "training"}
            computing = ensure_job("inspect", request, N_("Measuring training rows"), since=complete_since(run))
            busy = busy or computing
    if not known:
        return busy
    rows = []
    for name in next(iter(known.values())).values:
        row = {_(MEASURE): _(METRICS[name].label)}
        for of_run, found in known.items():
            value = found.values.get(name)
            row[of_run] = "–" if value is None else percent(value) if METRICS[name].share else signed(value, 3)
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content", key="training.table")
    counts = join_list(
        ngettext("{taken} of {count} training row", "{taken} of {count} training rows", rows, taken=f"{taken:,}")
        for taken, rows in dict.fromkeys((found.taken, found.rows) for found in known.values())
    )
    measured = _("Measured on {rows}, spaced evenly, with the labels of training.", rows=counts)
    st.caption(sentences([measured, _(FLATTERING)]))
    return busy
