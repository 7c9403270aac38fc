"""Files that people bring: what they are, how they are written, which column is what, what is wrong with which row."""
