"""Checks of the promises of the bundled tasks: counts, lengths, baselines, phrases, near-duplicates, paraphrases.

    python -m benchmarks.check_data [TASK ...] [--no-write]

Baselines are logistic regressions (scikit-learn, C = 1) trained on the training split. The linear probe uses the
bundled encoder's mean of tokens, at most 256, with a pair encoded together. Phrases and near-duplicates are counted
across the files of all tasks. Paraphrases are compared with their texts by words and by the same encoder. The script
writes the figures between two HTML comments of each data card; a second run changes nothing. The exit status is 1 if a
promise is broken, with a message for each.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FOLDER = Path(__file__).resolve().parents[1] / "assets" / "tasks"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
WRITTEN = "<!-- Written by `make data-check`. -->"

BAG_OF_WORDS = (0.60, 0.88)  # test accuracy of a task that can be learned from its words
LEAK = 0.08  # maximum of a shortcut above the majority rate
RUN_WORDS, RUN_ROWS = 6, 6  # a run of six words occurs in at most six rows
ALIKE = 0.6  # cosine above which two texts are near-duplicates
LEANING_SHARE, LEANING_ROWS = 0.92, 8  # a word leans above this share of one class, in this many rows (and 2%)
FOLDS = 5
MAX_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Promise:
    """Promised properties of a task's files.

    Args:
        words_decide: True if a bag of words should learn the task, False if it should not.
        words: minimum and maximum per row, both texts of a pair together.
    """

    train: int
    test: int
    classes: int
    words_decide: bool
    words: tuple[int, int] = (1, 100)


PROMISES: Mapping[str, Promise] = {
    "film_reviews": Promise(1200, 400, 2, True),
    "product_reviews": Promise(150, 150, 2, True),
    "venue_reviews": Promise(150, 150, 2, True),
    "long_film_reviews": Promise(100, 200, 2, True, words=(90, 220)),
    "news_topics": Promise(400, 200, 4, True),
    "question_types": Promise(300, 180, 6, True),
    "nli": Promise(600, 240, 3, False),
    "paraphrase": Promise(300, 150, 2, False),
    "acceptability": Promise(300, 150, 2, False),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row. Rows that share a first text on purpose, such as the three of a premise, have the same `group`."""

    text: str
    text_b: str | None
    label: str
    group: str

    @property
    def texts(self) -> list[str]:
        return [self.text] if self.text_b is None else [self.text, self.text_b]

    @property
    def joined(self) -> str:
        return " || ".join(self.texts)


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    train: list[Row]
    test: list[Row]

    @property
    def rows(self) -> list[Row]:
        return self.train + self.test

    @property
    def is_pair(self) -> bool:
        return self.train[0].text_b is not None

    @property
    def labels(self) -> list[str]:
        return sorted({row.label for row in self.rows})


@dataclass(slots=True)
class Figures:
    """Figures of a task: accuracies (test split, cross-validation) by model, paraphrases, and broken promises.

    Attributes:
        paraphrases: by strength, shares of words changed and cosines with the texts, each [N].
    """

    accuracy: dict[str, tuple[float, float]] = field(default_factory=dict)
    leaning: list[str] = field(default_factory=list)
    most_shared: int = 0
    alike: int = 0
    paraphrases: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


# Reading


def read_rows(name: str, split: str) -> list[Row]:
    with (FOLDER / name / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return [
            Row(
                row["text"],
                row.get("text_b"),
                row["label"],
                f"{name}: {row['text'] if name == 'nli' else f'{split} {number}'}",
            )
            for number, row in enumerate(csv.DictReader(file), start=2)
        ]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower().replace("’", "'"))


# Baselines

Features = Callable[[Sequence[Row]], Any]


def word_model(ngrams: int) -> Any:
    counts = CountVectorizer(ngram_range=(1, ngrams), token_pattern=r"[\w']+|[?!]")
    return make_pipeline(counts, LogisticRegression(max_iter=3000))


def number_model() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))


def lengths(rows: Sequence[Row]) -> Any:
    return np.array([[len(row.joined), *(len(words(text)) for text in row.texts)] for row in rows], dtype=float)


def overlap(rows: Sequence[Row]) -> Any:
    """[N, 1]: Jaccard overlap of the words of a pair."""
    sets = [[set(words(text)) for text in row.texts] for row in rows]
    return np.array([[len(a & b) / max(1, len(a | b))] for a, b in sets])


