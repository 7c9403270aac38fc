"""Pre-trained encoders: loading, and the forward pass with taps.

May import: errors, events, models, quantities. Training owns trainable parameters, losses and steps.
"""
