"""What is computed of a run after the fact, and kept beside it in its folder."""
