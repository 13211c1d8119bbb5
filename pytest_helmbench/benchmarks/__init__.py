"""The kinds of benchmark, one folder each, behind one protocol."""
