"""The results database: its schema, its single writer and the questions asked of it."""
