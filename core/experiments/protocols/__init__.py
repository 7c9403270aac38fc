"""The experiments of the papers and notes, one file per source; the registry collects the entries of each file."""
