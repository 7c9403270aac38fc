"""Arrays in, Plotly figures out, as plain JSON-ready dictionaries; nothing here imports plotly."""
