"""Tricks that make sessions faster, each with its measured gain: 3 % of the CPU of a case, or 20 ms of a start."""
