"""Programs that run beside the tests of a pack, in the Python that runs them; nothing but Python's own is imported."""
