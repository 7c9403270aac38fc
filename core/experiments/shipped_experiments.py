"""The experiments shipped with the project: unmodified protocols and their results."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ShippedExperiment:
    """A shipped experiment.

    Attributes:
        name: name of its protocol.
        seeds: number of seeds; None for the protocol's default.
    """

    name: str
    seeds: int | None = None

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.zip"

    @property
    def design(self) -> Design:
        return PROTOCOLS.entry(self.name).design(seeds=() if self.seeds is None else range(self.seeds))


SHIPPED_EXPERIMENTS = {
    one.name: one
    for one in (
        ShippedExperiment("few-shot", seeds=9),
        ShippedExperiment("rdrop-stages"),
        ShippedExperiment("representation"),
        ShippedExperiment("dropout-contrast"),
    )
}


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
    paths = {name: one.path for name, one in SHIPPED_EXPERIMENTS.items()}
    return rebuild(
        names, paths, lambda name: make(SHIPPED_EXPERIMENTS[name].design, paths[name]), "is not a shipped experiment"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
