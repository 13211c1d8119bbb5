"""Verdicts to scores, intervals, breakdowns and thresholds. Pure."""
