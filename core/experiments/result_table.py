"""An experiment's results as a table: for people, as CSV with all digits, as Markdown and as LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Literal

from tabulate import tabulate

from core.experiments.results import SPLITS, CellResult, Comparison, Results
from core.quantities import counted, percent, signed
from core.representation.metrics import METRICS
from core.representation.paired import LEVEL, fewest_seeds

Format = Literal["csv", "markdown", "latex"]
SUFFIXES: dict[Format, str] = {"csv": "csv", "markdown": "md", "latex": "tex"}
NONE, ENOUGH = "–", "enough"
GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "ε": "varepsilon", "λ": "lambda", "ρ": "rho", "τ": "tau"}
# Scores that people read as percentages.
SHARES = frozenset({"accuracy", "macro_f1", *(name for name, entry in METRICS.items() if entry.share)})
LEAST_P = 0.001
# Below, a bootstrap over seeds sees too few of them.
FEW_SEEDS = 8
# What pdflatex has no letter for.
IN_LATEX = str.maketrans(
    {"−": "$-$", "±": "$\\pm$", "–": "--", **{letter: f"$\\{name}$" for letter, name in GREEK.items()}}
)


def table_text(results: Results, form: Format) -> str:
    """The table as a file's text. CSV holds numbers with all their digits, the others what people read."""
    if form == "csv":
        return _csv(results)
    header, rows = table_rows(results)
    if form == "markdown":
        # A bar would begin another cell.
        rows = [[text.replace("|", "\\|") for text in row] for row in rows]
        return tabulate(rows, header, tablefmt="github", disable_numparse=True) + "\n"
    text = tabulate(rows, header, tablefmt="latex_booktabs", disable_numparse=True) + "\n"
    return text.translate(IN_LATEX)


def table_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """What people read: the header, and a row per cell."""
    names = [axis.name for axis in results.design.axes] or ["Runs"]
    header = [*names, "Seeds", score_name(results)]
    compares = results.design.compares
    if compares:
        header += ["Difference", "95% interval", "p (Holm)", "Verdict", "Seeds needed"]
    rows = []
    for cell in results.cells:
        row = [*_labels(results, cell), str(cell.seeds), mean_text(results, cell)]
        rows.append([*row, *_compared(results, cell)] if compares else row)
    return header, rows


def score_name(results: Results) -> str:
    """What is listed, such as "Test accuracy"."""
    return f"{SPLITS[results.split]} {results.measure.label[0].lower()}{results.measure.label[1:]}"


def mean_text(results: Results, cell: CellResult) -> str:
    """ "81.3 ± 1.2%", "81.3%" of one seed, or a dash."""
    if cell.mean is None:
        return NONE
    if results.measure.name not in SHARES:
        return f"{cell.mean:.3f}" + (f" ± {cell.std:.3f}" if cell.std is not None else "")
    text = percent(cell.mean)
    return text if cell.std is None else f"{text[:-1]} ± {percent(cell.std)}"


def difference_text(results: Results, value: float) -> str:
    """A difference with its sign: "+1.2" of percentage points, or in nats."""
    shares = results.measure.name in SHARES
    text = signed(100 * value if shares else value, 1 if shares else 3)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def interval_text(results: Results, comparison: Comparison) -> str:
    found = comparison.difference
    if found.low is None or found.high is None:
        return NONE
    return f"{difference_text(results, found.low)} to {difference_text(results, found.high)}"


def unit(results: Results) -> str:
    """Of differences."""
    if results.measure.name in SHARES:
        return "percentage points"
    return "nats" if results.measure.name == "cross_entropy" else "the measure’s own unit"


def p_text(p: float | None) -> str:
    if p is None:
        return NONE
    return f"< {LEAST_P}" if p < LEAST_P else f"{p:.3f}"


def needed_text(comparison: Comparison) -> str:
    """How many seeds would show the difference: a number, or that none would; "enough" where it is shown."""
    if comparison.difference.seeds < 2:
        return NONE
    if comparison.verdict != "no difference shown":
        return ENOUGH
    return "> 1,000" if comparison.seeds_needed is None else f"{comparison.seeds_needed:,}"


