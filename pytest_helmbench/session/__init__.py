"""A session without pytest: settings, benchmarks, plan, runs, gates, resume."""
