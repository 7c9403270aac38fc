"""A run as one Python script: what it is composed of, and how.

`source_file` reads a module of the project, `folding` leaves out what a run never does, `composing` takes the
definitions that a run reaches. `tracing`, `loss_lines`, `reading_lines` and `loop_lines` write the loop of this very
run, `literals` its rows; `program` puts them together. `low_rank`, `beginning` and `optimiser_settings` are there for
scripts alone, which take their source as they take that of the losses.

May import: artifacts, config, encoders, errors, events, losses, parameters, store, tasks, training, views, the rows of
runs. Everything that is asked of a run belongs here; that a script is a form of export, to the file beside this folder.
"""
