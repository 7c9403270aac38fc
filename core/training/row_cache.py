"""A cache for outputs of frozen blocks, which are the same for a text in every epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from core.config.plan import KEPT_BYTES

Item = TypeVar("Item")


class RowCache(Generic[Item]):
    """A cache of one item per row, up to a size limit.

    A row's item is computed together with those of the rows that first appear in the same step. These groups depend on
    the sampler only. A resumed run starts with an empty cache and computes the same groups, so its results are equal to
    the last bit. Rows beyond the limit are computed again at each step.
    """

    def __init__(
        self,
        rows_of: Callable[[int], Sequence[int]],
        compute: Callable[[Sequence[int]], Sequence[Item]],
        size: Callable[[int], int],
        limit: int = KEPT_BYTES,
    ) -> None:
        """Start with an empty cache.

        Args:
            rows_of: returns the rows of a step, counted from 1.
            compute: returns the items of rows, in their order.
            size: returns the size of a row's item in bytes.
            limit: maximum size of the cache in bytes.
        """
        self._rows_of, self._compute, self._size = rows_of, compute, size
        self._room = limit
        self._walked = 0
        self._groups: dict[int, list[int]] = {}  # step → cached rows that first appear in it
        self._first: dict[int, int] = {}  # cached row → the step of its first appearance
        self._seen: set[int] = set()
        self._kept: dict[int, Item] = {}

    def items(self, step: int, rows: Sequence[int]) -> list[Item]:
        """Return the items of a step's rows."""
        for earlier in range(self._walked + 1, step + 1):
            first = []
            for row in dict.fromkeys(self._rows_of(earlier)):
                if row in self._seen:
                    continue
                self._seen.add(row)
                # Once a row does not fit, no later row is cached, even if it is short enough to fit.
                self._room = self._room - self._size(row) if self._room >= self._size(row) else -1
                if self._room >= 0:
                    first.append(row)
                    self._first[row] = earlier
            self._groups[earlier] = first
        self._walked = max(self._walked, step)
        for group in sorted({self._first[row] for row in rows if row in self._first and row not in self._kept}):
            members = self._groups[group]
            self._kept.update(zip(members, self._compute(members), strict=True))
        beyond = list(dict.fromkeys(row for row in rows if row not in self._first))
        fresh = dict(zip(beyond, self._compute(beyond), strict=True)) if beyond else {}
        return [self._kept[row] if row in self._kept else fresh[row] for row in rows]
