"""The `helmbench` command: one module per command."""
