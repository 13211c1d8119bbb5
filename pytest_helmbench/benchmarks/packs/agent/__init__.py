"""Agents: the small built-in one, and somebody else's behind the relay."""
