"""`python -m core.workers FOLDER ID` executes one job; `--warm FOLDER LINE STARTER` serves a queue."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from core.store.job_table import JobTable
from core.store.liveness import from_json
from core.store.work import Claim
from core.workers import warm
from core.workers.job_worker import carry_out
from core.workers.processes import lower_priority


def main(arguments: Sequence[str]) -> int:
    """Execute one job or serve a queue.

    Returns: exit status, 0 for a finished job or a normal exit of a warm process.
    """
    if arguments[0] == "--warm":
        _, store_folder, line, starter = arguments
        return warm.serve(Path(store_folder), line, from_json(starter))
    store_folder, job_id = arguments
    table = JobTable(store_folder)
    tempfile.tempdir = str(table.work_folder(job_id))
    lower_priority()
    return 0 if carry_out(table, Claim(job_id, 1, 0)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
