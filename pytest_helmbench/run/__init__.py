"""A live session without pytest: benchmarks found and loaded, plan, runs, budget, resume."""
