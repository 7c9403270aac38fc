"""Pre-trained encoders: loading, and the forward pass with taps.

May import: errors, events, models, quantities. Trainable parameters, losses and steps belong to training.
"""
