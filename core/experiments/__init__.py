"""Experiments: a design of settings and seeds, its runs, and their results.

May import: all of core except cli; of figures, only the report's chart. Workers execute the runs.
"""
