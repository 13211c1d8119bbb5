"""A kind of benchmark of another distribution: riddles, one a line, as `ID | QUESTION | ANSWER`."""
