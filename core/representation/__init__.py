"""Measures and maps of vectors. Functions take arrays, not runs."""

from __future__ import annotations

from core.representation.metrics import representation_metrics

__all__ = ["representation_metrics"]
