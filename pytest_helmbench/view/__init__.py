"""Runs in a browser while they are written: a server for this machine alone that reads a results file."""
