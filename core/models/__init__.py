"""Model files: where an encoder or a translation model comes from, and whether it is the one that was published.

May import: errors, messages; never torch. What a model computes belongs to encoders and views.
"""
