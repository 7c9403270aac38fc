"""The sections of a RunConfig: task, encoder, what learns, optimiser, points of the map, checkpoints.

Each field says here, and only here, what it is called, what it does, its bounds and its values in words; the form, the
command line, the differences between runs and the sentences about errors read it with `core.config.fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from core.config.fields import Section, Shown
from core.messages import N_

TRAIN_POINTS_MAX = 500
FILE_TASK = "file"
# What the ids of the tasks that people brought begin with.
OWN_TASK = "own-"
# Translators: how a file is written, detected automatically.
DETECTED: Mapping[Any, str] = {None: N_("Detected")}
ENCODINGS: Mapping[Any, str] = {
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

    text: Annotated[
        str | None,
        Field(min_length=1, max_length=200, title=N_("Text column"), description=N_("Column with the texts.")),
        Shown(DETECTED),
    ] = None
    text_b: Annotated[
        str | None,
        Field(
            max_length=200, title=N_("Second text’s column"), description=N_("Column with the second texts of pairs.")
        ),
        Shown(DETECTED | {"": N_("None")}),
    ] = None
    label: Annotated[
        str | None,
        Field(min_length=1, max_length=200, title=N_("Label column"), description=N_("Column with the labels.")),
        Shown(DETECTED),
    ] = None
    split: Annotated[
        str | None,
        Field(max_length=200, title=N_("Split column"), description=N_("Column that says train, validation or test.")),
        Shown(DETECTED | {"": N_("None")}),
    ] = None
    kind: Annotated[
        Literal["classes", "similarity"] | None,
        Field(
            title=N_("Kind of labels"),
            description=N_("Similarity scores, as in STS-B, are measured against and not learned."),
        ),
        Shown(DETECTED | {"classes": N_("Classes"), "similarity": N_("Similarity scores")}),
    ] = None
    encoding: Annotated[
        Literal["utf-8", "utf-16", "cp1252", "gb18030", "cp949"] | None,
        Field(title=N_("Encoding"), description=N_("How the file’s bytes become characters.")),
        Shown(DETECTED | ENCODINGS),
    ] = None
    delimiter: Annotated[
        Literal[",", "\t", ";", "|"] | None,
        Field(title=N_("Delimiter"), description=N_("What is between fields.")),
        Shown(DETECTED | {",": N_("Comma"), "\t": N_("Tab"), ";": N_("Semicolon"), "|": N_("Vertical bar")}),
    ] = None
    quote: Annotated[
        Literal['"', "'", ""] | None,
        Field(
            title=N_("Quotation marks"),
            description=N_("What encloses a text that has delimiters or line breaks in it."),
        ),
        Shown(DETECTED | {'"': N_("Double quotes"), "'": N_("Single quotes"), "": N_("No quotes")}),
    ] = None
    escape: Annotated[
        Literal["\\", ""] | None,
        Field(
            title=N_("Escapes"),
            description=N_(
                'A backslash can make a quotation mark part of the text, as in \\". A doubled one always is.'
            ),
        ),
        Shown(DETECTED | {"\\": N_("Backslash escapes"), "": N_("No escapes")}),
    ] = None
    skip_initial_space: Annotated[
        bool | None,
        Field(
            title=N_("Spaces after a delimiter"),
            description=N_("Quotation marks behind spaces enclose a text only when the spaces are skipped."),
        ),
        Shown(DETECTED | {True: N_("Skipped"), False: N_("Part of the field")}),
    ] = None
    header: Annotated[
        bool | None,
        Field(title=N_("First line"), description=N_("Whether it names the columns.")),
        Shown(DETECTED | {True: N_("A header"), False: N_("A row")}),
    ] = None


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
    test_path: Annotated[
        str | None,
        Field(title=N_("Test file"), description=N_("With rows that are scored once, at the end.")),
        Shown({None: N_("None")}),
    ] = None
    reading: ReadingConfig = ReadingConfig()
    drop: Annotated[
        tuple[str, ...],
        Field(title=N_("Rows dropped for"), description=N_("Kinds of problems whose rows are left out.")),
        Shown({(): N_("Nothing")}),
    ] = ()
    content_hash: str | None = None
    imbalance: Annotated[
        float,
        Field(
            ge=1.0,
            le=1000.0,
            title=N_("Imbalance"),
            description=N_(
                "Rows of the largest class to rows of the smallest; classes are thinned out, in their order. "
                "1 leaves them as they are."
            ),
        ),
        Shown({1.0: N_("None")}),
    ] = 1.0
    train_size: Annotated[
        int | None,
        Field(
            ge=2,
            title=N_("Training rows"),
            description=N_("Few-shot: a stratified sample of that many rows; under one seed 20 are part of 100."),
        ),
        Shown({None: N_("All")}, unit=N_("rows")),
    ] = None
    label_noise: Annotated[
        float,
        Field(
            ge=0.0,
            le=1.0,
            title=N_("Label noise ρ"),
            description=N_("That share of each class’s training rows gets another label."),
        ),
    ] = 0.0
    text_noise: Annotated[
        float,
        Field(
            ge=0.0,
            le=1.0,
            title=N_("Text noise r"),
            description=N_(
                "That share of the words of every training text is replaced, deleted, duplicated or swapped (EDA)."
            ),
        ),
    ] = 0.0
    back_translation: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=2.0,
            title=N_("Back-translations T"),
            description=N_(
                "Adds a back-translation of every training text, sampled at this temperature, with its label "
                "(Gunel et al. 2021); the runs that ask for it first fetch two translation models."
            ),
        ),
        Shown({None: N_("None")}),
    ] = None
    translators: Annotated[
        tuple[str, str],
        Field(title=N_("Translation models"), description=N_("There and back, by Hub name or folder.")),
    ] = ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en")
    validation_size: Annotated[
        int | None,
        Field(ge=2, title=N_("Validation rows"), description=N_("A stratified sample of the split.")),
        Shown({None: N_("The default")}, unit=N_("rows")),
    ] = None
    sampler: Annotated[
        Literal["auto", "random", "class_balanced", "balanced"],
        Field(
            title=N_("Batches"),
            description=N_(
                "Random: every text once an epoch. Class-balanced: each class in a batch has at least two texts "
                "there, so that every text finds a positive (unless its class has no other); where the classes do not "
                "all fit, they take turns. Small classes come round more often. Automatic: class-balanced with more "
                "than six classes."
            ),
        ),
        Shown(
            {
                "auto": N_("Automatic"),
                "random": N_("Random"),
                "class_balanced": N_("Class-balanced"),
                "balanced": N_("Equal shares"),
            }
        ),
    ] = "auto"

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

    id: Annotated[
        str,
        Field(
            title=N_("Encoder"),
            description=N_(
                "all-MiniLM-L6-v2 is bundled; the others come from the Hugging Face Hub. Any Hub name or "
                "folder of a BERT-, RoBERTa-, DeBERTa-, DistilBERT-, ELECTRA- or MPNet-like encoder will do."
            ),
        ),
    ] = "all-MiniLM-L6-v2"
    pooling: Annotated[
        Literal["auto", "cls", "mean"],
        Field(
            title=N_("One vector per text"),
            description=N_(
                "What is classified, contrasted and drawn: the first token’s last hidden state, or the mean "
                "of all. Sentence encoders were trained with one of them, plain language models with [CLS]."
            ),
        ),
        Shown({"auto": N_("The encoder’s own"), "cls": "[CLS]", "mean": N_("Mean of tokens")}),
    ] = "auto"
    max_length: Annotated[
        int,
        Field(
            ge=4,
            le=8192,
            title=N_("Tokens read"),
            description=N_("Of each text; a longer one is cut. More tokens take more time and memory."),
        ),
        Shown(unit=N_("tokens")),
    ] = 128


class TrainableConfig(Section):
    """The weights that learn.

    All, the last `blocks` blocks and the classifier, low-rank adapters on query and value (LoRA) and the classifier, or
    the classifier alone.

    `reinitialised_blocks` top blocks are drawn at random before the first frame (Zhang et al. 2020, arXiv:2006.05987);
    the first phase says how many, and a later one draws none.
    """

    part: Annotated[
        Literal["all", "last_blocks", "lora", "classifier"],
        Field(
            title=N_("What learns"),
            description=N_(
                "What is frozen runs without dropout, and its outputs are computed once. LoRA learns small "
                "adapters on query and value."
            ),
        ),
        Shown(
            {
                "all": N_("All weights"),
                "last_blocks": N_("Last blocks"),
                "lora": "LoRA",
                "classifier": N_("Classifier only"),
            },
            listed=True,
        ),
    ] = "all"
    blocks: Annotated[
        int,
        Field(
            ge=1, le=100, title=N_("Blocks that learn"), description=N_("The last ones; those below them are frozen.")
        ),
        Shown(unit=N_("blocks"), listed=True),
    ] = 2
    lora_rank: Annotated[
        int,
        Field(ge=1, le=512, title=N_("LoRA rank"), description=N_("Rows r of each adapter’s two matrices.")),
        Shown(listed=True),
    ] = 8
    lora_alpha: Annotated[
        float, Field(gt=0.0, le=1024.0, title=N_("LoRA scale α"), description=N_("Adapters count α / rank."))
    ] = 16.0
    lora_dropout: Annotated[
        float, Field(ge=0.0, lt=1.0, title=N_("LoRA dropout"), description=N_("Of what an adapter reads."))
    ] = 0.05
    reinitialised_blocks: Annotated[
        int,
        Field(
            ge=0,
            le=100,
            title=N_("Re-initialised top blocks"),
            description=N_(
                "Draw the weights of this many top blocks at random, once, before the first frame (Zhang et "
                "al. 2020). They have to learn, from the first phase on."
            ),
        ),
        Shown(unit=N_("blocks")),
    ] = 0

    def frozen(self, blocks: int) -> int:
        """How many of the lowest of `blocks` blocks neither learn nor lie above something that learns."""
        return {"last_blocks": blocks - self.blocks, "classifier": blocks}.get(self.part, 0)


class OptimiserConfig(Section):
    """AdamW or Adafactor with a linear warm-up and a linear decay to zero.

    `layer_decay` multiplies the rate of each block below the last once more (1: the same rate everywhere). A rate that
    is None becomes the default for what learns and for the encoder's size when the run is prepared.
    """

    name: Annotated[
        Literal["adamw", "adafactor"],
        Field(title=N_("Optimiser"), description=N_("Adafactor keeps far smaller moments.")),
        Shown({"adamw": "AdamW", "adafactor": "Adafactor"}),
    ] = "adamw"
    learning_rate: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=1.0,
            title=N_("Learning rate"),
            description=N_(
                "The peak of a linear warm-up over a tenth of the steps and a linear decay. By default it "
                "follows what learns and the encoder’s size."
            ),
        ),
        Shown({None: N_("The default")}, listed=True),
    ] = None
    classifier_learning_rate: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=1.0,
            title=N_("Classifier’s rate"),
            description=N_("Of the layers behind the encoder, which start from random weights."),
        ),
        Shown({None: N_("The default")}),
    ] = None
    layer_decay: Annotated[
        float,
        Field(
            gt=0.0,
            le=1.0,
            title=N_("Layer-wise decay"),
            description=N_("Multiplies the rate once for each block below the last; 1 is the same everywhere."),
        ),
    ] = 1.0
    bias_correction: Annotated[
        bool,
        Field(
            title=N_("Bias correction"),
            description=N_(
                "Adam without it was BERT’s own; short fine-tunes are steadier with it (Zhang et al. 2020)."
            ),
        ),
    ] = True
    weight_decay: Annotated[
        float,
        Field(ge=0.0, le=1.0, title=N_("Weight decay"), description=N_("Decoupled from the gradient, as in AdamW.")),
    ] = 0.01
    warmup_fraction: Annotated[
        float, Field(ge=0.0, le=1.0, title=N_("Warm-up"), description=N_("Share of the steps in which the rate rises."))
    ] = 0.1
    max_gradient_norm: Annotated[
        float,
        Field(gt=0.0, title=N_("Largest gradient norm"), description=N_("Longer gradients are scaled down to it.")),
    ] = 1.0


class ProbeConfig(Section):
    """The examples on the map, and the steps at which they are encoded (None: the defaults, when prepared).

    `size` counts rows of the validation split, `train_size` rows of the training split beside them.
    """

    size: Annotated[
        int | None,
        Field(
            ge=2,
            le=20_000,
            title=N_("Validation texts on the map"),
            description=N_(
                "Examples that every frame encodes; more of them, slower frames. By default 120 on a CPU and "
                "500 on a GPU, at least two of each class."
            ),
        ),
        Shown({None: N_("The default")}, unit=N_("texts")),
    ] = None
    train_size: Annotated[
        int | None,
        Field(
            ge=0,
            le=TRAIN_POINTS_MAX,
            title=N_("Training texts on the map"),
            description=N_(
                "Drawn open, so that one sees what the model was shown and what it was not. By default a "
                "third as many as of validation."
            ),
        ),
        Shown({None: N_("The default")}, unit=N_("texts")),
    ] = None
    frame_steps: Annotated[
        tuple[int, ...] | None,
        Field(
            max_length=2_000,
            title=N_("Frames"),
            description=N_(
                "How often the map is drawn and validation is scored: denser at the start, where it moves most."
            ),
        ),
        Shown({None: N_("The default")}),
    ] = None

    @property
    def train_points(self) -> int | None:
        """Training rows on the map, None for the default. A run that was prepared before there were any has 0."""
        prepared = self.size is not None and self.frame_steps is not None
        return 0 if prepared and self.train_size is None else self.train_size


class ResourcesConfig(Section):
    """What a run asks a cluster for; None: what the settings say, filled in when the run is prepared for one.

    One machine without a cluster gives a run all that it has.
    """

    cpus: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=1024.0,
            title=N_("CPU cores"),
            description=N_("That a run asks the cluster for; torch computes with this number of threads."),
        ),
        Shown({None: N_("As set")}, unit=N_("cores")),
    ] = None
    gpus: Annotated[
        float | None,
        Field(
            ge=0.0,
            le=64.0,
            title=N_("GPUs"),
            description=N_("That a run asks the cluster for. With 0.5 two runs share one, and its memory."),
        ),
        Shown({None: N_("As set")}, unit=N_("GPUs")),
    ] = None


class CheckpointConfig(Section):
    """When the rolling checkpoint is written: every this many steps, or (None) as often as costs about 2 %.

    `snapshot_steps` are frames at which a copy of the weights is kept for good, so that a text can be looked at as the
    model saw it then (None: a few, as far as they are small, when prepared).
    """

    every_steps: Annotated[int, Field(ge=1)] | None = None
    snapshot_steps: Annotated[tuple[int, ...], Field(max_length=100)] | None = None
