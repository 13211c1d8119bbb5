"""A patch to a repository judged: read, checked against the path policy, applied with real git, and tested."""
