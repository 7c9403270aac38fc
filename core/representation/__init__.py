"""Measures, neighbours and maps of vectors: arrays in, numbers or points out.

May import: errors, parameters, quantities. Code that reads a run, or stores results with it, belongs in artifacts.
"""

from __future__ import annotations

from core.representation.metrics import representation_metrics
