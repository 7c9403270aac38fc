"""A lesson beside the page that it is about."""
