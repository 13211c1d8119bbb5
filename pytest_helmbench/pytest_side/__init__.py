"""pytest and xdist: hooks, items, roles of a process, the terminal, the exit code."""
