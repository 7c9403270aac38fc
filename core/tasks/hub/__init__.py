"""Data sets of the Hugging Face Hub: a list of known ones, their location, and reading without running their code."""
