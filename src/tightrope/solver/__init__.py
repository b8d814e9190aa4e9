"""Robust values and policies, with verified lower and upper bounds."""
