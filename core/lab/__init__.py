"""The loss lab: a few points, and the effect of the losses' gradients on them. No model is trained.

May import: catalogue, config, errors, losses, parameters, representation, workers. `answer` and `dynamics` run in a
separate process, which `process` starts and queries; the other modules import no torch.
"""
