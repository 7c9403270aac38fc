"""A run as one Python script: its loop (`standalone`), the source of its losses (`sources`) and its rows.

May import: everything that training may import, the store and the rows of runs.
"""
