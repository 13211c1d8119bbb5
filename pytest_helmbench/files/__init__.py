"""Reading users' files: YAML with lines, strict JSON, schemas, models.yml. The only user of `yaml`."""
