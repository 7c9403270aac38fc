"""Arrays in, Plotly figures out, as plain JSON-ready dictionaries; nothing here imports plotly.

May import: catalogue, config, errors, events, quantities, representation. Reading a run belongs
to pages.
"""
