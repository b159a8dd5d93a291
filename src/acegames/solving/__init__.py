"""From a game to a solution: the pipeline, what it promises, curves of budgets and brackets."""
