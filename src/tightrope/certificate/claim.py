"""What is claimed of a problem, and hints: numbers that help to check it, and prove nothing by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tightrope.certificate.format.fields import (
    integers,
    part,
    parts,
    real,
    reals,
    require_shapes,
    texts,
    validate,
    word,
)
from tightrope.certificate.hints import LearnedHints
from tightrope.certificate.problem import Problem, first_difference
from tightrope.numerics.arrays import FloatArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Claim:
    """lower ≤ value at the initial state ≤ upper, as the question asks for it.

    `policy` free: of the agent's best policy; fixed: of the policy `choice`; randomised: of the one that
    takes choice c with probability weight[c], divided by the sum of the weights of its state.
    """

    name: str = word("value", "robust policy", "given policy")
    policy: str = word("free", "fixed", "randomised")
    lower: float = real(infinite=True)
    upper: float = real(infinite=True)
    choice: OffsetArray | None = integers(optional=True)
    weight: FloatArray | None = reals(0.0, 1.0, optional=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Claim) and first_difference(self, other) is None

    def __hash__(self) -> int:
        return hash((self.name, self.policy, self.lower, self.upper))

    def __repr__(self) -> str:
        return f"Claim: {self.name} within [{self.lower!r}, {self.upper!r}]"

    def trouble(self) -> str | None:
        if (self.choice is not None) != (self.policy == "fixed"):
            return "a policy is given where it is fixed, and only there"
        if (self.weight is not None) != (self.policy == "randomised"):
            return "weights are given where the policy is randomised, and only there"
        return None if self.lower <= self.upper else "a lower bound above the upper one"


@dataclass(frozen=True, eq=False)
class ValueHints:
    """Vectors that bound the value at every state, before `complement`: see
    `tightrope.certificate.game.theorem`.

    Where a bounded number of steps gives the value there are none: the checker makes the steps. For F>=k they
    bound what is left after k steps.

    * `witness`: the agent's choices where he is free. `upper_ranking` is `lower_ranking` where it is not
      given.
    * `lower_basis`, `upper_basis`: for every choice a basis of the region; −1 where the bounds of transitions
      say it all.
    """

    lower: FloatArray | None = reals(optional=True, infinite=True)
    upper: FloatArray | None = reals(optional=True, infinite=True)
    lower_ranking: OffsetArray | None = integers(optional=True)
    upper_ranking: OffsetArray | None = integers(optional=True)
    witness: OffsetArray | None = integers(optional=True)
    lower_basis: OffsetArray | None = integers(-1, optional=True)
    upper_basis: OffsetArray | None = integers(-1, optional=True)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Claims about a problem, with hints for each. Nothing relies on `about`, what a file says of itself."""

    problem: Problem = part(Problem)
    claims: tuple[Claim, ...] = parts(Claim, 4)
    values: tuple[ValueHints, ...] = parts(ValueHints, 4)
    learned: LearnedHints | None = part(LearnedHints, optional=True)
    about: Mapping[str, str] = texts()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and first_difference(self, other) is None

    def __hash__(self) -> int:
        return hash((len(self.claims), self.problem.law))

    def __repr__(self) -> str:
        return f"Certificate: {'; '.join(map(repr, self.claims))}"

    def trouble(self) -> str | None:
        if not self.claims or len(self.claims) != len(self.values):
            return "every claim needs its hints, and there must be one"
        if len({claim.name for claim in self.claims}) != len(self.claims):
            return "two claims have one name"
        if (self.learned is not None) != (self.problem.law == "domain"):
            return "hints about sets are for models over a domain, and they need them"
        for number, (claim, hints) in enumerate(zip(self.claims, self.values, strict=True)):
            trouble = _misfit(self.problem, claim, hints)
            if trouble:
                return f"claim {number}: {trouble}"
        return None


def _misfit(problem: Problem, claim: Claim, hints: ValueHints) -> str | None:
    """Why a claim and its hints do not fit the problem."""
    graph, objective = problem.graph, problem.objective
    per_state = dict.fromkeys(
        ("lower", "upper", "lower_ranking", "upper_ranking", "witness"), (graph.states,)
    )
    trouble = require_shapes(hints, **per_state, lower_basis=(graph.choices,), upper_basis=(graph.choices,))
    trouble = trouble or require_shapes(claim, choice=(graph.states,), weight=(graph.choices,))
    if trouble:
        return trouble
    for name, picked in (("policy", claim.choice), ("witness", hints.witness)):
        if picked is not None and (
            np.any(picked < graph.choice_start[:-1]) or np.any(picked >= graph.choice_start[1:])
        ):
            return f"the {name} picks a choice that its state does not have"
    if claim.weight is not None:
        total = np.add.reduceat(claim.weight, graph.choice_start[:-1])
        if np.any(np.abs(total - 1) > 2.0**-40):
            return "the policy's weights are not distributions"
    has_vectors = objective.steps is None
    if (hints.lower is not None) != has_vectors or (hints.upper is not None) != has_vectors:
        return "vectors are for objectives without a bound on the steps, which need them"
    if (
        hints.lower is not None
        and objective.kind not in ("REACH_REWARD", "TOTAL")
        and np.isinf(hints.lower).any()
    ):
        return "a lower bound is infinite, the value is not"
    depends_on_step = objective.steps is not None or objective.lower_steps > 0
    named = {"value": "free", "given policy": "fixed, randomised", "robust policy": "fixed, randomised"}[
        claim.name
    ]
    if claim.policy not in named and not (claim.name == "robust policy" and depends_on_step):
        return f"a {claim.name} that is {claim.policy}"
    if claim.policy != "free" and hints.witness is not None:
        return "a witness beside a policy that is given"
    if problem.law != "domain" and (hints.lower_basis is not None or hints.upper_basis is not None):
        return "bases without a region"
    return None


def checked(certificate: Certificate) -> Certificate:
    """The certificate, whose every field holds what it should; an `InputError` otherwise."""
    validate(certificate)
    return certificate
