"""The value of a policy over the coupled set: one parameter vector for the whole run."""

from tightrope.coupled.result import Cell, CoupledStatus, CoupledValue, Witness
from tightrope.coupled.synthesis import CoupledSynthesis, find_coupled_policy
from tightrope.coupled.value import CoupledLimits, bound_coupled_value

__all__ = [
    "Cell",
    "CoupledLimits",
    "CoupledStatus",
    "CoupledSynthesis",
    "CoupledValue",
    "Witness",
    "bound_coupled_value",
    "find_coupled_policy",
]
