"""Random costs: their record, their distributions, and cells of costs that count alike."""
