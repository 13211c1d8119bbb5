"""From the files of a pack to the rows that can run and the problems of the others."""
