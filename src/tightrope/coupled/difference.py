"""The difference of two policies' values as the value of one chain (docs/improve.md).

The rows of both chains stand side by side under one parameter vector, those of the baseline with negated
rewards and fixed values. The root has the entries of both initial rows, so its value is the difference.

No row leads to the root, weights are nonnegative, and the proofs of `taylor` and `vertex_proof` allow any
sign of rewards and values. If the region contains the true parameters, the bound holds for *all* pairs of
policies, also those chosen from the same data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.coupled.chain import Chain, Phase, chain_of, unrolled_chain
from tightrope.coupled.result import CoupledStatus, CoupledValue
from tightrope.coupled.value import DEFAULT_GAP, CoupledLimits, enclose, functions_of, require_region
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, up

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two policies: on the model that it is a policy of, with the question there and what it is
    worth over the sets on its own. A policy with a memory has a product of the model, which has the same
    expressions."""

    model: ParametricMDP
    objective: Objective
    policy: Policy
    lower: float
    upper: float


def bound_difference(
    sets: Sets, policy: Side, baseline: Side, *, gap: float = DEFAULT_GAP, limits: CoupledLimits | None = None
) -> CoupledValue:
    """The certified interval of the policy's value less the baseline's over rectangular `sets`."""
    begin = time.perf_counter()
    polytope = require_region(sets)
    objective = policy.objective
    floor, ceiling = _less(policy.lower, baseline.upper, down), _less(policy.upper, baseline.lower, up)
    functions = functions_of(polytope.coordinates, policy.model, objective)
    ends = floor, ceiling, floor, ceiling
    blank = CoupledValue(objective, policy.policy, *ends, functions, baseline=baseline.policy)
    if policy.policy == baseline.policy:
        return replace(blank, lower=0.0, upper=0.0, status=CoupledStatus.EXACT, gap=0.0)
    make = unrolled_chain if any(one.policy.depends_on_step for one in (policy, baseline)) else chain_of
    chains = [make(side.model, side.objective, side.policy) for side in (policy, baseline)]
    for chain in chains:
        if isinstance(chain, str):
            return replace(blank, reason=chain, seconds=time.perf_counter() - begin)
    first, second = (chain for chain in chains if isinstance(chain, Chain))
    if objective.complement:  # 1 − V_π less 1 − V_b
        first, second = second, first
    chain = difference_of(first, second)
    limits = limits or CoupledLimits()
    return enclose(replace(blank, chain=chain), polytope, (floor, ceiling), gap, limits, begin, False)


def _less(end: float, other: float, towards: Any) -> float:
    """One end less the other, on the safe side; nothing is known where both are infinite."""
    if end == other and np.isinf(end):
        return -np.inf if towards is down else np.inf
    return float(towards(end - other))


def difference_of(first: Chain, second: Chain) -> Chain:
    """The chain of the first value less the second; both answer the same question, with the same phases."""
    second = negative(second)
    rows = first.rows + second.rows
    ends = [(first, first.initial, 0), (second, second.initial, first.rows)]
    entries = [_entries(chain, row, shift) for chain, row, shift in ends]
    successor, expression, weight = (np.concatenate(part) for part in zip(*entries, strict=True))
    reward = slack = 0.0
    for chain, row, _ in ends:
        earned = float((chain.value if _is_fixed(chain, row) else chain.reward)[row])
        reward += earned
        slack += 2 * _UNIT * abs(earned) + (0.0 if _is_fixed(chain, row) else float(chain.reward_error[row]))
    start = np.concatenate([first.row_start, first.row_start[-1] + second.row_start[1:]])
    both = [first, second]
    return Chain(
        state=_joined(both, "state", first.state[first.initial]),
        initial=rows,
        row_start=np.append(start, start[-1] + len(successor)),
        successor=np.concatenate([first.successor, first.rows + second.successor, successor]).astype(
            np.int32
        ),
        expression=np.concatenate([first.expression, second.expression, expression]),
        weight=np.concatenate([first.weight, second.weight, weight]),
        reward=_joined(both, "reward", reward),
        reward_error=_joined(both, "reward_error", slack),
        fixed=_joined(both, "fixed", False),
        value=_joined(both, "value", 0.0),
        acyclic=first.acyclic and second.acyclic,
        start=None if first.start is None else _joined(both, "start", 0.0),
        second=first.rows,
        phases=tuple(
            Phase(
                one.steps,
                np.concatenate([one.fixed, other.fixed, [one.fixed[first.initial]]]),
                np.concatenate(
                    [one.value, other.value, [one.value[first.initial] + other.value[second.initial]]]
                ),
            )
            for one, other in zip(first.phases, second.phases, strict=True)
        ),
    )


def negative(chain: Chain) -> Chain:
    """The chain of the same policy with every reward and every fixed value negated."""
    return replace(
        chain,
        reward=-chain.reward,
        value=-chain.value,
        start=None if chain.start is None else -chain.start,
        phases=tuple(Phase(phase.steps, phase.fixed, -phase.value) for phase in chain.phases),
    )


def _is_fixed(chain: Chain, row: int) -> bool:
    return bool(chain.fixed[row]) and not chain.phases


def _entries(chain: Chain, row: int, shift: int) -> tuple[Any, Any, FloatArray]:
    """(successor, expression, weight) of one row; nothing where its value is fixed."""
    part = slice(0, 0) if _is_fixed(chain, row) else slice(chain.row_start[row], chain.row_start[row + 1])
    return chain.successor[part] + shift, chain.expression[part], chain.weight[part]


def _joined(chains: list[Chain], name: str, last: Any) -> Any:
    arrays = [getattr(chain, name) for chain in chains]
    return np.concatenate([*arrays, np.array([last], dtype=arrays[0].dtype)])
