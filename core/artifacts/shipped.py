"""The replays shipped with the project: runs with the same task, seed and probe set that differ in one respect."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.artifacts.replay import write_replay
from core.config import RunConfig, parse_config
from core.errors import EngineError, PlaygroundError
from core.messages import N_
from core.store import Status, Store

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "replays"
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Shipped:
    """A shipped replay. Attributes: label: short name in lists; about: one sentence on what it shows."""

    name: str
    label: str
    about: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.zip"


SHIPPED = {
    one.name: one
    for one in (
        Shipped(
            "ce-scl",
            "CE + SCL, τ 0.3",
            N_("Adds the supervised contrastive loss (SCL): reviews of one class attract, different classes repel."),
        ),
        Shipped(
            "ce",
            "CE",
            N_(
                "Cross-entropy alone separates the classes and only requires that they lie on two sides of a "
                "hyperplane."
            ),
        ),
        Shipped(
            "ce-scl-sharp",
            "CE + SCL, τ 0.05",
            N_(
                "At a low temperature only the nearest reviews count. Here all reviews end much closer together than "
                "at τ 0.3."
            ),
        ),
        Shipped(
            "r-drop",
            "R-Drop",
            N_("Every review is encoded twice with different dropout masks, and the two predictions should agree."),
        ),
        Shipped(
            "dropout-contrast",
            N_("Dropout contrast"),
            N_("Every review is encoded twice with different dropout masks, and the two vectors attract each other."),
        ),
        Shipped(
            "token-scl",
            N_("Token-level"),
            N_("Contrasts the tokens with the highest [CLS] attention, not whole reviews."),
        ),
        Shipped(
            "collapsed",
            N_("Collapsed"),
            N_(
                "SCL alone with too high a learning rate: all vectors become the same, and the loss stays at its "
                "collapse line."
            ),
        ),
        Shipped(
            "exploded",
            N_("Not normalised"),
            N_(
                "CE + SCL at τ 0.3 on dot products instead of cosines: the gradient norm of the first step is "
                "100 times as large."
            ),
        ),
    )
}


def make(config: RunConfig, path: Path) -> None:
    """Train a run from a draft config and write it as a replay.

    Raises: PlaygroundError for a run that does not finish; errors of `write_replay`.
    """
    from core.workers import LocalEngine

    with tempfile.TemporaryDirectory(prefix="scl-replay-") as folder, closing(Store(Path(folder) / "runs")) as store:
        run_id = LocalEngine(store).submit(config)
        while not (run := store.run(run_id)).status.ended:
            time.sleep(POLL_S)
        if run.status != Status.FINISHED:
            raise EngineError(f"{run.title} {run.status} at step {run.last_step}: {run.message}")
        write_replay(store, run_id, path)


def draft_of(one: Shipped) -> RunConfig:
    """Read the draft config of a shipped replay."""
    return parse_config((FOLDER / f"{one.name}.json").read_text(encoding="utf-8"))


def rebuild(names: Sequence[str], paths: Mapping[str, Path], make: Callable[[str], None], unknown: str) -> int:
    """Rebuild the named files, or all. Args: unknown: predicate of the error for other names. Returns: exit status."""
    for name in names or paths:
        if name not in paths:
            print(f"{name} {unknown}: choose {', '.join(paths)}.", file=sys.stderr)
            return 2
        try:
            make(name)
        except PlaygroundError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{paths[name].name}: {paths[name].stat().st_size / 1e6:.2f} MB", flush=True)
    return 0


def main(names: Sequence[str]) -> int:
    """Rebuild the named replays, or all: `python -m core.artifacts.shipped [NAME ...]`. Returns: exit status."""
    paths = {name: one.path for name, one in SHIPPED.items()}
    return rebuild(
        names, paths, lambda name: make(draft_of(SHIPPED[name]), paths[name]), "is not a replay of the project"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
