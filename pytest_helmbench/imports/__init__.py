"""Results of other tools, read into the record."""
