"""The sandbox engines: each module has one `SandboxEngine` named `ENGINE`, and is found by standing here."""
