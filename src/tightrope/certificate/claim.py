"""What is claimed of a problem, and hints: numbers that help to check it, and prove nothing by themselves.

A wrong hint can only make a check fail. Sizes that depend on what the checker derives (events, coordinates)
are compared where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.certificate.format.fields import (
    first_difference,
    integers,
    is_offsets,
    list_fields,
    part,
    parts,
    real,
    reals,
    texts,
    whole,
    word,
)
from tightrope.certificate.problem import Problem
from tightrope.numerics.arrays import FloatArray, OffsetArray

MOST_CODES = 2**31
MOST_POINTS = 20_000
MOST_ENTRIES = 5 * 10**7
MOST_WORK = 10**9


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
    choice: OffsetArray | None = integers("states", optional=True)
    weight: FloatArray | None = reals("choices", least=0.0, most=1.0, optional=True)

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
    bound what is left after k steps. For averages `lower` and `upper` bound the gain, with a bias each. The
    states of a temporal question are those of the product. `witness`: the choices of a free agent.
    `upper_ranking` is `lower_ranking` where it is not given. `lower_basis`, `upper_basis`: for every choice a
    basis of the region (0 for an ellipsoid); −1 where the bounds of transitions say it all.
    """

    lower: FloatArray | None = reals("states", optional=True, infinite=True)
    upper: FloatArray | None = reals("states", optional=True, infinite=True)
    lower_ranking: OffsetArray | None = integers("states", optional=True)
    upper_ranking: OffsetArray | None = integers("states", optional=True)
    witness: OffsetArray | None = integers("states", optional=True)
    lower_bias: FloatArray | None = reals("states", optional=True)
    upper_bias: FloatArray | None = reals("states", optional=True)
    lower_basis: OffsetArray | None = integers("choices", least=-1, optional=True)
    upper_basis: OffsetArray | None = integers("choices", least=-1, optional=True)


@dataclass(frozen=True, eq=False)
class RegionHints:
    """Rows of the region and the bases behind what was projected from it.

    * `row`: (origin, index, part), see `tightrope.certificate.region.rows`; `point`: points of tangents to
      the likelihood, directions of tangents to an ellipsoid.
    * A basis lists as many rows as there are coordinates: 2j is x_j ≤ upper_j, 2j + 1 is x_j ≥ lower_j, then
      those of `row` in their order.
    * `box_basis`: stage by stage, for the upper then the lower end of every coordinate. After the last stage
      the box is made at least as wide as `box_lower`, `box_upper`, where these are given.
    * bound_basis[j] proves a bound of expression bound_expression[j]: the upper one where bound_side[j] is 1.
    * `choice_basis`: the bases that `lower_basis` and `upper_basis` of a claim's hints refer to.
    """

    row: OffsetArray = integers("rows", "3")
    point: FloatArray = reals("points", "SIZE")
    box_basis: OffsetArray = integers("stages", "SIZE", most=MOST_CODES)
    bound_expression: OffsetArray = integers("bounds", most=MOST_CODES)
    bound_side: OffsetArray = integers("bounds", most=1)
    bound_basis: OffsetArray = integers("bounds", "SIZE", most=MOST_CODES)
    choice_basis: OffsetArray = integers("bases", "SIZE", most=MOST_CODES)
    box_lower: FloatArray | None = reals("SIZE", optional=True)
    box_upper: FloatArray | None = reals("SIZE", optional=True)

    def trouble(self) -> str | None:
        size = self.point.shape[1]
        bases = max(2 * size, len(self.bound_basis), len(self.choice_basis))
        if len(self.row) * size > MOST_ENTRIES or bases * size**2 > MOST_ENTRIES:
            return "there are more rows or bases than this program checks"
        if size == 0 or len(self.box_basis) % (2 * size) != 0:
            return "there are no coordinates, or a stage is not whole"
        if len(self.box_basis) * (len(self.row) + 1) * size > 2 * MOST_WORK:
            return "the box is shrunk in more stages than this program checks"
        return None


@dataclass(frozen=True, eq=False)
class SlabHints:
    """A stage of a slab's rows: `region` proves bounds of expressions, with rows of earlier stages; each side
    that is bet on has a point near which its row shall be tight, and a share for every scale of its bets.
    """

    region: RegionHints = part(RegionHints)
    point: FloatArray = reals("sides", "SIZE")
    share: OffsetArray = integers("sides", "scales", most=2**20)


