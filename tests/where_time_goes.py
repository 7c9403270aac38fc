"""Print the time that tests take by folder, file and test, as Markdown, from pytest's reports.

    python -m pytest … --junitxml=FILE
    python -m tests.where_time_goes FILE…

Seconds include a test's fixtures and are measured on its worker. Two workers halve the elapsed time.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

SMALLEST_SHARE = 0.01
SLOWEST = 20


def main(paths: Iterable[str]) -> None:
    times = [_of(case) for path in paths for case in ET.parse(path).iter("testcase")]
    total = sum(seconds for *_, seconds in times)
    cases, files, folders = Counter[str](), Counter[str](), Counter[str]()
    counts = Counter[str]()
    for file, _name, seconds in times:
        cases[file] += 1
        files[file] += seconds
        folder = str(Path(file).parent)
        folders[folder] += seconds
        counts[folder] += 1
    print(f"{len(times):,} cases, {total:,.0f} s on their workers.\n")
    _table(("folder", "cases", "s", "share"), [(f, counts[f], s, s / total) for f, s in folders.most_common()])
    large = [(f, cases[f], s, s / total) for f, s in files.most_common() if s >= SMALLEST_SHARE * total]
    _table((f"file (from {SMALLEST_SHARE:.0%} on)", "cases", "s", "share"), large)
    slowest = sorted(times, key=lambda one: -one[2])[:SLOWEST]
    _table((f"slowest {SLOWEST} tests", "", "s", "share"), [(f"{f} {n}", 1, s, s / total) for f, n, s in slowest])


def _of(case: ET.Element) -> tuple[str, str, float]:
    """Return file, name and seconds of a test."""
    parts = case.attrib["classname"].split(".")
    last = max(place for place, part in enumerate(parts) if part.startswith("test_"))
    return "/".join(parts[: last + 1]) + ".py", case.attrib["name"], float(case.attrib["time"])


def _table(heading: tuple[str, ...], rows: Iterable[tuple[str, int, float, float]]) -> None:
    print(f"| {' | '.join(heading)} |\n|---|---|---|---|")
    for name, count, seconds, share in rows:
        print(f"| {name.replace('|', '¦')} | {count:,} | {seconds:.1f} | {share:.1%} |")
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
