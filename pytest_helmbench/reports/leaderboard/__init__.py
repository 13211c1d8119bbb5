"""Runs side by side, in each form that a leaderboard is written in."""
