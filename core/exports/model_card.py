"""The README of an exported model: training, scores and a usage example."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

from core import __version__
from core.config.describe import settings
from core.config.run import without_folders
from core.config.score_source import classifier_learns_from, scored_evaluations
from core.events import BASELINE_TEST, VALIDATION, Evaluation
from core.exports.entry import file_stem
from core.messages import ngettext
from core.quantities import percent, signed
from core.store import RunRecord, Store
from core.workers.run_rows import majority_rate

if TYPE_CHECKING:
    from core.encoders.model import Encoder

TEST = "test"
ACTIVATIONS = {"tanh": "torch.tanh", "relu": "torch.relu", "gelu": "torch.nn.functional.gelu"}
BUNDLED = {"all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2"}

BY_CLS = """from transformers import pipeline

classify = pipeline("text-classification", model=FOLDER, top_k=None)
print(classify("A text to be classified."))
"""
BY_MEAN = '''import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

CLASSES = {classes}

encoder = SentenceTransformer(FOLDER, device="cpu")
head = load_file(f"{{FOLDER}}/classifier.safetensors")


def logits(texts):
    """[N, C]: the classifier's answer to N texts."""
    vectors = encoder.encode(texts, convert_to_tensor=True)  # [N, H], means over tokens
    hidden = {activation}(vectors @ head["dense.weight"].T + head["dense.bias"])
    return hidden @ head["output.weight"].T + head["output.bias"]


shares = logits(["A text to be classified."]).softmax(-1)[0]
print(dict(zip(CLASSES, shares.tolist())))
'''
BY_PROBE = "Scores are those of a linear probe of the vectors. "
UNTRAINED = "**Its classifier was never trained**: use the vectors, not the predictions.\n\n"
CARD = """---
library_name: {library}
pipeline_tag: {task_tag}
base_model: {base}
tags: [scl-playground, contrastive-learning]
---

# {title}

{base_words}, fine-tuned on {task} ({classes}) with SCL Playground {app_version}.

{untrained}## Scores

| Split | Accuracy | 95% interval (Wilson) | Macro-F1 |
|---|---:|---:|---:|
{scores}

{majority}{scorer}The test split was scored once, after the last
step. One run is one draw: other seeds give other numbers.

## Use

```python
FOLDER = "{folder}"

{code}```

## How it was made

| Setting | Value |
|---|---|
{settings}

torch {torch}, transformers {transformers}. The licences of the base model and of the texts also apply to this model.
"""


def model_card(store: Store, run: RunRecord, encoder: Encoder) -> str:
    """Return the card as Markdown, in English. Untrusted text is reduced to one line of plain text."""
    config = without_folders(run.effective)
    evaluations = {
        one.split: one for one in scored_evaluations(config, store.evaluations(run.id))
    }  # the last of each split
    base = BUNDLED.get(config.encoder.id, config.encoder.id)
    classes = list(run.probe.classes) if run.probe else []
    mean = encoder.pooling == "mean"
    code = (
        BY_MEAN.format(classes=json.dumps(classes), activation=ACTIVATIONS[encoder.family.head_activation])
        if mean
        else BY_CLS
    )
    listed = [one for one in settings(config) if one.listed]
    found = {one.label: one.text for one in listed}
    of_split = {split: majority_rate(store.folder, run, split) for split in (TEST, VALIDATION)}
    rates = [f"{percent(rate)} on the {split} split" for split, rate in of_split.items() if rate is not None]
    return CARD.format(
        library="sentence-transformers" if mean else "transformers",
        task_tag="sentence-similarity" if mean else "text-classification",
        base=json.dumps(base),
        title=_plain(run.title),
        base_words=_plain(base),
        task=_plain(found.get("Task", config.task.id)),
        classes=ngettext("{count} class", "{count} classes", len(classes)) + ": " + ", ".join(map(_plain, classes)),
        app_version=__version__,
        untrained=UNTRAINED if classifier_learns_from(run.effective) is None else "",
        scores="\n".join(_rows(evaluations)),
        majority=f"The majority class of the training rows alone scores {' and '.join(rates)}. " if rates else "",
        scorer=BY_PROBE if TEST in evaluations and evaluations[TEST].probe_rows is not None else "",
        folder=f"{file_stem(run)}-model",
        code=code,
        settings="\n".join(f"| {_plain(one.label)} | {_plain(one.text)} |" for one in listed),
        torch=version("torch"),
        transformers=version("transformers"),
    )


def _rows(evaluations: dict[str, Evaluation]) -> list[str]:
    names = {TEST: "Test", VALIDATION: "Validation", BASELINE_TEST: "Test, linear probe of the untrained encoder"}
    rows = []
    for split, name in names.items():
        if split in evaluations:
            values = evaluations[split].values
            if (spearman := evaluations[split].spearman) is not None:
                score = name.replace("linear probe of the untrained", "untrained")
                rows.append(f"| {score}, Spearman's ρ | {signed(spearman, 3)} | – | – |")
                continue
            low, high = values.get("accuracy_low"), values.get("accuracy_high")
            interval = "–" if low is None or high is None else f"{percent(low)} to {percent(high)}"
            rows.append(f"| {name} | {percent(values['accuracy'])} | {interval} | {percent(values['macro_f1'])} |")
    return rows


def _plain(text: str) -> str:
    """Return text as one line with markup escaped."""
    line = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>#|~$&!" else sign for sign in line)
