"""How scenarios are evaluated: one module per value of `evaluation.type`, and the registry of them."""
