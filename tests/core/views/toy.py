"""A view from outside: the words of a text the other way round."""

from __future__ import annotations

from core.parameters import Parameter
from core.views.entry import ViewEntry

TOY = ViewEntry(
    name="backwards",
    label="Backwards",
    place=90,
    summary="The words the other way round.",
    source="made for a test",
    kind="text",
    text=lambda text, settings, rng: str(settings["between"]).join(reversed(text.split())),
    cost="Reading backwards comes on top.",
    parameters=(Parameter("between", "Between words", " | ", "What lies between.", kind="name"),),
)
