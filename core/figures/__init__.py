"""Build Plotly figures from arrays, as plain JSON-ready dictionaries. This package does not import plotly.

May import: catalogue, config, errors, events, quantities, representation. Pages read the runs.
"""
