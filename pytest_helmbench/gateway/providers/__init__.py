"""Providers: which server a model id leads to, and what is special about it."""
