"""Views that change nothing on the way in: another pass, another mask, other layers. Training draws them itself."""

from __future__ import annotations

from core.messages import N_
from core.parameters import Parameter
from core.views.entry import ViewEntry, rate_parameter

ENTRIES = (
    ViewEntry(
        name="dropout",
        label=N_("Second dropout pass"),
        summary=N_("The encoder reads the text once more, with other dropout masks."),
        source=N_("SimCSE: Gao et al. 2021, arXiv:2104.08821; R-Drop two-stage"),
        kind="pass",
        place=0,
    ),
    ViewEntry(
        name="head_dropout",
        label=N_("Head dropout"),
        summary=N_("One encoder pass; two dropout masks on the pooled vector."),
        source=N_("R-Drop one-stage, from the notes"),
        kind="head",
        parameters=(
            rate_parameter(
                0.1,
                N_("The share of the pooled vector's entries that a mask drops; losses on logits take the head's own."),
            ),
        ),
        place=1,
    ),
    ViewEntry(
        name="layers",
        label=N_("Layers as views"),
        summary=N_("The pooled vectors of other blocks as further views in one loss."),
        source=N_("the multi-view notes"),
        kind="layers",
        parameters=(
            Parameter(
                "layers", N_("Layers"), "every_third", N_("Blocks that are views beside the last one."), kind="layers"
            ),
        ),
        others_compute=N_("Not the same as one loss per layer, which is the term's own setting Layers."),
        place=2,
    ),
)
