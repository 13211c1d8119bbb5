"""A Harbor task folder: an agent works in a living box, and what it leaves is judged by the tests of the folder."""
