"""The probe set: the examples on the map, and the frames that record their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.advice.score_source import PROBE_ROWS
from core.config import TRAIN_POINTS_MAX, RunConfig
from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens as TextTokens
from core.events import TRAIN, VALIDATION, Evaluation, Event, FloatArray, Frame, Predictions, Probe, Tokens
from core.representation.geometry import geometry
from core.representation.neural_collapse import neural_collapse
from core.tasks import TaskData
from core.tasks.dataset import Input
from core.training.checkpoints import random_states, restore_random_states
from core.training.encode import Attention
from core.training.scores import LinearProbe, classification_scores, probe_scores, similarity_scores
from core.training.trainable import last_layer
from core.training.untrained import probe_rows, spread

# Number of validation texts whose dropout views are compared at every frame.
VIEWED = 16
# All frames compare the same draws of dropout, so that a curve over frames has no noise from them.
SEED = 0
# Maximum disk space for the attention of all frames, in bytes. Further examples have none.
ATTENTION_BYTES_MAX = 2**26
BYTES_PER_NUMBER = 2


class ProbeFrames:
    """The probe of one run: rows of the validation split, then some of the training split.

    Attributes:
        texts: texts encoded for a frame: the whole validation split, which is scored, then training rows.
        attended: indices into `texts` of the texts whose attention is stored.
        viewed: validation texts on the map whose dropout views are compared.
        fitting: training rows that a linear probe is fitted on.
    """

    def __init__(self, config: RunConfig, data: TaskData, encoder: Encoder, tokenizer: Tokenizer) -> None:
        self._validation = data.validation
        self._labels = data.validation.labels
        self._held_out = len(data.validation)
        self._train_rows = probe_rows(len(data.train), config.probe.train_size or 0)
        candidates = spread(range(len(data.train)), TRAIN_POINTS_MAX)
        more = max(0, min(PROBE_ROWS, len(candidates)) - len(self._train_rows))
        further_rows = spread([row for row in candidates if row not in set(self._train_rows)], more)
        train, further = data.train.take(self._train_rows), data.train.take(further_rows)
        self.fitting = data.train.take([*self._train_rows, *further_rows])
        size = config.probe.size or self._held_out
        self.texts = (*data.validation.inputs, *train.inputs)
        self._further = further.inputs
        self._classes = len(data.classes)
        # Indices into `texts` of the examples on the map.
        self._places = [*range(size), *range(self._held_out, len(self.texts))]
        self._size = size
        self.viewed = [self.texts[place] for place in spread(range(size), VIEWED)]
        # Cells of a surface are compared by their validation rows.
        self._predicted_at = config.steps if config.on_shared_trunk else None
        self.probe = Probe(
            tuple(range(len(self._places))),
            (*data.validation.display_texts[:size], *train.display_texts),
            (*data.validation.labels[:size], *train.labels),
            data.classes,
            (VALIDATION,) * size + (TRAIN,) * len(self._train_rows),
        )
        # A cell of a surface stores no attention.
        shown = () if config.on_shared_trunk else [self.texts[place] for place in self._places]
        words = (shown and tokenizer.words(shown)) or []
        # Number of leading texts whose attention in all frames fits.
        heads = len(encoder.blocks) * encoder.model.config.num_attention_heads
        per_token = BYTES_PER_NUMBER * heads * (len(config.probe.frame_steps or ()) or 1)
        sizes = np.cumsum([text.length * per_token for text in words])
        fitting = int(np.searchsorted(sizes, ATTENTION_BYTES_MAX, side="right"))
        self.tokens = Tokens(tuple(range(fitting)), tuple(words[:fitting]))
        self.attended = self._places[:fitting]

    def texts_of(self, *, by_probe: bool) -> tuple[Input, ...]:
        """Return the texts of a frame. A linear probe needs further training rows for its fit."""
        return (*self.texts, *self._further) if by_probe else self.texts

    def events(
        self,
        step: int,
        pooled: FloatArray,
        logits: FloatArray | None,
        attention: Attention | None,
        encoder: Encoder,
        agreement: Mapping[str, float],
    ) -> Iterator[Event]:
        """Yield the frame and the scores of the validation split, with the geometry of the validation rows on the map.

        Args:
            pooled: vectors of `texts_of`.
            logits: logits of the classifier for `texts`. If None, a linear probe is scored, and the frame holds its
                logits.
            encoder: has the classifier that computed the logits; it is left in evaluation mode.
            agreement: `view_agreement` of `viewed`, or nothing.
        """
        shown = self._labels[: self._size]
        features, weights, predicted = pooled[: self._size], None, None
        if logits is None:
            probe = self.fit_probe(pooled[self._held_out :])
            logits = probe.logits(pooled[: len(self.texts)])
            values = probe_scores(logits[: self._held_out], self._labels, probe.rows)
        else:
            values = classification_scores(logits[: self._held_out], self._labels)
            with torch.inference_mode():
                layer, inputs = last_layer(encoder.eval(), torch.from_numpy(features).to(encoder.model.device))
                features, weights = inputs.cpu().numpy(), layer.weight.cpu().numpy()
            predicted = logits[: self._size].argmax(1)
            if (alike := geometry(logits[: self._size], shown).get("within_cosine")) is not None:
                values["within_cosine_logits"] = alike
        yield Frame(step, pooled[self._places], logits[self._places], attention)
        values |= {name: value for name, value in agreement.items() if weights is not None or name == "view_cosine"}
        values |= similarity_scores(pooled[: self._held_out], self._validation)
        values |= geometry(pooled[: self._size], shown) | neural_collapse(features, shown, weights, predicted)
        yield Evaluation(step, VALIDATION, values)
        if step == self._predicted_at:
            yield Predictions(VALIDATION, logits[: self._held_out], self._labels)

    def fit_probe(self, vectors: FloatArray) -> LinearProbe:
        """Fit a linear probe on the vectors of `fitting`."""
        return LinearProbe(vectors, self.fitting.labels, self._classes)


def view_agreement(
    encoder: Encoder, learning: Sequence[nn.Module], texts: Sequence[TextTokens], autocast: torch.autocast
) -> dict[str, float]:
    """Compute the mean cosine between two passes over each text, with the dropout of a training step.

    The modes of all modules and torch's random states are restored, so that training is the same without this.

    Args:
        learning: the outermost trained modules; the others run without dropout.
        texts: N tokenised texts, at least one.
    Returns: "view_cosine" of the pooled vectors and "view_cosine_logits" of the logits, from −1 to 1. A vector of
        zeros has cosine 0.
    """
    modes = {module: module.training for module in encoder.modules()}
    states = random_states()
    encoder.eval()
    for module in learning:
        module.train()
    try:
        torch.manual_seed(SEED)
        with torch.inference_mode(), autocast:
            pooled = encoder.pooled([*texts, *texts])  # [2N, H]
            logits = encoder.logits(pooled)
    finally:
        restore_random_states(states)
        for module, mode in modes.items():
            module.training = mode
    return {"view_cosine": _mean_cosine(pooled), "view_cosine_logits": _mean_cosine(logits)}


def _mean_cosine(both: Tensor) -> float:
    """Return the mean cosine of the rows of the first half [N, d] with those of the second."""
    first, second = both.float().chunk(2)
    return float(F.cosine_similarity(first, second).mean())
