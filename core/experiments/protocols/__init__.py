"""The experiments of the papers and notes, one file for each source; the registry collects what the files end in."""
