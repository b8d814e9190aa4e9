"""Estimates and bets in float64, from earlier data alone: what they return decides the width of a region."""
