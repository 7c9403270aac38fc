"""Results derived from a run: maps, measures, sentences, layers, replays and tables of examples.

May import the packages below: store, training, encoders, views, texts, representation, config. Computations on plain
arrays belong in representation, processes in workers.
"""
