"""Code completions: the candidate in one sandbox, its tests in another, and nothing but data between them."""
