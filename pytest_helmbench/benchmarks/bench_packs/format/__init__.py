"""The files of a Bench Pack: its manifest, what it asks of its host, its verifiers."""
