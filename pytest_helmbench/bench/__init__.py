"""The values every room speaks of: codes, cases, replies, outcomes. Pure: no I/O, no imports beyond the standard library."""
