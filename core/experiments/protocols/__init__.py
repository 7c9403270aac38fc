"""Experiments from the papers and notes, one file per source. The registry collects the entries of each file."""
