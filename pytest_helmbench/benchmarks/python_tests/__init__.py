"""Hand-written tests that ask a model of the session."""

TURN_FIXTURE = "_helmbench_turn"
"""The fixture of `plugin.py` that those for hand-written tests have in common: tests that use it run on every model."""
