"""Arrays in, Plotly figures out, as plain JSON-ready dictionaries; nothing here imports plotly.

May import: config, errors, events, language, quantities, representation, the registry of losses. Reading a run belongs
to pages.
"""
