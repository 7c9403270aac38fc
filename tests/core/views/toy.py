"""A view defined outside `core`: the words of a text in reverse order."""

from __future__ import annotations

from numpy.random import Generator

from core.catalogue.loss_entry import Settings
from core.catalogue.views import ViewEntry
from core.parameters import Parameter


def backwards(text: str, settings: Settings, rng: Generator) -> str:
    return str(settings["between"]).join(reversed(text.split()))


TOY = ViewEntry(
    name="backwards",
    label="Backwards",
    summary="The words the other way round.",
    source="made for a test",
    kind="text",
    text="tests.core.views.toy:backwards",
    cost="Reading backwards comes on top.",
    parameters=(Parameter("between", "Between words", " | ", "What lies between.", kind="name"),),
)
