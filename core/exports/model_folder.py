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

from core.artifacts.weights import load_at, weight_steps
from core.exports.entry import Export
from core.exports.model_card import model_card
from core.messages import N_, Message
from core.store import RunRecord, Status, Store
from core.store.budget import missing_sentence, reading_weights

if TYPE_CHECKING:
    from core.encoders.model import Encoder

HEAD = "classifier.safetensors"
# Fields that reveal paths on the exporting machine.
PLACES = {"config.json": "_name_or_path", "tokenizer_config.json": "name_or_path"}


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
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for i, (place, kind) in enumerate(kinds.items())
    ]
    _write_json(path / "modules.json", modules)
    _write_json(path / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})
    _write_json(
        path / "config_sentence_transformers.json",
        {"__version__": {"transformers": version("transformers"), "pytorch": version("torch")}},
    )
    (path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": int(encoder.model.config.hidden_size), "pooling_mode_mean_tokens": True}
    _write_json(path / "1_Pooling" / "config.json", pooling)
    layers = [encoder.model.get_submodule(name) for name in encoder.family.head_layers]
    save_file(
        {
            f"{name}.{part}": getattr(layer, part).detach().contiguous()
            for name, layer in zip(("dense", "output"), layers, strict=True)
            for part in ("weight", "bias")
        },
        path / HEAD,
    )


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


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
