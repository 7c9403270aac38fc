"""50 visitors who watch one run: time of a page update, throughput of the run, and memory that the server keeps.

Each visitor is a WebSocket session with the app's server in Streamlit's protocol: it opens the run's page, receives
every message, and requests an update at each beat of the page, as a browser does. It draws nothing. The visitors arrive
one by one within 10 s, as a class does, and for two minutes watch a fine-tune of the bundled encoder with its default
frames. An update lasts from the request to the end of the response. The same run is executed unwatched before and
after; the ratio is the pace of the watched run over the mean of these two. Memory is that of the server's process,
after a first visitor has left, and again after all have left.

Limits: 95% of the updates within 1 s; the run at 0.85 of its throughput or more; at most 50 MiB kept.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from benchmarks.browsing import served_app, server_of, wait_until_quiet
from benchmarks.measure import WarmEngine, options, own_folders, report
from core.config import parse_config
from core.store import Store
from core.workers import LocalEngine

MIB = 2**20
# Streamlit keeps closed sessions for a while, so that a browser can reconnect.
ARRIVE_S, LEAVE_S = 10.0, 20.0
LARGEST_MESSAGE = 2**28
TIMEOUT_S = 120.0
TRIGGER = "$$STREAMLIT_INTERNAL_KEY_{}__events"


@dataclass
class Visitor:
    """One session, and the durations of its updates."""

    address: str
    run_id: str
    updates_s: list[float] = field(default_factory=list)
    heard_bytes: int = 0
    problems: list[str] = field(default_factory=list)

    async def watch(self, until: float) -> None:
        """Open the page and follow it. Args: until: end, by the monotonic clock."""
        parts = urlsplit(self.address)
        stream = f"ws://{parts.netloc}/_stcore/stream"
        async with connect(
            stream, subprotocols=["streamlit"], max_size=LARGEST_MESSAGE, origin=self.address, open_timeout=TIMEOUT_S
        ) as socket:
            ask = BackMsg()
            ask.rerun_script.query_string = f"run={self.run_id}"
            ask.rerun_script.page_name = "fine_tune"
            await socket.send(ask.SerializeToString())
            beat = await self._answer(socket)
            while beat is not None and time.monotonic() < until:
                await asyncio.sleep(beat["after_ms"] / 1000)
                started = time.monotonic()
                await socket.send(self._question(beat))
                beat = await self._answer(socket) or beat
                self.updates_s.append(time.monotonic() - started)

    def _question(self, beat: dict[str, Any]) -> bytes:
        """Message that the page's beat sends."""
        ask = BackMsg()
        ask.rerun_script.query_string = f"run={self.run_id}"
        ask.rerun_script.page_script_hash = beat["page"]
        ask.rerun_script.fragment_id = beat["fragment"]
        state = ask.rerun_script.widget_states.widgets.add()
        state.id = TRIGGER.format(beat["id"])
        state.json_trigger_value = json.dumps([{"event": "beat", "value": beat["number"]}])
        return ask.SerializeToString()

    async def _answer(self, socket: Any) -> dict[str, Any] | None:
        """Receive messages until the script has ended. Returns: the newest beat, or None."""
        found: dict[str, Any] | None = None
        while True:
            raw = await asyncio.wait_for(socket.recv(), TIMEOUT_S)
            self.heard_bytes += len(raw)
            message = ForwardMsg()
            message.ParseFromString(raw)
            kind = message.WhichOneof("type")
            if kind == "navigation":  # after `new_session`, which has the hash of the whole app
                self._page = message.navigation.page_script_hash
            elif kind == "delta":
                found = self._beat(message) or found
                element = message.delta.new_element
                if element.WhichOneof("type") == "exception":
                    self.problems.append(element.exception.message)
            elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return found

    def _beat(self, message: ForwardMsg) -> dict[str, Any] | None:
        component = message.delta.new_element.bidi_component
        if not component.component_name.endswith("beat"):
            return None
        data = json.loads(component.json)
        return {
            "id": component.id,
            "fragment": message.delta.fragment_id,
            "page": self._page,
            "after_ms": data["after_ms"],
            "number": data["number"],
        }


