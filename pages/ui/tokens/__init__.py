"""Components of the Tokens page: choice of a text, settings, and the views below them."""
