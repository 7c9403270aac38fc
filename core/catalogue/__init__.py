"""The losses, views and encoders that are offered, each with what forms, commands, equations and curves need of it.

May import: errors, models, parameters, registry; never torch. How a loss or a view computes belongs to losses, views
and texts.
"""
