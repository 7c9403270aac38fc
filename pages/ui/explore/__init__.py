"""The pieces of the Explore page: what is shown, the map, and what stands beside it."""
