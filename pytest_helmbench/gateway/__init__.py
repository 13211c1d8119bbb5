"""One request to one reply: HTTP client, limits, budget, retries, prices. The only user of the HTTP client."""