async def all_watch(address: str, run_id: str, count: int, seconds: float) -> list[Visitor]:
    """Run visitors who arrive one by one and leave together."""
    until = time.monotonic() + seconds
    visitors = [Visitor(address, run_id) for _ in range(count)]

    async def come(place: int, visitor: Visitor) -> None:
        await asyncio.sleep(ARRIVE_S * place / count)
        await visitor.watch(until)

    async with asyncio.TaskGroup() as group:
        for place, visitor in enumerate(visitors):
            group.create_task(come(place, visitor))
    return visitors


def start_run(engine: LocalEngine, steps: int) -> str:
    """Start a run and wait for its first step. Returns: its id."""
    wait_until_quiet()
    run_id = engine.submit(parse_config({"task": {"id": "film_reviews"}, "phases": [{"steps": steps}]}))
    while not engine.store.run(run_id).last_step:
        time.sleep(0.05)
    return run_id


def pace(store: Store, run_id: str, seconds: float) -> float:
    """Steps per second of a run in the first `seconds` after its first step."""
    times = list(store.newest_times(run_id, 100_000).values())
    inside = [at for at in times if at <= times[0] + seconds]
    return (len(inside) - 1) / (inside[-1] - inside[0])


def unwatched(engine: LocalEngine, steps: int, seconds: float) -> float:
    run_id = start_run(engine, steps)
    time.sleep(seconds)
    found = pace(engine.store, run_id, seconds)
    ended(engine, run_id)
    return found


def ended(engine: LocalEngine, run_id: str) -> None:
    if not engine.store.run(run_id).status.ended:
        engine.stop(run_id)
    while not engine.store.run(run_id).status.ended:
        time.sleep(0.1)


def resident(process: psutil.Process) -> float:
    gc.collect()
    return float(process.memory_info().rss)


def main() -> None:
    given = options(__doc__, visitors=50, seconds=120, steps=2_000)
    with own_folders() as folder, served_app(Path(folder).with_name("server.log")) as address:
        engine = WarmEngine(Store(folder))
        asyncio.run(all_watch(address, begun_and_ended(engine), 1, 3.0))
        server = server_of(address)
        before = unwatched(engine, given.steps, given.seconds)
        at_first = resident(server)
        run_id = start_run(engine, given.steps)
        visitors = asyncio.run(all_watch(address, run_id, given.visitors, given.seconds))
        watched = pace(engine.store, run_id, given.seconds)
        ended(engine, run_id)
        time.sleep(LEAVE_S)
        stayed = (resident(server) - at_first) / MIB
        after = unwatched(engine, given.steps, given.seconds)
        updates = [seconds for visitor in visitors for seconds in visitor.updates_s]
        problems = [problem for visitor in visitors for problem in visitor.problems]
        if problems:
            raise RuntimeError(f"A page failed: {problems[0]}")
        heard = median(visitor.heard_bytes for visitor in visitors) / MIB
        print(f"{len(updates)} updates of {given.visitors} visitors, {heard:.1f} MiB each", flush=True)
        print(f"seconds per update: median {median(updates):.2f}, 95% within {quantiles(updates, n=20)[-1]:.2f}")
        report("ratio", "throughput, watched / unwatched", [watched / ((before + after) / 2)], "≥ 0.85")
        print(
            f"unwatched before {before:.2f} and after {after:.2f} steps/s; kept by the server: {stayed:.0f} MiB",
            flush=True,
        )
        engine.store.close()


def begun_and_ended(engine: LocalEngine) -> str:
    """Run a short run to its end. Returns: its id."""
    run_id = start_run(engine, 2)
    ended(engine, run_id)
    return run_id


if __name__ == "__main__":
    main()
