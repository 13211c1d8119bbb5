"""From the files of a scenario tree to healthy scenarios and the problems of the others."""
