"""Prompt to reply: HTTP client, limits, budget, prices, embedded baselines. The only user of the HTTP client."""
