"""Build Plotly figures from arrays, as plain JSON-ready dictionaries. Nothing here imports plotly.

May import: catalogue, config, errors, events, quantities, representation. Pages read the runs.
"""
