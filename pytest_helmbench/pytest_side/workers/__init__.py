"""The processes of a session: their roles, xdist, and signals."""