def baselines(task: Task) -> dict[str, tuple[Features, Callable[[], Any]]]:
    """Name → features of rows and their model. The linear probe is separate, because its features are expensive."""
    found: dict[str, tuple[Features, Callable[[], Any]]] = {"length only": (lengths, number_model)}
    if task.is_pair:
        found |= {
            "word overlap only": (overlap, number_model),
            "bag of words, first text only": (lambda rows: [row.text for row in rows], lambda: word_model(1)),
            "bag of words, second text only": (lambda rows: [row.text_b or "" for row in rows], lambda: word_model(1)),
        }
    return found | {
        "bag of words": (lambda rows: [row.joined for row in rows], lambda: word_model(1)),
        "words and bigrams": (lambda rows: [row.joined for row in rows], lambda: word_model(2)),
    }


def majority_rate(rows: Sequence[Row]) -> float:
    return max(Counter(row.label for row in rows).values()) / len(rows)


def probe_vectors(texts: Sequence[str | tuple[str, str]]) -> Any:
    """[N, H]: mean of tokens of the bundled encoder without fine-tuning."""
    import torch

    from core.encoders.model import load_encoder
    from core.models.source import BUNDLED

    torch.set_num_threads(1)  # fixes the order of sums, so that all digits are reproducible
    encoder, tokenizer = load_encoder(BUNDLED, classes=("0", "1"), pooling="mean", max_length=MAX_TOKENS)
    encoder.eval()
    with torch.no_grad():
        parts = [encoder.pooled(tokenizer(texts[i : i + 32])) for i in range(0, len(texts), 32)]
    return torch.cat(parts).numpy()


def accuracies(task: Task, features: Any, model: Callable[[], Any]) -> tuple[float, float]:
    """Accuracy on the test split, and the mean over folds of all rows, which never split a group."""
    labels = np.array([row.label for row in task.rows])
    groups = [row.group for row in task.rows]
    features = features if isinstance(features, np.ndarray) else np.array(features, dtype=object)
    train = np.arange(len(task.rows)) < len(task.train)
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0).split(features, labels, groups)

    def accuracy(fitted: Any, scored: Any) -> float:
        return float(model().fit(features[fitted], labels[fitted]).score(features[scored], labels[scored]))

    return accuracy(train, ~train), mean(accuracy(fitted, scored) for fitted, scored in folds)


# Words, phrases, near-duplicates


def leaning_words(task: Task) -> list[str]:
    """Common words that occur almost only in one class."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for row in task.rows:
        for word in set(words(row.joined)):
            labels[word][row.label] += 1
    least = max(LEANING_ROWS, 0.02 * len(task.rows))
    return sorted(
        word
        for word, found in labels.items()
        if found.total() >= least and max(found.values()) > LEANING_SHARE * found.total()
    )


def shared_runs(tasks: Iterable[Task]) -> dict[str, set[str]]:
    """Groups of rows by the run of six words that they contain."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in (row for task in tasks for row in task.rows):
        for of_text in map(words, row.texts):
            for start in range(len(of_text) - RUN_WORDS + 1):
                found[" ".join(of_text[start : start + RUN_WORDS])].add(row.group)
    return found


def near_duplicates(tasks: Sequence[Task]) -> Iterator[tuple[float, tuple[str, str], tuple[str, str]]]:
    """Near-duplicates of different groups: cosine of character 3- to 5-grams, and group and text of both."""
    texts = list(dict.fromkeys((row.group, text) for task in tasks for row in task.rows for text in row.texts))
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)).fit_transform([text for _, text in texts])
    for start in range(0, len(texts), 500):
        cosines = (vectors[start : start + 500] @ vectors.T).tocoo()
        for i, j, cosine in zip(cosines.row + start, cosines.col, cosines.data, strict=True):
            if i < j and cosine > ALIKE and texts[i][0] != texts[j][0]:
                yield float(cosine), texts[i], texts[j]


# Paraphrases


def paraphrase_figures(task: Task) -> dict[str, tuple[Any, Any]]:
    """By strength, the share of words changed and the cosine with the text, each [N]; empty without paraphrases."""
    path = FOLDER / task.name / "paraphrases.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts, *others = ([row[column] for row in rows] for column in ("text", "weak", "strong"))
    vectors = [probe_vectors(side) for side in (texts, *others)]
    plain, *changed = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in vectors)
    shares = [[word_distance(*map(words, both)) for both in zip(texts, side, strict=True)] for side in others]
    return {
        strength: (np.array(share), (plain * one).sum(1))
        for strength, share, one in zip(("weak", "strong"), shares, changed, strict=True)
    }


