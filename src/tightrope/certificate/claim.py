"""What is claimed of a problem, and hints: numbers that help to check it, and prove nothing by themselves.

A wrong hint can only make a check fail. Sizes that depend on what the checker derives (events, coordinates)
are compared where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.format import fields
from tightrope.certificate.format.fields import list_fields
from tightrope.certificate.problem import Problem
from tightrope.numerics.arrays import FloatArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.hints import LearnedHints


class _Compared:
    def __eq__(self, other: object) -> bool:
        from tightrope.certificate.format.differences import first_difference

        return type(other) is type(self) and first_difference(self, other) is None

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, eq=False)
class Claim(_Compared):
    """lower ≤ value at the initial state ≤ upper, as the question asks for it.

    `policy` free: of the agent's best policy; fixed: of the policy `choice`; randomised: of the one that
    takes choice c with probability weight[c], divided by the sum of the weights of its state. A fixed policy
    may change with the step: until `earlier` steps (step, state, choice) were taken, the state's choice is
    another one (`tightrope.certificate.game.by_step`).
    """

    name: str = fields.word("value", "robust policy", "given policy")
    policy: str = fields.word("free", "fixed", "randomised")
    lower: float = fields.real(infinite=True)
    upper: float = fields.real(infinite=True)
    choice: OffsetArray | None = fields.integers("states", optional=True)
    weight: FloatArray | None = fields.reals("choices", least=0.0, most=1.0, optional=True)
    earlier: OffsetArray | None = fields.integers("changes", "3", optional=True)

    def weights(self, choices: int) -> FloatArray | None:
        """With which weights the policy takes the choices, so many; None where it is free."""
        if self.choice is None:
            return self.weight
        return np.bincount(self.choice, minlength=choices).astype(np.float64)

    def __repr__(self) -> str:
        return f"Claim: {self.name} within [{self.lower!r}, {self.upper!r}]"

    def trouble(self) -> str | None:
        if (self.choice is not None) != (self.policy == "fixed"):
            return "a policy is given where it is fixed, and only there"
        if (self.weight is not None) != (self.policy == "randomised"):
            return "weights are given where the policy is randomised, and only there"
        if self.earlier is not None and self.policy != "fixed":
            return "choices of earlier steps are for policies that are fixed"
        return None if self.lower <= self.upper else "a lower bound above the upper one"


@dataclass(frozen=True, eq=False)
class ValueHints:
    """Vectors that bound the value at every state, before `complement`: see
    `tightrope.certificate.game.theorem`.

    Where a bounded number of steps gives the value there are none: the checker makes the steps. For F>=k they
    bound what is left after k steps. For averages `lower` and `upper` bound the gain, with a bias each. The
    states of a temporal question are those of the product. `witness`: the choices of a free agent.
    `upper_ranking` is `lower_ranking` where it is not given. `lower_basis`, `upper_basis`: for every choice a
    basis of the region (0 for an ellipsoid); −1 where the bounds of transitions say it all.
    """

    lower: FloatArray | None = fields.reals("states", optional=True, infinite=True)
    upper: FloatArray | None = fields.reals("states", optional=True, infinite=True)
    lower_ranking: OffsetArray | None = fields.integers("states", optional=True)
    upper_ranking: OffsetArray | None = fields.integers("states", optional=True)
    witness: OffsetArray | None = fields.integers("states", optional=True)
    lower_bias: FloatArray | None = fields.reals("states", optional=True)
    upper_bias: FloatArray | None = fields.reals("states", optional=True)
    lower_basis: OffsetArray | None = fields.integers("choices", least=-1, optional=True)
    upper_basis: OffsetArray | None = fields.integers("choices", least=-1, optional=True)


@dataclass(frozen=True, eq=False)
class Certificate(_Compared):
    """Claims about a problem, with hints for each. Nothing relies on `about`, what a file says of itself."""

    problem: Problem = fields.part(Problem)
    claims: tuple[Claim, ...] = fields.parts(Claim, 4)
    values: tuple[ValueHints, ...] = fields.parts(ValueHints, 4)
    learned: LearnedHints | None = fields.part("hints.LearnedHints", optional=True)
    about: Mapping[str, str] = fields.texts()

    def __repr__(self) -> str:
        return f"Certificate: {'; '.join(map(repr, self.claims))}"

    def trouble(self) -> str | None:
        if not self.claims or len(self.claims) != len(self.values):
            return "every claim needs its hints, and there must be one"
        if len({claim.name for claim in self.claims}) != len(self.claims):
            return "two claims have one name"
        if (self.learned is not None) != (self.problem.law == "domain"):
            return "hints about sets are for models over a domain, and they need them"
        proofs = () if self.learned is None else self.learned.coupled
        plain = [self.problem.automaton is None and claim.earlier is None for claim in self.claims]
        if any(proof.claim >= len(plain) or not plain[proof.claim] for proof in proofs):
            return "a coupled proof of no claim, of a temporal formula or of a policy by steps"
        for number, (claim, hints) in enumerate(zip(self.claims, self.values, strict=True)):
            least, most = self.problem.objective.range
            if not least <= claim.lower <= claim.upper <= most:
                return f"claim {number}: what is claimed is no value of the quantity"
            if self.problem.automaton is not None:  # what they must fit is derived
                learned = self.learned is not None and (claim.name, claim.policy) == _REMEMBERS
                trouble = None if claim.policy == "free" or learned else "a policy without memory"
            else:
                trouble = misfit(self.problem, claim, hints)
            if trouble:
                return f"claim {number}: {trouble}"
        return None


_REMEMBERS = ("robust policy", "fixed")
"""A policy of the product of model and automaton."""


def misfit(problem: Problem, claim: Claim, hints: ValueHints) -> str | None:
    """Why a claim and its hints do not fit the problem."""
    start, objective = problem.graph.choice_start, problem.objective
    size = {"states": problem.graph.states, "choices": problem.graph.choices}
    held = [(getattr(one, name), name, spec) for one in (claim, hints) for name, spec in list_fields(one)]
    for value, name, spec in held:
        if spec.is_array and value is not None and len(value) != size.get(spec.shape[0], len(value)):
            return f"'{name}' has another length"
    for name, picked in (("policy", claim.choice), ("witness", hints.witness)):
        if picked is not None and (np.any(picked < start[:-1]) or np.any(picked >= start[1:])):
            return f"the {name} picks a choice that its state does not have"
    if claim.earlier is not None:
        from tightrope.certificate.game.by_step import misfit_of_steps

        if trouble := misfit_of_steps(problem, claim.earlier):
            return trouble
    if claim.weight is not None:
        total = np.add.reduceat(claim.weight, start[:-1])
        if np.any(np.abs(total - 1) > 2.0**-40):
            return "the policy's weights are not distributions"
    if not (hints.lower is None) == (hints.upper is None) == (objective.steps is not None):
        return "vectors are for objectives without a bound on the steps, which need them"
    average = objective.kind == "AVERAGE"
    if not (hints.lower_bias is None) == (hints.upper_bias is None) == (not average):
        return "a bias is for averages, which need it"
    finite = objective.kind not in ("REACH_REWARD", "TOTAL")
    for bound in (hints.lower, hints.upper if average else None):
        if bound is not None and finite and np.isinf(bound).any():
            return "a bound is infinite, the value is not"
    if average and claim.policy == "randomised":
        return "the average of a policy that is randomised"
    by_step = claim.name == "robust policy" and (objective.steps is not None or objective.lower_steps > 0)
    if (claim.policy == "free") != (claim.name == "value") and not by_step:
        return f"a {claim.name} that is {claim.policy}"
    if claim.policy != "free" and hints.witness is not None:
        return "a witness beside a policy that is given"
    if problem.law != "domain" and (hints.lower_basis is not None or hints.upper_basis is not None):
        return "bases without a region"
    return None
