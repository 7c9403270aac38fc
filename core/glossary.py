"""The glossary of terms that the app explains where it uses them: one sentence, one formula and one picture each."""

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
            N_("A network that turns a text into a vector: texts it considers similar lie close together."),
            r"z = f_\theta(x), \quad z \in \mathbb{R}^d",
            N_("A text with an arrow into three blocks, and an arrow from these to a column of numbers."),
        ),
        Term(
            "fine_tuning",
            N_("Fine-tuning"),
            N_("Training a pre-trained encoder further, on the few texts of one task."),
            r"\theta \leftarrow \theta - \eta \, \nabla_\theta L",
            N_("Points of two colours, first mixed, then behind an arrow in two groups."),
        ),
        Term(
            "batch",
            N_("Batch"),
            N_("The texts that are read in one step: a text is compared with those of its batch alone."),
            r"B = \{\, x_1, \dots, x_N \,\}",
            N_("Rows of texts of which a frame holds two."),
        ),
        Term(
            "dropout",
            N_("Dropout"),
            N_("Sets some numbers inside the encoder to zero, drawn again at every reading while it is trained."),
            r"h'_k = \frac{m_k}{1 - p} \, h_k, \quad m_k \sim \mathrm{Bernoulli}(1 - p)",
            N_("Two columns of points joined by lines; two points are empty, and no line leads to these."),
        ),
        Term(
            "cosine_similarity",
            N_("Cosine similarity"),
            N_(
                "How alike the directions of two vectors are: 1 for the same, 0 at a right angle, −1 for opposite ones."
            ),
            r"s_{ij} = \frac{z_i \cdot z_j}{\lVert z_i \rVert \, \lVert z_j \rVert}",
            N_("Two arrows from one place to a circle, with the angle between them marked."),
        ),
        Term(
            "softmax",
            N_("Softmax"),
            N_(
                "Turns any numbers into shares: all are above zero, together they are 1, and the largest gets the most."
            ),
            r"p_i = \frac{e^{s_i}}{\sum_a e^{s_a}}",
            N_("Bars above and below a line, and behind an arrow bars that all stand on a line."),
        ),
        Term(
            "nat",
            N_("Nat"),
            N_("The unit of a loss that is a natural logarithm: a share of 1/e, about 37%, costs 1 nat."),
            r"-\ln p = 1\,\mathrm{nat} \iff p = 1/e",
            N_("A curve that falls to zero, with dashed lines to one point of it."),
        ),
        Term(
            "contrastive_loss",
            N_("Contrastive loss (SCL)"),
            N_("Is low where texts with one label lie near each other and the others far away: it pulls and pushes."),
            r"L_i = -\frac{1}{|P(i)|} \sum_{p \in P(i)} \ln \frac{e^{s_{ip}/\tau}}{\sum_{a \ne i} e^{s_{ia}/\tau}}",
            N_("A ringed point that two of its colour are drawn to, and two of another colour that are pushed away."),
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
            N_("A text of the batch that the anchor should be near: one with its label, or another view of it."),
            r"P(i) = \{\, j \ne i : y_j = y_i \,\}",
            N_("A ringed point with arrows to the points of its colour."),
        ),
        Term(
            "negative",
            N_("Negative"),
            N_(
                "A text of the batch that the anchor should be far from; a *hard* one lies near it all the same (not "
                "the label “negative” of a film review)."
            ),
            r"N(i) = \{\, j : y_j \ne y_i \,\}",
            N_("Points of another colour with arrows away from a ringed point; the nearest has the thickest."),
        ),
        Term(
            "view",
            N_("View"),
            N_(
                "One reading of a text, with its own dropout or its own changed words: two views of a text are "
                "positives."
            ),
            r"z_i = f(x_i, \xi), \quad z'_i = f(x_i, \xi')",
            N_("One text from which two arrows lead to two points that lie close together."),
        ),
        Term(
            "temperature",
            N_("Temperature τ"),
            N_("Divides every similarity before the softmax: the lower it is, the more the nearest texts alone count."),
            r"p_{ij} = \frac{e^{s_{ij}/\tau}}{\sum_{a \ne i} e^{s_{ia}/\tau}}",
            N_(
                "The same five similarities as bars, nearly level at a high and with one tall bar at a low temperature."
            ),
        ),
        Term(
            "weight",
            N_("Weight λ"),
            N_("The share of the contrastive loss in the objective; the rest is cross-entropy."),
            r"L = (1 - \lambda)\, L_{CE} + \lambda\, L_{SCL}",
            N_("A bar in two parts."),
        ),
        Term(
            "l_out",
            "L_out",
            N_(
                "Takes the mean over positives outside the logarithm, so that every positive should get the same share."
            ),
            r"L_{out} = -\frac{1}{|P|} \sum_{p \in P} \ln p_{ip}",
            N_("Positives near and far that pull a ringed point; the far one pulls hardest."),
        ),
        Term(
            "l_in",
            "L_in",
            N_(
                "Takes the mean inside the logarithm: positives that are near already pull most, far ones are left "
                "behind."
            ),
            r"L_{in} = -\ln \frac{1}{|P|} \sum_{p \in P} p_{ip}",
            N_("Positives near and far that pull a ringed point; the near one pulls hardest."),
        ),
        Term(
            "effective_negatives",
            N_("Effective negatives"),
            N_("How many negatives would push as much if they all pushed alike: from 1 to the number that there are."),
            r"\exp\!\big({-\textstyle\sum_{j \in N}} q_j \ln q_j\big), \quad q_j = p_{ij} / \textstyle\sum_{N} p_{ia}",
            N_("Eight bars of which two are tall and six are low."),
        ),
        Term(
            "collapse",
            N_("Collapse"),
            N_("All vectors have become one: texts can no longer be distinguished, and hardly any gradient is left."),
            r"z_1 = z_2 = \dots = z_M",
            N_("Points of two colours that lie on one place."),
        ),
        Term(
            "collapse_line",
            N_("Collapse line"),
            N_(
                "The contrastive loss of vectors that are all alike, whatever τ is: a loss that stays here may mean a "
                "collapse; look whether the vectors are still spread out."
            ),
            r"L = \ln(M - 1)",
            N_("A curve that ends on a dashed line."),
        ),
        Term(
            "lower_bound",
            N_("Lower bound"),
            N_("The lowest that L_out can be: all positives of an anchor lie on it, and share what there is."),
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
            N_("How evenly all texts are spread over the sphere: the lower, the more evenly."),
            r"\ln \frac{2}{N(N-1)} \sum_{i<j} e^{-2 \lVert z_i - z_j \rVert^2}",
            N_("Points spread evenly around a circle."),
        ),
        Term(
            "effective_rank",
            N_("Effective rank"),
            N_("How many directions the vectors really use, however many numbers each has."),
            r"\exp\!\big({-\textstyle\sum_k} s_k \ln s_k\big), \quad s_k = \sigma_k / \textstyle\sum_l \sigma_l",
            N_("A cloud of points that is long in one direction and thin in the other."),
        ),
        Term(
            "kl",
            N_("Disagreement (KL)"),
            N_("How far two answers to one text are apart, both ways; R-Drop makes it small."),
            r"\tfrac{1}{2}\,[\,KL(p \,\|\, q) + KL(q \,\|\, p)\,]",
            N_("Two pairs of bars that differ a little."),
        ),
        Term(
            "linear_probe",
            N_("Linear probe"),
            N_("A logistic regression on vectors that nobody changes any more: what it can say is in the vectors."),
            r"\hat{y} = \arg\max_c \; w_c \cdot z + b_c",
            N_("Two classes of points with a straight line between them."),
        ),
        Term(
            "attention",
            N_("Attention of [CLS]"),
            N_(
                "How much of each token's vector goes into that of [CLS] in one block; it says where from, not what "
                "for."
            ),
            r"a_j = \mathrm{softmax}_j \frac{q_{CLS} \cdot k_j}{\sqrt{d}}",
            N_("Lines of different thickness from one square to a row of five."),
        ),
    )
}
