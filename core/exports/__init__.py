"""Export formats of a run."""
