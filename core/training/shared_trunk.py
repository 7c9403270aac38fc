"""The cells of a surface: several runs at once on one frozen trunk.

Cells with the same task, encoder and seed see the same batches, initial weights and draws of dropout. Each thread
trains one cell at a time with a single core: two threads take two thirds of the time that two cores need for one step
after the other, because threads of a matrix product wait for each other. The results do not depend on the threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from copy import copy
from dataclasses import dataclass, field
from itertools import count

import torch
from torch import Tensor

from core.config import RunConfig
from core.config.plan import KEPT_BYTES
from core.encoders.model import Trunk
from core.events import Event, Finished, Step
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.tasks.dataset import Input
from core.training.checkpoints import Checkpoints, random_states, restore_random_states
from core.training.encode import encoder_autocast, load_encoder_of
from core.training.loop import CellEncoder, Controls, NoControls, device_of, train
from core.training.passes import Machine
from core.training.untrained import Baseline, VectorCache, cache_key, weights_fingerprint

TEXTS_AT_ONCE = 32
# Interval in which paused cells are looked at again.
PAUSE_S = 0.1


@dataclass
class Cell:
    """One run of a surface.

    Attributes:
        config: prepared, with executor "surface".
        paused: tells whether the cell waits.
    """

    config: RunConfig
    data: TaskData
    controls: Controls = field(default_factory=NoControls)
    checkpoints: Checkpoints | None = None
    paused: Callable[[], bool] = lambda: False


class Drawing:
    """A random state that is in force within the block. Only one thread is in such a block at a time."""

    _turn = threading.Lock()

    def __init__(self, states: Mapping[str, Tensor]) -> None:
        self._states = states

    @classmethod
    def seeded(cls, seed: int) -> Drawing:
        with cls._turn:
            torch.manual_seed(seed)
            return cls(random_states())

    def __enter__(self) -> None:
        self._turn.acquire()
        restore_random_states(self._states)

    def __exit__(self, *_: object) -> None:
        self._states = random_states()
        self._turn.release()


class _Group:
    """A trunk, and the linear probe of its untrained encoder."""

    def __init__(self, cell: Cell, cache: VectorCache) -> None:
        config, data = cell.config, cell.data.with_paraphrases(cell.config.task.paraphrases)
        device = device_of(config.device)
        machine = Machine(device, encoder_autocast(config.precision, device))
        self.drawing = Drawing.seeded(config.seed)
        with self.drawing:
            encoder, tokenizer = load_encoder_of(config.encoder, data.classes)
        encoder.to(device)
        self.trunk = Trunk(
            encoder,
            tokenizer,
            min(config.phases[0].trainable.frozen(len(encoder.blocks)), len(encoder.blocks) - 1),
            [tokenizer(texts) for texts in _in_order(config, data)],
            KEPT_BYTES,
        )
        key = cache_key(config.encoder, weights_fingerprint(encoder), data, machine.arithmetic)
        self.baseline = Baseline(
            config, data, self.trunk.encoder_copy(), tokenizer, autocast=machine.autocast, cache=cache, key=key
        )


def _in_order(config: RunConfig, data: TaskData) -> Iterator[list[Input]]:
    """Yield groups of texts in the order in which the run first reads them: batch by batch, then the other splits."""
    seen: set[object] = set()
    sampler = make_sampler(config.task.sampler, data.train.labels, config.phases[0].batch_size, config.seed)
    inputs = data.train.inputs
    for step in range(1, config.steps + 1):
        new = [inputs[row] for row in dict.fromkeys(sampler.rows(step)) if inputs[row] not in seen]
        seen.update(new)
        if new:
            yield new
    rest = [text for text in dict.fromkeys((*data.validation.inputs, *inputs)) if text not in seen]
    for start in range(0, len(rest), TEXTS_AT_ONCE):
        yield rest[start : start + TEXTS_AT_ONCE]


class Surface:
    """Cells that are trained together."""

    def __init__(self, cells: Sequence[Cell], cache: VectorCache, dropped: Collection[int] = ()) -> None:
        """Prepare the trunks.

        Args:
            cells: their number is their place.
            cache: vectors of untrained encoders.
            dropped: numbers of cells to leave out from now on; the caller adds to it.
        """
        self._cells, self._dropped = cells, dropped
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._runs: dict[int, Iterator[Event]] = {}  # of the cells that have not ended
        self._waiting = deque(range(len(cells)))
        self._at_work: dict[Future[list[Event | Exception]], int] = {}
        for number, cell in enumerate(cells):
            if cell.config.trunk not in self._groups:
                self._groups[cell.config.trunk] = _Group(cell, cache)
            group = self._groups[cell.config.trunk]
            encoder = CellEncoder(group.trunk.encoder_copy(), group.trunk.tokenizer, copy(group.drawing))
            self._runs[number] = train(
                cell.config,
                cell.data,
                controls=cell.controls,
                checkpoints=cell.checkpoints,
                cache=cache,
                cell=encoder,
            )

    def events(self) -> Iterator[tuple[int, Event | Exception]]:
        """Train the cells, one step of each in turn.

        Yields: the number of a cell and its next event, as `train` yields them; for a cell that fails, its error
            instead of a last event.
        """
        on_gpu = any(device_of(cell.config.device).type != "cpu" for cell in self._cells)
        threads = torch.get_num_threads()
        at_once = 1 if on_gpu else threads
        torch.set_num_threads(1)
        with ThreadPoolExecutor(at_once, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            try:
                for turn in count(1):
                    self._submit(pool, at_once)
                    if not self._at_work and not self._waiting:
                        return
                    ended, _rest = wait(self._at_work, PAUSE_S, FIRST_COMPLETED)
                    for one in ended:
                        number, found = self._at_work.pop(one), one.result()
                        last = found[-1]
                        if isinstance(last, Step):
                            self._waiting.append(number)
                        elif isinstance(last, Finished) and last.status == "finished":
                            yield from self._probe(self._groups[self._cells[number].config.trunk], to_the_end=True)
                        yield from ((number, event) for event in found)
                        if not isinstance(last, Step):
                            del self._runs[number]
                    if turn % len(self._cells) == 0:
                        for group in self._groups.values():
                            yield from self._probe(group)
            finally:
                torch.set_num_threads(threads)

    def _submit(self, pool: ThreadPoolExecutor, at_once: int) -> None:
        """Give the next waiting cells to free threads."""
        for _ in range(len(self._waiting)):
            number = self._waiting.popleft()
            if number in self._dropped:
                del self._runs[number]
            elif self._cells[number].paused() or len(self._at_work) >= at_once:
                self._waiting.append(number)
            else:
                self._at_work[pool.submit(self._advance, number)] = number

    def _advance(self, number: int) -> list[Event | Exception]:
        """Take one step of a cell. Returns: its events, the last of them a step, the end or an error."""
        found: list[Event | Exception] = []
        try:
            for event in self._runs[number]:
                found.append(event)
                if isinstance(event, Step | Finished):
                    break
        except Exception as error:
            found.append(error)
        return found

    def _probe(self, group: _Group, *, to_the_end: bool = False) -> Iterator[tuple[int, Event]]:
        """Encode some texts of a group's linear probe. Yield its scores, once known, for every cell that goes on."""
        events: Iterator[Event] = group.baseline.encode_remaining() if to_the_end else group.baseline.encode_next()
        for event in events:
            for number in list(self._runs):
                if self._groups[self._cells[number].config.trunk] is group:
                    yield number, event
