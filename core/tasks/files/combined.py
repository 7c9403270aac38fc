"""Files that make one task: what is wrong with their rows when they are seen as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.messages import ENGLISH, in_language
from core.tasks.files.optional import optional_problems
from core.tasks.files.problems import PROBLEMS, Problem
from core.tasks.files.reading import Reading, in_words, kept_rows
from core.tasks.rows import Rows


@dataclass(frozen=True)
class CombinedFiles:
    """Several readings as one; of a single one, all is as in that reading.

    Attributes:
        readings: the file with the rows to learn from first.
        problems: file by file, each in its order, the first 10,000 of each; a row may repeat one of a file before it.
        counts: how many of each kind there are.
        optional: for each reading, by kind of problem, which of its rows have it and may stay.
    """

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    optional: tuple[Mapping[str, tuple[int, ...]], ...]

    def dropping(self, kinds: Collection[str]) -> list[Rows]:
        """For each reading its rows without those that have a problem of these kinds; the first of repeated rows stays.

        Raises: ConfigError for a kind that does not exist; TaskError when no row of a file is left.
        """
        return [
            kept_rows(reading.name, reading.rows, optional, kinds)
            for reading, optional in zip(self.readings, self.optional, strict=True)
        ]

    @property
    @in_language(ENGLISH)
    def source(self) -> str:
        """The source of the rows, in English, as the library stores it."""
        return "; ".join(reading.source_sentence for reading in self.readings) + "."

    @property
    def dropped(self) -> int:
        """How many rows of the files cannot be used."""
        return sum(reading.dropped for reading in self.readings)


def combine_readings(readings: Sequence[Reading]) -> CombinedFiles:
    """Compare the rows of several files, so that a test row that repeats a training row is reported.

    Repeated rows, texts with two labels and formulas are found again over all rows; what drops rows stays as it is.
    """
    if len(readings) == 1:
        (reading,) = readings
        return CombinedFiles((reading,), reading.problems, reading.counts, (reading.optional,))
    noted = optional_problems([reading.part for reading in readings])
    problems: list[Problem] = []
    for reading, of_file in zip(readings, noted, strict=True):
        dropping = [problem for problem in reading.problems if PROBLEMS[problem.kind].must_drop]
        problems += in_words(dropping, of_file)
    counts = {
        kind: sum(len(of_file.rows.get(kind, ())) for of_file in noted)
        + (sum(reading.counts.get(kind, 0) for reading in readings) if PROBLEMS[kind].must_drop else 0)
        for kind in PROBLEMS
    }
    return CombinedFiles(
        tuple(readings),
        tuple(problems),
        {kind: count for kind, count in counts.items() if count},
        tuple({kind: tuple(rows) for kind, rows in of_file.rows.items()} for of_file in noted),
    )
