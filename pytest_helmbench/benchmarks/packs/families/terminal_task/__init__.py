"""A workspace judged by a pack's own checker, in a fresh sandbox and from outside of the workspace."""
