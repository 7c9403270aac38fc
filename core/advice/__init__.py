"""What is known of a run before it starts and while it goes: defaults, checks, cost, waiting time, positives, tokens.

May import: config, errors, events, messages, models, parameters, quantities, representation, tasks; never torch.
"""
