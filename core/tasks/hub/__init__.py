"""Data sets of the Hugging Face Hub: which are known, where they are, and reading them without running their code."""
