"""The glossary: one sentence, one formula and one picture for each term that the app explains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.messages import N_

PICTURES = Path(__file__).resolve().parents[1] / "static" / "glossary"


@dataclass(frozen=True, slots=True)
class Term:
    """A term, with a sentence in Markdown, a formula in LaTeX, and alternative text for its picture."""

    name: str
    title: str
    sentence: str
    formula: str
    picture: str

    @property
    def path(self) -> Path:
        """Path of the picture, an SVG."""
        return PICTURES / f"{self.name}.svg"


GLOSSARY = {
    term.name: term
    for term in (
        Term(
            "encoder",
            N_("Encoder"),
            N_("A network that maps a text to a vector; similar texts get vectors that lie close together."),
            r"z = f_\theta(x), \quad z \in \mathbb{R}^d",
            N_("A text with an arrow into three blocks, and an arrow from the blocks to a column of numbers."),
        ),
        Term(
            "fine_tuning",
            N_("Fine-tuning"),
            N_("Training a pre-trained encoder further on the few texts of one task."),
            r"\theta \leftarrow \theta - \eta \, \nabla_\theta L",
            N_("Points of two colours: mixed, then, after an arrow, in two groups."),
        ),
        Term(
            "batch",
            N_("Batch"),
            N_("The texts of one training step; a contrastive loss compares a text only with others of its batch."),
            r"B = \{\, x_1, \dots, x_N \,\}",
            N_("Rows of texts, two of them in a frame."),
        ),
        Term(
            "dropout",
            N_("Dropout"),
            N_("Sets random entries inside the encoder to zero, different ones at every training pass."),
            r"h'_k = \frac{m_k}{1 - p} \, h_k, \quad m_k \sim \mathrm{Bernoulli}(1 - p)",
            N_("Two columns of points joined by lines; two points are empty and have no lines."),
        ),
        Term(
            "cosine_similarity",
            N_("Cosine similarity"),
            N_(
                "Similarity of the directions of two vectors: 1 for the same, 0 for a right angle, −1 for opposite "
                "directions."
            ),
            r"s_{ij} = \frac{z_i \cdot z_j}{\lVert z_i \rVert \, \lVert z_j \rVert}",
            N_("Two arrows from the origin to a circle, with the angle between them marked."),
        ),
        Term(
            "softmax",
            N_("Softmax"),
            N_(
                "Turns numbers into probabilities: all are positive, they sum to 1, and the largest number gets "
                "the most."
            ),
            r"p_i = \frac{e^{s_i}}{\sum_a e^{s_a}}",
            N_("Bars above and below a line; after an arrow, bars that all stand on a line."),
        ),
        Term(
            "nat",
            N_("Nat"),
            N_("Unit of a natural logarithm: a loss of 1 nat corresponds to a probability of 1/e, about 37%."),
            r"-\ln p = 1\,\mathrm{nat} \iff p = 1/e",
            N_("A curve that falls to zero, with dashed lines to one of its points."),
        ),
        Term(
            "contrastive_loss",
            N_("Contrastive loss (SCL)"),
            N_(
                "A loss that is low if texts with the same label lie close together and others far away: it "
                "pulls positives and pushes negatives."
            ),
            r"L_i = -\frac{1}{|P(i)|} \sum_{p \in P(i)} \ln \frac{e^{s_{ip}/\tau}}{\sum_{a \ne i} e^{s_{ia}/\tau}}",
            N_("A ringed point that attracts two points of its colour and repels two of another colour."),
        ),
        Term(
            "anchor",
            N_("Anchor"),
            N_("The text whose loss is computed; every text of a batch is an anchor once."),
            r"L = \frac{1}{|A|} \sum_{i \in A} L_i",
            N_("A ringed point among others."),
        ),
        Term(
            "positive",
            N_("Positive"),
            N_(
                "A text of the batch that the anchor should be close to: one with the same label, or another view "
                "of the anchor."
            ),
            r"P(i) = \{\, j \ne i : y_j = y_i \,\}",
            N_("A ringed point with arrows to points of its colour."),
        ),
        Term(
            "negative",
            N_("Negative"),
            N_(
                "A text of the batch that the anchor should be far from; a *hard* one lies close to it anyway (not "
                "the label “negative” of a film review)."
            ),
            r"N(i) = \{\, j : y_j \ne y_i \,\}",
            N_("Points of another colour with arrows away from a ringed point; the nearest has the thickest arrow."),
        ),
        Term(
            "view",
            N_("View"),
            N_(
                "One version of a text, with its own dropout mask or its own changed words; two views of a text "
                "are positives."
            ),
            r"z_i = f(x_i, \xi), \quad z'_i = f(x_i, \xi')",
            N_("One text with arrows to two points that lie close together."),
        ),
        Term(
            "temperature",
            N_("Temperature τ"),
            N_(
                "Divides every similarity before the softmax: the lower τ is, the more the loss depends on the "
                "nearest texts alone."
            ),
            r"p_{ij} = \frac{e^{s_{ij}/\tau}}{\sum_{a \ne i} e^{s_{ia}/\tau}}",
            N_("Five similarities as bars: nearly equal at a high temperature, one tall bar at a low temperature."),
        ),
        Term(
            "weight",
            N_("Weight λ"),
            N_("Weight of the contrastive loss in the objective; cross-entropy gets the rest, 1 − λ."),
            r"L = (1 - \lambda)\, L_{CE} + \lambda\, L_{SCL}",
            N_("A bar in two parts."),
        ),
        Term(
            "l_out",
            "L_out",
            N_(
                "Takes the mean over positives outside the logarithm, so the loss is lowest when all positives have "
                "the same probability."
            ),
            r"L_{out} = -\frac{1}{|P|} \sum_{p \in P} \ln p_{ip}",
            N_("Near and far positives pull a ringed point; the far one pulls hardest."),
        ),
        Term(
            "l_in",
            "L_in",
            N_("Takes the mean inside the logarithm: near positives pull most, and far ones are left behind."),
            r"L_{in} = -\ln \frac{1}{|P|} \sum_{p \in P} p_{ip}",
            N_("Near and far positives pull a ringed point; the near one pulls hardest."),
        ),
        Term(
            "effective_negatives",
            N_("Effective negatives"),
            N_(
                "Number of negatives that share the push: 1 if a single one does all the pushing, all of them if "
                "they push equally."
            ),
            r"\exp\!\big({-\textstyle\sum_{j \in N}} q_j \ln q_j\big), \quad q_j = p_{ij} / \textstyle\sum_{N} p_{ia}",
            N_("Eight bars, two of them tall and six low."),
        ),
        Term(
            "collapse",
            N_("Collapse"),
            N_("All vectors have become the same, so texts cannot be told apart and the gradient almost vanishes."),
            r"z_1 = z_2 = \dots = z_M",
            N_("Points of two colours on one spot."),
        ),
        Term(
            "collapse_line",
            N_("Collapse line"),
            N_(
                "The contrastive loss of identical vectors, for any τ: a loss that stays here may mean a collapse, "
                "so check whether the vectors are still spread out."
            ),
            r"L = \ln(M - 1)",
            N_("A curve that ends on a dashed line."),
        ),
        Term(
            "lower_bound",
            N_("Lower bound"),
            N_(
                "The lowest possible value of L_out: all positives coincide with the anchor and share the whole "
                "probability."
            ),
            r"L_{out} \ge \frac{1}{|A|} \sum_{i \in A} \ln |P(i)|",
            N_("A curve that falls from a dashed line towards a dotted one."),
        ),
        Term(
            "alignment",
            N_("Alignment"),
            N_("Mean squared distance between two texts of one class: the lower, the tighter the classes."),
            r"\frac{1}{|\mathcal{P}|} \sum_{(i,j) \in \mathcal{P}} \lVert z_i - z_j \rVert^2",
            N_("Lines between the points of each of two classes."),
        ),
        Term(
            "uniformity",
            N_("Uniformity"),
            N_("Spread of all texts over the sphere: lower values mean a more even spread."),
            r"\ln \frac{2}{N(N-1)} \sum_{i<j} e^{-2 \lVert z_i - z_j \rVert^2}",
            N_("Points spread evenly around a circle."),
        ),
        Term(
            "effective_rank",
            N_("Effective rank"),
            N_("Number of directions that the vectors effectively use, out of all their dimensions."),
            r"\exp\!\big({-\textstyle\sum_k} s_k \ln s_k\big), \quad s_k = \sigma_k / \textstyle\sum_l \sigma_l",
            N_("A cloud of points, long in one direction and thin in the other."),
        ),
        Term(
            "kl",
            N_("Disagreement (KL)"),
            N_("Symmetric KL divergence between two predictions for one text, which R-Drop minimises."),
            r"\tfrac{1}{2}\,[\,KL(p \,\|\, q) + KL(q \,\|\, p)\,]",
            N_("Two pairs of slightly different bars."),
        ),
        Term(
            "linear_probe",
            N_("Linear probe"),
            N_("A logistic regression on fixed vectors: its score shows what the vectors already contain."),
            r"\hat{y} = \arg\max_c \; w_c \cdot z + b_c",
            N_("Two classes of points separated by a straight line."),
        ),
        Term(
            "attention",
            N_("Attention of [CLS]"),
            N_(
                "The contribution of each token to the new vector of [CLS] in one block: it shows where "
                "information comes from, not how much it changes the prediction."
            ),
            r"a_j = \mathrm{softmax}_j \frac{q_{CLS} \cdot k_j}{\sqrt{d}}",
            N_("Lines of different thickness from one square to a row of five."),
        ),
    )
}

# Words of the app, which need no formula.
WORDS = {
    N_("Run"): N_(
        "Fine-tuning an encoder once, with fixed settings and one seed; stored with its curves, frames and weights."
    ),
    N_("Step"): N_("One update of the weights, computed on one batch."),
    N_("Phase"): N_(
        "A part of a run with its own objective, number of steps, learning rate and choice of weights to train."
    ),
    N_("Term"): N_("One weighted loss of an objective."),
    N_("Preset"): N_("An objective with a name and its usual settings."),
    N_("Knob"): N_("A setting that can be changed during a run, such as λ, τ or the learning rate."),
    N_("Frame"): N_("Vectors, predictions and attention of the examples on the map at one step."),
    N_("Probe set"): N_("The validation and training texts that every frame encodes and the map shows."),
    N_("Map"): N_("The vectors of a frame, projected to two or three dimensions."),
    N_("Checkpoint"): N_("Everything needed to resume a run: weights, optimiser and random states."),
    N_("Snapshot"): N_("The weights of an earlier step, stored in half precision."),
    N_("Twin"): N_("A run that differs from another in one setting or in the seed."),
    N_("Experiment"): N_("Runs of several settings under the same seeds, compared by paired statistics."),
    N_("Cell"): N_("One combination of settings in an experiment, with a run per seed."),
    N_("Protocol"): N_("An experiment described by a paper or by the project's notes, with its published figures."),
    N_("Replay"): N_("A run without weights, as a file that others can import."),
}


def as_markdown() -> str:
    """Return the glossary as a Markdown page, in English."""
    parts = ["# Glossary", "", "Generated by `make glossary`. The app shows these cards where it uses a term."]
    for term in GLOSSARY.values():
        parts += ["", f"## {term.title}", "", term.sentence, "", f"$${term.formula}$$"]
    parts += ["", "## Words of the app", ""]
    parts += [f"- **{word}**: {meaning}" for word, meaning in WORDS.items()]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(as_markdown(), end="")
