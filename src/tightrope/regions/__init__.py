"""Confidence sets in parameter space, and their support functions."""
