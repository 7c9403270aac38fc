"""Changes to the words of texts: easy data augmentation, synonyms, and previews of views.

May import: catalogue, errors, parameters, registry; never torch. Deciding when a view is drawn belongs to training.
"""
