"""Agents: the small built-in one, and external ones behind the relay."""
