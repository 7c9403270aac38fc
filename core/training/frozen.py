"""Frozen blocks give the same output for a text each time: computed once, kept within a bound, read in later epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from core.config.plan import KEPT_BYTES

Item = TypeVar("Item")


class OncePerRow(Generic[Item]):
    """Items of rows, computed at a row's first appearance, together with the rows that first appear with it.

    These groups are a function of the sampler alone. A resumed run, which starts with nothing kept, computes the very
    same groups, so its numbers are the same to the last bit. Rows beyond the bound are computed again at each step.
    """

    def __init__(
        self,
        rows_of: Callable[[int], Sequence[int]],
        compute: Callable[[Sequence[int]], Sequence[Item]],
        size: Callable[[int], int],
        limit: int = KEPT_BYTES,
    ) -> None:
        """Keep nothing yet.

        Args:
            rows_of: rows of step 1, 2, …
            compute: items of rows, in their order.
            size: bytes that a row's item takes.
        """
        self._rows_of, self._compute, self._size = rows_of, compute, size
        self._room = limit
        self._walked = 0
        self._groups: dict[int, list[int]] = {}  # step → rows that first appear there and are kept
        self._first: dict[int, int] = {}  # row → that step, for the rows that are kept
        self._seen: set[int] = set()
        self._kept: dict[int, Item] = {}

    def items(self, step: int, rows: Sequence[int]) -> list[Item]:
        """The items of a step's rows."""
        self._walk_to(step)
        for group in sorted({self._first[row] for row in rows if row in self._first and row not in self._kept}):
            members = self._groups[group]
            self._kept.update(zip(members, self._compute(members), strict=True))
        beyond = list(dict.fromkeys(row for row in rows if row not in self._first))
        fresh = dict(zip(beyond, self._compute(beyond), strict=True)) if beyond else {}
        return [self._kept[row] if row in self._kept else fresh[row] for row in rows]

    def _walk_to(self, step: int) -> None:
        for earlier in range(self._walked + 1, step + 1):
            group = []
            for row in dict.fromkeys(self._rows_of(earlier)):
                if row in self._seen:
                    continue
                self._seen.add(row)
                # Once full, full for good: a later, shorter text must not slip in ahead of an earlier one.
                self._room = self._room - self._size(row) if self._room >= self._size(row) else -1
                if self._room >= 0:
                    group.append(row)
                    self._first[row] = earlier
            self._groups[earlier] = group
        self._walked = max(self._walked, step)
