"""The sandbox engines: each module has one `EngineKind` named `ENGINE`, and is found by standing here."""
