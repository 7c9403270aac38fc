"""The only format of percentages and counts."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from core.quantities import hundredths, percent, signed
from tests.cases import each

ROOT = Path(__file__).resolve().parents[2]


WHOLE = {5 / 12: "41.7%", 0.5: "50.0%", np.float32(0.25): "25.0%", 1.0: "100.0%", 0.0: "0.0%", math.nan: "–"}
# JavaScript's (100 * share).toFixed(1), which tables and hover texts use, picks the larger of two neighbours.
HALVES = {325 / 400: "81.3%", 0.0285: "2.9%", 0.0005: "0.1%", 0.00049: "0.0%"}


def test_a_percentage_has_one_decimal_and_halves_are_rounded_up_as_a_browser_does() -> None:
    assert [percent(share) for share in (*WHOLE, *HALVES)] == [*WHOLE.values(), *HALVES.values()]


@each("order", [1, -1])
def test_the_order_of_a_sum_does_not_change_a_number(order: int) -> None:
    shares = [0.83, 0.82, 0.82, 0.825, 0.82, 0.82][::order]
    mean = sum(shares) / len(shares)
    assert percent(mean) == percent(math.fsum(shares) / len(shares)) == "82.3%"
    assert (signed(1.25, 1), signed(-1.25, 1), signed(1.25 - 1e-14, 1)) == ("1.3", "−1.3", "1.3")


def test_table_cells_are_hundredths() -> None:
    assert hundredths([0.5, None]) == [50.0, None]


def test_no_page_figure_or_command_writes_percentages_its_own_way() -> None:
    own = re.compile(r'[:"]\.\d~?%|format="percent"|\* 100\b')
    files = [*ROOT.glob("pages/**/*.py"), *ROOT.glob("core/**/*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        if path.name != "quantities.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if own.search(line)
    ]
    assert len(files) > 100
    assert found == []


SIGNED = {(-0.004, 2): "0.00", (-0.006, 2): "−0.01", (0.25, 1): "0.3", (-3.0, 0): "−3", (0.0, 2): "0.00"}


@each(("value", "decimals"), SIGNED)
def test_a_number_below_zero_has_a_minus_sign_and_zero_has_none(value: float, decimals: int) -> None:
    assert signed(value, decimals) == SIGNED[value, decimals]
    assert signed(1e26, 3) == f"{10**26:.3f}"
