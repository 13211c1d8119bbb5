"""Question packs: a manifest and rows of six families."""
