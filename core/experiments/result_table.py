"""An experiment's results as a table: for display, as CSV in full precision, as Markdown and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Literal

from tabulate import tabulate

from core.events import SPEARMAN, TEST, VALIDATION
from core.experiments.design import axis_title
from core.experiments.results import (
    COSTS,
    OF_GROUPS,
    VERDICTS,
    CellResult,
    Comparison,
    MainEffect,
    Results,
    Tuned,
)
from core.messages import ENGLISH, N_, _, clauses, in_language, join_list, ngettext, sentences
from core.quantities import percent, signed
from core.representation.metrics import METRICS
from core.representation.paired import LEVEL, fewest_seeds
from core.store.records import PEAK_MEMORY
from core.tasks.listing import csv_text

Format = Literal["csv", "markdown", "latex"]
SUFFIXES: dict[Format, str] = {"csv": "csv", "markdown": "md", "latex": "tex"}
NONE = "–"
GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "ε": "varepsilon", "λ": "lambda", "ρ": "rho", "τ": "tau"}
# Scores shown as percentages.
SHARES = frozenset({"accuracy", "macro_f1", *OF_GROUPS, *(name for name, entry in METRICS.items() if entry.share)})
LEAST_P = 0.001
# Names of scores, such as "Test accuracy".
OF_SPLIT = {TEST: N_("Test {measure}"), VALIDATION: N_("Validation {measure}")}
BASELINES = (N_("linear probe of the encoder before training {score}"), N_("majority class {score}"))
# A sentence gives the number of cells beyond this limit instead of naming them.
MOST_NAMED = 6
# A bootstrap over fewer seeds is unreliable.
FEW_SEEDS = 8
HOW_BY_EXAMPLE = N_(
    "Differences are in {unit}, paired over seeds and examples, and rounded separately. Intervals are 95% "
    "percentile bootstraps over seeds and examples; p values come from a paired permutation test over seeds, "
    "corrected for {comparisons} (Holm)."
)
HOW_BY_SEED = N_(
    "Differences are in {unit}, paired over seeds, and rounded separately. Intervals are 95% percentile bootstraps "
    "over seeds; p values come from a paired permutation test over seeds, corrected for {comparisons} (Holm)."
)
# Characters that pdflatex cannot typeset.
IN_LATEX = str.maketrans(
    {"−": "$-$", "±": "$\\pm$", "–": "--", **{letter: f"$\\{name}$" for letter, name in GREEK.items()}}
)


@in_language(ENGLISH)
def table_text(results: Results, form: Format) -> str:
    """Return the table as text in English. CSV has full precision; Markdown and LaTeX are rounded as displayed."""
    if form == "csv":
        columns = (
            "seeds mean std pairs difference difference_std low high p p_holm verdict seeds_needed examples values "
            "linear_probe majority_rate"
        )
        cells: list[list[object]] = []
        for cell in results.cells:
            labels = _labels(results, cell)[: len(results.design.axes)]
            compared: Sequence[object] = [None] * 10
            if (one := cell.comparison) is not None:
                of = one.difference
                tested = (one.corrected_p, one.verdict, one.seeds_needed)
                compared = [of.seeds, of.mean, of.std, of.low, of.high, of.p, *tested, of.examples]
            values = " ".join(f"{seed}:{value!r}" for seed, value in sorted(cell.scores.items()))
            cells.append([*labels, cell.seeds, cell.mean, cell.std, *compared, values, *cell.reference])
        return csv_text([*(axis.name for axis in results.design.axes), *columns.split()], cells)
    header, rows = table_rows(results)
    if form == "markdown":
        # An unescaped bar would start a new cell.
        header, *rows = ([text.replace("|", "\\|") for text in row] for row in (header, *rows))
        return tabulate(rows, header, tablefmt="github", disable_numparse=True) + "\n"
    text = tabulate(rows, header, tablefmt="latex_booktabs", disable_numparse=True) + "\n"
    return text.translate(IN_LATEX)


def table_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Return the displayed header, and one row per cell."""
    names = [axis_title(axis, results.design.base) for axis in results.design.axes] or [_("Runs")]
    header = [*names, _("Seeds"), score_name(results)]
    # Translators: a column: the score of the linear probe of the untrained encoder.
    probe = _("Encoder before training") if results.measure.name == SPEARMAN else _("Probe before training")
    to_beat = {"probe": probe, "majority": _("Majority class")}
    known = [name for name in to_beat if any(getattr(cell.reference, name) is not None for cell in results.cells)]
    # The verdict comes first, because a narrow page does not show all columns.
    tests = [_("Verdict"), _("Seeds needed"), _("95% interval"), _("p over seeds (Holm)")] if results.over_seeds else []
    compared = [_("Difference"), *tests] if results.design.compares else []
    rows = []
    for cell in results.cells:
        row = [*_labels(results, cell), str(cell.seeds), mean_text(results, cell)]
        row += _compared(results, cell)[: len(compared)]
        rows.append([*row, *(score_text(results, getattr(cell.reference, name)) for name in known)])
    return [*header, *compared, *(to_beat[name] for name in known)], rows


