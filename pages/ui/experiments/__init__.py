"""Components of the Experiments page: the set-up form, an experiment, and its results."""
