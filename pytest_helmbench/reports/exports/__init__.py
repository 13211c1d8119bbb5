"""The forms in which recorded runs go to other programs, one module each."""
