"""Files to cases: the only readers of YAML, frontmatter and benchmark folders."""
