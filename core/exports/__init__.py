"""A run in the forms in which it leaves the app: files that other programs, other people and other machines can use."""
