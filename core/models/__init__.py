"""Model files: locating the files of an encoder or a translation model, and verifying them.

May import: errors, messages; never torch. Computing with a model belongs to encoders and views.
"""
