"""What people read for the fields of a config, and for their values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from core.errors import ConfigError, PlaygroundError
from core.parameters import Parameter

ABSENT = "–"
# Below, learning rates live, which are read by their power of ten.
SMALL = 1e-3
NOTHING: Mapping[Any, str] = MappingProxyType({})


class Named(NamedTuple):
    """A field's name for people.

    Attributes:
        words: what people read for a value; other values are read as they are.
        listed: whether it is listed even at its default where other runs lack what it belongs to.
    """

    label: str
    words: Mapping[Any, str] = NOTHING
    listed: bool = False


SOURCE = {
    "test_path": Named("Test file", {None: "None"}),
    "drop": Named("Rows dropped for", {(): "Nothing"}),
}
TASK = {
    "imbalance": Named("Imbalance", {1.0: "None"}),
    "train_size": Named("Training rows", {None: "All"}),
    "label_noise": Named("Label noise ρ"),
    "text_noise": Named("Text noise r"),
    "validation_size": Named("Validation rows", {None: "The default"}),
    "sampler": Named("Batches", {"random": "Random", "class_balanced": "Class-balanced", "balanced": "Equal shares"}),
}
READING = {
    "text": Named("Text column", {None: "Guessed"}),
    "text_b": Named("Second text's column", {None: "Guessed", "": "None"}),
    "label": Named("Label column", {None: "Guessed"}),
    "split": Named("Split column", {None: "Guessed", "": "None"}),
    "kind": Named("Kind of labels", {None: "Guessed", "classes": "Classes", "similarity": "Similarity scores"}),
    "encoding": Named("Encoding of the file", {None: "Guessed"}),
    "delimiter": Named("Delimiter", {None: "Guessed", ",": "Comma", "\t": "Tab", ";": "Semicolon", "|": "Bar"}),
    "quote": Named("Quotation marks", {None: "Guessed", '"': "Double", "'": "Single", "": "None"}),
    "escape": Named("Escape character", {None: "Guessed", "\\": "Backslash", "": "None"}),
    "skip_initial_space": Named("Spaces after a delimiter", {None: "Guessed", True: "Skipped", False: "Kept"}),
    "header": Named("Header line", {None: "Guessed", True: "Yes", False: "No"}),
}
ENCODER = {
    "id": Named("Encoder"),
    "pooling": Named("One vector per text", {"auto": "The encoder’s own", "cls": "[CLS]", "mean": "Mean of tokens"}),
    "max_length": Named("Tokens read"),
}
TRAINABLE = {
    "part": Named(
        "What learns",
        {"all": "All weights", "last_blocks": "Last blocks", "lora": "LoRA", "classifier": "Classifier only"},
        listed=True,
    ),
    "blocks": Named("Blocks that learn", listed=True),
    "lora_rank": Named("LoRA rank", listed=True),
    "lora_alpha": Named("LoRA scale α"),
    "lora_dropout": Named("LoRA dropout"),
    "reinitialised_blocks": Named("Re-initialised top blocks"),
}
OPTIMISER = {
    "name": Named("Optimiser", {"adamw": "AdamW", "adafactor": "Adafactor"}),
    "learning_rate": Named("Learning rate", {None: "The default"}, listed=True),
    "classifier_learning_rate": Named("Classifier’s rate", {None: "The default"}),
    "layer_decay": Named("Layer-wise decay"),
    "bias_correction": Named("Bias correction", {True: "On", False: "Off"}),
    "weight_decay": Named("Weight decay"),
    "warmup_fraction": Named("Warm-up"),
    "max_gradient_norm": Named("Largest gradient norm"),
}
LENGTH = {
    "steps": Named("Steps", {None: "The default"}, listed=True),
    "epochs": Named("Epochs", {None: ABSENT}),
    "batch_size": Named("Batch size", listed=True),
}
MEMORY = {"gradient_checkpointing": Named("Gradient checkpointing", {True: "On", False: "Off"})}
PROBE = {
    "size": Named("Points on the map", {None: "The default"}),
    "train_size": Named("Training rows on the map", {None: "The default"}),
}
WHOLE = {
    "device": Named("Device", {"auto": "Chosen by itself", "cpu": "CPU", "cuda": "CUDA", "mps": "MPS"}),
    "precision": Named("Precision", {"auto": "The default"}),
}
# Whose names are those of one field alone, wherever it is.
FIELDS = TASK | ENCODER | TRAINABLE | OPTIMISER | LENGTH
LAYERS = {"last": "Last", "last_third": "Last third", "every_third": "Every third"}
SWITCH = {True: "On", False: "Off"}


def problem_text(error: PlaygroundError) -> str:
    """An error's sentence, with the label that people know a config's field by in place of its name."""
    name = error.field.rpartition(".")[2] if isinstance(error, ConfigError) else ""
    if not isinstance(error, ConfigError) or name not in FIELDS:
        return str(error)
    return str(ConfigError(FIELDS[name].label, error.value, error.remedy))


def value_text(value: object, named: Named | None = None) -> str:
    """A value as people read it; numbers are never rounded, so that two that differ read differently."""
    words = named.words if named is not None else NOTHING
    if value.__hash__ is not None and value in words:
        return words[value]
    if isinstance(value, bool):
        return SWITCH[value]
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return ABSENT if value is None else str(value)


def number_text(value: float) -> str:
    """The shortest text of a number that is exactly this number: 0.3, 5e-05, 2e-04."""
    style = "e" if 0 < abs(value) < SMALL else "g"
    texts = (f"{value:.{digits}{style}}" for digits in range(18))
    return next(text for text in texts if float(text) == value)


def parameter_text(parameter: Parameter, value: object) -> str:
    """The value of a loss's or a view's setting as people read it."""
    words = {"choice": parameter.choices, "layers": LAYERS}.get(parameter.kind)
    return value_text(value, Named(parameter.label, words or NOTHING))
