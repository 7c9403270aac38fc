"""The program of a job process, with kinds that only these tests have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from core.errors import TaskError
from core.store.work import RUNS, Claim
from core.workers import Progress, job_worker, processes, warm
from core.workers import job_kinds as kinds
from core.workers.__main__ import main
from core.workers.processes import AUTOGROUP, NICENESS, ONE_THREAD, PATIENT

Json = dict[str, Any]


def count(request: Json, folder: Path, progress: Progress) -> Json:
    for i in range(request["to"]):
        progress(i, request["to"], "counting")
        time.sleep(request.get("pause_s", 0))
    print("counted", request["to"])
    return {"counted": request["to"], "folder": str(folder)}


def wait(request: Json, folder: Path, progress: Progress) -> Json:
    with tempfile.NamedTemporaryFile(delete=False) as partial:
        partial.write(b"half")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    progress(1, None, f"child {child.pid}")
    time.sleep(60)
    return {}


def keep(request: Json, folder: Path, progress: Progress) -> Json:
    progress(request["done"], 5, "keeping")
    time.sleep(request["for_s"])
    return {"kept": True}


def refuse(request: Json, folder: Path, progress: Progress) -> Json:
    raise TaskError("The file has no rows: add some.")


def stumble(request: Json, folder: Path, progress: Progress) -> Json:
    progress(3, 10, "walking")
    raise KeyError("shoe")


def vanish(request: Json, folder: Path, progress: Progress) -> Json:
    progress(3, 10, "walking")
    os._exit(9)


def look(request: Json, folder: Path, progress: Progress) -> Json:
    """Return facts about this process, and print in three ways."""
    print("from Python", request)
    os.write(2, b"from a library\n")
    subprocess.run(["echo", "from a child"], check=True)
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "nice": os.nice(0),
        "session_nice": AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else str(NICENESS),
        "threads": {name: os.environ.get(name) for name in (*ONE_THREAD, *PATIENT)},
        "loaded_at": getattr(sys.modules.get("large_library"), "LOADED_AT", None),
        "temporary": tempfile.gettempdir(),
        "folder": str(folder),
    }


def run(store_folder: Path, claim: Claim) -> int:
    """Replace a run: write facts about its process to a file."""
    found = look({}, store_folder, lambda *_: None) | {
        "parent": os.getppid(),
        "settings": os.environ.get("SCL_DISK_GB"),
    }
    found["open"] = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    partial = store_folder / f"{claim.id}.partial"
    partial.write_text(json.dumps(found))
    partial.rename(store_folder / f"{claim.id}.json")
    return 0


def step(request: Json, folder: Path, progress: Progress) -> Json:
    """Take small steps until a file exists."""
    steps = 0
    with tempfile.NamedTemporaryFile(delete=False) as partial:
        partial.write(b"half")
    while not os.path.exists(request["until"]):
        steps += 1
        progress(steps, None, "stepping")
        time.sleep(0.01)
    return {"pid": os.getpid(), "steps": steps}


KINDS = {name: f"__main__:{name}" for name in ("count", "wait", "keep", "look", "step")} | {
    "turn": "__main__:step",
    "look_too": "__main__:look",
    "sleep": "__main__:wait",
    "fail": "__main__:refuse",
    "trip": "__main__:stumble",
    "die": "__main__:vanish",
}

if __name__ == "__main__":
    kinds.KINDS = KINDS | {"hub": kinds.KINDS["hub"]}
    kinds.AT_ONCE = {"turn": 2}
    kinds.PRELOADED = dict.fromkeys(("one", RUNS), tuple(os.environ.get("JOBS_PRELOADED", "").split()))
    sys.modules["core.workers.run_worker"] = SimpleNamespace(work_in_log=run)  # type: ignore[assignment]
    warm.IDLE_EXIT_S = float(os.environ.get("JOBS_IDLE_EXIT_S", "60"))
    warm.CODE_POLL_S = 0.2
    job_worker.WAIT_S = 0.05
    # At the lowest priority, tests take minutes on a busy machine.
    processes.NICENESS = int(os.environ.get("JOBS_NICENESS", "0"))
    processes.CODE = Path(os.environ.get("JOBS_CODE", processes.CODE / "nowhere"))
    sys.exit(main(sys.argv[1:]))
