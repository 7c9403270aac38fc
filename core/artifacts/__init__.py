"""What is made of a run afterwards and kept beside it: maps, measures, sentences, layers, replays, tables of examples.

May import what lies below: store, training, encoders, representation, config. Arrays that know no run belong to
representation, processes to workers.
"""
