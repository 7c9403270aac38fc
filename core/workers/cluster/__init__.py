"""Runs on a Ray cluster: a bridge on this machine sends them to nodes and writes their events into the store.

May import what `core.workers` may. Ray itself is imported with the bridge, never by `ray_engine`.
"""
