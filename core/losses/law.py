"""Which contrastive loss acts on one vector per text. Imports no torch."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["out", "in", "dscl", "simcse"]


class ForceLaw(NamedTuple):
    """A contrastive loss over a batch in which one vector may represent several views of its text.

    Attributes:
        kind: "out" or "in" of `supcon_loss`, "dscl", or "simcse" (second views as candidates).
        views: how many views of a text its one vector represents; SimCSE's are always two.
        alpha: DSCL's weight of the own other views, or "uniform".
        by_label: whether texts of one class are positives; otherwise only the text's own other views are.
        normalize: whether vectors are compared by cosine or, as they are, by dot product.
    """

    kind: Kind = "out"
    views: int = 1
    alpha: float | Literal["uniform"] = 0.1
    by_label: bool = True
    normalize: bool = True

    @property
    def has_own_view(self) -> bool:
        """Whether a text's own other view is among the candidates."""
        return self.kind == "simcse" or self.views > 1

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses that are worth comparing under it, its own first."""
        if not self.by_label:
            return ("SimCSE",) if self.kind == "simcse" else ("NT-Xent",)
        return {"out": ("L_out", "L_in"), "in": ("L_in", "L_out")}.get(self.kind, ("DSCL",))
