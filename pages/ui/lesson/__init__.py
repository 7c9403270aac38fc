"""A lesson beside its page."""
