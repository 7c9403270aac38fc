"""What is asked of runs, held by an actor beside the bridge until the nodes hear it."""

from __future__ import annotations

import asyncio
from collections import defaultdict

Asking = tuple[str, str | None, float | None]


class Switchboard:
    """One list of controls per attempt at a run, by key. Its methods run in one event loop."""

    def __init__(self) -> None:
        self._asked: dict[str, list[Asking]] = defaultdict(list)
        self._news = asyncio.Condition()

    async def ask(self, key: str, control: Asking) -> None:
        """Add a control: kind, name and value."""
        async with self._news:
            self._asked[key].append(control)
            self._news.notify_all()

    async def hear(self, key: str, after: int, wait_s: float) -> list[Asking]:
        """The controls behind the first `after`, as soon as there is one; none where none came in `wait_s`."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(lambda: len(self._asked[key]) > after), wait_s)
            except TimeoutError:
                return []
            return self._asked[key][after:]

    async def forget(self, key: str) -> None:
        """An attempt has ended."""
        async with self._news:
            self._asked.pop(key, None)
