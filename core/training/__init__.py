"""The loop, a step, its phases, frames and checkpoints: a config and data in, a stream of events out.

May import what lies below: losses, views, encoders, advice, tasks, representation, config, events. It knows no store,
no process and no page.
"""
