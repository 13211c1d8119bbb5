"""The gateway for code that is not ours: an HTTP address for every item, and what passes through it."""
