"""Users' files: format, encoding, dialect, columns, and the problems of rows."""
