"""Texts changed word by word: easy data augmentation, synonyms, and what a view made of a text, for people to see.

May import: catalogue, errors, parameters, registry; never torch. When a view is drawn belongs to training.
"""
