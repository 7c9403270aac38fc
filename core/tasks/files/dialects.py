"""The dialect of CSV and TSV as people write them: delimiter, quotes, escapes, and spaces in front of quotes.

`clevercsv` proposes, the `csv` module reads, and a reading that does not give rows of one length is not believed.
Alone it misreads 69 of the 231 files of `tests/core/tasks/files/test_dialect_suite.py`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from core.config import ReadingConfig
from core.errors import TaskError
from core.tasks.files.columns import GUESS_ALL
from core.tasks.files.delimited import Dialect, records, regularity

DELIMITERS = (",", "\t", ";", "|")
# clevercsv needs no more to see a dialect, and is slow on more, and on long runs without a gap.
SNIFFED_CHARS = 20_000
SLOW_TO_SNIFF = re.compile(r"[^\s,;|]{400}")
# A proposed dialect is believed when so large a share of the rows has the same length.
REGULAR_SHARE = 0.9
# Stray quotes are ignored unless enough of the fields that begin with one also end with one.
ENCLOSED_SHARE = 0.8
# Apostrophes are quotes only where about as many fields end with one as begin with one.
UNPAIRED_SHARE = 0.1
BACKSLASH = "\\"


class Sample:
    """The beginning of a file, and what is asked of the dialect; each reading of it is made once."""

    def __init__(self, text: str, *, whole: bool, given: ReadingConfig = GUESS_ALL) -> None:
        self.text, self.whole, self.given = text, whole, given
        self._regularity: dict[Dialect, float] = {}
        self._rows: dict[Dialect, list[tuple[str, ...]]] = {}

    def regularity(self, dialect: Dialect) -> float:
        if dialect not in self._regularity:
            self._regularity[dialect] = regularity(self.text, dialect, whole=self.whole)
        return self._regularity[dialect]

    def rows(self, dialect: Dialect) -> list[tuple[str, ...]]:
        """All rows, as far as they can be read."""
        if dialect not in self._rows:
            self._rows[dialect] = list(_rows(self.text, dialect))
        return self._rows[dialect]

    def plain_rows(self, delimiter: str) -> list[list[str]]:
        """What is between delimiters and line breaks, spaces around it aside."""
        return [[field.strip(" ") for field in row] for row in self.rows(Dialect(delimiter, ""))]


def find_dialect(sample: str, *, whole: bool, given: ReadingConfig = GUESS_ALL, prefers_tabs: bool = False) -> Dialect:
    """The dialect of the beginning of a file.

    Args:
        sample: some of its lines; the last row may be cut unless this is the `whole` file.
        given: what is settled of delimiter, quote, escape and spaces.
        prefers_tabs: believe in tabs where they give regular rows, as the name .tsv does.
    """
    looked_at = Sample(sample, whole=whole, given=given)
    if given.delimiter is not None:
        return _with_delimiter(looked_at, given.delimiter)
    sniffed = _sniffed(sample)
    proposed = ["\t"] if prefers_tabs else []
    if sniffed is not None:
        proposed.append(sniffed.delimiter)
    for candidate in proposed:
        dialect = _with_delimiter(looked_at, candidate, sniffed)
        if looked_at.regularity(dialect) >= REGULAR_SHARE:
            return dialect
    dialects = [_with_delimiter(looked_at, candidate, sniffed) for candidate in DELIMITERS]
    best = max(dialects, key=looked_at.regularity)
    if looked_at.regularity(best) > 0:
        return best
    return _with_delimiter(looked_at, "\t" if prefers_tabs else ",")


def is_unsure(sample: str, dialect: Dialect, *, whole: bool, given: ReadingConfig = GUESS_ALL) -> bool:
    """Whether the rest of a file has to be read to know what its quotes mean."""
    if whole or given.quote is not None:
        return False
    return dialect.quote == "'" or quoting_evidence(Sample(sample, whole=whole, given=given), dialect.delimiter) == 0


def alternatives(dialect: Dialect, given: ReadingConfig = GUESS_ALL) -> list[Dialect]:
    """Other ways to read a file where quotes do not mean what a dialect says, the likeliest first."""
    quotes = ['"', ""] if dialect.quote == "'" else [""]
    settled = (dialect.escape if given.escape else "", bool(given.skip_initial_space))
    plain = [Dialect(dialect.delimiter, quote, *settled) for quote in quotes]
    escapes = ["", BACKSLASH] if given.escape is None else [given.escape]
    skips = [False, True] if given.skip_initial_space is None else [given.skip_initial_space]
    quoted = [Dialect(dialect.delimiter, '"', escape, skip) for escape in escapes for skip in skips]
    return [other for other in dict.fromkeys([*plain, *quoted]) if other != dialect]


def _sniffed(sample: str) -> Dialect | None:
    """What clevercsv takes for the dialect, if it comes to a decision."""
    sample = _whole_lines(sample[:SNIFFED_CHARS])
    if SLOW_TO_SNIFF.search(sample):
        return None
    from clevercsv.detect import Detector

    try:
        found = Detector().detect(sample, delimiters=list(DELIMITERS))
    except Exception:  # whatever it stumbles over: the other way of finding out does without it
        return None
    if found is None or found.delimiter not in DELIMITERS:
        return None
    return Dialect(found.delimiter, found.quotechar or "", found.escapechar or "")


def _whole_lines(sample: str) -> str:
    end = sample.rfind("\n")
    return sample[: end + 1] if end > 0 else sample


def _with_delimiter(sample: Sample, delimiter: str, sniffed: Dialect | None = None) -> Dialect:
    """Double quotes mean something unless the sample speaks against it, single quotes where it speaks for them."""
    if sniffed is not None and sniffed.delimiter != delimiter:
        sniffed = None
    if sample.given.quote is not None:
        return _variant(sample, delimiter, sample.given.quote, sniffed)
    evidence = quoting_evidence(sample, delimiter)
    if evidence < 1:
        single = _variant(sample, delimiter, "'", sniffed)
        if _single_quotes_enclose(sample, single):
            return single
    return _variant(sample, delimiter, '"' if evidence >= 0 else "", sniffed)


def _variant(sample: Sample, delimiter: str, quote: str, sniffed: Dialect | None = None) -> Dialect:
    """The escape, and the use of spaces, with which most rows fit and fewest quotes are left within fields.

    Among equals the simplest, or that with an escape which clevercsv saw, or which is in front of every quote.
    """
    escapes, skips = _escapes(sample, delimiter, quote, sniffed), _skips(sample, delimiter, quote)
    variants = [Dialect(delimiter, quote, escape, skip) for escape in escapes for skip in skips]
    if len(variants) == 1:
        return variants[0]
    return max(variants, key=lambda dialect: (sample.regularity(dialect), -_quotes_left(sample, dialect)))


def _escapes(sample: Sample, delimiter: str, quote: str, sniffed: Dialect | None) -> list[str]:
    """Escape characters to try. A backslash is one where it comes mostly in front of what has a meaning."""
    if sample.given.escape is not None:
        return [sample.given.escape]
    if BACKSLASH + delimiter not in sample.text and (not quote or BACKSLASH + quote not in sample.text):
        return [""]
    behind = re.findall(r"\\(.)", sample.text, re.DOTALL)
    meant = sum(character in (delimiter, quote, BACKSLASH) for character in behind)
    if meant < len(behind) - meant:
        return [""]
    escaped = sample.text.count(BACKSLASH + quote) if quote else 0
    seen = sniffed is not None and sniffed.escape == BACKSLASH
    preferred = escaped and (seen or escaped == sample.text.count(quote))
    return [BACKSLASH, ""] if preferred else ["", BACKSLASH]


def _skips(sample: Sample, delimiter: str, quote: str) -> list[bool]:
    if sample.given.skip_initial_space is not None:
        return [sample.given.skip_initial_space]
    spaced = quote and re.search(rf"(?:^|{re.escape(delimiter)})\ +{quote}", sample.text, re.MULTILINE)
    return [False, True] if spaced else [False]


def _quotes_left(sample: Sample, dialect: Dialect) -> int:
    """How many fields begin with spaces and a quotation mark, which then is none."""
    if not dialect.quote:
        return 0
    fields = (field for row in sample.rows(dialect) for field in row)
    return sum(field.startswith(" ") and field.lstrip(" ").startswith(dialect.quote) for field in fields)


def quoting_evidence(sample: Sample, delimiter: str) -> int:
    """1 where double quotes enclose fields: rows fit better with them, or they are at both ends; -1 where they do not.

    0 where a sample does not show it.
    """
    if '"' not in sample.text:
        return 0
    quoted, plain = _variant(sample, delimiter, '"'), _variant(sample, delimiter, "")
    if _enclosed_share(sample.plain_rows(delimiter)) >= ENCLOSED_SHARE:
        return 1
    gain = sample.regularity(quoted) - sample.regularity(plain)
    return (gain > 0) - (gain < 0)


def _enclosed_share(rows: list[list[str]]) -> float:
    """The share of the pieces beginning with a quotation mark that end with one, or are ended by one in their row."""
    begun = closed = 0
    for row in rows:
        is_open = False
        for piece in row:
            if piece.startswith('"'):
                begun += 1
                closed += len(piece) > 1 and piece.endswith('"')
                is_open = not _marks(piece[1:])
            elif is_open and piece.endswith('"') and not _marks(piece[:-1]):
                closed += 1
                is_open = False
    return closed / begun if begun else 0.0


def _marks(piece: str) -> bool:
    """Whether there is a quotation mark that is neither doubled nor escaped."""
    return '"' in piece.replace('""', "").replace('\\"', "")


def _single_quotes_enclose(sample: Sample, single: Dialect) -> bool:
    """Whether apostrophes are quotes: as many fields end with one as begin with one, and rows fit better with them.

    Or all fields of a column are enclosed, or all that have an apostrophe, with those within doubled or escaped.
    """
    rows = sample.plain_rows(single.delimiter)
    begins, ends = _apostrophes(rows)
    if not begins or abs(begins - ends) > UNPAIRED_SHARE * max(begins, ends):
        return False
    others = [_variant(sample, single.delimiter, quote) for quote in ('"', "")]
    most = max(map(sample.regularity, others))
    if sample.regularity(single) < max(REGULAR_SHARE, most):
        return False
    return sample.regularity(single) > most or _encloses_a_column(rows) or _encloses_all_apostrophes(rows)


def _apostrophes(rows: list[list[str]]) -> tuple[int, int]:
    """How many pieces begin with an apostrophe, and how many end with one."""
    pieces = [piece for row in rows for piece in row]
    return sum(piece.startswith("'") for piece in pieces), sum(piece.endswith("'") for piece in pieces)


def _encloses_all_apostrophes(rows: list[list[str]]) -> bool:
    """Whether no apostrophe is outside of enclosed pieces, or alone within one; and some are within."""
    marked = [piece for row in rows for piece in row if "'" in piece]
    within = [piece[1:-1] for piece in marked if "'" in piece[1:-1]]
    paired = not any("'" in piece.replace("''", "").replace(BACKSLASH + "'", "") for piece in within)
    return bool(within) and paired and all(len(piece) > 1 and piece[0] == piece[-1] == "'" for piece in marked)


def _encloses_a_column(rows: list[list[str]]) -> bool:
    """Whether almost every field of a column, its name aside, is enclosed in apostrophes."""
    for place in range(len(rows[0]) if rows else 0):
        cells = [row[place] for row in rows[1:] if len(row) > place and row[place]]
        enclosed = sum(len(cell) > 1 and cell[0] == cell[-1] == "'" for cell in cells)
        if enclosed > 1 and enclosed >= ENCLOSED_SHARE * len(cells):
            return True
    return False


def _rows(text: str, dialect: Dialect) -> Iterator[tuple[str, ...]]:
    try:
        for _, fields in records(io.StringIO(text, newline=""), dialect):
            yield fields
    except TaskError:
        return
