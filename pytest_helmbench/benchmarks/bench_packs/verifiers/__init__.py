"""Verifiers: the services by which Bench Packs have answers checked, however they run."""