@dataclass(frozen=True, eq=False)
class CoupledHints:
    """Bounds of a claim's policy over the region itself: one x for the whole run.

    * A tree of cells. Node 0 is the region; split i divides the node split_node[i] by split_direction[i]·x ≤
      split_value[i] (node 2i + 1) and ≥ (node 2i + 2).
    * Proof i is about the cell of node[i]. Its rows are row[row_start[i]:row_start[i+1]], its points
      point[point_start[i]:point_start[i+1]] in the frame x = centre + axes·y; point k belongs to the simplex
      of rows simplex[k], numbered as in a basis. A proof without points says that the cell is empty: its
      rows, weighted by `multiplier`, contradict the cell's box.
    * Models [proof, open state]: |V_s(x) − value − slope·y − yᵀ·curve·y| ≤ error; `curve` holds the entries
      (j, k), j ≤ k, of symmetric matrices. For a bounded number of steps the checker makes the steps itself.
    * `dual` [occupancy, open state]; `lower_dual`, `upper_dual`: those used by a proof, −1 for none.
    * `state`: the open states, all that can be met before the value is decided.
    """

    claim: int = whole(most=3)
    split_node: OffsetArray = integers("splits", most=MOST_CODES)
    split_direction: FloatArray = reals("splits", "SIZE")
    split_value: FloatArray = reals("splits")
    node: OffsetArray = integers("proofs", most=MOST_CODES)
    lower_dual: OffsetArray = integers("proofs", least=-1, most=MOST_CODES)
    upper_dual: OffsetArray = integers("proofs", least=-1, most=MOST_CODES)
    row_start: OffsetArray = integers("proofs+1")
    row: OffsetArray = integers("rows", "3")
    multiplier: FloatArray = reals("rows", least=0.0)
    point_start: OffsetArray = integers("proofs+1")
    point: FloatArray = reals("points", "SIZE")
    simplex: OffsetArray = integers("points", "SIZE", most=MOST_CODES)
    centre: FloatArray = reals("proofs", "SIZE")
    axes: FloatArray = reals("proofs", "SIZE", "SIZE")
    state: OffsetArray = integers("open", most=MOST_CODES)
    value: FloatArray = reals("models", "open")
    slope: FloatArray = reals("models", "open", "SIZE")
    curve: FloatArray = reals("models", "open", "packed")
    error: FloatArray = reals("models", "open")
    dual: FloatArray = reals("duals", "open")

    def trouble(self) -> str | None:
        splits, size = len(self.split_node), self.point.shape[1]
        if len(self.value) not in (0, len(self.node)) or self.curve.shape[2] != packed_size(size):
            return "models do not fit the proofs"
        for start, of in ((self.row_start, self.row), (self.point_start, self.point)):
            if not is_offsets(start, len(of), rising=False):
                return "rows or points of proofs do not fit"
        points, rows = (int(np.diff(start).max(initial=0)) for start in (self.point_start, self.row_start))
        if points > MOST_POINTS or max(points * size, rows) * size > MOST_ENTRIES:
            return "a cell has more points or rows than this program checks"
        if max(self.lower_dual.max(initial=-1), self.upper_dual.max(initial=-1)) >= len(self.dual):
            return "an occupancy that is not there"
        if np.any(np.diff(self.state) <= 0):
            return "the open states do not rise"
        if np.any(self.split_node > 2 * np.arange(splits)) or len(np.unique(self.split_node)) != splits:
            return "a split of a cell that is not there, or was split before"
        return "a proof about a cell that is not there" if self.node.max(initial=0) > 2 * splits else None

    def rows_of(self, proof: int) -> Any:
        return self.row[self.row_start[proof] : self.row_start[proof + 1]]

    def points_of(self, proof: int) -> tuple[FloatArray, OffsetArray]:
        """(points, simplices)."""
        span = slice(int(self.point_start[proof]), int(self.point_start[proof + 1]))
        return self.point[span], self.simplex[span]

    def path(self, node: int) -> list[tuple[int, int]]:
        """The splits (number, side) that lead to a node, the last one first; side 0 is ≤, side 1 is ≥."""
        steps = []
        while node > 0:
            steps.append(divmod(node - 1, 2))
            node = int(self.split_node[steps[-1][0]])
        return steps


@dataclass(frozen=True, eq=False)
class LearnedHints:
    """Intervals of events (of transitions, where these share δ), of rewards by their costs, a slab's stages,
    proofs from a region."""

    lower: FloatArray | None = reals("intervals", least=0.0, most=1.0, optional=True)
    upper: FloatArray | None = reals("intervals", least=0.0, most=1.0, optional=True)
    cost_lower: FloatArray | None = reals("rewards", optional=True)
    cost_upper: FloatArray | None = reals("rewards", optional=True)
    region: RegionHints | None = part(RegionHints, optional=True)
    coupled: tuple[CoupledHints, ...] = parts(CoupledHints, 4)
    slab: tuple[SlabHints, ...] = parts(SlabHints, 8)

    def trouble(self) -> str | None:
        return None if (self.lower is None) == (self.upper is None) else "intervals without one of their ends"


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
        if spec.is_array and value is not None and len(value) != size[spec.shape[0]]:
            return f"'{name}' has another length"
    for name, picked in (("policy", claim.choice), ("witness", hints.witness)):
        if picked is not None and (np.any(picked < start[:-1]) or np.any(picked >= start[1:])):
            return f"the {name} picks a choice that its state does not have"
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


def packed_size(size: int) -> int:
    """How many entries (j, k), j ≤ k, a symmetric matrix has."""
    return size * (size + 1) // 2
