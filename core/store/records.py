"""What the store gives back: frozen values, read once."""

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
from core.messages import N_, Message, Text, _

# Lists of runs are read again and again, and reading a config takes a moment.
CONFIGS_KEPT = 4_096
# A knob's turn as its table has it: step, name, value.
Turn = tuple[int, str, float]


class Status(StrEnum):
    """The status of a run or a job. INTERRUPTED is never written: it is derived when a run is read.

    People read `_(str(status))`; what is kept, compared and said to other programs is the English word.
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
        """A worker has it, or is about to."""
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
    """Who works on a run. A process is the same one only if host, boot, pid and start time all agree."""

    host: str
    boot_id: str
    pid: int
    started_at: float


@dataclass(frozen=True, slots=True)
class Control:
    """What somebody asked of a run: kind "stop", "pause", "resume", or "turn" with a knob's name and value."""

    number: int
    kind: str
    name: str | None
    value: float | None


class KnobState(NamedTuple):
    """Where the knobs of a run are at one moment.

    Attributes:
        config: the effective config.
        step: the next step.
        pending: values that were asked for and that no step has used yet, by the knob's name.
    """

    config: RunConfig
    step: int
    pending: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued run. Attributes: background: of an experiment; turn_at: when its owner last had a turn."""

    id: str
    owner: str | None
    background: bool
    turn_at: float
    queued_at: float


@dataclass(frozen=True, slots=True)
class Discarded:
    """A run that was taken out of sight and can be brought back. Attributes: at: since when; size: bytes on disk."""

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
    """A run whose stored config this version cannot read. Attributes: reason: a sentence."""

    id: str
    number: int
    name: str
    owner: str | None
    reason: Message

    @property
    def sentence(self) -> Message:
        """The run's name and id, and why it cannot be read."""
        title = _title(self.name, self.number)
        return Message("{title} ({id}) cannot be read: {reason}", title=title, id=self.id, reason=self.reason)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as lists show it.

    Attributes:
        config: as launched.
        effective: as launched, with the knob turns so far: what the run did, and what every page shows.
        attempt: number of the latest attempt, from the moment when it is claimed.
        begun_attempt: number of the latest that began to train, 0 before the first. What a run has recorded (steps,
            frames) is only cut, and what was made of it only wrong, when this number rises.
        keep_weights: whether the disk budget must leave its weights alone.
        snapshots_dropped_at, weights_dropped_at: when the budget took its snapshots, or the weights of its last step.
        dropped_gb: the budget at the later of the two.
        worked_s: seconds that it has worked, pauses and the time between attempts left out, up to `working_since`.
        working_since: since when it works without a break; None where it does not.
        tags: what people sort it under.
        of_experiment: whether an experiment started it.
        adopted: whether it was carried out elsewhere, and came with a file.
        owner: the visitor whose run it is; None where nobody is known.
        place: the node of a cluster that it runs or ran on; None for this machine, and while it waits for a node.
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
    tags: tuple[str, ...]
    of_experiment: bool
    adopted: bool
    place: str | None
    owner: str | None

    @property
    def elapsed_s(self) -> float:
        """Seconds that it has worked up to now, or in all."""
        since = self.working_since
        return self.worked_s + (0.0 if since is None else max(0.0, (self.ended_at or time.time()) - since))

    @property
    def title(self) -> str:
        return _title(self.name, self.number)


@dataclass(frozen=True, slots=True)
class RunRecord(RunSummary):
    """A run with what its first event said."""

    probe: Probe | None
    facts: Mapping[str, float]


def _title(name: str, number: int) -> str:
    return name or _("Run {number}", number=number)


@lru_cache(maxsize=CONFIGS_KEPT)
def stored_config(text: str) -> RunConfig:
    return parse_config(text)


def config_problem(text: str) -> Message | None:
    """Return why a stored config cannot be read, such as a field of a later version; None where it can."""
    try:
        stored_config(text)
    except PlaygroundError as error:
        return error.message
    return None


@lru_cache(maxsize=CONFIGS_KEPT)
def with_turns(text: str, turns: tuple[Turn, ...]) -> RunConfig:
    """A config with these turns beside its own; of two at the same step, the one that was made counts."""
    config = stored_config(text)
    if not turns:
        return config
    made = [KnobTurn(step=step, name=name, value=value) for step, name, value in turns]
    known = {(turn.step, turn.name): turn for turn in (*config.knob_turns, *made)}
    return config.model_copy(update={"knob_turns": tuple(known[key] for key in sorted(known))})
