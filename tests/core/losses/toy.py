"""A loss from outside: texts of one class are pulled together, and nothing is pushed apart."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import normalize

from core.catalogue.loss_entry import CONTRAST, LossEntry, Settings
from core.losses.evaluate import TermInput
from core.losses.reference import ReferenceLines
from core.parameters import Parameter, number


def pull(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    z = normalize(given.layers[0].vectors[:, 0], dim=1)
    alike = labels.unsqueeze(0) == labels.unsqueeze(1)
    return number(settings, "strength") * (1 - z @ z.T)[alike].mean()


def at_zero(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    return ReferenceLines(labels.double().mean() * 0, None)


TOY = LossEntry(
    name="pull",
    label="Pull alone",
    place=90,
    symbol="Pull",
    latex=r"\text{Pull}={strength}\,(1-\cos(z_i,z_p))",
    summary="Texts of one class attract each other.",
    source="made for a test",
    reads="vectors",
    colour="#123456",
    compute="tests.core.losses.toy:pull",
    lines="tests.core.losses.toy:at_zero",
    levels=("sentence",),
    parameters=(
        Parameter("strength", "Strength s", 0.5, "Times the sum.", low=0.0, high=9.0, slider=(0.0, 2.0), knob=True),
        *(parameter for parameter in CONTRAST if parameter.name not in ("k", "clusters")),
    ),
)
