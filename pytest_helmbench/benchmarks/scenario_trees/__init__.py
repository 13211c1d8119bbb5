"""Scenario trees: Markdown scenarios, conditions, user contexts and perturbations."""
