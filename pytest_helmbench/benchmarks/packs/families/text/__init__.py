"""Replies of the text families of benchmark packs to verdicts: pure rules over text."""
