"""Components of the Explore page: controls, the map, and the panels beside it."""
