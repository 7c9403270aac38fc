"""The same example in several runs: one id for it in all of them, so that their maps and tables are linked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from core.artifacts.shared_examples import example_keys
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


def linked_ids(keys: Sequence[Sequence[Hashable]]) -> tuple[tuple[int, ...], ...]:
    """One id per example: 0, 1, 2, … in the order of the first run, then what others have beyond it.

    A run that comes behind the others changes none of theirs. A key that a run has twice is two examples: the first
    goes with the first of the other runs.

    Args:
        keys: one list per run.
    """
    known: dict[tuple[Hashable, int], int] = {}
    found = []
    for of_run in keys:
        seen: Counter[Hashable] = Counter()
        ids = []
        for key in of_run:
            ids.append(known.setdefault((key, seen[key]), len(known)))
            seen[key] += 1
        found.append(tuple(ids))
    return tuple(found)
