"""Evaluation types of scenarios: one module per value of `evaluation.type`, and their registry."""
