"""What is asked of a model: properties, state formulas, paths, and where a question stops looking."""
