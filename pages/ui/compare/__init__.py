"""The pieces of the Compare page: which runs, what differs, curves, linked maps, examples in pairs, twins."""
