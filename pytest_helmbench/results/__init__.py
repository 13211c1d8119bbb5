"""Values read from stored runs: reports, comparisons, standings, gates, rescored and merged runs.

Every function of this room that reads a results file raises `StoreError` where that is missing or cannot be read.
"""
