"""Views that change nothing on the way in: another pass, another mask, other layers. Training draws them itself."""

from __future__ import annotations

from core.parameters import Parameter
from core.views.entry import ViewEntry, rate_parameter

ENTRIES = (
    ViewEntry(
        name="dropout",
        label="Second dropout pass",
        summary="The encoder reads the text once more, with other dropout masks.",
        source="SimCSE: Gao et al. 2021, arXiv:2104.08821; R-Drop two-stage",
        kind="pass",
        place=0,
    ),
    ViewEntry(
        name="head_dropout",
        label="Head dropout",
        summary="One encoder pass; two dropout masks on the pooled vector.",
        source="R-Drop one-stage, from the notes",
        kind="head",
        parameters=(
            rate_parameter(0.1, "the pooled vector's entries that a mask drops; losses on logits take the head's own"),
        ),
        place=1,
    ),
    ViewEntry(
        name="layers",
        label="Layers as views",
        summary="The pooled vectors of other blocks as further views in one loss.",
        source="the multi-view notes",
        kind="layers",
        parameters=(
            Parameter("layers", "Layers", "every_third", "Blocks that are views beside the last one.", kind="layers"),
        ),
        others_compute="Not the same as one loss per layer, which is the term's own setting Layers.",
        place=2,
    ),
)
