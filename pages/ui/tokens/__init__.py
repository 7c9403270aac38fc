"""The pieces of the Tokens page: which text, which settings, and what is below them."""
