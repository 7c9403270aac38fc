"""Frozen records that the store returns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from core.config import KnobTurn, RunConfig, parse_config
from core.errors import PlaygroundError
from core.events import Probe
from core.messages import N_, Message, Text, _, load_text

# Lists of runs are read often, and parsing a config is slow.
MOST_CONFIGS = 4_096
# Meaning of the peak memory of a run.
PEAK_MEMORY = N_(
    "Peak memory of the run's process beyond what it held before the run: encoder, optimiser, activations, and freed "
    "memory that it kept. It varies by some tens of MB. On a GPU: peak of the tensors there. Cells that train together "
    "in one process are not measured."
)
# Row of the table of knob turns: step, name, value.
Turn = tuple[int, str, float]


class Status(StrEnum):
    """Status of a run or job. INTERRUPTED is never stored; it is derived on reading.

    Pages show `_(str(status))`. The English word is stored, compared and passed to other programs.
    """

    QUEUED = N_("queued")
    STARTING = N_("starting")
    RUNNING = N_("running")
    PAUSED = N_("paused")
    STOPPING = N_("stopping")
    INTERRUPTED = N_("interrupted")
    STOPPED = N_("stopped")
    FAILED = N_("failed")
    FINISHED = N_("finished")

    @property
    def active(self) -> bool:
        """True while a worker executes it or is about to."""
        return self in ACTIVE

    @property
    def ended(self) -> bool:
        return self in (Status.STOPPED, Status.FAILED, Status.FINISHED, Status.INTERRUPTED)

    @property
    def resumable(self) -> bool:
        return self in (Status.STOPPED, Status.FAILED, Status.INTERRUPTED)


ACTIVE = frozenset({Status.STARTING, Status.RUNNING, Status.PAUSED, Status.STOPPING})


@dataclass(frozen=True, slots=True)
class Liveness:
    """Identity of a worker process. Two processes are the same only if all four fields agree."""

    host: str
    boot_id: str
    pid: int
    started_at: float


@dataclass(frozen=True, slots=True)
class Control:
    """A control sent to a run: kind "stop", "pause", "resume", or "turn" with a knob's name and value."""

    number: int
    kind: str
    name: str | None
    value: float | None


class KnobState(NamedTuple):
    """Snapshot of the knobs of a run.

    Attributes:
        config: the effective config.
        step: the next step.
        pending: requested values that no step has used yet, by knob name.
    """

    config: RunConfig
    step: int
    pending: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued run.

    Attributes:
        background: True for a run of an experiment.
        turn_at: time at which a run of its owner was last claimed, in seconds since the epoch.
        queued_at: time of queueing, in seconds since the epoch.
    """

    id: str
    owner: str | None
    background: bool
    turn_at: float
    queued_at: float


@dataclass(frozen=True, slots=True)
class Discarded:
    """A deleted run that can be restored.

    Attributes:
        at: time of the deletion, in seconds since the epoch.
        size: bytes on disk.
    """

    id: str
    number: int
    name: str
    owner: str | None
    at: float
    size: int

    @property
    def title(self) -> str:
        return _title(self.name, self.number)


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A run whose stored config this version cannot read.

    Attributes:
        reason: one sentence.
    """

    id: str
    number: int
    name: str
    owner: str | None
    reason: Message

    @property
    def sentence(self) -> Message:
        """A message with the run's name, its id and the reason."""
        title = _title(self.name, self.number)
        return Message("{title} ({id}) cannot be read: {reason}", title=title, id=self.id, reason=self.reason)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run, for lists.

    Attributes:
        config: as launched.
        effective: `config` plus the knob turns so far. Every page shows it, because it describes what the run did.
        attempt: number of the latest attempt, counted when it is claimed.
        begun_attempt: number of the latest attempt that began to train; 0 before the first. Recorded steps and frames
            are deleted, and results derived from them become invalid, only when this number rises.
        keep_weights: True if the disk budget must not drop its weights.
        snapshots_dropped_at, weights_dropped_at: time at which the budget dropped its snapshots or final weights, in
            seconds since the epoch.
        dropped_gb: the budget at the later of these times, in units of 2**30 bytes.
        worked_s: working time up to `working_since`, in seconds, without pauses and the time between attempts.
        working_since: start of the current period of work; None while it is not working.
        peak_memory: bytes, see `core.workers.run_worker.PeakMemory`; None before its first end, and if it was not
            measured.
        tags: labels that users filter by.
        of_experiment: True if an experiment started it.
        adopted: True if it was executed elsewhere and opened from a file.
        owner: the visitor who started it; None if unknown.
        place: the cluster node that executes or executed it; None on this machine, or while it waits for a node.
        responding: False if its worker exists but has not sent a heartbeat for `UNRESPONSIVE_S`, because it is
            suspended or its machine is overloaded.
    """

    id: str
    number: int
    name: str
    config: RunConfig
    effective: RunConfig
    status: Status
    created_at: float
    started_at: float | None
    ended_at: float | None
    attempt: int
    begun_attempt: int
    last_step: int
    steps: int
    checkpoint_step: int | None
    device: str | None
    message: Text | None
    probe_known: bool
    keep_weights: bool
    snapshots_dropped_at: float | None
    weights_dropped_at: float | None
    dropped_gb: float | None
    worked_s: float
    working_since: float | None
    peak_memory: int | None
    tags: tuple[str, ...]
    of_experiment: bool
    adopted: bool
    place: str | None
    owner: str | None
    responding: bool

    @property
    def elapsed_s(self) -> float:
        return worked_seconds(self.worked_s, self.working_since, self.ended_at)

    @property
    def title(self) -> str:
        return _title(self.name, self.number)


@dataclass(frozen=True, slots=True)
class RunRecord(RunSummary):
    """A run with the probe set and facts of its first event."""

    probe: Probe | None
    facts: Mapping[str, float]


def worked_seconds(worked_s: float, working_since: float | None, ended_at: float | None) -> float:
    """Return the seconds that a run has worked, up to now or to its end."""
    return worked_s + (0.0 if working_since is None else max(0.0, (ended_at or time.time()) - working_since))


def stored_text(stored: str | None) -> Text | None:
    """Parse a text column that may be empty."""
    return None if stored is None else load_text(stored)


def _title(name: str, number: int) -> str:
    return name or _("Run {number}", number=number)


@lru_cache(maxsize=MOST_CONFIGS)
def stored_config(text: str) -> RunConfig:
    return parse_config(text)


def config_problem(text: str) -> Message | None:
    """Return the reason why a stored config cannot be read, such as an unknown field; None if it can."""
    try:
        stored_config(text)
    except PlaygroundError as error:
        return error.message
    return None


@lru_cache(maxsize=MOST_CONFIGS)
def with_turns(text: str, turns: tuple[Turn, ...]) -> RunConfig:
    """Add recorded knob turns to a config. At the same step and knob, a recorded turn replaces a planned one."""
    config = stored_config(text)
    if not turns:
        return config
    made = [KnobTurn(step=step, name=name, value=value) for step, name, value in turns]
    known = {(turn.step, turn.name): turn for turn in (*config.knob_turns, *made)}
    return config.model_copy(update={"knob_turns": tuple(known[key] for key in sorted(known))})
