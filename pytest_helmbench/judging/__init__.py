"""Judging, shared by kinds: the marking model, structured replies, rule hashes, verdicts from evaluations."""
