"""Programs that run inside of sandboxes: one serves a candidate, one runs the tests of a pack against it."""
