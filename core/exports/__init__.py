"""Export formats of a run: files for other programs, users and machines."""
