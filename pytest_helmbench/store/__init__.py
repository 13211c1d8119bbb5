"""The results database: its schema, its single writer, its readers, and the merge of several files."""
