"""The probe set: the examples on the map, and the frames that record their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from core.config import RunConfig
from core.config.score_source import PROBE_ROWS
from core.encoders.model import Encoder, Tokenizer
from core.events import TRAIN, VALIDATION, Evaluation, Event, FloatArray, Frame, Predictions, Probe, Tokens, TokenText
from core.representation.geometry import geometry
from core.representation.neural_collapse import neural_collapse
from core.tasks import TaskData
from core.tasks.dataset import Input
from core.training.encode import Attention
from core.training.scores import LinearProbe, classification_scores, probe_scores, similarity_scores
from core.training.trainable import last_layer
from core.training.untrained import candidate_rows, probe_rows, spread

# Number of validation texts whose dropout views are compared at every frame.
VIEWED = 16
# Maximum disk space for the attention of all frames, in bytes. Further examples have none.
ATTENTION_BYTES_MAX = 2**26
BYTES_PER_NUMBER = 2


class ProbeFrames:
    """The probe of one run: rows of the validation split, then some of the training split.

    Attributes:
        texts: texts encoded for a frame: the whole validation split, which is scored, then training rows.
        attended: indices into `texts` of the texts whose attention is stored.
        viewed: validation texts on the map whose dropout views are compared.
    """

    def __init__(self, config: RunConfig, data: TaskData, encoder: Encoder, tokenizer: Tokenizer) -> None:
        self._validation = data.validation
        self._labels = data.validation.labels
        self._held_out = len(data.validation)
        self._train_rows = probe_rows(len(data.train), config.probe.train_size or 0)
        candidates = candidate_rows(len(data.train))
        more = max(0, min(PROBE_ROWS, len(candidates)) - len(self._train_rows))
        further_rows = spread([row for row in candidates if row not in set(self._train_rows)], more)
        train, further = data.train.take(self._train_rows), data.train.take(further_rows)
        self._fitting = data.train.take([*self._train_rows, *further_rows])
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
        fitting = _fitting(words, len(config.probe.frame_steps or ()) or 1, encoder)
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

    @property
    def fitting_texts(self) -> tuple[Input, ...]:
        """Return the training texts that a linear probe is fitted on."""
        return self._fitting.inputs

    def fit_probe(self, vectors: FloatArray) -> LinearProbe:
        """Fit a linear probe on the vectors of `fitting_texts`."""
        return LinearProbe(vectors, self._fitting.labels, self._classes)


def _fitting(words: Sequence[TokenText], frames: int, encoder: Encoder) -> int:
    """Return the number of leading texts whose attention is stored in all frames."""
    per_token = BYTES_PER_NUMBER * len(encoder.blocks) * encoder.model.config.num_attention_heads * frames
    sizes = np.cumsum([text.length * per_token for text in words])
    return int(np.searchsorted(sizes, ATTENTION_BYTES_MAX, side="right"))
