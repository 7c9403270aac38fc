"""Side-by-side measurements. Every script prints its results and their targets."""
