"""Results files of shards, put together into one."""
