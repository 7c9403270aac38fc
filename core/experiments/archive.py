"""An experiment as one small file: its design, and the curves, scores and test predictions of every run.

The file holds no weights, no frames and no folder names from configs. An imported experiment is read-only: its runs
cannot be resumed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from safetensors.numpy import save

from core.artifacts import packed
from core.artifacts.cache import write
from core.artifacts.measures import FrameMeasures, measures_path
from core.artifacts.packed import Array, DamagedError, StrictForm, are_labels, demand, is_whole, parse_member
from core.artifacts.replay import ID_CHARS, finish_adopted_run, made_with, predictions_of
from core.artifacts.replay_file import ScoresForm, Seconds, Value, Values, check_evaluations, complete_config
from core.config import RunConfig
from core.config.run import without_folders
from core.errors import PlaygroundError, StoreError
from core.events import Step
from core.experiments.design import Design, parse_design
from core.experiments.lifecycle import find_missing_runs
from core.experiments.results import vector_measures
from core.messages import N_, Message
from core.store import ExperimentRun, ExperimentTable, Status, Store

FORMAT = 1
ABOUT, PREDICTIONS = "experiment.json", "predictions.safetensors"
MEMBERS = (ABOUT, PREDICTIONS)
MESSAGE = Message("Imported: it has curves and scores, but no map and no weights.")
# Measures of a step that are stored, besides the losses of the terms.
KEPT = ("loss", "grad_norm", "learning_rate")


class _Run(StrictForm):
    """One run.

    Attributes:
        steps: by measure, one value per step; None where the run recorded none.
        vectors: measures of the vectors of the last frame.
    """

    cell: int
    seed: int
    title: Annotated[str, Field(min_length=1, max_length=80)]
    config: dict[str, Any]
    device: str
    seconds: Seconds
    steps: dict[str, list[Value | None]]
    scores: list[ScoresForm]
    vectors: Values

    @property
    def place(self) -> str:
        return f"{self.cell}.{self.seed}"


class _About(StrictForm):
    format: Literal[1]
    name: Annotated[str, Field(min_length=1, max_length=80)]
    design: dict[str, Any]
    made_with: dict[str, str]
    runs: list[_Run]


def write_archive(store: Store, experiment_id: str, path: Path) -> None:
    """Write an experiment whose runs have all finished. The same experiment gives the same bytes.

    Raises: StoreError if a run has not finished or has no test predictions, or if the path cannot be written.
    """
    table = ExperimentTable(store.folder)
    experiment = table.experiment(experiment_id)
    design, runs = parse_design(experiment.design), table.runs(experiment_id)
    if find_missing_runs(design, runs) or any(run.status != Status.FINISHED for run in runs):
        raise StoreError(
            "{experiment} has runs that have not finished: resume it, or wait for its end.", experiment=experiment.title
        )
    arrays: dict[str, NDArray[Any]] = {}
    for run in runs:
        test = store.predictions(str(run.run_id))
        if test is None:
            raise StoreError("Run {number} stored no predictions for its test rows: run it again.", number=run.number)
        arrays[f"{run.cell}.{run.seed}"] = np.ascontiguousarray(test.logits, np.float16)
        arrays[f"labels.{run.cell}.{run.seed}"] = np.asarray(test.labels, np.int32)
    about = {
        "format": FORMAT,
        "name": experiment.title,
        "design": json.loads(design.model_copy(update={"base": without_folders(design.base)}).to_json()),
        "made_with": made_with(),
        "runs": [_run_json(store, run) for run in runs],
    }
    text = json.dumps(about, ensure_ascii=False, allow_nan=False)
    packed.write_members(path, {ABOUT: text, PREDICTIONS: save(arrays)})


def _run_json(store: Store, one: ExperimentRun) -> dict[str, Any]:
    run = store.run(str(one.run_id))
    steps = [_finite(step.values) for step in store.steps(run.id)]
    names = sorted({name for values in steps for name in values if name.startswith("loss.") or name in KEPT})
    vectors = vector_measures(store, one)
    return {
        "cell": one.cell,
        "seed": one.seed,
        "title": run.name or f"Run {run.number}",
        "config": json.loads(without_folders(run.effective).to_json()),
        "device": run.device or "cpu",
        "seconds": round(run.elapsed_s, 1),
        "steps": {name: [values.get(name) for values in steps] for name in names},
        "scores": [
            {"step": score.step, "split": score.split, "values": _finite(score.values)}
            for score in store.evaluations(run.id)
        ],
        "vectors": {} if vectors is None else _finite(vectors.values),
    }


def _finite(values: Mapping[str, float]) -> Values:
    return {name: float(f"{value:.5g}") for name, value in values.items() if math.isfinite(value)}


def open_archive(store: Store, path: Path) -> str:
    """Import an experiment and its runs. The id derives from the file, so a second import adds nothing.

    Existing runs of the experiment are unchanged; deleted runs are restored.

    Returns: the experiment's id.
    Raises: StoreError for a file that is damaged or not an experiment.
    """
    about, design, configs, arrays = _read(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    experiment_id = digest[:ID_CHARS]
    ExperimentTable(store.folder).adopt(experiment_id, about.name, design.to_json())
    for run, config in zip(about.runs, configs, strict=True):
        run_id = hashlib.sha256(f"{digest}.{run.place}".encode()).hexdigest()[:ID_CHARS]
        if store.bring_back(run_id):
            continue
        attempt = store.adopt(run_id, config, run.title, run.seconds, cell=(experiment_id, run.cell, run.seed))
        with finish_adopted_run(store, attempt, MESSAGE):
            count = len(next(iter(run.steps.values()), []))
            values = [
                {name: value for name, column in run.steps.items() if (value := column[i]) is not None}
                for i in range(count)
            ]
            if values:
                attempt.steps([Step(number, of_step) for number, of_step in enumerate(values, 1)])
            for scores in run.scores:
                attempt.evaluation(scores.step, scores.split, scores.values)
            attempt.predictions(predictions_of(arrays[run.place], arrays[f"labels.{run.place}"]))
            if run.vectors:
                path = measures_path(attempt.folder, store.run(run_id).begun_attempt, count)
                write(path, FrameMeasures(run.vectors, np.zeros(0, np.int64)))
    return experiment_id


def _read(path: Path) -> tuple[_About, Design, list[RunConfig], Mapping[str, Array]]:
    """Read an archive and check its members against each other.

    Returns: its description, its design, the config of each run, and the arrays "<cell>.<seed>", test logits [N, C],
        and "labels.<cell>.<seed>" [N].
    """
    try:
        members = packed.read_members(path, MEMBERS)
        about = parse_member(_About, members[ABOUT], ABOUT)
        arrays = packed.arrays(members[PREDICTIONS], PREDICTIONS)
        try:
            design = parse_design(about.design)
        except PlaygroundError as error:
            raise DamagedError(str(error).rstrip(".")) from error
        configs = [complete_config(run.config) for run in about.runs]
        for run, config in zip(about.runs, configs, strict=True):
            check_evaluations(run.scores, config.steps)
        _check(about, design, arrays)
        return about, design, configs, arrays
    except DamagedError as error:
        raise StoreError(
            "{file} is damaged, or not an experiment ({reason}): restore it from the repository.",
            file=path.name,
            reason=error.why,
        ) from error


def _check(about: _About, design: Design, arrays: Mapping[str, Array]) -> None:
    """Check that the runs match the design and that the data of each run is consistent."""
    places = [run.place for run in about.runs]
    cells = {cell.number for cell in (*design.source_cells, *design.cells)}
    of_design = all(run.cell in cells and run.seed in design.seeds for run in about.runs)
    demand(of_design and len(set(places)) == len(places), N_("its runs do not match its design"))
    demand(
        set(arrays) == {*places, *(f"labels.{place}" for place in places)},
        N_("{file}: logits and labels of each run"),
        file=PREDICTIONS,
    )
    for run, place in zip(about.runs, places, strict=True):
        logits, labels = arrays[place], arrays[f"labels.{place}"]
        whole = labels.ndim == 1 and logits.ndim == 2 and is_whole(logits, (len(labels), logits.shape[1]))
        demand(whole and are_labels(labels, logits.shape[1]), "{file}: {name}", file=PREDICTIONS, name=place)
        columns = {len(column) for column in run.steps.values()}
        demand(len(columns) <= 1, N_("{file}: different numbers of steps for run {name}"), file=ABOUT, name=place)
