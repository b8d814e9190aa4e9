"""Does the model fit the data, and has the world changed? Tests that hold at any time of looking."""
