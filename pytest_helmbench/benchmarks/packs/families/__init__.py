"""The families of rows, one folder each."""
