"""The loss lab: points, the gradient that moves them, and what a visitor may turn."""
