"""Every loss names a wrong argument, its value and the expected one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from core.losses import (
    contrastive_coefficients,
    cosent_loss,
    cosine_mse_loss,
    cross_entropy_loss,
    dscl_loss,
    mixup_loss,
    rdrop_loss,
    scl_objective,
    simcse_loss,
    supcon_loss,
)
from core.losses.cross_entropy import mix
from core.losses.forces import batch_forces
from tests.cases import each

FOUR, SIX = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 0, 2, 1, 0])
PARTNERS = torch.tensor([2, 0, 3, 3])
# Valid arguments of each loss.
VALID: dict[Callable[..., Any], dict[str, Any]] = {
    cross_entropy_loss: {"logits": torch.ones(4, 3), "labels": FOUR},
    mixup_loss: {"logits": torch.ones(4, 3), "labels": FOUR, "partners": PARTNERS, "share": 0.5},
    mix: {"vectors": torch.ones(4, 2), "partners": PARTNERS, "share": 0.5},
    dscl_loss: {"features": torch.ones(6, 2, 4), "labels": SIX},
    rdrop_loss: {"logits1": torch.ones(4, 3), "logits2": torch.ones(4, 3), "labels": FOUR},
    simcse_loss: {"z1": torch.ones(6, 4), "z2": torch.ones(6, 4), "z3": torch.ones(6, 4)},
    supcon_loss: {"features": torch.ones(6, 4), "labels": SIX},
    contrastive_coefficients: {"features": torch.ones(6, 4), "labels": SIX, "temperature": 0.1},
    scl_objective: {"logits": torch.ones(4, 3), "labels": FOUR, "features": torch.ones(4, 2), "weight": 0.5},
    cosent_loss: {"z1": torch.ones(5, 4), "z2": torch.ones(5, 4), "scores": torch.ones(5)},
    cosine_mse_loss: {"z1": torch.ones(5, 4), "z2": torch.ones(5, 4), "scores": torch.ones(5)},
    batch_forces: {"features": torch.ones(6, 4), "labels": SIX, "temperature": 0.5},
}
# Loss, wrong arguments, and the name and value in the error.
REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str, str]] = [
    (cross_entropy_loss, {"logits": torch.ones(4)}, "logits", "(4,)"),
    (cross_entropy_loss, {"labels": torch.zeros(5, dtype=torch.long)}, "labels", "(5,)"),
    (cross_entropy_loss, {"label_smoothing": -0.1}, "label_smoothing", "-0.1"),
    (cross_entropy_loss, {"label_smoothing": 1.0}, "label_smoothing", "1.0"),
    (cross_entropy_loss, {"label_smoothing": math.nan}, "label_smoothing", "nan"),
    (cross_entropy_loss, {"margin": -0.1}, "margin", "-0.1"),
    (cross_entropy_loss, {"margin": math.inf}, "margin", "inf"),
    (mixup_loss, {"logits": torch.ones(4)}, "logits", "(4,)"),
    (mixup_loss, {"labels": torch.zeros(5, dtype=torch.long)}, "labels", "(5,)"),
    (mixup_loss, {"partners": torch.zeros(3, dtype=torch.long)}, "partners", "(3,)"),
    (mixup_loss, {"share": -0.1}, "share", "-0.1"),
    (mixup_loss, {"share": torch.tensor(1.5)}, "share", "1.5"),
    (mixup_loss, {"share": math.nan}, "share", "nan"),
    (mixup_loss, {"share": torch.ones(4)}, "share", "(4,)"),
    (mix, {"share": 2.0}, "share", "2.0"),
    (mix, {"partners": PARTNERS[:3]}, "partners", "(3,)"),
    (dscl_loss, {"features": torch.ones(6, 4)}, "features", "(6, 4)"),
    (dscl_loss, {"features": torch.ones(6, 1, 4)}, "features", "(6, 1, 4)"),
    (dscl_loss, {"labels": torch.zeros(5)}, "labels", "(5,)"),
    (dscl_loss, {"alpha": 0.0}, "alpha", "0.0"),
    (dscl_loss, {"alpha": 1.0}, "alpha", "1.0"),
    (dscl_loss, {"alpha": math.nan}, "alpha", "nan"),
    (dscl_loss, {"alpha": "even"}, "alpha", "even"),
    (dscl_loss, {"variant": "text"}, "variant", "text"),
    (dscl_loss, {"queue": (torch.ones(3, 5), torch.zeros(3))}, "queue features", "(3, 5)"),
    (dscl_loss, {"temperature": 0.0}, "temperature", "0.0"),
    (rdrop_loss, {"logits1": torch.ones(4)}, "logits1", "(4,)"),
    (rdrop_loss, {"logits2": torch.ones(4, 2)}, "logits2", "(4, 2)"),
    (rdrop_loss, {"labels": torch.zeros(5, dtype=torch.long)}, "labels", "(5,)"),
    (rdrop_loss, {"alpha": -1.0}, "alpha", "-1.0"),
    (simcse_loss, {"z1": torch.ones(6)}, "z1", "(6,)"),
    (simcse_loss, {"z2": torch.ones(5, 4)}, "z2", "(5, 4)"),
    (simcse_loss, {"z3": torch.ones(6, 3)}, "z3", "(6, 3)"),
    (simcse_loss, {"temperature": 0.0}, "temperature", "0.0"),
    (simcse_loss, {"hard_negative_weight": math.inf}, "hard_negative_weight", "inf"),
    (simcse_loss, {"labels": SIX}, "labels and z3", "at most one of them"),
    (simcse_loss, {"labels": FOUR}, "labels", "one label per row"),
    (supcon_loss, {"temperature": 0.0}, "temperature", "0.0"),
    (supcon_loss, {"temperature": -0.1}, "temperature", "-0.1"),
    (supcon_loss, {"temperature": math.nan}, "temperature", "nan"),
    (supcon_loss, {"temperature": math.inf}, "temperature", "inf"),
    (supcon_loss, {"features": torch.ones(6)}, "features", "(6,)"),
    (supcon_loss, {"features": torch.ones(6, 1, 2, 3)}, "features", "(6, 1, 2, 3)"),
    (supcon_loss, {"labels": torch.zeros(5)}, "labels", "(5,)"),
    (supcon_loss, {"labels": None, "mask": torch.ones(6, 5)}, "mask", "(6, 5)"),
    (supcon_loss, {"mask": torch.ones(6, 6)}, "mask", "both"),
    (supcon_loss, {"view_mask": torch.ones(6, 2, dtype=torch.bool)}, "view_mask", "(6, 2)"),
    (supcon_loss, {"variant": "mean"}, "variant", "mean"),
    (supcon_loss, {"anchors": "two"}, "anchors", "two"),
    (supcon_loss, {"reduction": "median"}, "reduction", "median"),
    (supcon_loss, {"base_temperature": 0.0}, "base_temperature", "0.0"),
    (supcon_loss, {"queue": (torch.ones(3), torch.zeros(3))}, "queue features", "(3,)"),
    (supcon_loss, {"queue": (torch.ones(3, 5), torch.zeros(3))}, "queue features", "(3, 5)"),
    (supcon_loss, {"queue": (torch.ones(3, 4), torch.zeros(2))}, "queue labels", "(2,)"),
    (supcon_loss, {"queue": (torch.ones(3, 4), torch.zeros(3, 1))}, "queue labels", "(3, 1)"),
    (supcon_loss, {"left_out": torch.ones(6, 5).bool()}, "left_out", "(6, 5)"),
    (contrastive_coefficients, {"variant": "mean"}, "variant", "mean"),
    (contrastive_coefficients, {"labels": torch.zeros(5)}, "labels", "(5,)"),
    (scl_objective, {"weight": -0.1}, "weight", "weight = -0.1: expected"),
    (scl_objective, {"weight": 1.1}, "weight", "weight = 1.1: expected"),
    (scl_objective, {"weight": math.inf, "combine": "additive"}, "weight", "weight = inf: expected"),
    (scl_objective, {"combine": "mixed"}, "combine", "combine = 'mixed': expected one of convex, additive"),
    (cosent_loss, {"z1": torch.ones(5)}, "z1", "z1 of shape (5,): expected [N, d]"),
    (cosent_loss, {"z2": torch.ones(4, 4)}, "z2", "z2 of shape (4, 4): expected [5, 4]"),
    (cosent_loss, {"scores": torch.ones(4)}, "scores", "scores of shape (4,): expected [5]"),
    (cosine_mse_loss, {"scores": torch.ones(4)}, "scores", "scores of shape (4,): expected [5]"),
    (batch_forces, {"temperature": 0.0}, "temperature", "temperature = 0.0"),
    (batch_forces, {"features": torch.ones(7)}, "features", "features of shape (7,)"),
    (batch_forces, {"labels": SIX[:3]}, "labels", "one label per text"),
]


@each(("loss", "wrong", "name", "value"), REFUSED)
def test_a_wrong_argument_is_named_with_its_value(
    loss: Callable[..., Any], wrong: dict[str, Any], name: str, value: str
) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        loss(**VALID[loss] | wrong)
    assert name in str(caught.value)
    assert value in str(caught.value)
