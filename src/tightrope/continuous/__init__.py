"""Continuous time: uniformisation with certified bounds, and the discrete chains behind it."""
