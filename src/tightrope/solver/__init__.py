"""Robust values and policies, with verified lower and upper bounds."""

from tightrope.solver.solution import Solution, Status
from tightrope.solver.solve import solve

__all__ = ["Solution", "Status", "solve"]
