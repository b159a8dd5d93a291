"""Random costs: their record, the distributions they come from, and cells of costs that are counted alike."""
