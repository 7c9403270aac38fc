"""The experiments shipped with the project: unmodified protocols and their results."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from core.artifacts.shipped import rebuild
from core.errors import EngineError
from core.experiments.archive import write_archive
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments, is_complete, is_over
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.vectors import job, vectors_request
from core.store import Store

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "experiments"
POLL_S = 1.0

# The number of seeds of each, by the name of its protocol; None for the protocol's default.
SHIPPED_EXPERIMENTS: Mapping[str, int | None] = {
    "few-shot": 9,
    "rdrop-stages": None,
    "representation": None,
    "dropout-contrast": None,
}


def path_of(name: str) -> Path:
    """Return the path of the archive of a shipped experiment."""
    return FOLDER / f"{name}.zip"


def design_of(name: str) -> Design:
    """Return the design of a shipped experiment."""
    return PROTOCOLS.entry(name).design(seeds=range(SHIPPED_EXPERIMENTS[name] or 0))


def make(design: Design, path: Path) -> None:
    """Run an experiment and write its archive. Raises: PlaygroundError if a run does not finish."""
    from core.workers import LocalEngine

    with (
        tempfile.TemporaryDirectory(prefix="scl-experiment-") as folder,
        closing(Store(Path(folder) / "runs")) as store,
    ):
        experiments = Experiments(LocalEngine(store))
        experiment_id = experiments.begin(design)
        while not is_over(design, runs := experiments.table.runs(experiment_id)):
            time.sleep(POLL_S)
            experiments.engine.dispatch()
        if not is_complete(design, runs):
            raise EngineError(f"{design.name} has runs that did not finish: see why with `experiments show`.")
        job(vectors_request(experiment_id), store.folder, lambda *_: None)
        write_archive(store, experiment_id, path)


def main(names: Sequence[str]) -> int:
    """Rebuild the named experiments, or all: `python -m core.experiments.shipped_experiments [NAME ...]`.

    Returns: the exit status.
    """
    paths = {name: path_of(name) for name in SHIPPED_EXPERIMENTS}
    return rebuild(names, paths, lambda name: make(design_of(name), paths[name]), "is not a shipped experiment")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
