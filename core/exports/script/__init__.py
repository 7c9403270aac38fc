"""A run as one Python script: its loop (`standalone`), the losses as they are written (`sources`), and its rows.

May import what training may, the store and the rows of runs.
"""
