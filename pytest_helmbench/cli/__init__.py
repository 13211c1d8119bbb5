"""The commands of `helmbench`, one module per thing they know about."""
