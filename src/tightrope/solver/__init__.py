"""Robust values and policies, with verified lower and upper bounds."""

from tightrope.solver.solution import Solution, Status
from tightrope.solver.solve import Limits, solve

__all__ = ["Limits", "Solution", "Status", "solve"]