def score_name(results: Results) -> str:
    """Return the name of the score, such as "Test accuracy"; a cost belongs to no split."""
    if results.measure.name in COSTS:
        return _(results.measure.label)
    return _(OF_SPLIT[results.split], measure=in_phrase(_(results.measure.label)))


def in_phrase(label: str) -> str:
    """Return a label with a lower-case initial, for use in a phrase. A leading name such as LoRA is unchanged."""
    is_name = re.match(r"\w+[A-Z]", label) is not None
    return label if is_name else f"{label[0].lower()}{label[1:]}"


def mean_text(results: Results, cell: CellResult) -> str:
    """Format a score as 81.3 ± 1.2%, as 81.3% for one seed, or as a dash."""
    text = score_text(results, cell.mean)
    return text if cell.std is None else f"{text.removesuffix('%')} ± {score_text(results, cell.std)}"


def score_text(results: Results, value: float | None) -> str:
    """Format a score as "81.3%", as "0.813" if it is not a percentage, or as a dash."""
    if value is None:
        return NONE
    return percent(value) if results.measure.name in SHARES else f"{value:,.{_decimals(results)}f}"


def _decimals(results: Results) -> int:
    return 1 if results.measure.name in COSTS else 3


def findings(results: Results) -> Iterator[str]:
    """Yield sentences on the reference scores, the cells whose means are worse, and the main effects."""
    references = [cell.reference for cell in results.cells]
    over_seeds = any(cell.seeds > 1 for cell in results.cells)
    probe, majority = (
        _range_text(results, values)
        for values in ([one.probe for one in references], [one.majority for one in references])
    )
    if probe and results.measure.name == SPEARMAN:
        yield _("{score} of the encoder before training: {value}.", score=score_name(results), value=probe)
    elif probe:
        said = {"score": score_name(results), "value": probe}
        yield (
            _("{score} of the linear probe of the encoder before training, mean over seeds: {value}.", **said)
            if over_seeds
            else _("{score} of the linear probe of the encoder before training: {value}.", **said)
        )
    if majority:
        yield _("{score} of the majority class: {value}.", score=score_name(results), value=majority)
    worse = [cell for cell in results.cells if results.is_worse_than_probe(cell)]
    if worse and results.measure.name == SPEARMAN:
        yield _(
            "Cells whose mean is below the encoder before training: {cells}.",
            cells=join_list(cell.title for cell in worse),
        )
    elif worse:
        named = clauses(
            _(
                "{cell} ({score} against {probe})",
                cell=cell.title,
                score=mean_text(results, cell),
                probe=score_text(results, cell.reference.probe),
            )
            for cell in worse
        )
        cells = named if len(worse) <= MOST_NAMED else f"{len(worse):,}/{len(results.cells):,}"
        # The sentence speaks of means only, because no test compares a cell with the probe.
        yield (
            _("Cells whose mean is above the probe before training: {cells}.", cells=cells)
            if results.measure.better == "lower"
            else _("Cells whose mean is below the probe before training: {cells}.", cells=cells)
        )
    # With one axis and one seed, a mean is the score of a cell.
    effects = results.main_effects if results.over_seeds or len(results.design.axes) > 1 else []
    yield from (_main_effect(results, effect) for effect in effects)
    if results.tuned:
        yield _tuned_text(results, results.tuned)


def _tuned_text(results: Results, tuned: Tuned) -> str:
    chosen = join_list(f"{title} × {count}" for title, count in list(tuned.chosen.items())[:MOST_NAMED])
    words = _(
        "If every seed takes the settings that are best on its validation rows ({chosen}), {score} is {value}.",
        chosen=chosen,
        score=in_phrase(score_name(results)),
        value=score_text(results, fmean(tuned.scores.values())),
    )
    found, reference = tuned.difference, results.design.reference
    if found is None or reference is None:
        return words
    against = {"reference": reference.title, "difference": difference_text(results, found.mean), "unit": unit(results)}
    if found.low is None or found.high is None:
        return sentences([words, _("Difference from {reference}: {difference} {unit}.", **against)])
    low, high = difference_text(results, found.low), difference_text(results, found.high)
    tested = _(
        "Difference from {reference}: {difference} {unit}, 95% interval {low} to {high}, p = {p}.",
        low=low,
        high=high,
        p=p_text(found.p),
        **against,
    )
    return sentences([words, tested])


