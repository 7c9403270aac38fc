"""Export of a finished run's model in a standard format, with a model card.

A model with [CLS] pooling is a standard `AutoModelForSequenceClassification`. A model with mean pooling is a
sentence-transformers model with its classifier in a separate file: the class in transformers would apply the classifier
to [CLS], which changes the predictions.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import __version__
from core.advice.score_source import classifier_learns_from, scored_evaluations
from core.artifacts.weights import load_at, probe_of, weight_steps
from core.config.describe import settings
from core.config.run import without_folders
from core.events import BASELINE_TEST, TEST, VALIDATION, Evaluation
from core.exports.entry import Export, file_stem
from core.messages import N_, Message, ngettext
from core.quantities import percent, signed
from core.store import RunRecord, Status, Store
from core.store.budget import missing_sentence, reading_weights
from core.workers.run_rows import majority_rate

if TYPE_CHECKING:
    from torch import Tensor

    from core.encoders.model import Encoder

# Fields that reveal paths on the exporting machine.
PLACES = {"config.json": "_name_or_path", "tokenizer_config.json": "name_or_path"}
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


def _refusal(store: Store, run: RunRecord) -> Message | None:
    if run.status != Status.FINISHED:
        status = Message(str(run.status))
        return Message("{title} is {status}: only a finished run has a model.", title=run.title, status=status)
    if run.steps in weight_steps(store, run):
        return None
    if (dropped := missing_sentence(run)) is not None:
        return dropped
    if run.adopted:
        return Message("{title} has no weights here, only frames.", title=run.title)
    return Message("The last weights of {title} are missing or damaged: run the same settings again.", title=run.title)


def _write(store: Store, run: RunRecord, path: Path) -> None:
    with reading_weights(store, run.id):
        encoder, tokenizer = load_at(store, run, run.steps)
    path.mkdir()
    tokenizer.save(path)
    if encoder.pooling == "mean":
        _write_sentence_transformer(encoder, path, run.config.encoder.max_length)
    else:
        encoder.model.save_pretrained(path)
    for name, key in PLACES.items():
        content = json.loads((path / name).read_text(encoding="utf-8"))
        content.pop(key, None)
        _write_json(path / name, content)
    (path / "README.md").write_text(model_card(store, run, encoder), encoding="utf-8")


def _write_sentence_transformer(encoder: Encoder, path: Path, max_length: int) -> None:
    """Write the file layout of sentence-transformers 3 and later."""
    from safetensors.torch import save_file

    encoder.base.save_pretrained(path)
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    _write_json(path / "modules.json", modules)
    _write_json(path / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})
    versions = {"transformers": version("transformers"), "pytorch": version("torch")}
    _write_json(path / "config_sentence_transformers.json", {"__version__": versions})
    (path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": int(encoder.model.config.hidden_size), "pooling_mode_mean_tokens": True}
    _write_json(path / "1_Pooling" / "config.json", pooling)
    head: dict[str, Tensor] = {}
    for name, layer in zip(("dense", "output"), encoder.family.head_layers, strict=True):
        learned = encoder.model.get_submodule(layer).state_dict()
        head |= {f"{name}.{key}": value.contiguous() for key, value in learned.items()}
    save_file(head, path / "classifier.safetensors")


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def model_card(store: Store, run: RunRecord, encoder: Encoder) -> str:
    """Return the card as Markdown, in English. Untrusted text is reduced to one line of plain text."""
    config = without_folders(run.effective)
    # The last evaluation of each split.
    evaluations = {one.split: one for one in scored_evaluations(config, store.evaluations(run.id))}
    base = BUNDLED.get(config.encoder.id, config.encoder.id)
    classes, code = list(probe_of(run).classes), BY_CLS
    if mean := encoder.pooling == "mean":
        code = BY_MEAN.format(classes=json.dumps(classes), activation=ACTIVATIONS[encoder.family.head_activation])
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
    names = {TEST: "Test", VALIDATION: "Validation", BASELINE_TEST: "Test, linear probe of the encoder before training"}
    rows = []
    for split, name in names.items():
        if split in evaluations:
            values = evaluations[split].values
            if (spearman := evaluations[split].spearman) is not None:
                score = name.replace("linear probe of the encoder", "encoder")
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


ENTRIES = (
    Export(
        name="model",
        label=N_("Model"),
        place=50,
        about=N_(
            "A folder with a model card for transformers, and for sentence-transformers if the run uses mean pooling."
        ),
        suffix="-model",
        mime="application/zip",
        write=_write,
        refusal=_refusal,
        folder=True,
        heavy=True,
    ),
)
