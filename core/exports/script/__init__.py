"""A run as one Python script.

`standalone` is what scripts have in common, `sources` takes it and the losses over as they are written, `writing` adds
the run's settings, terms and rows.

May import what training may, the store and the rows of runs.
"""
