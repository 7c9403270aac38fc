"""A lesson beside the page that it speaks of."""