def reference_text(results: Results, cell: CellResult) -> str:
    """Return a sentence on the reference scores of one cell; empty if they are unknown."""
    first = N_("encoder before training {score}") if results.measure.name == SPEARMAN else BASELINES[0]
    known = zip((first, BASELINES[1]), cell.reference, strict=True)
    told = [_(name, score=score_text(results, value)) for name, value in known if value is not None]
    if not told:
        return ""
    if cell.seeds > 1:
        return _("Baselines (mean over seeds): {scores}.", scores=join_list(told))
    return _("Baselines: {scores}.", scores=join_list(told))


def strokes_text(results: Results) -> str:
    """Return a sentence that explains the grey strokes of the chart; empty without the probe."""
    if all(cell.reference.probe is None for cell in results.cells):
        return ""
    if results.measure.name == SPEARMAN:
        return _("Long grey dashes: encoder before training.")
    return _(
        "Long grey dashes: linear probe of the encoder before training. Dashes and dots: majority class, if "
        "within the range of scores."
    )


def _range_text(results: Results, values: Sequence[float | None]) -> str:
    """Format the common value of all cells, or the lowest and the highest; "" if there are none."""
    texts = [score_text(results, value) for value in sorted(one for one in values if one is not None)]
    if not texts:
        return ""
    return texts[0] if texts[0] == texts[-1] else _("{low} to {high}", low=texts[0], high=texts[-1])


def _main_effect(results: Results, effect: MainEffect) -> str:
    design = results.design
    axis = design.axes[effect.axis]
    known = {
        "axis": in_phrase(axis_title(axis, design.base)),
        "scores": clauses(
            _("{score} for {level}", score=score_text(results, mean), level=level.title)
            for level, mean in zip(axis.levels, effect.means, strict=True)
        ),
        "others": join_list(in_phrase(axis_title(other, design.base)) for other in design.axes if other is not axis),
    }
    if not known["others"]:
        return _("Means by {axis}: {scores} (over seeds).", **known)
    if effect.combinations == effect.of and not results.over_seeds:
        return _("Means by {axis}: {scores} (over {others}).", **known)
    if effect.combinations == effect.of:
        return _("Means by {axis}: {scores} (over {others} and seeds).", **known)
    return _(
        "Means by {axis}: {scores} (over seeds and {used} of {total} levels of {others}, those with a score "
        "everywhere).",
        used=effect.combinations,
        total=effect.of,
        **known,
    )


def difference_text(results: Results, value: float) -> str:
    """Format a difference with its sign, in percentage points ("+1.2") or in the unit of the measure."""
    shares = results.measure.name in SHARES
    text = signed(100 * value if shares else value, 1 if shares else _decimals(results))
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def interval_text(results: Results, comparison: Comparison) -> str:
    """Format the interval, or a dash if there is none."""
    found = comparison.difference
    if found.low is None or found.high is None or comparison.is_zero_throughout:
        return NONE
    return _("{low} to {high}", low=difference_text(results, found.low), high=difference_text(results, found.high))


def unit(results: Results) -> str:
    """Return the unit of differences."""
    if results.measure.name in SHARES:
        return _("percentage points")
    units = {"cross_entropy": N_("nats"), "peak_memory": N_("MB"), "seconds": N_("seconds")}
    return _(units.get(results.measure.name, N_("the unit of the measure")))


def p_text(p: float | None) -> str:
    if p is None:
        return NONE
    return f"< {LEAST_P}" if p < LEAST_P else f"{p:.3f}"


def needed_text(comparison: Comparison) -> str:
    """Format the number of seeds that would show the difference: "enough" if it is significant, "> 1,000" for more."""
    if comparison.difference.seeds < 2 or comparison.is_zero:
        return NONE
    if comparison.verdict != "no difference shown":
        # Translators: seeds, to show a difference.
        return _("enough")
    return "> 1,000" if comparison.seeds_needed is None else f"{comparison.seeds_needed:,}"


