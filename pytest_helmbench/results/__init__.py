"""Values read from stored runs: reports, comparisons, standings, gates, rescored and merged runs."""
