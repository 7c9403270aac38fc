"""Adding a loss takes one file and one registry entry. Everything that lists losses then includes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from core.advice.prepare import prepare
from core.artifacts.frame_loss import shown_contrast
from core.catalogue.loss_entry import ForceLaw
from core.catalogue.losses import LOSSES
from core.cli.main import draft_from
from core.config import RunConfig, parse_config
from core.config.describe import term_latex, total_latex
from core.errors import ConfigError
from core.events import Step
from core.figures.parts import part_colour, part_label
from core.lab.answer import answer
from core.lab.choices import Setting, loss_names
from core.losses.forces import batch_forces, push_spread
from core.training.loop import train
from pages.ui.lab import read_setting, setting_text
from tests.core.losses.triplet import TRIPLET, triplet_loss


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    LOSSES.register(TRIPLET)
    yield
    del LOSSES[TRIPLET.name]


TERMS = [{"loss": "cross_entropy"}, {"loss": "triplet", "weight": 2, "margin": 0.25}]
OBJECTIVE = {"terms": TERMS, "combine": "additive"}


def test_it_trains_and_is_recorded_with_its_lines(draft: Callable[..., RunConfig]) -> None:
    config, data = prepare(draft(objective=OBJECTIVE, steps=4), gpu=False)
    steps = [event for event in train(config, data) if isinstance(event, Step)]
    assert len(steps) == 4
    for step in steps:
        pieces = step.values["loss.cross_entropy"] + 2 * step.values["loss.triplet"]
        assert step.values["loss"] == pytest.approx(pieces, rel=1e-5)
        assert step.values["loss.triplet"] > 0
        assert step.values["collapse_line.triplet"] == 0.25


def test_config_command_line_knobs_equation_and_labels_know_it() -> None:
    config = parse_config({"phases": [{"steps": 4, "objective": OBJECTIVE}]})
    objective = config.phases[0].objective
    assert parse_config(config.to_json()) == config
    assert "triplet.margin" in objective.knobs
    assert r"2.00\,\text{Triplet}" in total_latex(objective)
    assert term_latex(objective.terms[1]) == [r"\text{Triplet}=\max(0,\,z_i\cdot z_n-z_i\cdot z_p+0.25)"]
    made = draft_from({"settings": ('objective.terms=[{"loss": "triplet", "margin": 1.5}]',)})
    assert made.phases[0].objective.terms[0].parameters["margin"] == 1.5
    with pytest.raises(ConfigError, match="margin"):
        parse_config({"phases": [{"steps": 4, "objective": {"terms": [{"loss": "triplet", "margin": 10}]}}]})


def test_its_curve_has_its_name_and_its_colour() -> None:
    assert (part_label("triplet"), part_colour("triplet")) == ("Triplet", "#123456")
    assert part_label("triplet_2") == "Triplet 2"


def test_its_forces_are_its_gradient_and_how_they_spread_is_told_without_a_temperature() -> None:
    config = parse_config({"phases": [{"steps": 4, "objective": OBJECTIVE}]})
    shown = shown_contrast(config, 2, None, 6)
    assert shown.about == "The contrastive loss of this run at step 2 is Triplet."
    # With equal class sizes, the mean over triplets is the mean over anchors. Each text is an anchor and a candidate.
    z = torch.nn.functional.normalize(torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    found = batch_forces(z, labels, law=shown.law)
    free = z.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(triplet_loss(free, labels, 0.25), free)
    summed = (found.coefficients + found.coefficients.T) @ z / len(z)
    torch.testing.assert_close(summed - (summed * z).sum(1, keepdim=True) * z, gradient)
    assert found.p is None
    spread = push_spread(z, labels, law=shown.law)
    assert spread.losses[0] == pytest.approx(float(triplet_loss(z, labels, 0.25)))
    assert 1 <= spread.effective_negatives <= 4


def test_the_spread_ignores_anchors_without_a_push() -> None:
    """Only triplets of the last text violate the margin. Both its negatives push it equally."""
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.17, 0.98]])
    law = ForceLaw(TRIPLET, {**TRIPLET.defaults, "margin": 0.25})
    found = push_spread(z, torch.tensor([0, 0, 1, 1]), law=law)
    assert (found.effective_negatives, found.top_share) == pytest.approx((2, 0.5))


def test_an_address_of_the_lab_keeps_a_name_with_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "soft_triplet", replace(TRIPLET, name="soft_triplet"))
    setting = Setting(loss="soft_triplet", extra=0.3)
    assert read_setting(setting_text(setting)) == setting


def test_the_loss_lab_plays_it_with_its_knob_and_its_pulls() -> None:
    assert "triplet" in loss_names("circle")
    assert "triplet" not in loss_names("simplex")
    settings = [{"loss": "triplet", "extra": margin, "learning_rate": 1.0} for margin in (0.1, 1.0)]
    found = json.loads(answer(json.dumps({"settings": settings, "steps": 20, "anchor": 0})))
    for panel in found["panels"]:
        losses = [moment["loss"] for moment in panel["moments"]]
        assert losses[-1] < losses[0]
        assert panel["moments"][0]["pulls"]
    assert [panel["collapse"] for panel in found["panels"]] == [0.1, 1.0]


def test_it_comes_in_its_place_and_once() -> None:
    assert list(LOSSES)[-1] == "triplet"
    assert LOSSES.entry("triplet") is TRIPLET
    with pytest.raises(ValueError, match="name = 'triplet': a loss of this name exists"):
        LOSSES.register(TRIPLET)
