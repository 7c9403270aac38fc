"""The same example in several runs: one id for it in all of them, so that their maps and tables are linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.artifacts.shared_examples import example_keys, linked_ids
from pages.ui.compare.picking import Shown
from pages.ui.explore.run_reads import Frames, kept


@dataclass(frozen=True, slots=True)
class Linked:
    """The examples of runs.

    Attributes:
        ids: of each run's examples, in its probe's order.
        rows: of each run, the place in its probe by id.
    """

    ids: tuple[tuple[int, ...], ...]
    rows: tuple[Mapping[int, int], ...]

    def known(self) -> frozenset[int]:
        """Every id."""
        return frozenset(i for of_run in self.ids for i in of_run)

    def shared(self, one: int, other: int) -> list[int]:
        """Ids of the examples that two runs have, in the order of the first of them."""
        return [i for i in self.ids[one] if i in self.rows[other]]


def linked(runs: Sequence[Shown]) -> Linked:
    """The examples of runs, linked by text, class and split."""
    return _linked(tuple(one.frames for one in runs))


@kept(max_entries=16)
def _linked(every: tuple[Frames, ...]) -> Linked:
    ids = linked_ids([example_keys(frames.probe) for frames in every])
    return Linked(ids, tuple({number: row for row, number in enumerate(of_run)} for of_run in ids))
