"""pytest-helmbench: LLM benchmark scenarios as pytest tests."""
