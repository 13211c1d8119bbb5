"""Programs that run in the sandbox, beside nothing of ours. Read as text, never imported."""
