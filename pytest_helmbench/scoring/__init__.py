"""Rows to scores, intervals, breakdowns and gates. Pure; knows how verdicts become numbers."""
