"""The sections of a RunConfig: task, encoder, what learns, optimiser, points of the map, checkpoints.

Each field says here, and only here, what it is called, what it does, its bounds and its values in words; the form, the
command line, the differences between runs and the sentences about errors read it with `core.config.fields`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from core.config.fields import Section, setting
from core.messages import N_

TRAIN_POINTS_MAX = 500
FILE_TASK = "file"
# What the ids of the tasks that people brought begin with.
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
    """How a file is read; what is None is guessed.

    `text`, `text_b`, `label` and `split` name columns; "" says that there is no second text, or no split column.
    `kind` is what the label column holds: classes, or (for pairs) a similarity score. `quote` encloses a field and
    `escape` makes the next character part of the text ("": nothing does); `skip_initial_space` skips the spaces behind
    a delimiter.
    """

    text: str | None = setting(
        None, N_("Text column"), N_("Column with the texts."), DETECTED, min_length=1, max_length=200
    )
    text_b: str | None = setting(
        None,
        N_("Second text’s column"),
        N_("Column with the second texts of pairs."),
        DETECTED | {"": N_("None")},
        max_length=200,
    )
    label: str | None = setting(
        None, N_("Label column"), N_("Column with the labels."), DETECTED, min_length=1, max_length=200
    )
    split: str | None = setting(
        None,
        N_("Split column"),
        N_("Column that says train, validation or test."),
        DETECTED | {"": N_("None")},
        max_length=200,
    )
    kind: Literal["classes", "similarity"] | None = setting(
        None,
        N_("Kind of labels"),
        N_("Similarity scores, as in STS-B, are measured against and not learned."),
        DETECTED | {"classes": N_("Classes"), "similarity": N_("Similarity scores")},
    )
    encoding: Literal["utf-8", "utf-16", "cp1252", "gb18030", "cp949"] | None = setting(
        None, N_("Encoding"), N_("How the file’s bytes become characters."), DETECTED | ENCODINGS
    )
    delimiter: Literal[",", "\t", ";", "|"] | None = setting(
        None,
        N_("Delimiter"),
        N_("What is between fields."),
        DETECTED | {",": N_("Comma"), "\t": N_("Tab"), ";": N_("Semicolon"), "|": N_("Vertical bar")},
    )
    quote: Literal['"', "'", ""] | None = setting(
        None,
        N_("Quotation marks"),
        N_("What encloses a text that has delimiters or line breaks in it."),
        DETECTED | {'"': N_("Double quotes"), "'": N_("Single quotes"), "": N_("No quotes")},
    )
    escape: Literal["\\", ""] | None = setting(
        None,
        N_("Escapes"),
        N_('A backslash can make a quotation mark part of the text, as in \\". A doubled one always is.'),
        DETECTED | {"\\": N_("Backslash escapes"), "": N_("No escapes")},
    )
    skip_initial_space: bool | None = setting(
        None,
        N_("Spaces after a delimiter"),
        N_("Quotation marks behind spaces enclose a text only when the spaces are skipped."),
        DETECTED | {True: N_("Skipped"), False: N_("Part of the field")},
    )
    header: bool | None = setting(
        None,
        N_("First line"),
        N_("Whether it names the columns."),
        DETECTED | {True: N_("A header"), False: N_("A row")},
    )


class TaskConfig(Section):
    """What is learned, and from which rows.

    `id` names a bundled task, a task of the library, or is "file" with a `path`, how it is read, and the kinds of
    problems whose rows may be dropped. The content hash ties the run to its exact rows; `name` is what people call the
    task. The settings below touch the training split alone, in this order, and are seeded by the run:

    `imbalance` thins the classes out, exponentially from the first to the last, until the largest has this many times
    the rows of the smallest (long tail: Cui et al. 2019, arXiv:1901.05555); `train_size` takes a stratified few-shot
    sample; `label_noise` ρ gives that share of each class's rows another label, drawn evenly; `text_noise` r changes
    that share of the words of each text (EDA, one operation per text). `back_translation` adds the round trip of every
    training text through two `translators` when the run begins; the content hash is that of the rows before.

    `sampler` draws the batches: "random", or "class_balanced" with at least two rows of each class in a batch. "auto"
    becomes one of them when the run is prepared, by the number of classes. "balanced" is what earlier versions called
    equal shares of all classes; runs that have it keep their curve.
    """

    id: str = "film_reviews"
    name: Annotated[str, Field(max_length=80)] | None = None
    path: str | None = None
    test_path: str | None = setting(
        None, N_("Test file"), N_("With rows that are scored once, at the end."), {None: N_("None")}
    )
    reading: ReadingConfig = ReadingConfig()
    drop: tuple[str, ...] = setting(
        (), N_("Rows dropped for"), N_("Kinds of problems whose rows are left out."), {(): N_("Nothing")}
    )
    content_hash: str | None = None
    imbalance: float = setting(
        1.0,
        N_("Imbalance"),
        N_(
            "Rows of the largest class to rows of the smallest; classes are thinned out, in their order. "
            "1 leaves them as they are."
        ),
        {1.0: N_("None")},
        ge=1.0,
        le=1000.0,
    )
    train_size: int | None = setting(
        None,
        N_("Training rows"),
        N_("Few-shot: a stratified sample of that many rows; under one seed 20 are part of 100."),
        {None: N_("All")},
        ge=2,
        unit=N_("rows"),
    )
    label_noise: float = setting(
        0.0, N_("Label noise ρ"), N_("That share of each class’s training rows gets another label."), ge=0.0, le=1.0
    )
    text_noise: float = setting(
        0.0,
        N_("Text noise r"),
        N_("That share of the words of every training text is replaced, deleted, duplicated or swapped (EDA)."),
        ge=0.0,
        le=1.0,
    )
    back_translation: float | None = setting(
        None,
        N_("Back-translations T"),
        N_(
            "Adds a back-translation of every training text, sampled at this temperature, with its label "
            "(Gunel et al. 2021); the runs that ask for it first fetch two translation models."
        ),
        {None: N_("None")},
        gt=0.0,
        le=2.0,
    )
    translators: tuple[str, str] = setting(
        ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"),
        N_("Translation models"),
        N_("There and back, by Hub name or folder."),
    )
    validation_size: int | None = setting(
        None,
        N_("Validation rows"),
        N_("A stratified sample of the split."),
        {None: N_("The default")},
        ge=2,
        unit=N_("rows"),
    )
    sampler: Literal["auto", "random", "class_balanced", "balanced"] = setting(
        "auto",
        N_("Batches"),
        N_(
            "Random: every text once an epoch. Class-balanced: each class in a batch has at least two texts "
            "there, so that every text finds a positive (unless its class has no other); where the classes do not "
            "all fit, they take turns. Small classes come round more often. Automatic: class-balanced with more "
            "than six classes."
        ),
        {
            "auto": N_("Automatic"),
            "random": N_("Random"),
            "class_balanced": N_("Class-balanced"),
            "balanced": N_("Equal shares"),
        },
    )

    @property
    def bundled(self) -> bool:
        """Whether it comes with the app, so that its name is one of the project's own."""
        return self.id != FILE_TASK and not self.id.startswith(OWN_TASK)

    @field_validator("id", mode="before")
    @classmethod
    def _former_name(cls, given: Any) -> Any:
        return FILE_TASK if given == "csv" else given  # what it was called when only CSV was read


