"""The Node host for Bench Packs, and their verifiers."""
