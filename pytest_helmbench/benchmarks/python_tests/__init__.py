"""Hand-written tests that ask a model of the session."""
