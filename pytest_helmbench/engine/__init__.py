"""Cases to outcomes, many at once, on the process's only event loop."""
