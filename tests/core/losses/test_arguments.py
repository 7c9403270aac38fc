"""Every loss names a wrong argument, its value and the expected one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from core.losses import (
    contrastive_coefficients,
    cross_entropy_loss,
    dscl_loss,
    mixup_loss,
    rdrop_loss,
    simcse_loss,
    supcon_loss,
)
from core.losses.cross_entropy import mix
from tests.cases import each

FOUR, SIX = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 0, 2, 1, 0])
PARTNERS = torch.tensor([2, 0, 3, 3])
# Loss, valid arguments, and invalid ones with their names and values.
CASES: list[tuple[Callable[..., Any], dict[str, Any], list[tuple[dict[str, Any], str, str]]]] = [
    (
        cross_entropy_loss,
        {"logits": torch.ones(4, 3), "labels": FOUR},
        [
            ({"logits": torch.ones(4)}, "logits", "(4,)"),
            ({"labels": torch.zeros(5, dtype=torch.long)}, "labels", "(5,)"),
            ({"label_smoothing": -0.1}, "label_smoothing", "-0.1"),
            ({"label_smoothing": 1.0}, "label_smoothing", "1.0"),
            ({"label_smoothing": math.nan}, "label_smoothing", "nan"),
            ({"margin": -0.1}, "margin", "-0.1"),
            ({"margin": math.inf}, "margin", "inf"),
        ],
    ),
    (
        mixup_loss,
        {"logits": torch.ones(4, 3), "labels": FOUR, "partners": PARTNERS, "share": 0.5},
        [
            ({"logits": torch.ones(4)}, "logits", "(4,)"),
            ({"labels": torch.zeros(5, dtype=torch.long)}, "labels", "(5,)"),
            ({"partners": torch.zeros(3, dtype=torch.long)}, "partners", "(3,)"),
            ({"share": -0.1}, "share", "-0.1"),
            ({"share": torch.tensor(1.5)}, "share", "1.5"),
            ({"share": math.nan}, "share", "nan"),
            ({"share": torch.ones(4)}, "share", "(4,)"),
        ],
    ),
    (
        mix,
        {"vectors": torch.ones(4, 2), "partners": PARTNERS, "share": 0.5},
        [
            ({"share": 2.0}, "share", "2.0"),
            ({"partners": PARTNERS[:3]}, "partners", "(3,)"),
        ],
    ),
    (
        dscl_loss,
        {"features": torch.ones(6, 2, 4), "labels": SIX},
        [
            ({"features": torch.ones(6, 4)}, "features", "(6, 4)"),
            ({"features": torch.ones(6, 1, 4)}, "features", "(6, 1, 4)"),
            ({"labels": torch.zeros(5)}, "labels", "(5,)"),
            ({"alpha": 0.0}, "alpha", "0.0"),
            ({"alpha": 1.0}, "alpha", "1.0"),
            ({"alpha": math.nan}, "alpha", "nan"),
            ({"alpha": "even"}, "alpha", "even"),
            ({"variant": "text"}, "variant", "text"),
            ({"queue": (torch.ones(3, 5), torch.zeros(3))}, "queue features", "(3, 5)"),
            ({"temperature": 0.0}, "temperature", "0.0"),
        ],
    ),
    (
        rdrop_loss,
        {"logits1": torch.ones(4, 3), "logits2": torch.ones(4, 3), "labels": FOUR},
        [
            ({"logits1": torch.ones(4)}, "logits1", "(4,)"),
            ({"logits2": torch.ones(4, 2)}, "logits2", "(4, 2)"),
            ({"labels": torch.zeros(5, dtype=torch.long)}, "labels", "(5,)"),
            ({"alpha": -1.0}, "alpha", "-1.0"),
            ({"alpha": math.nan}, "alpha", "nan"),
        ],
    ),
    (
        simcse_loss,
        {"z1": torch.ones(6, 4), "z2": torch.ones(6, 4), "z3": torch.ones(6, 4)},
        [
            ({"z1": torch.ones(6)}, "z1", "(6,)"),
            ({"z2": torch.ones(5, 4)}, "z2", "(5, 4)"),
            ({"z3": torch.ones(6, 3)}, "z3", "(6, 3)"),
            ({"temperature": 0.0}, "temperature", "0.0"),
            ({"hard_negative_weight": math.inf}, "hard_negative_weight", "inf"),
        ],
    ),
    (
        supcon_loss,
        {"features": torch.ones(6, 4), "labels": SIX},
        [
            ({"temperature": 0.0}, "temperature", "0.0"),
            ({"temperature": -0.1}, "temperature", "-0.1"),
            ({"temperature": math.nan}, "temperature", "nan"),
            ({"temperature": math.inf}, "temperature", "inf"),
            ({"features": torch.ones(6)}, "features", "(6,)"),
            ({"features": torch.ones(6, 1, 2, 3)}, "features", "(6, 1, 2, 3)"),
            ({"labels": torch.zeros(5)}, "labels", "(5,)"),
            ({"labels": None, "mask": torch.ones(6, 5)}, "mask", "(6, 5)"),
            ({"mask": torch.ones(6, 6)}, "mask", "both"),
            ({"view_mask": torch.ones(6, 2, dtype=torch.bool)}, "view_mask", "(6, 2)"),
            ({"variant": "mean"}, "variant", "mean"),
            ({"anchors": "two"}, "anchors", "two"),
            ({"reduction": "median"}, "reduction", "median"),
            ({"base_temperature": 0.0}, "base_temperature", "0.0"),
            ({"queue": (torch.ones(3), torch.zeros(3))}, "queue features", "(3,)"),
            ({"queue": (torch.ones(3, 5), torch.zeros(3))}, "queue features", "(3, 5)"),
            ({"queue": (torch.ones(3, 4), torch.zeros(2))}, "queue labels", "(2,)"),
            ({"queue": (torch.ones(3, 4), torch.zeros(3, 1))}, "queue labels", "(3, 1)"),
            ({"left_out": torch.ones(6, 5).bool()}, "left_out", "(6, 5)"),
        ],
    ),
    (
        contrastive_coefficients,
        {"features": torch.ones(6, 4), "labels": SIX, "temperature": 0.1},
        [
            ({"temperature": 0.0}, "temperature", "0.0"),
            ({"variant": "mean"}, "variant", "mean"),
            ({"labels": torch.zeros(5)}, "labels", "(5,)"),
        ],
    ),
]


@each(("loss", "given", "refused"), CASES)
def test_a_wrong_argument_is_named_with_its_value(
    loss: Callable[..., Any], given: dict[str, Any], refused: list[tuple[dict[str, Any], str, str]]
) -> None:
    for wrong, name, value in refused:
        with pytest.raises(ValueError, match="expected") as caught:
            loss(**given | wrong)
        assert name in str(caught.value)
        assert value in str(caught.value)
