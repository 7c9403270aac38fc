"""One file per page: read state, call core, draw."""
