"""Answers to questions to the lab; both are JSON text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from core.config.fields import build
from core.errors import ConfigError
from core.lab.choices import FARTHEST, CurrentVectors, Move, Question, Stage
from core.lab.dynamics import Moment, Vectors, first_vectors, logits_at, play
from core.lab.layouts import Array, on_space, simplex_corners, start_of, width

# Decimals of values that are only drawn, and of values from which the next steps continue.
DRAWN_DIGITS, KEPT_DIGITS = 5, 9


def answer(text: str) -> str:
    """Answer a question. Raises: ConfigError for an invalid one."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("question", text[:40], "give a JSON object.") from error
    asked = build(Question, given)
    start = start_of(asked.stage)
    simplex, panels = asked.stage.space == "simplex", []
    for number, setting in enumerate(asked.settings):
        vectors = first_vectors(asked.stage, setting, start)
        if asked.held is not None:
            vectors = _restore_vectors(asked.held[number], vectors)
        for move in asked.moves:
            _move(vectors, move, asked.stage)
        played = play(asked.stage, setting, vectors, asked.steps, asked.anchor)
        moments = [_moment(one, simplex) for one in played.moments]
        lines = {"collapse": played.collapse, "bound": played.bound, "exploded": played.exploded}
        panels.append({"moments": moments, **lines})
    found = {
        "labels": start.labels.tolist(),
        "corners": _rounded(simplex_corners(asked.stage.classes)) if simplex else None,
        "panels": panels,
    }
    return json.dumps(found, separators=(",", ":"))


def _restore_vectors(held: CurrentVectors, like: Vectors) -> Vectors:
    """Return the held vectors as arrays. Raises: ConfigError for another shape, or values beyond FARTHEST."""
    points = _array("held.points", held.points, like.points.shape)
    if like.class_vectors is None:
        return Vectors(points, None)
    if held.class_vectors is None:  # there was no classifier before
        return Vectors(points, like.class_vectors)
    return Vectors(points, _array("held.class_vectors", held.class_vectors, like.class_vectors.shape))


def _array(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    try:
        found = np.array(given, dtype=np.float64)
    except ValueError:
        found = np.zeros(0)
    if found.shape != shape or not (np.abs(found) <= FARTHEST).all():
        raise ConfigError(name, f"{found.shape}", "give numbers of shape {shape}.", shape=str(shape))
    return found


def _move(vectors: Vectors, move: Move, stage: Stage) -> None:
    if move.view >= vectors.points.shape[1]:
        return
    place = np.array(move.to)
    if len(place) != (2 if stage.space == "simplex" and stage.classes < 4 else min(3, width(stage))):
        raise ConfigError("moves", move.to, "give one number per dimension.")
    if stage.space != "simplex" and not np.linalg.norm(place) > 0:
        raise ConfigError("moves", move.to, "give a position other than the origin.")
    to = logits_at(place, stage.classes) if stage.space == "simplex" else on_space(place, stage.space)
    vectors.points[move.text, move.view] = to


def _moment(moment: Moment, simplex: bool) -> dict[str, Any]:
    return {
        "points": _rounded(moment.vectors.points, KEPT_DIGITS),
        # In other spaces, points are drawn at their vectors.
        "places": _rounded(moment.places) if simplex else None,
        "arrows": _rounded(moment.arrows, DRAWN_DIGITS + 2),
        "class_vectors": None
        if moment.vectors.class_vectors is None
        else _rounded(moment.vectors.class_vectors, KEPT_DIGITS),
        "loss": _short(moment.loss),
        "parts": {name: _short(value) for name, value in moment.parts.items()},
        "norm": _short(moment.gradient_norm),
        "alignment": None if moment.alignment is None else _short(moment.alignment),
        "uniformity": None if moment.uniformity is None else _short(moment.uniformity),
        # Each pull: [is a class, number, view, coefficient, is related, share].
        "pulls": [
            [int(p.kind == "class"), p.number, p.view, _short(p.coefficient), int(p.related), _short(p.share)]
            for p in moment.pulls
        ],
    }


def _rounded(values: Array, digits: int = DRAWN_DIGITS) -> Any:
    return np.round(values, digits).tolist()


def _short(value: float) -> float:
    return float(f"{value:.6g}")
