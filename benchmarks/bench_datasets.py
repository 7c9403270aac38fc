"""Labelled data sets, handled like a user's files: detect the columns, store the rows, fine-tune on them.

    python -m benchmarks.bench_datasets [DIR [SET …]] [--steps 30]

DIR has a folder for each set with train.csv and test.csv, and a README.md whose table gives a bag-of-words floor as
"NB" (accuracy / majority rate). For each set the script prints the detected columns, the reading time, and the test
accuracy of a short run on the bundled encoder beside the majority rate and the floor. The exit status is 1 if a set
does not load or finish, or if an English set whose floor lies ten points above its majority rate does not exceed that
rate.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.measure import own_folders
from core.advice.prepare import prepare
from core.config import ReadingConfig, parse_config
from core.errors import PlaygroundError
from core.events import Evaluation
from core.models.source import BUNDLED
from core.store import TaskLibrary
from core.tasks import load_task
from core.tasks.load import join_rows, read_files, usable_rows
from core.tasks.registry import ASSETS
from core.tasks.rows import Rows
from core.tasks.splits import stratified_order
from core.tasks.survey import language_of
from core.training.loop import train
from core.workers.machine import has_bfloat16, has_gpu

FLOOR_MARGIN = 0.10
# All rows of a set are read and stored; limits on test rows and tokens keep a run short.
TEST_ROWS, TOKENS = 300, 64
NB = re.compile(r"^(0?\.\d+|1\.0+)\s*/\s*(0?\.\d+|1\.0+)$")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ASSETS, help="[default: the bundled tasks]")
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--steps", type=int, default=30)
    given = parser.parse_args(arguments)
    floors = published_floors(given.folder / "README.md")
    names = given.sets or sorted(path.parent.name for path in given.folder.glob("*/train.csv"))
    print("| set | columns guessed | rows | classes | read | majority | floor | after the run |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    failed = 0
    for name in names:
        with own_folders() as runs:
            cells, wrong = measured(given.folder / name, floors.get(name), given.steps, TaskLibrary(runs))
        failed += wrong
        print(f"| {' | '.join([name, *cells])} |", flush=True)
    print(f"\n{len(names)} sets, {failed} of them failed; {given.steps} steps each.")
    return min(failed, 1)


def published_floors(path: Path) -> dict[str, float]:
    """Bag-of-words accuracy of each set, from the table of a README."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return {line[0]: float(match[1]) for line in cells for cell in line if (match := NB.match(cell))}


def measured(folder: Path, floor: float | None, steps: int, library: TaskLibrary) -> tuple[list[str], bool]:
    """Measure one set. Returns: the cells of its row after its name, and True if the set failed."""
    paths = [folder / name for name in ("train.csv", "test.csv") if (folder / name).is_file()]
    floor_text = "" if floor is None else f"{floor:.2f}"
    began = time.perf_counter()
    try:
        together = read_files(paths, ReadingConfig())
        read_s = time.perf_counter() - began
        mapping = together.readings[0].source.mapping
        columns = ", ".join(filter(None, (mapping.text, mapping.text_b, mapping.label)))
        rows = join_rows(usable_rows(together, ()), [path.name for path in paths])
        task = library.add(rows, name=folder.name, source=folder.name)
        known = [columns, f"{len(rows):,}", str(len(task.classes) or ""), f"{read_s:.2f} s"]
        if rows.kind == "similarity":
            return [*known, "", floor_text, "scores: kept, not trained on"], False
        learned = library.add(with_fewer_tests(rows), name=f"{folder.name}, fewer tests", source=folder.name)
        draft = {
            "task": {"id": learned.id},
            "encoder": {"id": BUNDLED, "pooling": "mean", "max_length": TOKENS},
            "phases": [{"steps": steps, "optimiser": {"learning_rate": 1e-4, "classifier_learning_rate": 5e-3}}],
            "probe": {"frame_steps": [0, steps]},
        }
        load = partial(load_task, own=library.named_rows)
        config, data = prepare(parse_config(draft), gpu=has_gpu(), bfloat16=has_bfloat16("auto"), load=load)
        scores = [e for e in train(config, data) if isinstance(e, Evaluation) and e.split == "test"]
    except PlaygroundError as error:
        return ["", "0", "", "0.00 s", "", floor_text, str(error)], True
    majority = data.majority_rate(data.test)
    accuracy = scores[-1].values["accuracy"]
    must_learn = floor is not None and floor >= majority + FLOOR_MARGIN - 1e-9
    failed = language_of(data.train.texts) == "latin" and must_learn and accuracy <= majority
    return [*known, f"{majority:.3f}", floor_text, f"{accuracy:.3f}"], failed


def with_fewer_tests(rows: Rows) -> Rows:
    """The rows, with a stratified sample of the test split."""
    splits = rows.splits or ("train",) * len(rows)
    tests = [i for i, split in enumerate(splits) if split == "test"]
    number = {label: i for i, label in enumerate(sorted(set(rows.labels)))}
    order = stratified_order([number[rows.labels[i]] for i in tests], 0)[:TEST_ROWS]
    kept = {tests[place] for place in order}
    return rows.take([i for i, split in enumerate(splits) if split != "test" or i in kept])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
