"""Measures, neighbours and maps of vectors: arrays in, numbers or points out.

May import: errors, parameters, quantities. What reads a run, or keeps something beside it, belongs to artifacts.
"""

from __future__ import annotations

from core.representation.metrics import representation_metrics

__all__ = ["representation_metrics"]
