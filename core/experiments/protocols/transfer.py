"""Transfer: few rows of another domain, from an encoder that was fine-tuned on the first."""

from __future__ import annotations

from core.experiments.design import Axis, Level
from core.experiments.protocols.entry import Protocol
from core.experiments.protocols.few_shot import GUNEL
from core.messages import N_

TARGETS = {N_("Product reviews"): "product_reviews", N_("Venue reviews"): "venue_reviews"}
ROWS, STEPS = 20, 60
SOURCE = N_("Film reviews, CE")
SOURCE_SCL = N_("Film reviews, CE + SCL")

ENTRIES = (
    Protocol(
        "transfer",
        3,
        N_("Transfer"),
        N_("Does an encoder that was fine-tuned with contrast transfer better to a related task?"),
        GUNEL,
        lambda _: (
            Axis(
                name=N_("Target"),
                levels=tuple(Level(label=label, settings={"task.id": task}) for label, task in TARGETS.items()),
            ),
            Axis(
                # Translators: what training starts from.
                name=N_("Start"),
                levels=(
                    Level(label=N_("Pre-trained"), settings={"preset": "ce"}),
                    Level(label=SOURCE, settings={"preset": "ce", "start": SOURCE}),
                    Level(label=SOURCE_SCL, settings={"preset": "ce-scl", "start": SOURCE_SCL}),
                ),
            ),
        ),
        settings={"task.id": "film_reviews", "task.train_size": ROWS, "steps": STEPS},
        baseline={"Start": SOURCE},
        sources=(
            Level(label=SOURCE, settings={"preset": "ce", "task.train_size": None, "steps": 120}),
            Level(label=SOURCE_SCL, settings={"preset": "ce-scl", "task.train_size": None, "steps": 120}),
        ),
        differs=N_(
            "The paper fine-tunes RoBERTa-large on SST-2 and takes few rows of Amazon and Yelp reviews. Here an "
            "encoder learns film reviews for 120 steps, then 20 product or venue reviews with a new classifier, with "
            "the same objective both times."
        ),
    ),
)
