"""The values every room speaks of: codes, cases, replies, outcomes. Pure, standard library only."""
