"""What can be minimised: the literal list of losses, readable without importing torch.

Forms, help texts, the equation preview, the command line and the parametrised tests are made from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number or choice of a loss, with the bounds a form may offer.

    `low` and `high` bound what is valid; `low` itself is excluded where `above` is set.
    """

    name: str
    label: str
    default: float | str
    help: str
    low: float | None = None
    high: float | None = None
    above: bool = False
    choices: tuple[str, ...] = ()

    def check(self, field: str, value: object) -> float | str:
        """The value if it is valid.

        Raises: ConfigError naming the field, the value and the bounds.
        """
        if self.choices:
            if value not in self.choices:
                raise ConfigError(field, value, f"choose one of {', '.join(self.choices)}.")
            return str(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(field, value, f"give a number {self.bounds}.")
        low_ok = self.low is None or (value > self.low if self.above else value >= self.low)
        high_ok = self.high is None or value <= self.high
        # A NaN fails no bound that is absent; an integer may be too large to be a float.
        if not (low_ok and high_ok and abs(value) < math.inf):
            raise ConfigError(field, value, f"give a number {self.bounds}.")
        return float(value)

    @property
    def bounds(self) -> str:
        parts = []
        if self.low is not None:
            parts.append(f"{'above' if self.above else 'from'} {self.low:g}")
        if self.high is not None:
            parts.append(f"up to {self.high:g}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class LossEntry:
    """A loss as people and forms see it.

    `latex` is its equation, with `{name}` where a parameter's value goes; `contrastive` losses compare
    the vectors of a batch and so need positives in it.
    """

    name: str
    label: str
    symbol: str
    latex: str
    source: str
    contrastive: bool
    parameters: tuple[Parameter, ...] = ()
    others_compute: str = ""


TEMPERATURE = Parameter(
    "temperature",
    "Temperature τ",
    0.3,
    "Divides every cosine before the softmax. Small values let the hardest negatives dominate.",
    low=0.0,
    high=100.0,
    above=True,
)

LOSSES: Mapping[str, LossEntry] = {
    "cross_entropy": LossEntry(
        name="cross_entropy",
        label="Cross-entropy",
        symbol="CE",
        latex=r"\mathrm{CE}=-\log p_\theta(y_i\mid x_i)",
        source="the usual fine-tuning loss",
        contrastive=False,
    ),
    "supcon": LossEntry(
        name="supcon",
        label="Supervised contrastive",
        symbol="SCL",
        latex=(
            r"\mathrm{SCL}=-\frac{1}{|P(i)|}\sum_{p\in P(i)}"
            r"\log\frac{e^{z_i\cdot z_p/{temperature}}}{\sum_{a\ne i}e^{z_i\cdot z_a/{temperature}}}"
        ),
        source="Khosla et al. 2020, eq. 2 (L_out), arXiv:2004.11362; Gunel et al. 2021, eq. 3, arXiv:2011.01403",
        contrastive=True,
        parameters=(TEMPERATURE,),
        others_compute=(
            "HobbitLong's code multiplies by τ/0.07 and Google's by τ; pytorch-metric-learning averages over the "
            "anchors with a positive loss; Gunel et al. sum over anchors, so their λ depends on the batch size. "
            "Here it is the mean over the anchors that have a positive."
        ),
    ),
}


def loss_entry(name: str, field: str = "loss") -> LossEntry:
    """The entry of a loss.

    Raises: ConfigError naming what exists; nothing falls back silently.
    """
    try:
        return LOSSES[name]
    except (KeyError, TypeError):
        raise ConfigError(field, name, f"choose one of {', '.join(LOSSES)}.") from None
