"""The command line: start, follow and manage runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from tqdm import tqdm

from core import __version__
from core.advice.defaults import DEFAULT_STEPS, usual
from core.advice.prepare import prepare
from core.advice.score_source import classifier_note, is_first_note, scored_evaluations
from core.cli.exports import export, import_replay
from core.cli.options import (
    COLUMNS,
    column_options,
    drop_option,
    json_option,
    kinds_to_drop,
    print_json,
    runs_option,
    say,
    setting_option,
    task_fields,
    with_whole_paths,
)
from core.cli.sweeps import experiments, protocol, protocols, surface, sweep
from core.cli.tasks import tasks
from core.config import EncoderConfig, OptimiserConfig, PhaseConfig, RunConfig, TaskConfig, parse_config
from core.config.edit import (
    DEFAULT_PRESET,
    LAMBDA,
    TEMPERATURE,
    apply_settings,
    branch,
    parse_setting,
    put,
    put_lambda,
    put_temperature,
    with_full_objective,
)
from core.config.presets import PRESETS, preset
from core.config.run import RATE, peak_rates
from core.errors import ConfigError, EngineError, PlaygroundError
from core.events import SPEARMAN
from core.exports.entry import SPOKEN
from core.messages import ENGLISH, LANGUAGES, ask_for_language, join_list
from core.quantities import percent, signed
from core.settings import settings
from core.store import RunRecord, Status, Store, TaskLibrary
from core.store.budget import dropped_sentence, missing_sentence
from core.store.sizes import RunSize, size_text
from core.tasks import TASKS
from core.workers import Engine, build_engine
from core.workers.machine import has_bfloat16, has_gpu
from core.workers.run_rows import TaskSource, majority_rate

POLL_S = 0.2
IN_BRANCH = ("branch", "preset", "weight", "temperature", "lr", "sampler", "name")
OPTION_NAMES = {"weight": "lambda", "settings": "set"}
EXIT_FAILED, EXIT_USAGE = 1, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scl-playground")
@runs_option
def cli(folder: Path | None) -> None:
    """Fine-tune text encoders with contrastive losses, and manage the runs."""


@cli.command()
@click.option(
    "--task",
    metavar="NAME_OR_FILE",
    help=f"A bundled task ({', '.join(TASKS)}), one of your own by its name, or a CSV, TSV, JSONL or Parquet file.",
)
@setting_option("--test", TaskConfig, "test_path", metavar="FILE")
@column_options(default="detected")
@drop_option
@setting_option("--train-size", TaskConfig, "train_size", metavar="N")
@setting_option("--label-noise", TaskConfig, "label_noise", metavar="RHO")
@setting_option("--text-noise", TaskConfig, "text_noise", metavar="R")
@setting_option("--imbalance", TaskConfig, "imbalance", metavar="RATIO")
@setting_option("--steps", PhaseConfig, "steps", metavar="S", default_text=f"{DEFAULT_STEPS} in each phase")
@setting_option("--epochs", PhaseConfig, "epochs", default_text="none")
@setting_option("--batch-size", PhaseConfig, "batch_size", metavar="B")
@click.option("--preset", metavar="NAME", help="Objective by name; `presets` lists them. [default: ce-scl]")
@click.option(
    "--lambda", "weight", type=float, metavar="L", help="λ, the weight of the contrastive loss. [default: 0.9]"
)
@click.option(
    "--temperature",
    type=float,
    metavar="T",
    help="τ of the contrastive losses. [default: from the preset; with more than six classes 0.07 and batches of 32, "
    "unless --batch-size, --preset or --set is given]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Any field of the config, such as objective.terms.0.temperature=0.1; repeatable.",
)
@setting_option("--lr", OptimiserConfig, "learning_rate")
@setting_option("--seed", RunConfig, "seed", metavar="K")
@setting_option("--encoder", EncoderConfig, "id", metavar="ID")
@click.option("--start", metavar="RUN", help="Start from the encoder of a finished run. [default: the pre-trained one]")
@click.option(
    "--branch",
    metavar="RUN@STEP",
    help="Continue a run from one of its frames with another --preset, --lambda, --temperature, --lr or --sampler.",
)
@setting_option("--pooling", EncoderConfig, "pooling")
@setting_option("--max-length", EncoderConfig, "max_length", metavar="T")
@setting_option("--dropout", EncoderConfig, "dropout", metavar="P")
@click.option("--trainable", metavar="all|last-K|lora|classifier", help="Weights to train. [default: all]")
@setting_option("--sampler", TaskConfig, "sampler", metavar="auto|random|class_balanced|two_classes")
@setting_option("--device", RunConfig, "device")
@setting_option("--precision", RunConfig, "precision")
@setting_option("--name", RunConfig, "name", default_text="run and number")
@click.option(
    "--config", "config_file", metavar="FILE", help="JSON file with a complete RunConfig, instead of the options above."
)
@runs_option
@json_option
def fit(config_file: str | None, folder: Path, as_json: bool, **options: Any) -> None:
    """Start a run and follow it to its end."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if config_file and given:
        name = OPTION_NAMES.get(next(iter(given)), next(iter(given))).replace("_", "-")
        raise click.UsageError(f"--{name} and --config are both given: put everything into the file.")
    if "start" in given:
        given["start"] = Store(folder).find(given["start"])
    if "branch" in given:
        draft = branch_from(given, Store(folder))
    elif config_file:
        try:
            text = Path(config_file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError("config", config_file, f"{reason}; give a JSON file.") from None
        draft = parse_config(text)
    else:
        draft = draft_from(given, TaskLibrary(folder))
    draft = with_whole_paths(draft)
    prepared = partial(prepare, gpu=has_gpu(), bfloat16=has_bfloat16(draft.device), load=TaskSource(folder))
    # Check before opening the store, so that a rejected run leaves nothing behind.
    config, data = prepared(draft)
    now = usual(len(data.classes), len(data.train))
    open_ = not config_file and given.keys().isdisjoint({"temperature", "batch_size", "preset", "settings", "branch"})
    if open_ and now != usual(0, 0):
        say(f"With {len(data.classes)} classes τ is {now.temperature:g}, in batches of {now.batch_size}.", err=True)
        config, data = prepared(apply_settings(draft, {TEMPERATURE: now.temperature, "batch_size": now.batch_size}))
    for note in (*data.notes, *filter(None, [classifier_note(config, scored=bool(data.pairs))])):
        say(note, err=True)
    engine = build_engine(Store(folder))
    _follow(engine, engine.submit(config), as_json)


@cli.command()
@json_option
def presets(as_json: bool) -> None:
    """List the named objectives."""
    if as_json:
        listed = [
            {"name": p.name, "label": p.label, "group": p.group, "summary": p.summary, "source": p.source}
            for p in PRESETS.values()
        ]
        print_json({"presets": listed})
        return
    width = max(map(len, PRESETS))
    for group, entries in groupby(PRESETS.values(), lambda entry: entry.group):
        say(f"{group}:")
        for entry in entries:
            say(f"  {entry.name:<{width}}  {entry.summary}")


@cli.command()
@click.argument("run")
@runs_option
@json_option
def resume(run: str, folder: Path, as_json: bool) -> None:
    """Resume a stopped, failed or interrupted run from its checkpoint."""
    engine = build_engine(Store(folder))
    run_id = engine.store.find(run)
    engine.resume(run_id)
    _follow(engine, run_id, as_json)


@cli.command()
@click.argument("run")
@runs_option
@json_option
def stop(run: str, folder: Path, as_json: bool) -> None:
    """Stop a run after writing a checkpoint, from which it can be resumed."""
    engine = build_engine(Store(folder))
    run_id = engine.store.find(run)
    engine.stop(run_id)
    while not (record := engine.store.run(run_id)).status.ended:
        time.sleep(POLL_S)
    if as_json:
        print_json(_result(engine.store, run_id))
        return
    say(f"{record.title} ({run_id}) {record.status} at step {record.last_step}.")


@cli.command()
@runs_option
@json_option
def runs(folder: Path, as_json: bool) -> None:
    """List the runs, newest first."""
    store = Store(folder)
    listed = store.runs()
    for unreadable in store.unreadable_runs():
        say(unreadable.sentence, err=True)
    if as_json:
        print_json({"runs": [_result(store, run.id) for run in listed]})
        return
    if not listed:
        say("No runs yet: start one with `python -m core fit`.")
    sizes = store.sizes()
    for run in listed:
        taken = size_text(sizes.get(run.id, RunSize()).total)
        steps = f"{run.last_step:>6}/{run.steps:<6}"
        tags = f"  [{', '.join(run.tags)}]" if run.tags else ""
        say(f"{run.number:>5}  {run.id}  {run.status:<11}  {steps}  {taken:>7}  {run.title}{tags}")
        if dropped := dropped_sentence(run):
            say(f"{'':>7}{dropped}")
    if listed:
        total, budget_gb = sum(size.total for size in sizes.values()), settings().disk_gb
        say(f"Runs use {size_text(total)} of the {budget_gb:g} GB that SCL_DISK_GB allows.", err=True)


@cli.command()
@click.argument("run")
@click.option("--off", is_flag=True, help="Let the disk budget delete the weights again.")
@runs_option
def keep(run: str, off: bool, folder: Path) -> None:
    """Exempt a run's weights from the disk budget SCL_DISK_GB."""
    store = Store(folder)
    run_id = store.find(run)
    record = store.run(run_id)
    if record.weights_dropped_at is not None and not off:
        raise EngineError(f"{record.title} ({run_id}) has no weights to keep. {missing_sentence(record)}")
    store.keep_weights(run_id, not off)
    dropped = dropped_sentence(record)
    kept = "may be dropped to stay within SCL_DISK_GB" if off else "are kept"
    say(f"The weights of {record.title} ({run_id}) {kept}." + (f" {dropped}" if dropped else ""))


@cli.command()
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option("--orphans", is_flag=True, help="Also delete folders of files that belong to no run, permanently.")
@runs_option
def delete(runs: tuple[str, ...], orphans: bool, folder: Path) -> None:
    """Delete runs. The app's page Runs offers to undo this for ten minutes."""
    store = Store(folder)
    if not runs and not orphans:
        raise click.UsageError("Give the number or id of at least one run, or --orphans.")
    records = [store.run(store.find(run)) for run in dict.fromkeys(runs)]
    if records:
        undo = store.discard(*(record.id for record in records))
        titles = join_list(f"{record.title} ({record.id})" for record in records)
        say(f"Deleted {titles}{'' if undo else ' permanently, because the disk is nearly full'}.")
    if orphans:
        found = store.orphans()
        store.delete_orphans()
        size = size_text(sum(size.total for size in found.values()))
        say(f"Deleted {len(found)} folders that belonged to no run ({size}).")


@cli.command()
@click.argument("run")
@click.argument("name")
@runs_option
def rename(run: str, name: str, folder: Path) -> None:
    """Rename a run to NAME; an empty NAME restores the default."""
    store = Store(folder)
    run_id = store.find(run)
    store.rename(run_id, name)
    say(f"Run {run_id} is called {store.run(run_id).title}.")


@cli.command()
@click.argument("run")
@click.argument("tags", nargs=-1)
@runs_option
def tag(run: str, tags: tuple[str, ...], folder: Path) -> None:
    """Replace the tags of a run."""
    store = Store(folder)
    run_id = store.find(run)
    store.tag(run_id, tags)
    record = store.run(run_id)
    has = f"the tags {', '.join(record.tags)}" if record.tags else "no tags"
    say(f"{record.title} ({run_id}) has {has}.")


def draft_from(options: dict[str, Any], own: TaskLibrary | None = None) -> RunConfig:
    """Build a draft from command-line options. Fields without an option keep their defaults.

    Args:
        own: library of added tasks, for names that are neither bundled tasks nor files.
    Raises: ConfigError.
    """

    def picked(**names: str) -> dict[str, Any]:
        return {field: options[option] for field, option in names.items() if option in options}

    phase = picked(steps="steps", epochs="epochs", batch_size="batch_size")
    phase |= {"optimiser": picked(learning_rate="lr"), "trainable": _trainable(options.get("trainable", "all"))}
    task = picked(train_size="train_size", test_path="test", sampler="sampler", imbalance="imbalance")
    task |= picked(label_noise="label_noise", text_noise="text_noise") | task_fields(options.get("task"), own)
    task["reading"] = {field: options[option] for option, field in COLUMNS.items() if option in options}
    if "drop" in options:
        task["drop"] = kinds_to_drop(options["drop"])
    encoder = picked(id="encoder", pooling="pooling", max_length="max_length", dropout="dropout")
    given = picked(seed="seed", name="name", device="device", precision="precision", start="start") | {
        "task": task,
        "encoder": encoder,
    }
    named = preset(options.get("preset", DEFAULT_PRESET))
    encoder.setdefault("dropout", named.dropout)
    phases = [with_full_objective(made) for made in named.phases(phase)]
    given["phases"] = phases
    knobs = {LAMBDA: options.get("weight"), TEMPERATURE: options.get("temperature")}
    turned = [(name, value) for name, value in knobs.items() if value is not None]
    for path, value in chain(turned, map(parse_setting, options.get("settings", ()))):
        match path.strip():
            case "lambda":
                put_lambda(phases, value)
            case "temperature":
                put_temperature(phases, value)
            case field:
                put(given, field, value, (LAMBDA, TEMPERATURE))
    return parse_config(given)


def branch_from(options: Mapping[str, Any], store: Store) -> RunConfig:
    """Build the draft of a branch from command-line options. Raises: ConfigError, RunNotFoundError, UsageError."""
    for name in (name for name in options if name not in IN_BRANCH):
        option = OPTION_NAMES.get(name, name).replace("_", "-")
        raise click.UsageError(f"--{option} and --branch are both given: a branch keeps this setting of its run.")
    run, _, step = options["branch"].rpartition("@")
    if not run or not step.isdecimal():
        raise ConfigError("branch", options["branch"], "give a run and a step, such as 7@40.")
    parent, first = store.run(store.find(run)), int(step) + 1
    knobs = {LAMBDA: options.get("weight"), TEMPERATURE: options.get("temperature")}
    if "lr" in options:
        optimiser = parent.effective.phases[parent.effective.phase_at(first)].optimiser
        knobs[RATE] = options["lr"] / peak_rates(optimiser)[0]
    draft = branch(
        parent.effective,
        parent.id,
        first - 1,
        turns={name: value for name, value in knobs.items() if value is not None},
        objective=options.get("preset"),
        sampler=options.get("sampler"),
        title=parent.title,
    )
    return apply_settings(draft, {"name": options.get("name", draft.name)})


def _trainable(text: str) -> dict[str, Any]:
    if text in ("all", "lora", "classifier"):
        return {"part": text}
    kind, _, blocks = text.partition("-")
    if kind == "last" and blocks.isdecimal():
        return {"part": "last_blocks", "blocks": int(blocks)}
    raise ConfigError(
        "trainable", text, "give all, lora, classifier, or last-K with a number of blocks, such as last-2."
    )


def _follow(engine: Engine, run_id: str, as_json: bool) -> None:
    """Show progress until the run ends; Ctrl-C requests a stop. Exit with status 1 unless the run has finished."""
    store = engine.store
    say(f"{store.run(run_id).title} ({run_id}) in {store.folder}", err=True)
    stopping = False
    with tqdm(total=store.run(run_id).steps, unit="step", disable=not sys.stderr.isatty()) as bar:

        def show(now: RunRecord) -> None:
            bar.set_description(str(now.status), refresh=False)
            bar.update(now.last_step - bar.n)

        while not (run := store.run(run_id)).status.ended:
            try:
                show(run)
                engine.dispatch()
                time.sleep(POLL_S)
            except KeyboardInterrupt:
                if stopping:
                    raise
                stopping = True
                say("Stopping. Press Ctrl-C again to exit without waiting.", err=True)
                with suppress(EngineError):  # the run may just have ended
                    engine.stop(run_id)
        show(run)
    result = _result(store, run_id)
    if run.message and not is_first_note(run.message, run.config):  # printed before launch
        say(f"{run.title}: {run.message}", err=True)
    if as_json:
        print_json(result)
    else:
        say(_sentence(run, result))
    if run.status != Status.FINISHED:
        sys.exit(EXIT_FAILED)


def _result(store: Store, run_id: str) -> dict[str, Any]:
    run = store.run(run_id)
    evaluations = scored_evaluations(run.effective, store.evaluations(run_id))
    newest = {e.split: e for e in evaluations}
    scores = {split: evaluation.values for split, evaluation in newest.items()}
    last = newest.get("test") or newest.get("validation")
    test, validation = scores.get("test", {}), scores.get("validation", {})
    return {
        "run_id": run.id,
        "name": run.title,
        "tags": list(run.tags),
        "status": str(run.status),
        "steps": run.last_step,
        "test_accuracy": test.get("accuracy"),
        "macro_f1": test.get("macro_f1"),
        "test_interval": [test["accuracy_low"], test["accuracy_high"]] if test else None,
        "validation_accuracy": validation.get("accuracy"),
        "baseline_accuracy": scores.get("baseline", {}).get("accuracy"),
        "baseline_test_accuracy": scores.get("baseline_test", {}).get("accuracy"),
        "baseline_rows": scores.get("baseline", {}).get("train_rows"),
        "scored": None if last is None else "classifier" if last.probe_rows is None else "linear probe",
        "test_majority_rate": majority_rate(store.folder, run, "test"),
        "validation_majority_rate": majority_rate(store.folder, run, "validation"),
        **{f"{split}_{SPEARMAN}": values[SPEARMAN] for split, values in scores.items() if SPEARMAN in values},
        "device": run.device,
        "seconds": round(run.elapsed_s, 3) if run.started_at else None,
        "peak_memory_bytes": run.peak_memory,
        "message": None if run.message is None else str(run.message),
        "bytes": store.size(run_id).total,
        "weights_kept": run.keep_weights,
        "weights_dropped": None if (dropped := dropped_sentence(run)) is None else str(dropped),
    }


def _sentence(run: RunRecord, result: dict[str, Any]) -> str:
    text = f"{run.title} {run.status} at step {run.last_step}"
    if (spearman := result.get(f"test_{SPEARMAN}")) is not None:
        text += f": test Spearman {signed(spearman, 3)}"
    elif result["test_accuracy"] is not None:
        of_probe = " of a linear probe" if result["scored"] == "linear probe" else ""
        accuracy, f1 = percent(result["test_accuracy"]), percent(result["macro_f1"])
        text += f": test accuracy{of_probe} {accuracy}, macro-F1 {f1}"
    return text + "."


for command in (export, import_replay, tasks, sweep, protocol, protocols, surface, experiments):
    cli.add_command(command)


def main() -> int:
    """Run the command line. Errors are one line on stderr and, with --json, an object on stdout."""
    ask_for_language(lambda: code if (code := os.environ.get(SPOKEN, ENGLISH)) in LANGUAGES else ENGLISH)
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        _say_error(" ".join(error.format_message().split()))
        return EXIT_USAGE
    except PlaygroundError as error:
        _say_error(str(error), {"field": error.field} if isinstance(error, ConfigError) else {})
        return EXIT_FAILED
    return 0


def _say_error(message: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print an error. Args: more: further fields of the JSON object."""
    say(f"error: {message}", err=True)
    if "--json" in sys.argv:
        print_json({"error": {"message": message, **more}})
