"""What kinds share in judging: the marking model, structured replies, rule hashes, what evaluations make of a case."""
