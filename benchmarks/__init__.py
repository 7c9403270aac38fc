"""Side-by-side measurements; every script prints what it found against its target."""
