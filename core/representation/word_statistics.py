"""Statistics of the words that [CLS] selects in the texts of each class: counts and lift over many examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

# Pseudo-examples added for every word, in the proportions of the classes, so that rare words get no extreme lift.
PRIOR_EXAMPLES = 1.0
AT_LEAST = 3

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectedWord:
    """A word, case-folded, that was selected in some examples.

    Attributes:
        label: the class with the greatest lift; ties go to the lowest class.
        lift: the lift of that class.
        count, occurs: number of examples in which it was selected, and in which it occurs at all.
        counts, occurrences, lifts: [C], the same for each class.
    """

    word: str
    label: int
    lift: float
    count: int
    occurs: int
    counts: Counts
    occurrences: Counts
    lifts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """The words selected in at least `at_least` examples, sorted by falling lift, falling count, then alphabet.

    Attributes:
        examples: [C] number of examples of each class.
        left_out: number of words that were selected in fewer examples.
    """

    examples: Counts
    at_least: int
    rows: tuple[SelectedWord, ...]
    left_out: int

    def of_class(self, label: int) -> tuple[SelectedWord, ...]:
        """Return the words selected in texts of one class, sorted by their lift and count in that class."""
        found = [row for row in self.rows if row.counts[label]]
        return tuple(sorted(found, key=lambda row: (-row.lifts[label], -row.counts[label], row.word)))


@dataclass(frozen=True, slots=True)
class WordChange:
    """Number of examples in which a word occurs, and in which it was selected before and after."""

    word: str
    occurs: int
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


def word_statistics(
    words: Sequence[Sequence[str]],
    selected: Sequence[Sequence[int]],
    labels: Sequence[int],
    classes: int,
    *,
    at_least: int = AT_LEAST,
) -> WordStatistics:
    """Count the examples of each class in which a word was selected, and compute its lift.

    Lift of class c for word w is P(c | w selected) / P(c), where P(c) = N_c / N is the class's share of the examples.
    P(c | w selected) = (n_wc + a·P(c)) / (n_w + a) is smoothed with a = PRIOR_EXAMPLES, so that lift is
    (n_wc·N / N_c + a) / (n_w + a). Lift is 1 if selection is independent of the class, and lower if selection is
    evidence against the class. It stays below N / N_c if that exceeds 1. A class without examples has lift 1. A word
    counts once per example, however often it occurs there.

    Args:
        words: the words of each of N examples as written; they are counted case-folded.
        selected: for each example, the positions of the selected words, e.g. its top k.
        labels: N classes, 0 to classes − 1.
        at_least: ≥ 1; words selected in fewer examples are left out.
    """
    of_label = Counter(int(label) for label in labels)
    examples = tuple(of_label[label] for label in range(classes))
    folded = _folded(words)
    occurrences = _counted(folded, None, labels, classes)
    counts = _counted(folded, selected, labels, classes)
    totals = sum(counts, Counter[str]())
    rows = []
    for word, count in totals.items():
        if count >= at_least:
            selections, texts = tuple(c[word] for c in counts), tuple(c[word] for c in occurrences)
            lifts = tuple(
                (of_class * len(words) / size + PRIOR_EXAMPLES) / (count + PRIOR_EXAMPLES) if size else 1.0
                for of_class, size in zip(selections, examples, strict=True)
            )
            label = max((c for c, size in enumerate(examples) if size), key=lifts.__getitem__)
            rows.append(SelectedWord(word, label, lifts[label], count, sum(texts), selections, texts, lifts))
    rows.sort(key=lambda row: (-row.lift, -row.count, row.word))
    return WordStatistics(examples, at_least, tuple(rows), len(totals) - len(rows))


def selection_changes(
    words: Sequence[Sequence[str]],
    before: Sequence[Sequence[int]],
    after: Sequence[Sequence[int]],
    *,
    at_least: int = AT_LEAST,
) -> tuple[WordChange, ...]:
    """Count how often words were selected before and after, sorted by change, then frequency, then alphabet.

    Args:
        words: the words of each of N examples as written; they are counted case-folded.
        before, after: for each example, the positions of the selected words at two steps.
        at_least: ≥ 1; words selected in fewer examples both before and after are left out.
    """
    folded, one_class = _folded(words), [0] * len(words)
    (occurs,) = _counted(folded, None, one_class, 1)
    (old,), (new,) = _counted(folded, before, one_class, 1), _counted(folded, after, one_class, 1)
    changes = [
        WordChange(word, occurs[word], old[word], new[word])
        for word in old | new
        if max(old[word], new[word]) >= at_least
    ]
    changes.sort(key=lambda c: (-abs(c.change), -max(c.before, c.after), c.word))
    return tuple(changes)


def _folded(words: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[word.casefold() for word in of_text] for of_text in words]


def _counted(
    words: Sequence[Sequence[str]], positions: Sequence[Sequence[int]] | None, labels: Sequence[int], classes: int
) -> list[Counter[str]]:
    """Count, per class, the examples with a word at one of the positions, or anywhere if `positions` is None."""
    found = [Counter[str]() for _ in range(classes)]
    for number, (of_text, label) in enumerate(zip(words, labels, strict=True)):
        found[label].update(set(of_text) if positions is None else {of_text[place] for place in positions[number]})
    return found
