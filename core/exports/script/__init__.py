"""A run as one Python script: its loop (`standalone`), the source of its losses (`sources`) and its rows.

May import: the imports allowed to training, the store and the rows of runs.
"""
