"""Runs of Bench Packs in the form of the BenchLocal app."""
