"""Replies of the text families of question packs to verdicts: pure rules over text."""
