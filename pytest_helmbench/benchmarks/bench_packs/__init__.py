"""Bench Packs: JavaScript packs of the BenchLocal app, hosted headless."""
