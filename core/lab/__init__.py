"""The loss lab: a handful of points, core's own losses, and what their gradients do to the points. No training.

May import: config, errors, lazy, losses, parameters, registry, representation, workers. `stage` and `settings_of` are
read by the server and import no torch; `dynamics` runs in a process of its own, which `process` begins and asks.
"""
