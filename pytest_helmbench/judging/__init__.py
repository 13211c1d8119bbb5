"""Reply to evaluations: reading JSON out of a reply, the rules of fields, and the judge."""
