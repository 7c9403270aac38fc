"""Before launch: does the encoder read these texts, how much of them, and what was made noisy on purpose?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.advice.estimate import cut_share
from core.catalogue.encoders import CHINESE, KOREAN, LISTED, knowing
from core.config import RunConfig
from core.messages import N_, _, sentences
from core.models.source import encoder_shape
from core.quantities import percent
from core.tasks import TaskData
from core.tasks.dataset import Split
from core.tasks.difficulty import expectation
from core.tasks.survey import language_of
from pages.ui import state
from pages.ui.parts import escaped

LANGUAGES = {"zh": CHINESE, "ko": KOREAN}
OFFERED = 3
CUT = 0.05
MAX_EXAMPLES = 12
# What the columns of the examples are called, by their names.
COLUMNS = {
    "Label": N_("Label"),
    "Label was": N_("Label was"),
    "Text": N_("Text"),
    "Text was": N_("Text was"),
    "Second text": N_("Second text"),
    "Second text was": N_("Second text was"),
}
NARROW = ("Label", "Label was")


def task_audit(config: RunConfig, data: TaskData) -> None:
    """Sentences on the task under this encoder; none where all is well."""
    for note in data.notes:
        st.caption(escaped(note))
    _language(config, data)
    _length(config, data)
    if sentence := expectation(config.task.id, data):
        st.info(sentence)
    if data.clean is not None:
        st.caption(noise_sentence(data))


def _language(config: RunConfig, data: TaskData) -> None:
    language = LANGUAGES.get(language_of(data.train.texts))
    listed = LISTED.get(config.encoder.id)
    if language is None or listed is None or listed.knows(language):
        return
    # Translators: languages, such as Korean and English; below are buttons with the names of encoders.
    problem = _(
        "These texts are {language}, and {encoder} was trained on {trained_on}. Choose another encoder:",
        language=_(language),
        encoder=escaped(listed.name),
        trained_on=_(listed.language),
    )
    st.warning(problem)
    with st.container(horizontal=True):
        for name in knowing(language)[:OFFERED]:
            st.button(name, key=f"offer.{name}", on_click=state.set_widget, args=(state.form_key("encoder"), name))


def _length(config: RunConfig, data: TaskData) -> None:
    read, most = config.encoder.max_length, encoder_shape(config.encoder.id).positions
    cut = cut_share(data.train.shown, read)
    if cut < CUT:
        return
    more = min(most, 2 * read)
    st.info(
        _(
            "About {share} of the texts have more than {read} tokens and are cut; the encoder reads up to {most}.",
            share=percent(cut),
            read=read,
            most=f"{most:,}",
        )
    )
    if more > read:
        # Translators: a button: have the encoder read that many tokens of each text.
        label = _("Read {count} tokens", count=more)
        st.button(label, on_click=state.set_widget, args=(state.form_key("max_length"), more))


def noise_sentence(data: TaskData) -> str:
    """How many labels and texts are not what they were."""
    assert data.clean is not None
    rows = len(data.train)
    labels = sum(now != was for now, was in zip(data.train.labels, data.clean.labels, strict=True))
    texts = sum(now != was for now, was in zip(data.train.inputs, data.clean.inputs, strict=True))
    numbers = {
        "rows": f"{rows:,}",
        "wrong": f"{labels:,}",
        "wrong_share": percent(labels / rows),
        "changed": f"{texts:,}",
        "changed_share": percent(texts / rows),
    }
    if labels and texts:
        return _(
            "Training rows: {rows}, {wrong} with a wrong label ({wrong_share}) and {changed} with changed words "
            "({changed_share}).",
            **numbers,
        )
    if labels:
        return _("Training rows: {rows}, {wrong} with a wrong label ({wrong_share}).", **numbers)
    if texts:
        return _("Training rows: {rows}, {changed} with changed words ({changed_share}).", **numbers)
    return _("Training rows: {rows}, none of them noisy yet.", **numbers)


def training_examples(data: TaskData) -> None:
    """Some training rows as they will be learned from; where noise was made, what they were."""
    with st.expander(_("Some of its training rows")):
        if data.clean is None:
            rows = [_row(data, data.train, i) for i in range(min(MAX_EXAMPLES, len(data.train)))]
        else:
            changed = _changed(data, data.clean)[:MAX_EXAMPLES]
            st.caption(sentences([noise_sentence(data), _("Some of them:") if changed else ""]))
            rows = [_row_and_was(data, data.clean, i) for i in changed]
        st.dataframe(
            rows,
            hide_index=True,
            column_config={
                name: st.column_config.TextColumn(_(label), width="small" if name in NARROW else None)
                for name, label in COLUMNS.items()
            },
        )


def _changed(data: TaskData, clean: Split) -> list[int]:
    """Noisy rows, those with a wrong label and those with changed words in turn."""
    wrong = [i for i, label in enumerate(data.train.labels) if label != clean.labels[i]]
    both = zip(data.train.inputs, clean.inputs, strict=True)
    reworded = [i for i, (now, was) in enumerate(both) if now != was and data.train.labels[i] == clean.labels[i]]
    longest = max(len(wrong), len(reworded))
    return [part[i] for i in range(longest) for part in (wrong, reworded) if i < len(part)]


def _row(data: TaskData, split: Split, i: int) -> dict[str, Any]:
    row = {"Label": data.classes[split.labels[i]], "Text": split.texts[i]}
    return row if split.seconds is None else row | {"Second text": split.seconds[i]}


def _row_and_was(data: TaskData, clean: Split, i: int) -> dict[str, Any]:
    """Each cell beside what it was."""
    now, was = _row(data, data.train, i), _row(data, clean, i)
    return {key: value for name in now for key, value in ((name, now[name]), (f"{name} was", was[name]))}
