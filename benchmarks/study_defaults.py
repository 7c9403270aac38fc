"""Study of the default learning rates, steps and schedule: runs over many sets, stored as one line each, resumable.

    python -m benchmarks.study_defaults PART [DIR] [--results FILE] [--only SET …]
    python -m benchmarks.study_defaults table [--results FILE]

PART is a list of trials:

- `rates`: rates of encoder and classifier
- `length`: steps, warm-up and batch
- `parts`: rates by trained weights
- `confirm`: the defaults, with three seeds, at 20, 100 and 1,000 training rows
- `precision`: the trials of `confirm` with 100 rows in float32, for comparison with bfloat16
- `classes`: start of the classifier, sampling and size of batches, and τ, with 20 to 80 intents
- `many`: the defaults chosen by `classes`, on held-out classes and seeds, with 7 to 99 classes

DIR has a folder for each public set with train.csv and test.csv; without DIR, only the bundled tasks are used. Trials
with a line in FILE are not run again; a changed default makes a new trial. Every trial encodes frames only at the first
and last step, and is scored on up to 300 validation and 200 test rows, beside a linear probe of the untrained encoder
fitted on the same training rows with the same pooling.

`table` prints FILE as Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from core.advice.defaults import DEFAULT_STEPS, RATES, usual
from core.advice.prepare import prepare
from core.config import TaskConfig, parse_config
from core.config.objective import ObjectiveConfig
from core.events import BASELINE, BASELINE_TEST, Evaluation, Step
from core.models.source import BUNDLED
from core.tasks import load_task
from core.tasks.registry import TASKS
from core.tasks.splits import stratified_order
from core.training.loop import train
from core.training.untrained import FolderCache
from core.workers.machine import has_bfloat16, has_gpu

JSON = dict[str, Any]
# Kept in the repository, so that the tables can be printed again and the study can be resumed.
RESULTS = Path(__file__).with_name("results") / "study_defaults.jsonl"
CACHE = Path("runs/study-cache")
COARSE = ("sst2", "trec", "cr", "yelp_sentences")
# English sets with one text per row and classes, which the README's claims cover.
SENTENCES = (
    "film_reviews", "product_reviews", "venue_reviews", "news_topics", "question_types", "long_film_reviews",
    "sst2", "cr", "uci_amazon", "uci_yelp", "uci_imdb", "imdb", "yelp_polarity", "yelp_sentences",
    "amazon_books", "amazon_electronics", "trec", "ag_news",
)  # fmt: skip
# Sets that a sentence encoder hardly learns in a minute; the launch card warns about them.
HARD = ("acceptability", "paraphrase", "nli", "cola", "mrpc", "paws", "snli", "mnli", "rte", "qnli")
WEIGHTS = (0.0, 0.9)
VALIDATION_ROWS, TEST_ROWS = 300, 200
SEEDS = (0, 1, 2)
# Scores are stored with four digits, so smaller differences of means count as equal.
EQUAL = 5e-5


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "table"])
    parser.add_argument("folder", type=Path, nargs="?", default=None, metavar="DIR")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--only", nargs="*", default=None, metavar="SET")
    given = parser.parse_args(arguments)
    if given.part == "table":
        print(table(read(given.results)))
        return 0
    given.results.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(line) for line in read(given.results)}
    trials = [t for t in PARTS[given.part]() if given.only is None or t["set"] in given.only]
    for number, trial in enumerate(trials, 1):
        if _key(trial) in done:
            continue
        found = outcome(trial, given.folder, FolderCache(CACHE))
        if found is None:
            continue
        line = {"part": given.part, **trial, **found}
        with given.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{number}/{len(trials)} {described(trial)}: {brief(found)}", flush=True)
    return 0


def _key(line: Mapping[str, Any]) -> str:
    """Identity of a trial: its fields without the results."""
    return json.dumps(
        {name: line[name] for name in ("set", "rows", "lambda", "seed", "precision", "phase", "draft") if name in line},
        sort_keys=True,
    )


# Trials: set, number of training rows, λ, seed, and fields of the phase that differ from the defaults.


def trial(name: str, rows: int, weight: float, seed: int = 0, *, precision: str = "auto", **phase: Any) -> JSON:
    return {"set": name, "rows": rows, "lambda": weight, "seed": seed, "precision": precision, "phase": phase}


def optimiser(rate: float, classifier: float | None = None, **more: Any) -> JSON:
    return {"learning_rate": rate, "classifier_learning_rate": classifier or rate, **more}


def defaults() -> JSON:
    """The defaults, spelled out, so that a changed default makes a new trial."""
    return {"steps": DEFAULT_STEPS, "optimiser": optimiser(*RATES["all"]["small"])}


def rates() -> Iterator[JSON]:
    peaks = (5e-5, 1e-4, 2e-4, 4e-4)
    for rate, factor, name in product(peaks, (1.0, 5.0, 25.0), COARSE):
        yield trial(name, 400, 0.9, steps=60, optimiser=optimiser(rate, rate * factor))
    for rate, name in product(peaks, COARSE):
        yield trial(name, 400, 0.0, steps=60, optimiser=optimiser(rate, 5 * rate))


def length() -> Iterator[JSON]:
    for (steps, warmup), rate, name in product(((30, 0.1), (60, 0.3), (120, 0.1)), (1e-4, 2e-4), COARSE):
        yield trial(name, 400, 0.9, steps=steps, optimiser=optimiser(rate, 5 * rate, warmup_fraction=warmup))
    for name in COARSE:
        yield trial(name, 400, 0.9, steps=60, batch_size=32, optimiser=optimiser(2e-4, 1e-3))


def parts() -> Iterator[JSON]:
    wanted = {
        "last_blocks": (0.9, (1e-4, 2e-4, 4e-4, 8e-4), 5.0),
        "lora": (0.9, (5e-4, 1e-3, 2e-3, 4e-3), 2.0),
        "classifier": (0.0, (1e-3, 3e-3, 1e-2, 3e-2), 1.0),
    }
    for part, (weight, peaks, factor) in wanted.items():
        for rate, name in product(peaks, COARSE):
            values = optimiser(rate, rate * factor)
            yield trial(name, 400, weight, steps=60, trainable={"part": part}, optimiser=values)


def precision() -> Iterator[JSON]:
    for seed, name, weight in product(SEEDS, SENTENCES, WEIGHTS):
        yield trial(name, 100, weight, seed, precision="float32", **defaults())


def confirm() -> Iterator[JSON]:
    sizes = (100, 1000, 20)
    for names in (SENTENCES, HARD):
        for seed, rows, name, weight in product(SEEDS, sizes, names, WEIGHTS):
            yield trial(name, rows, weight, seed, **defaults())


def classes() -> Iterator[JSON]:
    """Five and fifteen rows per class. "clinc80:20" are the rows of 20 of its classes."""
    starts = (("random", "random"), ("probe", "random"), ("probe", "class_balanced"))
    losses = [(start, 0.0, None) for start in starts] + [(start, 0.9, 0.3) for start in starts]
    losses += [(starts[-1], 0.9, temperature) for temperature in (0.1, 0.07)]
    trials = [(*one, 16) for one in losses] + [(starts[-1], 0.0, None, 32), (starts[-1], 0.9, 0.07, 32)]
    for seed, count, each, (start, weight, temperature, batch) in product(SEEDS, (20, 40, 80), (5, 15), trials):
        draft: JSON = {"classifier_start": start[0], "task": {"sampler": start[1]}}
        draft |= {} if temperature is None else {"temperature": temperature}
        phase = {} if batch == 16 else {"batch_size": batch}
        yield trial(f"clinc80:{count}", count * each, weight, seed, **phase) | {"draft": draft}


def many() -> Iterator[JSON]:
    """Other classes, other seeds, other sets; "clinc80:20:2" is a second draw of 20 classes."""
    drawn = [(f"clinc80:{count}:2", count) for count in (7, 10, 20, 40)]
    whole = [("clinc80", 80), ("zh_tnews", 15), ("clinc80+zh_tnews+ag_news", 99)]
    for seed, (name, count), each, weight in product((3, 4, 5), drawn + whole, (5, 15), WEIGHTS):
        start = usual(count, count * each)
        phase = {"steps": DEFAULT_STEPS, "batch_size": start.batch_size}
        yield trial(name, count * each, weight, seed, **phase) | {"draft": {"temperature": start.temperature}}


PARTS = {
    "rates": rates,
    "length": length,
    "parts": parts,
    "precision": precision,
    "confirm": confirm,
    "classes": classes,
    "many": many,
}


def outcome(given: Mapping[str, Any], folder: Path | None, cache: FolderCache) -> JSON | None:
    """Result of a trial's run, or None if its set is missing."""
    task = source(given["set"], folder)
    if task is None:
        return None
    more = given.get("draft", {})
    objective = ObjectiveConfig().with_knob("lambda", given["lambda"])
    objective = objective.with_knob("temperature", more.get("temperature", 0.3))
    draft = {
        "task": task | sizes(task, given["rows"]) | more.get("task", {}),
        "phases": [{"objective": objective.model_dump(), **given["phase"]}],
        "probe": {"frame_steps": ()},
        "seed": given["seed"],
        "precision": given["precision"],
        "encoder": {"id": BUNDLED},
        "classifier_start": more.get("classifier_start", "auto"),
    }
    began = time.perf_counter()
    config, data = prepare(parse_config(draft), gpu=has_gpu(), bfloat16=has_bfloat16("auto"))
    tests = stratified_order(data.test.labels, 0)[:TEST_ROWS]
    data = replace(data, test=data.test.take(sorted(tests)))
    scores: dict[tuple[str, int], Mapping[str, float]] = {}
    steps = []
    for event in train(config, data, cache=cache):
        if isinstance(event, Evaluation):
            scores[event.split, event.step] = event.values
        elif isinstance(event, Step):
            steps.append(event.values["step_s"])
    chosen = config.phases[0].optimiser
    return {
        "accuracy": round(scores["validation", config.steps]["accuracy"], 4),
        "probe": round(scores[BASELINE, 0]["accuracy"], 4),
        "probe_rows": scores[BASELINE, 0]["train_rows"],
        "test": round(scores["test", config.steps]["accuracy"], 4),
        "probe_test": round(scores[BASELINE_TEST, 0]["accuracy"], 4),
        "validation_rows": len(data.validation),
        "classes": len(data.classes),
        "steps": config.steps,
        "learning_rate": chosen.learning_rate,
        "classifier_learning_rate": chosen.classifier_learning_rate,
        "computed_in": config.precision,
        "step_s": round(sum(steps) / len(steps), 3),
        "whole_s": round(time.perf_counter() - began, 1),
    }


