"""The tasks of the paper on planning and identification at once: cards, costs, parameters that change."""
