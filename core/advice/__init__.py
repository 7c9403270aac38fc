"""Defaults, checks, cost, pace, positives and token counts of a run, before it starts and while it trains.

May import: config, errors, events, messages, models, parameters, quantities, representation, tasks, texts; never torch.
"""