def cautions(results: Results) -> Iterator[str]:
    """Yield warnings, one sentence each, about too few seeds, early stopping and missing runs."""
    comparisons = results.comparisons
    if comparisons:
        count = len(comparisons)
        seeds = min(one.difference.seeds for one in comparisons)
        least = min(1.0, count * min(one.difference.least_p for one in comparisons))
        if not results.over_seeds:
            yield _(
                "With one seed, a difference may be chance. A significance test needs at least {needed} seeds.",
                needed=fewest_seeds(LEVEL / count),
            )
        elif least > LEVEL:
            yield _(
                "With {seeds} and {comparisons}, p cannot fall below {least}, so no difference can be "
                "significant. Significance needs at least {needed} seeds.",
                seeds=ngettext("{count} seed", "{count} seeds", seeds),
                comparisons=ngettext("{count} comparison", "{count} comparisons", count),
                least=f"{least:.3g}",
                needed=fewest_seeds(LEVEL / count),
            )
        if results.over_seeds and seeds < FEW_SEEDS:
            yield _("Intervals from so few seeds are too narrow. If interval and p disagree, rely on p.")
        elif any(
            one.verdict == "no difference shown"
            and one.difference.low is not None
            and one.difference.high is not None
            and not one.difference.low <= 0 <= one.difference.high
            for one in comparisons
        ):
            yield _(
                "An interval is for a single comparison, whereas p accounts for all {count} (Holm). If they "
                "disagree, rely on p.",
                count=f"{count:,}",
            )
    if results.ended_early:
        yield ngettext(
            "{count} run with a low score ended early, so the remaining runs of its cell look better than the "
            "cell. Do not compare cells in this table; run the best ones to their end.",
            "{count} runs with low scores ended early, so the remaining runs of their cells look better than "
            "the cells. Do not compare cells in this table; run the best ones to their end.",
            results.ended_early,
        )
    left = results.design.runs - results.ended_early - len(results.design.sources) * len(results.design.seeds)
    left -= sum(cell.seeds for cell in results.cells)
    if left and any(cell.seeds for cell in results.cells):
        yield ngettext(
            "{count} run has no score yet, so results may change.",
            "{count} runs have no score yet, so results may change.",
            left,
        )


def notes(results: Results) -> Iterator[str]:
    """Yield notes on how the numbers were computed, one sentence each."""
    if results.over_seeds:
        yield _("± is the standard deviation over seeds (n − 1).")
    comparisons = results.comparisons
    if comparisons and not results.over_seeds:
        yield _("Differences are in {unit}.", unit=unit(results))
    elif comparisons:
        how = HOW_BY_EXAMPLE if all(one.difference.examples for one in comparisons) else HOW_BY_SEED
        yield _(
            how,
            unit=unit(results),
            comparisons=ngettext("{count} comparison", "{count} comparisons", len(comparisons)),
        )
        yield _(
            "A difference may exist even if the test does not show it. “Seeds needed” is the number of seeds with "
            "which the test would show a difference of this size in 80% of cases."
        )
    if results.measure.name in OF_GROUPS:
        yield _(
            "Head and tail are the thirds of the classes with the most and with the fewest training rows. Recall "
            "is the fraction of their examples that are predicted correctly."
        )
    if results.measure.better is not None:
        yield better_text(results)
    by_rank = results.measure.name == SPEARMAN  # computed from cosines, without a probe
    if any(cell.reference.probe is not None for cell in results.cells) and not by_rank:
        yield _(
            "The probe before training is a logistic regression (C = 1) on the vectors of the run's training "
            "rows, from the encoder before training. The majority class is the most frequent class of the "
            "training rows."
        )
    if results.measure.name == "peak_memory":
        yield _(PEAK_MEMORY)
    if results.measure.name == "seconds":
        yield _("Durations exclude pauses. Runs that share a machine slow each other down.")
    if any(cell.by_probe for cell in results.cells) and not by_rank:
        yield _("If the classifier never learned, the score is of a linear probe of the vectors.")


def better_text(results: Results) -> str:
    """Return a sentence on the better direction; empty if neither is better."""
    sentences = {"higher": _("Higher is better."), "lower": _("Lower is better."), None: ""}
    return sentences[results.measure.better]


def _labels(results: Results, cell: CellResult) -> list[str]:
    """Return one label per axis; a cell outside the grid has its label in the first column."""
    # Translators: all runs of an experiment, in the one row of a table.
    labels = [level.title for level in results.design.levels_of(cell.cell)] or [_("all")]
    return labels + [NONE] * (max(1, len(results.design.axes)) - len(labels))


def _compared(results: Results, cell: CellResult) -> list[str]:
    comparison = cell.comparison
    if comparison is None:
        compared_with = results.design.baseline_of(cell.cell) is None
        # Translators: what others are compared with.
        return [_("baseline") if compared_with else NONE, *[NONE] * 4]
    pairs = comparison.difference.seeds
    fewer = "" if pairs == cell.seeds else f" ({ngettext('{count} pair', '{count} pairs', pairs)})"
    return [
        difference_text(results, comparison.difference.mean) + fewer,
        _(VERDICTS[comparison.verdict]) if comparison.corrected_p is not None else NONE,
        needed_text(comparison),
        interval_text(results, comparison),
        p_text(comparison.corrected_p),
    ]
