"""Transfer: few rows of another domain, from an encoder that was fine-tuned on the first."""

from __future__ import annotations

from core.experiments.design import Axis, Level
from core.experiments.protocols.entry import Protocol
from core.experiments.protocols.few_shot import GUNEL

TARGETS = {"Product reviews": "product_reviews", "Venue reviews": "venue_reviews"}
ROWS, STEPS = 20, 60
SOURCE = "Film reviews, CE"
SOURCE_SCL = "Film reviews, CE + SCL"

ENTRIES = (
    Protocol(
        "transfer",
        3,
        "Transfer",
        "Does an encoder that was fine-tuned with contrast transfer better to a related task?",
        GUNEL,
        lambda _: (
            Axis(
                name="Target",
                levels=tuple(Level(label=label, settings={"task.id": task}) for label, task in TARGETS.items()),
            ),
            Axis(
                name="Start",
                levels=(
                    Level(label="Pre-trained", settings={"preset": "ce"}),
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
        differs="The paper fine-tunes RoBERTa-large on SST-2 and takes few rows of Amazon and Yelp reviews. Here an "
        "encoder learns film reviews for 120 steps, then 20 product or venue reviews with a new classifier, with the "
        "same objective both times.",
    ),
)
