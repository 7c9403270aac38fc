"""The loss lab: a handful of points, core's own losses, and what their gradients do to the points. No training.

May import: catalogue, config, errors, losses, parameters, representation, workers. `answer`, `dynamics` and
`pulls` compute in a process of their own, which `process` begins and asks; the others import no torch.
"""
