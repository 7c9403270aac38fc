"""Pieces of the page of experiments: what there is, how one is set up, and what one shows."""
