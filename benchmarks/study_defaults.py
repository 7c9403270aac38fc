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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
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
Table = list[list[str]]  # heading and rows
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
    found = {part: [line for line in lines if line["part"] == part] for part in PARTS}
    if found["precision"]:
        found["precision"] += found["confirm"]
    return "\n\n".join(_rows(drawn.get(part, _settings)(trials)) for part, trials in found.items() if trials)


def _settings(lines: list[JSON]) -> Table:
    """Accuracy minus that of the probe for each setting, averaged over sets and seeds."""
    groups = _grouped(lines, lambda line: (_described(line), str(line["rows"]), f"{line['lambda']:g}"))
    heading = ["settings", "rows", "λ", "runs", "accuracy", "probe", "difference", "test"]
    return [heading, *([*group, *_figures(found)] for group, found in groups.items())]


def _described(line: Mapping[str, Any]) -> str:
    given = line["phase"] | line.get("draft", {})
    settings = json.dumps(given, sort_keys=True).replace('"', "") if given else "defaults"
    return f"{settings}, {line['computed_in']}"


def _figures(found: list[JSON]) -> list[str]:
    accuracy, probe, test = (mean(line[name] for line in found) for name in ("accuracy", "probe", "test"))
    return [str(len(found)), f"{accuracy:.3f}", f"{probe:.3f}", f"{accuracy - probe:+.3f}", f"{test:.3f}"]


def _confirmed(lines: list[JSON]) -> Table:
    """Number of sets on which the defaults end above the probe, by the mean over the seeds of each set."""
    groups = _grouped(lines, lambda line: (_kind(line["set"]), line["rows"], line["lambda"]))
    heading = ["kind", "rows", "λ", "sets", "runs", "above", "equal", "difference", "above on test", "on test"]
    return [heading, *([kind, f"{rows:,}", f"{w:g}", *_above(found)] for (kind, rows, w), found in groups.items())]


def _kind(name: str) -> str:
    return "one text a row" if name in SENTENCES else "harder"


def _above(found: list[JSON]) -> list[str]:
    by_set = _grouped(found, lambda line: line["set"]).values()
    validation, test = (
        [mean(line[score] - line[probe] for line in lines) for lines in by_set]
        for score, probe in (("accuracy", "probe"), ("test", "probe_test"))
    )
    return [
        str(len(by_set)),
        str(len(found)),
        str(sum(difference > EQUAL for difference in validation)),
        str(sum(abs(difference) <= EQUAL for difference in validation)),
        f"{mean(validation):+.3f}",
        str(sum(difference > EQUAL for difference in test)),
        f"{mean(test):+.3f}",
    ]


def _precisions(lines: list[JSON]) -> Table:
    """bfloat16 minus float32 on the same set, seed and loss, ± the standard error of the mean."""
    heading = ["rows", "λ", "pairs", "validation", "test"]
    table = [heading]
    for (rows, weight), found in _grouped(lines, lambda line: (line["rows"], line["lambda"])).items():
        twins = _grouped(found, lambda line: (line["set"], line["seed"])).values()
        pairs = [sorted(pair, key=lambda line: line["computed_in"]) for pair in twins if len(pair) == 2]
        pairs = [pair for pair in pairs if [line["computed_in"] for line in pair] == ["bfloat16", "float32"]]
        if len(pairs) < 2:
            continue
        table.append(
            [
                f"{rows:,}",
                f"{weight:g}",
                str(len(pairs)),
                *(_mean_and_error([half[name] - full[name] for half, full in pairs]) for name in ("accuracy", "test")),
            ]
        )
    return table


def _mean_and_error(values: list[float]) -> str:
    return f"{mean(values):+.4f} ± {stdev(values) / len(values) ** 0.5:.4f}"


def _grouped(lines: list[JSON], key: Callable[[JSON], Any]) -> dict[Any, list[JSON]]:
    groups: dict[Any, list[JSON]] = defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    return dict(sorted(groups.items()))


def _rows(table: Table) -> str:
    heading, *rows = table
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heading, ["---"] * len(heading), *rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
