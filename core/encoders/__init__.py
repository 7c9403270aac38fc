"""Pre-trained encoders: load, forward pass with taps.

May import: errors, events, models, quantities. What learns, losses and steps belong to training.
"""
