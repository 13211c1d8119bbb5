"""The embedded reference models: a floor for scores, without a network."""
