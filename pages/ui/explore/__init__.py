"""The pieces of the Explore page: what is shown, the map, and what is beside it."""
