"""Expressions (exact polynomials), parameters, the models and their graphs, and objectives."""
