"""Experiments: seeds, grids and the protocols of the papers, with paired statistics."""

from __future__ import annotations

from core.errors import PlaygroundError
from core.experiments.protocols.registry import PROTOCOLS
from core.messages import _
from pages.ui import reads, state
from pages.ui.address import Experiments
from pages.ui.controls import show_notice
from pages.ui.experiments.listing import listing
from pages.ui.experiments.reads import open_experiments
from pages.ui.experiments.set_up import GRID, set_up
from pages.ui.experiments.view import experiment_view
from pages.ui.parts import page_head
from pages.ui.undo import offer_undo_of_experiments


def page() -> None:
    engine = reads.open_engine()
    head = page_head(_("Experiments"))
    table = open_experiments(engine).table
    table.purge_discarded()
    text = Experiments.EXPERIMENT.text
    if text is not None:
        try:
            experiment_id = table.find(text)
        except PlaygroundError:
            state.complain(Experiments.EXPERIMENT.name, text, Experiments.EXPERIMENT.problem)
            Experiments.EXPERIMENT.forget()
        else:
            experiment_view(engine, experiment_id, head)
            return
    name = Experiments.NEW.text
    if name == GRID or name in PROTOCOLS:
        set_up(engine, str(name), head)
        return
    if name is not None:
        state.complain(Experiments.NEW.name, name, Experiments.NEW.problem)
        Experiments.NEW.forget()
    show_notice()
    offer_undo_of_experiments(table)
    listing(engine)


state.require_app()
page()
