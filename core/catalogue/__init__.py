"""The losses, views and encoders that users can choose, described for forms, commands, equations and curves.

May import: errors, models, parameters, registry; never torch. Computing a loss or a view belongs to losses, views and
texts.
"""
