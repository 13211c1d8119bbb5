"""The prompt templates of the families, one file per family and version. Never change one: add a version."""