def sizes(task: Mapping[str, Any], wanted: int) -> dict[str, int]:
    """Training rows: as requested, or three quarters of a smaller set. Validation rows: up to 300 of the rest."""
    natural = load_task(TaskConfig.model_validate(task), 0)
    total = len(natural.train) + len(natural.validation)
    rows = min(wanted, 3 * total // 4)
    return {"train_size": rows, "validation_size": min(VALIDATION_ROWS, total - rows)}


def source(name: str, folder: Path | None) -> JSON | None:
    if name in TASKS:
        return {"id": name}
    joined, _, drawn = name.partition(":")
    names = joined.split("+")
    if folder is None or not all((folder / one / "train.csv").is_file() for one in names):
        return None
    here = folder / name if [name] == names else part_of(folder, names, drawn)
    return {
        "id": "file",
        "path": str((here / "train.csv").absolute()),
        "test_path": str((here / "test.csv").absolute()),
    }


def part_of(folder: Path, names: list[str], drawn: str) -> Path:
    """Folder with the rows of several sets, or of some classes of a set: "20:2" are 20 classes drawn by seed 2."""
    count, _, seed = drawn.partition(":")
    part = CACHE / f"{'+'.join(names)}-{drawn.replace(':', '-')}"
    part.mkdir(parents=True, exist_ok=True)
    for name in ("train.csv", "test.csv"):
        rows = pd.concat(pd.read_csv(folder / one / name) for one in names)
        if count:
            rows = rows[
                rows["label"].isin(random.Random(int(seed or 1)).sample(sorted(rows["label"].unique()), int(count)))
            ]
        rows.to_csv(part / name, index=False)
    return part


def described(given: Mapping[str, Any]) -> str:
    phase = json.dumps(given["phase"] | given.get("draft", {}), sort_keys=True)
    return (
        f"{given['set']} {given['rows']} rows λ {given['lambda']:g} seed {given['seed']} {given['precision']} {phase}"
    )


def brief(found: Mapping[str, Any]) -> str:
    return f"{found['accuracy']:.3f}, probe {found['probe']:.3f}, test {found['test']:.3f}, {found['whole_s']:.0f} s"


# Results


def read(path: Path) -> list[JSON]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(lines: list[JSON]) -> str:
    """A Markdown table for each part with trials. Accuracy and probe are scored on the same rows."""
    drawn = {"confirm": _confirmed, "many": _confirmed, "precision": _precisions}
    frame = pd.DataFrame(lines)
    frame["difference"], frame["on test"] = frame["accuracy"] - frame["probe"], frame["test"] - frame["probe_test"]
    frame["kind"] = ["one text a row" if name in SENTENCES else "harder" for name in frame["set"]]
    frame["λ"] = frame["lambda"].map("{:g}".format)
    frame["settings"] = [
        f"{json.dumps(given, sort_keys=True).replace(chr(34), '') if given else 'defaults'}, {line['computed_in']}"
        for line in lines
        for given in [line["phase"] | line.get("draft", {})]
    ]
    found = []
    for part in (part for part in PARTS if part in set(frame["part"])):
        trials = frame[frame["part"].isin([part, "confirm"] if part == "precision" else [part])]
        found.append(drawn.get(part, _settings)(trials).to_markdown(index=False, disable_numparse=True))
    return "\n\n".join(found)


def _settings(trials: pd.DataFrame) -> pd.DataFrame:
    """Accuracy minus that of the probe for each setting, averaged over sets and seeds."""
    scores = ["accuracy", "probe", "difference", "test"]
    groups = trials.astype({"rows": str}).groupby(["settings", "rows", "λ"])
    found = groups[scores].mean().map("{:.3f}".format)
    found["difference"] = (groups["accuracy"].mean() - groups["probe"].mean()).map("{:+.3f}".format)
    found.insert(0, "runs", groups.size())
    return found.reset_index()


def _confirmed(trials: pd.DataFrame) -> pd.DataFrame:
    """Number of sets on which the defaults end above the probe, by the mean over the seeds of each set."""
    rows = []
    for (kind, size, weight), found in trials.groupby(["kind", "rows", "λ"]):
        by_set = found.groupby("set")[["difference", "on test"]].mean()
        validation, test = by_set["difference"], by_set["on test"]
        rows.append(
            {
                "kind": kind,
                "rows": f"{size:,}",
                "λ": weight,
                "sets": len(by_set),
                "runs": len(found),
                "above": (validation > EQUAL).sum(),
                "equal": (validation.abs() <= EQUAL).sum(),
                "difference": f"{validation.mean():+.3f}",
                "above on test": (test > EQUAL).sum(),
                "on test": f"{test.mean():+.3f}",
            }
        )
    return pd.DataFrame(rows)


def _precisions(trials: pd.DataFrame) -> pd.DataFrame:
    """bfloat16 minus float32 on the same set, seed and loss, ± the standard error of the mean."""
    scores = trials.pivot(
        index=["rows", "λ", "set", "seed"], columns="computed_in", values=["accuracy", "test"]
    ).dropna()
    pairs = scores.xs("bfloat16", axis=1, level=1) - scores.xs("float32", axis=1, level=1)
    rows = [
        {
            "rows": f"{size:,}",
            "λ": weight,
            "pairs": len(found),
            "validation": f"{found['accuracy'].mean():+.4f} ± {found['accuracy'].sem():.4f}",
            "test": f"{found['test'].mean():+.4f} ± {found['test'].sem():.4f}",
        }
        for (size, weight), found in pairs.groupby(level=["rows", "λ"])
        if len(found) > 1
    ]
    return pd.DataFrame(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
