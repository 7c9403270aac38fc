"""The loop, a step, its phases, frames and checkpoints: a config and data in, a stream of events out.

May import what lies below: losses, views, encoders, tasks, representation, config, events. It knows no store, no
process and no page. `core.training.prepare` and what it imports are free of torch.
"""
