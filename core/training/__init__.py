"""The training loop, with steps, phases, frames and checkpoints: a config and data in, a stream of events out.

May import the layers below: losses, views, encoders, advice, tasks, representation, config, events. It must not depend
on the store, on worker processes or on pages.
"""