class EncoderConfig(Section):
    """Which pre-trained encoder, and how a text becomes one vector.

    `pooling` "auto" becomes the encoder's own when the run is prepared: what its sentence-transformers files say, or
    [CLS] for a plain language model.
    """

    id: str = setting(
        "all-MiniLM-L6-v2",
        N_("Encoder"),
        N_(
            "all-MiniLM-L6-v2 is bundled; the others come from the Hugging Face Hub. Any Hub name or "
            "folder of a BERT-, RoBERTa-, DeBERTa-, DistilBERT-, ELECTRA- or MPNet-like encoder will do."
        ),
    )
    pooling: Literal["auto", "cls", "mean"] = setting(
        "auto",
        N_("One vector per text"),
        N_(
            "What is classified, contrasted and drawn: the first token’s last hidden state, or the mean "
            "of all. Sentence encoders were trained with one of them, plain language models with [CLS]."
        ),
        {"auto": N_("The encoder’s own"), "cls": "[CLS]", "mean": N_("Mean of tokens")},
    )
    max_length: int = setting(
        128,
        N_("Tokens read"),
        N_("Of each text; a longer one is cut. More tokens take more time and memory."),
        ge=4,
        le=8192,
        unit=N_("tokens"),
    )


class TrainableConfig(Section):
    """The weights that learn.

    All, the last `blocks` blocks and the classifier, low-rank adapters on query and value (LoRA) and the classifier, or
    the classifier alone.

    `reinitialised_blocks` top blocks are drawn at random before the first frame (Zhang et al. 2020, arXiv:2006.05987);
    the first phase says how many, and a later one draws none.
    """

    part: Literal["all", "last_blocks", "lora", "classifier"] = setting(
        "all",
        N_("What learns"),
        N_(
            "What is frozen runs without dropout, and its outputs are computed once. LoRA learns small "
            "adapters on query and value."
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
        N_("Blocks that learn"),
        N_("The last ones; those below them are frozen."),
        ge=1,
        le=100,
        unit=N_("blocks"),
        listed=True,
    )
    lora_rank: int = setting(
        8, N_("LoRA rank"), N_("Rows r of each adapter’s two matrices."), ge=1, le=512, listed=True
    )
    lora_alpha: float = setting(16.0, N_("LoRA scale α"), N_("Adapters count α / rank."), gt=0.0, le=1024.0)
    lora_dropout: float = setting(0.05, N_("LoRA dropout"), N_("Of what an adapter reads."), ge=0.0, lt=1.0)
    reinitialised_blocks: int = setting(
        0,
        N_("Re-initialised top blocks"),
        N_(
            "Draw the weights of this many top blocks at random, once, before the first frame (Zhang et "
            "al. 2020). They have to learn, from the first phase on."
        ),
        ge=0,
        le=100,
        unit=N_("blocks"),
    )

    def frozen(self, blocks: int) -> int:
        """How many of the lowest of `blocks` blocks neither learn nor lie above something that learns."""
        return {"last_blocks": blocks - self.blocks, "classifier": blocks}.get(self.part, 0)


class OptimiserConfig(Section):
    """AdamW or Adafactor with a linear warm-up and a linear decay to zero.

    `layer_decay` multiplies the rate of each block below the last once more (1: the same rate everywhere). A rate that
    is None becomes the default for what learns and for the encoder's size when the run is prepared.
    """

    name: Literal["adamw", "adafactor"] = setting(
        "adamw",
        N_("Optimiser"),
        N_("Adafactor keeps far smaller moments."),
        {"adamw": "AdamW", "adafactor": "Adafactor"},
    )
    learning_rate: float | None = setting(
        None,
        N_("Learning rate"),
        N_(
            "The peak of a linear warm-up over a tenth of the steps and a linear decay. By default it "
            "follows what learns and the encoder’s size."
        ),
        {None: N_("The default")},
        gt=0.0,
        le=1.0,
        listed=True,
    )
    classifier_learning_rate: float | None = setting(
        None,
        N_("Classifier’s rate"),
        N_("Of the layers behind the encoder, which start from random weights."),
        {None: N_("The default")},
        gt=0.0,
        le=1.0,
    )
    layer_decay: float = setting(
        1.0,
        N_("Layer-wise decay"),
        N_("Multiplies the rate once for each block below the last; 1 is the same everywhere."),
        gt=0.0,
        le=1.0,
    )
    bias_correction: bool = setting(
        True,
        N_("Bias correction"),
        N_("Adam without it was BERT’s own; short fine-tunes are steadier with it (Zhang et al. 2020)."),
    )
    weight_decay: float = setting(
        0.01, N_("Weight decay"), N_("Decoupled from the gradient, as in AdamW."), ge=0.0, le=1.0
    )
    warmup_fraction: float = setting(
        0.1, N_("Warm-up"), N_("Share of the steps in which the rate rises."), ge=0.0, le=1.0
    )
    max_gradient_norm: float = setting(
        1.0, N_("Largest gradient norm"), N_("Longer gradients are scaled down to it."), gt=0.0
    )


class ProbeConfig(Section):
    """The examples on the map, and the steps at which they are encoded (None: the defaults, when prepared).

    `size` counts rows of the validation split, `train_size` rows of the training split beside them.
    """

    size: int | None = setting(
        None,
        N_("Validation texts on the map"),
        N_(
            "Examples that every frame encodes; more of them, slower frames. By default 120 on a CPU and "
            "500 on a GPU, at least two of each class."
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
            "Drawn open, so that one sees what the model was shown and what it was not. By default a "
            "third as many as of validation."
        ),
        {None: N_("The default")},
        ge=0,
        le=TRAIN_POINTS_MAX,
        unit=N_("texts"),
    )
    frame_steps: tuple[int, ...] | None = setting(
        None,
        N_("Frames"),
        N_("How often the map is drawn and validation is scored: denser at the start, where it moves most."),
        {None: N_("The default")},
        max_length=2_000,
    )

    @property
    def train_points(self) -> int | None:
        """Training rows on the map, None for the default. A run that was prepared before there were any has 0."""
        prepared = self.size is not None and self.frame_steps is not None
        return 0 if prepared and self.train_size is None else self.train_size


class ResourcesConfig(Section):
    """What a run asks a cluster for; None: what the settings say, filled in when the run is prepared for one.

    One machine without a cluster gives a run all that it has.
    """

    cpus: float | None = setting(
        None,
        N_("CPU cores"),
        N_("That a run asks the cluster for; torch computes with this number of threads."),
        {None: N_("As set")},
        gt=0.0,
        le=1024.0,
        unit=N_("cores"),
    )
    gpus: float | None = setting(
        None,
        N_("GPUs"),
        N_("That a run asks the cluster for. With 0.5 two runs share one, and its memory."),
        {None: N_("As set")},
        ge=0.0,
        le=64.0,
        unit=N_("GPUs"),
    )


class CheckpointConfig(Section):
    """When the rolling checkpoint is written: every this many steps, or (None) as often as costs about 2 %.

    `snapshot_steps` are frames at which a copy of the weights is kept for good, so that a text can be looked at as the
    model saw it then (None: a few, as far as they are small, when prepared).
    """

    every_steps: Annotated[int, Field(ge=1)] | None = None
    snapshot_steps: Annotated[tuple[int, ...], Field(max_length=100)] | None = None
