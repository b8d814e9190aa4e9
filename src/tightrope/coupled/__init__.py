"""The value of a policy over the coupled set: one parameter vector for the whole run."""

from tightrope.coupled.result import Cell, CoupledStatus, CoupledValue, Witness
from tightrope.coupled.synthesis import CoupledSynthesis, coupled_policy
from tightrope.coupled.value import CoupledLimits, coupled_value

__all__ = [
    "Cell",
    "CoupledLimits",
    "CoupledStatus",
    "CoupledSynthesis",
    "CoupledValue",
    "Witness",
    "coupled_policy",
    "coupled_value",
]
