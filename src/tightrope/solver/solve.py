"""`solve`: from a model and an objective to verified bounds, a policy and what makes them checkable."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.kernel import Kernel
from tightrope.solver.solution import Solution


@dataclass(frozen=True)
class Limits:
    """When to give up refining. What is returned then is still verified, and the status says so."""

    iterations: int = 1_000_000
    seconds: float = float("inf")


def solve(
    model: MDP | IntervalMDP | Kernel,
    objective: Objective,
    *,
    policy: OffsetArray | FloatArray | None = None,
    precision: float = 1e-6,
    relative: bool = True,
    assume_support: float | None = None,
    limits: Limits | None = None,
    threads: int = 1,
) -> Solution:
    """Verified bounds on the value of every state, and a policy that attains the agent's one.

    * `policy`: None lets the agent choose; an integer array fixes one choice (its index) a state; a float
      array of one probability a choice fixes a randomised policy.
    * The solve stops when upper − lower ≤ precision·|value| at every state (≤ precision if not `relative`).
    * `assume_support` EPS replaces lower bounds of 0 under a positive upper bound by min(EPS, upper):
      nature can then cut no transition (constant support).
    * `threads` never changes a value.

    Raises `InputError` for objectives that have no sound meaning here, with the reason.
    """
    raise AssertionError
