"""Counts, simulation, and where data come from."""