def word_distance(first: Sequence[str], second: Sequence[str]) -> float:
    """Edit distance of two sequences of words, divided by the length of the longer one."""
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            last, row[j] = row[j], min(last + (word != other), row[j] + 1, row[j - 1] + 1)
    return row[-1] / max(1, len(first), len(second))


# Broken promises


def broken_counts(task: Task, promise: Promise) -> Iterator[str]:
    for split, rows, promised in (("train", task.train, promise.train), ("test", task.test, promise.test)):
        counts = Counter(row.label for row in rows)
        if len(rows) != promised or len(counts) != promise.classes:
            expected = f"{promised} of {promise.classes} are promised"
            yield f"{split}.csv has {len(rows)} rows of {len(counts)} classes: {expected}."
        if len(set(counts.values())) > 1:
            yield f"{split}.csv is not balanced: {dict(sorted(counts.items()))}."
        for row in rows:
            length, (low, high) = len(words(row.joined)), promise.words
            if not low <= length <= high:
                yield f"{split}.csv has a text of {length} words ({row.text[:40]}…): {low} to {high} are promised."
    if task.name == "nli":
        yield from broken_premises(task)


def broken_premises(task: Task) -> Iterator[str]:
    labels: dict[str, list[str]] = defaultdict(list)
    for row in task.rows:
        labels[row.text].append(row.label)
    for premise, found in labels.items():
        if sorted(found) != task.labels:
            yield f"The premise {premise[:40]!r}… has the labels {', '.join(found)}: it needs each label once."
    for premise in sorted({row.text for row in task.train} & {row.text for row in task.test}):
        yield f"The premise {premise[:40]!r}… is in both files: keep it in one."


def broken_baselines(figures: Figures, words_decide: bool) -> Iterator[str]:
    scores = {name: test for name, (test, _) in figures.accuracy.items()}
    probe, limit = scores.pop("linear probe"), scores.pop("majority class") + LEAK
    bag, (low, high) = scores["bag of words"], BAG_OF_WORDS
    if words_decide and not low <= bag <= high:
        yield f"Bag of words scores {bag:.3f} on the test split: {low} to {high} is promised."
    if words_decide and probe <= bag:
        yield f"The linear probe scores {probe:.3f}, bag of words {bag:.3f}: the probe is promised to be ahead."
    for name, score in scores.items():
        if score > limit and (name == "length only" or not words_decide):
            yield f"{name.capitalize()} scores {score:.3f} on the test split: at most {limit:.3f} is promised."


# One task, and its card


def measured(task: Task) -> Figures:
    """Figures from a task's own files."""
    promise, found = PROMISES[task.name], Figures()
    found.accuracy["majority class"] = (majority_rate(task.test), majority_rate(task.rows))
    for name, (features, model) in baselines(task).items():
        found.accuracy[name] = accuracies(task, features(task.rows), model)
    vectors = probe_vectors([row.text if row.text_b is None else (row.text, row.text_b) for row in task.rows])
    found.accuracy["linear probe"] = accuracies(task, vectors, lambda: LogisticRegression(max_iter=3000))
    found.leaning = leaning_words(task)
    found.paraphrases = paraphrase_figures(task)
    found.broken = [*broken_counts(task, promise), *broken_baselines(found, promise.words_decide)]
    if found.leaning:
        found.broken.append(f"These words give a label away: {', '.join(found.leaning)}.")
    return found


def add_shared(figures: Mapping[str, Figures], tasks: Sequence[Task]) -> None:
    """Add the figures that need the files of all tasks."""
    for run, groups in sorted(shared_runs(tasks).items()):
        for name in {group.split(":")[0] for group in groups} & set(figures):
            figures[name].most_shared = max(figures[name].most_shared, len(groups))
            if len(groups) > RUN_ROWS:
                figures[name].broken.append(f"The words {run!r} are in {len(groups)} rows: at most {RUN_ROWS} allowed.")
    for cosine, (group, text), (other_group, other) in near_duplicates(tasks):
        for name in {group.split(":")[0], other_group.split(":")[0]} & set(figures):
            figures[name].alike += 1
            figures[name].broken.append(f"Near-duplicates ({cosine:.2f}): {text[:60]!r} and {other[:60]!r}.")


