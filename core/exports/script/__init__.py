"""A run as one Python script: what it is composed of, and how.

`source_file` reads a module of the project, `folding` leaves out what a run never does, `composing` takes the definitions
that a run reaches; `tracing`, `loss_lines`, `reading_lines` and `loop_lines` write the loop of this very run,
`literals` its rows; `program` puts them together. `low_rank` and `beginning` are only ever read by scripts.
May import: config, encoders, losses, parameters, store, tasks, training, views; torch where it computes.
"""
