"""Measures and maps of vectors. Functions take arrays, not runs."""
