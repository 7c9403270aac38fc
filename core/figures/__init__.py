"""Arrays in, Plotly figures out, as plain JSON-ready dictionaries; nothing here imports plotly.

May import: config, errors, events, quantities, representation, the registry of losses. Reading a run belongs to pages.
"""
