"""`solve`: a problem in, verified bounds and a policy out. What computes them: `tightrope.solver.solve`."""

from __future__ import annotations

import math
from typing import TypedDict, Unpack

from tightrope.errors import InputError, check_keywords, check_number, check_type
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import PolicyGiven
from tightrope.numerics.arrays import FloatArray
from tightrope.problem import Model, Problem, problem_of, require_discrete
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Limits
from tightrope.solver.solve import solve as solve_model

DEVICES = ("cpu", "cuda", "cuda-emulated")
"""The last one is for tests: every kernel of the GPU without one."""


class SolveWords(TypedDict, total=False):
    """Further arguments of `solve`."""

    assume_support: float | None
    seconds: float
    iterations: int
    threads: int | None
    device: str


def solve(
    problem: Problem | Model,
    property: str | Objective | None = None,
    *,
    policy: PolicyGiven | None = None,
    precision: float = 1e-6,
    relative: bool = True,
    start: FloatArray | None = None,
    **options: Unpack[SolveWords],
) -> Solution:
    """Verified bounds on the value of every state, and a policy that attains the agent's one.

    * `problem`: a `Problem`, or a model with the `property` beside it.
    * `policy`: None lets the agent choose; a `Policy`, or what one can be made of, is evaluated.
    * The solve stops when upper − lower ≤ precision·|value| at every state (≤ precision if not `relative`).
    * `start`: values to look from, one per state. A hint: what is returned is verified as ever.
    * `assume_support=EPS` replaces lower bounds of 0 under a positive upper bound by min(EPS, upper):
      nature can then cut no transition.
    * An interval model whose commands synchronise is solved factor by factor (`solution.is_factored`); with
      `assume_support` over the products of their bounds.
    * `seconds`, `iterations`: when to stop refining. The bounds then found hold, and the status says so.
    * `threads` on the CPU: one per core that may be used, at most 8, unless given; the same number gives the
      same bits. `device` is "cpu", or "cuda" for the current GPU.

    >>> import tightrope as tr
    >>> solution = tr.solve(tr.benchmark("betting(5)").at_truth)
    >>> solution.is_certified
    True
    """
    asked = problem_of(problem, property)
    words = check_keywords("solve", SolveWords, options)
    model = require_discrete(asked.model)
    if isinstance(model, ParametricMDP):
        if model.parameters.names:
            example = ", ".join(f"{name}=…" for name in model.parameters.names)
            raise InputError(
                f"the model has parameters: {', '.join(model.parameters.names)}",
                hint=f"say where to look: problem.at({example})",
            )
        model = model.instantiate()
    limits = Limits(words.pop("iterations", Limits().iterations), words.pop("seconds", math.inf))
    check_number("precision", precision, 0, 1)
    check_number("iterations", limits.iterations, 0)
    check_number("seconds", limits.seconds, 0)
    check_type("relative", relative, bool, "True or False")
    if words.get("assume_support") is not None:
        check_number("assume_support", words["assume_support"], 0, 1)
    check_type("device", words.get("device", "cpu"), str, "the name of a device")
    if words.get("threads") is not None:
        check_number("threads", words["threads"], 0)
    if words.get("device", "cpu") not in DEVICES:
        raise InputError(f"`device` is {words['device']!r}, not one of cpu, cuda")
    return solve_model(
        model,
        asked.objective,
        policy=policy,
        precision=precision,
        relative=relative,
        start=start,
        limits=limits,
        **words,
    )
