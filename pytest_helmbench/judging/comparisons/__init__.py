"""Comparisons of answers: plain texts, amounts, units, dates, and the answer that a reply states."""
