"""Execution of runs on a Ray cluster. A bridge on this machine sends them to nodes and records their events.

May import what `core.workers` may. Ray itself is imported with the bridge, never by `ray_engine`.
"""
