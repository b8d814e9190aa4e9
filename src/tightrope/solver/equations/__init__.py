"""From an objective to fixpoint equations: what the graph decides, groups, blocks and their order."""
