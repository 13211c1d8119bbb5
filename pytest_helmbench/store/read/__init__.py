"""The questions asked of a results file, while a session may be writing it."""