def section(task: Task, figures: Figures) -> str:
    """Measured section of a data card."""
    parts = [WRITTEN, counts_table(task), accuracy_table(task, figures), findings(figures)]
    parts += [paraphrase_table(figures)] if figures.paraphrases else []
    return "\n".join([BEGIN, "\n\n".join(parts), END])


def counts_table(task: Task) -> str:
    of = "both texts" if task.is_pair else "text"
    lines = [f"| file | label | rows | words of {of}, median (min–max) | characters, mean |", "|---|---|---|---|---|"]
    for split, all_rows in (("train", task.train), ("test", task.test)):
        for label in task.labels:
            rows = [row for row in all_rows if row.label == label]
            length = [len(words(row.joined)) for row in rows]
            characters = mean(len("".join(row.texts)) for row in rows)
            spread = f"{median(length):g} ({min(length)}–{max(length)})"
            lines.append(f"| `{split}.csv` | {label} | {len(rows)} | {spread} | {characters:.0f} |")
    return "\n".join(lines)


def accuracy_table(task: Task, figures: Figures) -> str:
    scores = "\n".join(f"| {name} | {test:.3f} | {folds:.3f} |" for name, (test, folds) in figures.accuracy.items())
    together = ", both texts encoded together" if task.is_pair else ""
    return f"""| accuracy of | test split | {FOLDS} folds of all rows |
|---|---|---|
{scores}

Logistic regressions with scikit-learn's default C = 1, in the first column trained on `train.csv`. The linear probe
uses all-MiniLM-L6-v2 without fine-tuning, mean of tokens{together}, at most {MAX_TOKENS} tokens.
With {len(task.test)} test rows, one standard error is at most {(0.25 / len(task.test)) ** 0.5:.3f}."""


def findings(figures: Figures) -> str:
    leaning = f"{LEANING_SHARE:.0%} of those rows in one class: {', '.join(figures.leaning) or 'none'}"
    return f"""- Words in at least {LEANING_ROWS} rows and 2% of all rows, with over {leaning}.
- Largest number of rows, across all tasks, that share a run of {RUN_WORDS} words: {figures.most_shared}.
- Pairs of texts, across all tasks, with a cosine of character 3- to 5-grams above {ALIKE}:
  {figures.alike or "none"}."""


def paraphrase_table(figures: Figures) -> str:
    count = len(figures.paraphrases["weak"][0])
    lines = "\n".join(
        f"| {strength} | {np.median(share):.0%} | {np.median(cosine):.3f} | {np.quantile(cosine, 0.05):.3f} |"
        for strength, (share, cosine) in figures.paraphrases.items()
    )
    return f"""| paraphrase | words changed, median | cosine with the text, median | cosine, 5% quantile |
|---|---|---|---|
{lines}

Of the {count:,} texts in `paraphrases.csv`. Words changed: edit distance in words, divided by the
words of the longer text. Cosine: of the means of tokens of all-MiniLM-L6-v2 without fine-tuning."""


def write_card(path: Path, text: str) -> bool:
    """Write the section between the card's two comments. Returns: True if the card changed.

    Raises: ValueError if the card lacks the comments.
    """
    card = path.read_text(encoding="utf-8")
    before, begin, rest = card.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no place for the figures. Add the lines {BEGIN} and {END}.")
    path.write_text(before + text + after, encoding="utf-8")
    return before + text + after != card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"any of {', '.join(PROMISES)} [default: all]")
    parser.add_argument("--no-write", action="store_true", help="print the figures without writing the cards")
    given = parser.parse_args()
    if unknown := [name for name in given.tasks if name not in PROMISES]:
        parser.error(f"unknown task {', '.join(unknown)}: choose from {', '.join(PROMISES)}")
    tasks = {name: Task(name, read_rows(name, "train"), read_rows(name, "test")) for name in PROMISES}
    chosen = given.tasks or list(PROMISES)
    figures = {name: measured(tasks[name]) for name in chosen}
    add_shared(figures, list(tasks.values()))
    for name in chosen:
        text = section(tasks[name], figures[name])
        if given.no_write:
            print(f"\n{name}\n{text}", flush=True)
            continue
        changed = write_card(FOLDER / name / "README.md", text)
        scores = ", ".join(f"{model} {test:.3f}" for model, (test, _) in figures[name].accuracy.items())
        print(f"{name}: {scores} ({'card rewritten' if changed else 'card unchanged'})", flush=True)
    broken = [f"{name}: {sentence}" for name in chosen for sentence in figures[name].broken]
    print("\n".join(broken) or "Every promise holds.")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
