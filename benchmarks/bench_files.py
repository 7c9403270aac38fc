"""Time and memory to read a user's CSV: one of a million rows and 200 MiB, which is sampled, and one of 100,000 rows.

Each reading is a new Python process. Its time runs from the end of its imports until the rows and their problems are
known; its peak memory is the system's figure. The texts consist of words of various lengths, some of them non-ASCII or
with a comma or a quotation mark.

Targets: 10 s for the million rows, 3 s for the 100,000; less than 1,000 MiB for both.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import ROOT, options, repeated, report

SEED = 0
# Rows, characters of a text, and the target in seconds.
FILES = {"1,000,000 rows, 200 MiB": (1_000_000, 203, 10), "100,000 rows, 20 MiB": (100_000, 203, 3)}
MEMORY_MIB = 1_000
TIMEOUT_S = 300
READER = """
import json, resource, sys, time
from pathlib import Path
from core.tasks.files.columns import GUESS_ALL
from core.tasks.load import read_files

start = time.perf_counter()
together = read_files([Path(sys.argv[1])], GUESS_ALL)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "seconds": seconds,
    "peak_mib": peak / (2**20 if sys.platform == "darwin" else 2**10),
    "reported": together.source,
    "problems": sum(together.counts.values()),
}))
"""


def made_rows(rows: int, chars: int) -> Iterator[tuple[str, str]]:
    """Synthetic texts of about `chars` bytes with one of five labels. One in a hundred repeats the previous text."""
    rng = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(20_000)]
    words += [word[:1] + rng.choice("éüß猫한") + word[1:] for word in words[:2_000]]
    words += [word + rng.choice([",", ".", '"', ";"]) for word in words[:2_000]]
    pool = " ".join(rng.choices(words, k=400_000))
    text = ""
    for row in range(rows):
        if row % 100 or not row:
            start = rng.randrange(len(pool) - 2 * chars)
            text = pool[start : start + rng.randint(chars // 2, chars * 3 // 2)]
        yield text, str(row % 5)


def write_file(path: Path, rows: int, chars: int) -> float:
    """Write a CSV file. Returns: its size in MiB."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(made_rows(rows, chars))
    return path.stat().st_size / 2**20


def read_once(path: Path, _repetition: int) -> dict[str, float]:
    """Seconds and peak memory of a new process that reads the file. Prints what it has read."""
    command = [sys.executable, "-c", READER, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    found = json.loads(done.stdout)
    print(f"{found['reported']}; {found['problems']:,} problems")
    return {key: float(found[key]) for key in ("seconds", "peak_mib")}


def main() -> None:
    given = options(__doc__, repeats=5)
    with tempfile.TemporaryDirectory(prefix="scl-bench-") as folder:
        for name, (rows, chars, target_s) in FILES.items():
            path = Path(folder) / f"{rows}.csv"
            size_mib = write_file(path, rows, chars)
            print(f"{name}: {size_mib:.1f} MiB", flush=True)
            found = repeated(given.repeats, partial(read_once, path), 2)  # the warm-up fills the file cache
            path.unlink()
            report("seconds", f"read {name}", found["seconds"], f"≤ {target_s}", digits=2)
            report("MiB", f"peak memory, {name}", found["peak_mib"], f"< {MEMORY_MIB:,}", digits=0)


if __name__ == "__main__":
    main()