def cautions(results: Results) -> list[str]:
    """What so few seeds, or runs that are missing, do to the table, a sentence each; nothing where all is well."""
    found = []
    comparisons = results.comparisons
    if comparisons:
        count, number = len(comparisons), counted(len(comparisons), "comparison")
        seeds = min(one.difference.seeds for one in comparisons)
        least = min(1.0, count * min(one.difference.least_p for one in comparisons))
        if least > LEVEL:
            found.append(
                f"With {counted(seeds, 'seed')} and {number}, p cannot fall below {least:.3g}: no difference can be "
                f"shown, however large. It takes {fewest_seeds(LEVEL / count)} seeds."
            )
        if seeds < FEW_SEEDS:
            found.append("An interval from so few seeds is too narrow: where it and p disagree, believe p.")
    if results.ended_early:
        found.append(
            f"{counted(results.ended_early, 'run was', 'runs were')} ended early, the poor ones: what is left of a "
            "cell is better than the cell. Read no difference from this table; run the best cells to their end."
        )
    left = results.design.runs - results.ended_early - len(results.design.sources) * len(results.design.seeds)
    left -= sum(cell.seeds for cell in results.cells)
    if left and any(cell.seeds for cell in results.cells):
        found.append(f"{counted(left, 'run has', 'runs have')} no such score yet: numbers and verdicts may change.")
    return found


def notes(results: Results) -> list[str]:
    """How the numbers were computed, a sentence each."""
    found = ["± is the standard deviation over seeds (n − 1)."]
    comparisons = results.comparisons
    if comparisons:
        pairs = "the same seeds and the same examples" if results.by_example else "the same seeds"
        drawn = "seeds and examples" if results.by_example else "seeds"
        found.append(
            f"Differences are in {unit(results)}, paired over {pairs}, and rounded by themselves; intervals are 95% "
            f"percentile bootstraps over {drawn}, p values those of the paired permutation test over seeds, corrected "
            f"for {counted(len(comparisons), 'comparison')} (Holm)."
        )
        found.append(
            "“No difference shown” does not say that there is none. “Seeds needed” is the number that would show a "
            "difference such as this one four times in five."
        )
    if results.measure.better is not None:
        found.append(f"{results.measure.better.capitalize()} is better.")
    if any(cell.by_probe for cell in results.cells):
        found.append("Where the classifier never learned, the score is that of a linear probe of the vectors.")
    return found


def _labels(results: Results, cell: CellResult) -> list[str]:
    """One text per axis; of a cell outside the grid, its label in the first."""
    labels = list(results.design.labels_of(cell.cell)) or ["all"]
    return labels + [NONE] * (max(1, len(results.design.axes)) - len(labels))


def _compared(results: Results, cell: CellResult) -> list[str]:
    comparison = cell.comparison
    if comparison is None:
        compared_with = results.design.baseline_of(cell.cell) is None
        return ["baseline" if compared_with else NONE, *[NONE] * 4]
    pairs = comparison.difference.seeds
    fewer = "" if pairs == cell.seeds else f" ({counted(pairs, 'pair')})"
    return [
        difference_text(results, comparison.difference.mean) + fewer,
        interval_text(results, comparison),
        p_text(comparison.corrected_p),
        comparison.verdict if comparison.corrected_p is not None else NONE,
        needed_text(comparison),
    ]


def _csv(results: Results) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = "seeds mean std pairs difference difference_std low high p p_holm verdict seeds_needed examples values"
    writer.writerow([*(axis.name for axis in results.design.axes), *columns.split()])
    for cell in results.cells:
        labels = _labels(results, cell)[: len(results.design.axes)]
        values = " ".join(f"{seed}:{value!r}" for seed, value in sorted(cell.scores.items()))
        writer.writerow([*labels, *_numbers(cell), values])
    return text.getvalue()


def _numbers(cell: CellResult) -> Sequence[object]:
    """Empty where there is none."""
    own = [cell.seeds, cell.mean, cell.std]
    if cell.comparison is None:
        return [*own, *[None] * 10]
    found = cell.comparison.difference
    return [
        *own,
        found.seeds,
        found.mean,
        found.std,
        found.low,
        found.high,
        found.p,
        cell.comparison.corrected_p,
        cell.comparison.verdict,
        cell.comparison.seeds_needed,
        found.examples,
    ]
