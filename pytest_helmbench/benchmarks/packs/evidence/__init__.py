"""Evidence of test runs in sandboxes: each test is reported by itself, over a channel that no test knows of."""
