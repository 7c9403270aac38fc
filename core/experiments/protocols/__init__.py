"""The experiments of the papers and notes, one file each; the registry collects what the files end in."""
