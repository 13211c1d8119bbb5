"""A patch to a repository judged: read, held to the path policy, applied with real git, and tested."""
