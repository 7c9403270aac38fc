"""The sections of a RunConfig: task, encoder, trainable weights, optimiser, map, resources and checkpoints.

Each field defines its label, help, bounds and value texts here and nowhere else. Forms, the command line, comparisons
of runs and error messages read them through `core.config.fields`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from core.config.fields import Section, setting
from core.messages import N_

TRAIN_POINTS_MAX = 500
FILE_TASK = "file"
# Prefix of the ids of tasks that users added.
OWN_TASK = "own-"
# Translators: how a file is written, detected automatically.
DETECTED: dict[Any, str] = {None: N_("Detected")}
ENCODINGS: dict[Any, str] = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": N_("CP1252 (Western European)"),
    "gb18030": N_("GB18030 (Chinese)"),
    "cp949": N_("CP949 (Korean)"),
}


class ReadingConfig(Section):
    """Format of a file. None means that the value is detected.

    `text`, `text_b`, `label` and `split` name columns; "" means no second text, or no split column. `kind` is the kind
    of labels: classes or, for pairs, a similarity score. `quote` encloses a field. `escape` makes the next character
    part of the text ("": there are no escapes). `skip_initial_space` skips the spaces after a delimiter.
    """

    text: str | None = setting(
        None, N_("Text column"), N_("Column of the texts."), DETECTED, min_length=1, max_length=200
    )
    text_b: str | None = setting(
        None,
        N_("Second text column"),
        N_("Column of the second texts of pairs."),
        DETECTED | {"": N_("None")},
        max_length=200,
    )
    label: str | None = setting(
        None, N_("Label column"), N_("Column of the labels."), DETECTED, min_length=1, max_length=200
    )
    split: str | None = setting(
        None,
        N_("Split column"),
        N_("Column with the values train, validation or test."),
        DETECTED | {"": N_("None")},
        max_length=200,
    )
    kind: Literal["classes", "similarity"] | None = setting(
        None,
        N_("Kind of labels"),
        N_("Similarity scores, as in STS-B, are learned by CoSENT and cosine MSE; other losses need classes or none."),
        DETECTED | {"classes": N_("Classes"), "similarity": N_("Similarity scores")},
    )
    encoding: Literal["utf-8", "utf-16", "cp1252", "gb18030", "cp949"] | None = setting(
        None, N_("Encoding"), N_("Encoding of the file."), DETECTED | ENCODINGS
    )
    delimiter: Literal[",", "\t", ";", "|"] | None = setting(
        None,
        N_("Delimiter"),
        N_("Character between fields."),
        DETECTED | {",": N_("Comma"), "\t": N_("Tab"), ";": N_("Semicolon"), "|": N_("Vertical bar")},
    )
    quote: Literal['"', "'", ""] | None = setting(
        None,
        N_("Quotation marks"),
        N_("Character around texts that contain delimiters or line breaks."),
        DETECTED | {'"': N_("Double quotes"), "'": N_("Single quotes"), "": N_("No quotes")},
    )
    escape: Literal["\\", ""] | None = setting(
        None,
        N_("Escapes"),
        N_('A backslash can escape a quotation mark, as in \\". A doubled quotation mark always does.'),
        DETECTED | {"\\": N_("Backslash escapes"), "": N_("No escapes")},
    )
    skip_initial_space: bool | None = setting(
        None,
        N_("Spaces after a delimiter"),
        N_("A quotation mark after spaces opens a text only if the spaces are skipped."),
        DETECTED | {True: N_("Skipped"), False: N_("Part of the field")},
    )
    header: bool | None = setting(
        None,
        N_("First line"),
        N_("With a header, the first line holds the column names."),
        DETECTED | {True: N_("A header"), False: N_("A row")},
    )


class TaskConfig(Section):
    """The task, and the selection of its rows.

    `id` names a bundled task or a task of the library. With "file", `path` names the file, `reading` its format, and
    `drop` the kinds of problems whose rows are left out. The content hash ties the run to its exact rows; `name` is the
    display name. The settings below change only the training split, in this order, and use the run's seed.

    `imbalance` thins the classes out, exponentially from the first to the last, until the largest has this many times
    the rows of the smallest (long tail: Cui et al. 2019, arXiv:1901.05555). `train_size` takes a stratified few-shot
    sample. `label_noise` ρ gives this fraction of each class's rows another label, drawn uniformly. `text_noise` r
    changes this fraction of the words of each text (EDA, one operation per text). When the run begins, `paraphrases`
    adds the bundled paraphrase of every training text, and `back_translation` its round trip through two `translators`;
    the content hash does not cover these additions.

    `sampler` draws the batches: "random", "class_balanced" with at least two rows of each class in a batch, or
    "two_classes", the same with two classes in a batch.
    `prepare` replaces "auto" with one of them, by the number of classes. "balanced" is the sampler of earlier versions,
    with equal shares of all classes; it remains so that their runs keep their curves.
    """

    id: str = "film_reviews"
    name: Annotated[str, Field(max_length=80)] | None = None
    path: str | None = None
    test_path: str | None = setting(
        None, N_("Test file"), N_("Rows that are scored once, at the end."), {None: N_("None")}
    )
    reading: ReadingConfig = ReadingConfig()
    drop: tuple[str, ...] = setting(
        (), N_("Drop rows with"), N_("Kinds of problems whose rows are dropped."), {(): N_("Nothing")}
    )
    content_hash: str | None = None
    imbalance: float = setting(
        1.0,
        N_("Imbalance"),
        N_(
            "Ratio of the largest to the smallest class: each class in the list keeps fewer rows than the one before. "
            "1 changes nothing."
        ),
        ge=1.0,
        le=1000.0,
    )
    train_size: int | None = setting(
        None,
        N_("Training rows"),
        N_("Few-shot: size of a stratified sample. With the same seed, 20 rows are a subset of 100."),
        {None: N_("All")},
        ge=2,
        unit=N_("rows"),
    )
    label_noise: float = setting(
        0.0, N_("Label noise ρ"), N_("Fraction of each class’s training rows that get another label."), ge=0.0, le=1.0
    )
    text_noise: float = setting(
        0.0,
        N_("Text noise r"),
        N_("Fraction of the words of every training text that are replaced, deleted, duplicated or swapped (EDA)."),
        ge=0.0,
        le=1.0,
    )
    paraphrases: Literal["none", "weak", "strong"] = setting(
        "none",
        N_("Paraphrases"),
        N_(
            "Adds a bundled paraphrase of every training text, with its label: a weak one keeps most of the words, a "
            "strong one says the same in other words. Film reviews and natural language inference have them."
        ),
        {"none": N_("None"), "weak": N_("Weak"), "strong": N_("Strong")},
        exclude_if=lambda strength: strength == "none",
    )
    back_translation: float | None = setting(
        None,
        N_("Back-translations T"),
        N_(
            "Adds a back-translation of every training text, sampled at this temperature, with its label (Gunel et "
            "al. 2021). The first such run downloads two translation models."
        ),
        {None: N_("None")},
        gt=0.0,
        le=2.0,
    )
    translators: tuple[str, str] = setting(
        ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"),
        N_("Translation models"),
        N_("Forward and backward model, by Hub name or folder."),
    )
    validation_size: int | None = setting(
        None,
        N_("Validation rows"),
        N_("Size of a stratified sample of the split."),
        {None: N_("The default")},
        ge=2,
        unit=N_("rows"),
    )
    sampler: Literal["auto", "random", "class_balanced", "two_classes", "balanced"] = setting(
        "auto",
        N_("Batches"),
        N_(
            "Random: every text once an epoch. Class-balanced: each class in a batch has at least two texts, so "
            "that every text has a positive (unless its class has no other); if not all classes fit, they take "
            "turns, and small classes repeat more often. Two classes: the same, but each batch holds only two "
            "classes, so that each text has more positives. Automatic: class-balanced with more than six classes."
        ),
        {
            "auto": N_("Automatic"),
            "random": N_("Random"),
            "class_balanced": N_("Class-balanced"),
            "two_classes": N_("Two classes"),
            "balanced": N_("Equal class shares"),
        },
    )

    @property
    def bundled(self) -> bool:
        """True if the task ships with the app, which then translates its name."""
        return self.id != FILE_TASK and not self.id.startswith(OWN_TASK)


class EncoderConfig(Section):
    """The pre-trained encoder, and its pooling of a text into one vector.

    `prepare` replaces the pooling "auto" with the encoder's own: that of its sentence-transformers files, or [CLS] for
    a plain language model.
    """

    id: str = setting(
        "all-MiniLM-L6-v2",
        N_("Encoder"),
        N_(
            "all-MiniLM-L6-v2 is bundled; others come from the Hugging Face Hub. Give the Hub name or folder of a "
            "BERT-, RoBERTa-, DeBERTa-, DistilBERT-, ELECTRA- or MPNet-like encoder."
        ),
    )
    pooling: Literal["auto", "cls", "mean"] = setting(
        "auto",
        N_("Pooling"),
        N_(
            "The vector that is classified, contrasted and mapped: the first token’s last hidden state, or the "
            "mean of all tokens. Sentence encoders were trained with one of them, plain language models with [CLS]."
        ),
        {"auto": N_("The encoder’s own"), "cls": "[CLS]", "mean": N_("Mean of tokens")},
    )
    max_length: int = setting(
        128,
        N_("Maximum tokens"),
        N_("Longer texts are truncated. More tokens take more time and memory."),
        ge=4,
        le=8192,
        unit=N_("tokens"),
    )
    dropout: float | None = setting(
        None,
        N_("Encoder dropout"),
        N_(
            "Rate of all dropout in the embeddings and blocks, on hidden states and on attention; most encoders have "
            "0.1. Higher rates make two passes over a text differ more. Frozen layers run without dropout, and the "
            "classifier keeps its own rate."
        ),
        {None: N_("The encoder’s own")},
        ge=0.0,
        lt=1.0,
        exclude_if=lambda rate: rate is None,
    )


class TrainableConfig(Section):
    """The weights that learn.

    All weights; the last `blocks` blocks and the classifier; low-rank adapters on query and value (LoRA) and the
    classifier; or the classifier alone.

    `reinitialised_blocks` top blocks are drawn at random before the first frame (Zhang et al. 2020, arXiv:2006.05987).
    Only the first phase may set it.
    """

    part: Literal["all", "last_blocks", "lora", "classifier"] = setting(
        "all",
        N_("Trained weights"),
        N_(
            "Frozen layers run without dropout, and their outputs are computed once. LoRA trains small adapters on "
            "query and value."
        ),
        {
            "all": N_("All weights"),
            "last_blocks": N_("Last blocks"),
            "lora": "LoRA",
            "classifier": N_("Classifier only"),
        },
        listed=True,
    )
    blocks: int = setting(
        2,
        N_("Trained blocks"),
        N_("Number of blocks trained, counted from the last; those below are frozen."),
        ge=1,
        le=100,
        unit=N_("blocks"),
        listed=True,
    )
    lora_rank: int = setting(
        8, N_("LoRA rank"), N_("Rank r of each adapter’s two matrices."), ge=1, le=512, listed=True
    )
    lora_alpha: float = setting(16.0, N_("LoRA scale α"), N_("Adapters are scaled by α / rank."), gt=0.0, le=1024.0)
    lora_dropout: float = setting(0.05, N_("LoRA dropout"), N_("Dropout on the adapters’ input."), ge=0.0, lt=1.0)
    reinitialised_blocks: int = setting(
        0,
        N_("Re-initialised top blocks"),
        N_(
            "Initialises this many top blocks at random, once, before the first frame (Zhang et al. 2020). They "
            "must be trained from the first phase."
        ),
        ge=0,
        le=100,
        unit=N_("blocks"),
    )

    def frozen(self, blocks: int) -> int:
        """Return how many of the lowest blocks neither learn nor lie above a weight that learns.

        Args:
            blocks: number of blocks of the encoder.
        """
        return {"last_blocks": blocks - self.blocks, "classifier": blocks}.get(self.part, 0)


class OptimiserConfig(Section):
    """AdamW, Adafactor or SGD with a linear warm-up and a linear decay to zero.

    `layer_decay` multiplies the rate once for each block below the last (1: the same rate everywhere). `prepare`
    replaces a rate of None with the default for the weights that learn and the encoder's size.
    """

    name: Literal["adamw", "adafactor", "sgd"] = setting(
        "adamw",
        N_("Optimiser"),
        N_(
            "Adafactor needs far less memory for its moments. SGD, with momentum 0.9, does not divide a step by the "
            "size of recent gradients."
        ),
        {"adamw": "AdamW", "adafactor": "Adafactor", "sgd": "SGD"},
    )
    learning_rate: float | None = setting(
        None,
        N_("Learning rate"),
        N_(
            "Peak value: the rate rises linearly over the first tenth of the steps, then falls linearly to 0. The "
            "default depends on the trained weights and the encoder’s size."
        ),
        {None: N_("The default")},
        gt=0.0,
        le=1.0,
        listed=True,
    )
    classifier_learning_rate: float | None = setting(
        None,
        N_("Classifier’s learning rate"),
        N_("For the layers after the encoder, which start from random weights."),
        {None: N_("The default")},
        gt=0.0,
        le=1.0,
    )
    layer_decay: float = setting(
        1.0,
        N_("Layer-wise decay"),
        N_("Multiplies the learning rate once per block below the last; 1 is the same rate everywhere."),
        gt=0.0,
        le=1.0,
    )
    bias_correction: bool = setting(
        True,
        N_("Bias correction"),
        N_("BERT was trained without bias correction; short fine-tunes are more stable with it (Zhang et al. 2020)."),
    )
    weight_decay: float = setting(
        0.01, N_("Weight decay"), N_("Decoupled from the gradient, as in AdamW; added to it for SGD."), ge=0.0, le=1.0
    )
    warmup_fraction: float = setting(
        0.1, N_("Warm-up"), N_("Fraction of the steps in which the learning rate rises."), ge=0.0, le=1.0
    )
    max_gradient_norm: float = setting(
        1.0, N_("Maximum gradient norm"), N_("Longer gradients are scaled down to this norm."), gt=0.0
    )


class ProbeConfig(Section):
    """The probe set: the examples on the map, and the steps of its frames (None: the defaults, set by `prepare`).

    `size` counts rows of the validation split, `train_size` additional rows of the training split.
    """

    size: int | None = setting(
        None,
        N_("Validation texts on the map"),
        N_(
            "Examples that are encoded at every frame; more of them make frames slower. The default is 120 on a "
            "CPU and 500 on a GPU, with at least two of each class."
        ),
        {None: N_("The default")},
        ge=2,
        le=20_000,
        unit=N_("texts"),
    )
    train_size: int | None = setting(
        None,
        N_("Training texts on the map"),
        N_(
            "Drawn as open symbols, to mark examples that the encoder was trained on. The default is a third of the "
            "validation texts."
        ),
        {None: N_("The default")},
        ge=0,
        le=TRAIN_POINTS_MAX,
        unit=N_("texts"),
    )
    frame_steps: tuple[int, ...] | None = setting(
        None,
        N_("Frames"),
        N_("Steps at which the map is drawn and validation is scored: more at the start, where it changes most."),
        {None: N_("The default")},
        max_length=2_000,
    )


class ResourcesConfig(Section):
    """Resources that a run requests from a cluster; None stands for the server settings.

    Without a cluster, a run may use the whole machine.
    """

    cpus: float | None = setting(
        None,
        N_("CPU cores"),
        N_("CPU cores that a run requests from the cluster, and torch’s threads."),
        {None: N_("Server default")},
        gt=0.0,
        le=1024.0,
        unit=N_("cores"),
    )
    gpus: float | None = setting(
        None,
        N_("GPUs"),
        N_("GPUs that a run requests from the cluster. With 0.5, two runs share one GPU and its memory."),
        {None: N_("Server default")},
        ge=0.0,
        le=64.0,
        unit=N_("GPUs"),
    )


class CheckpointConfig(Section):
    """Schedule of the rolling checkpoint and of snapshots.

    The checkpoint is saved every `every_steps` steps; with None, as often as costs about 2% of the time. At the frames
    in `snapshot_steps`, a copy of the weights is kept permanently, so that the app can show a text as the model read it
    at that step. With None, `prepare` chooses a few frames, if the copies are small.
    """

    every_steps: Annotated[int, Field(ge=1)] | None = None
    snapshot_steps: Annotated[tuple[int, ...], Field(max_length=100)] | None = None
