"""Values read from stored runs: reports, comparisons, standings, gates, rescored and merged runs.

In functions of this room `path` is a results file and `run_id` an `evaluation_runs.id`. They raise `StoreError` where
the file is missing or cannot be read.
"""
