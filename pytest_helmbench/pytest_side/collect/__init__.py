"""Benchmarks as pytest items: collection, the command line, and the selection of cases."""
