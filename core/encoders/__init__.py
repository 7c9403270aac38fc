"""Pre-trained encoders: find and verify, load, forward pass, what is trained.

May import: config, errors, events, quantities. Losses and steps belong to training. Nothing is imported here:
`core.encoders.source` is read by the server, which does not import torch.
"""
