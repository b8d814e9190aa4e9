"""Controllers that see observations: exact beliefs, bounds that hold for every controller, and the search."""
