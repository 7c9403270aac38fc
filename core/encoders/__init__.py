"""Pre-trained encoders: find and verify, load, forward pass with taps.

May import: errors, events, lazy, quantities. What learns, losses and steps belong to training. Nothing is imported
here: `core.encoders.source` is read by the server, which does not import torch.
"""
