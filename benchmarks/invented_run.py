"""A finished run of synthetic values, stored as by a worker, for benchmarks of pages."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig, parse_config
from core.events import Frame, Probe, Started, Step, Tokens, TokenText, Word
from core.store import Status, Store
from core.tasks import TaskData, load_task

# Drift of values from frame to frame. Vectors and map positions start with a standard deviation of 1.
DRIFT = 0.02
# As in the bundled encoder.
BLOCKS, HEADS = 6, 12
MEASURES = (
    *("loss", "grad_norm", "loss.cross_entropy", "loss.supcon", "shared_grad.cross_entropy", "shared_grad.supcon"),
    *("shared_cosine", "shared_block", "learning_rate", "lambda", "temperature"),
    *("collapse_line.supcon", "lower_bound.supcon", "step_s", "tokens"),
)


def make_run(
    store: Store, name: str, steps: int, frames: int, points: int, width: int = 384, *, attention: bool = False
) -> str:
    """Store a finished run with evenly spaced frames, and attention if requested. Returns: its id."""
    rng = np.random.default_rng(steps)
    frame_steps = sorted({int(step) for step in np.linspace(0, steps, frames)})
    draft = {"name": name, "phases": [{"steps": steps}], "probe": {"size": points, "frame_steps": frame_steps}}
    config = parse_config(draft)
    run_id = store.create(config)
    claim = store.claim_next([0])
    assert claim is not None
    attempt = store.attempt(run_id, claim[1])
    started = _started(config, load_task(config.task, config.seed), points)
    attempt.record_start(started)
    tokens = _tokens(started.probe) if attention else Tokens((), ())
    if attention:
        attempt.tokens(tokens)
    attempt.steps([Step(step, _measures(rng)) for step in range(1, steps + 1)])
    vectors = rng.standard_normal((points, width), np.float32)
    logits = rng.standard_normal((points, 2), np.float32)
    places = rng.standard_normal((points, 2), np.float32)
    for step in frame_steps:
        for numbers in (vectors, logits, places):
            np.add(numbers, DRIFT * rng.standard_normal(numbers.shape, np.float32), out=numbers)
        attempt.frame(Frame(step, vectors, logits, _attention(tokens, rng) if attention else None), places)
        attempt.evaluation(step, "validation", _scores(0.8))
    attempt.evaluation(0, "baseline", _scores(0.7))
    attempt.evaluation(steps, "test", _scores(0.8))
    attempt.end(Status.FINISHED)
    return run_id


def _started(config: RunConfig, data: TaskData, points: int) -> Started:
    rows = [i % len(data.train) for i in range(points)]
    split = data.train.take(rows)
    probe = Probe(tuple(range(points)), split.texts, split.labels, data.classes)
    return Started(0, config.steps, "cpu", probe, {"majority_rate": 0.5, "steps_per_epoch": 17})


def _measures(rng: np.random.Generator) -> dict[str, float]:
    """Values of one step, under the training loop's names."""
    return dict(zip(MEASURES, rng.uniform(0.1, 1.0, len(MEASURES)).tolist(), strict=True))


def _scores(accuracy: float) -> dict[str, float]:
    bounds = {"accuracy": accuracy, "accuracy_low": accuracy - 0.02, "accuracy_high": accuracy + 0.02}
    return bounds | {"macro_f1": accuracy, "cross_entropy": 0.5, "mean_cosine": 0.3, "effective_rank": 20.0}


def _tokens(probe: Probe) -> Tokens:
    """Tokens of every text: its words between two special tokens."""
    texts = []
    for text in probe.texts:
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        words = tuple(Word(0, start, end, (place,)) for place, (start, end) in enumerate(spans, 1))
        texts.append(TokenText((text,), words, len(words) + 2))
    return Tokens(tuple(range(len(texts))), tuple(texts))


def _attention(tokens: Tokens, rng: np.random.Generator) -> NDArray[np.float16]:
    """[L, heads, tokens]; the row of each text sums to 1."""
    rows = [rng.dirichlet(np.ones(text.length), (BLOCKS, HEADS)) for text in tokens.texts]
    found: NDArray[np.float16] = np.concatenate(rows, axis=2).astype(np.float16)
    return found
