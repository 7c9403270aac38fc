"""Families of encoders, and model files: locating those of an encoder or a translation model, and verifying them.

May import: errors, messages; never torch. Computing with a model belongs to encoders and views.
"""
