"""The single writer of a results file, and the rows it writes."""
