"""Models with numbers on their transitions: MDPs, interval MDPs, and interval MDPs with factored rows.

A Markov chain is an MDP with one choice per state. If modules that synchronise draw independently from
interval sets P and Q, joint outcomes have probabilities p_i·q_j. Three sets, each within the next:

    products   { p_i·q_j     : p ∈ P, q ∈ Q }
    nested     { p_i·q_j^(i) : p ∈ P, every q^(i) ∈ Q }
    boxes      { r : l_i·m_j ≤ r_ij ≤ u_i·n_j, Σ r = 1 }   l ≤ p ≤ u and m ≤ q ≤ n the bounds of P and Q

Take q^(i) = q for the first inclusion. For the second multiply l_i ≤ p_i ≤ u_i and m_j ≤ q_j^(i) ≤ n_j, with
Σ_ij p_i·q_j^(i) = Σ_i p_i = 1. More factors follow by induction. Factored rows use the nested set: a game on
additional states, where nature picks one factor, moves, and picks the next. These take no step and earn
nothing; step bounds use whole trees (`tightrope.solver.bellman.factored`). Any order of factors is sound. The
first sees no outcome, so the factor with most freedom comes first. With one free factor both sets are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError, check_type
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure, Structured, freeze
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.rounding import SUM_UNIT

SUM_TOLERANCE = 1e-9
"""How far float64 probabilities of a choice may be from 1 in sum: files carry decimals."""


@dataclass(frozen=True, eq=False, repr=False)
class MDP(Structured):
    """`probability[t]` is the float64 nearest to the probability meant; it may be 0.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})]).instantiate()
    >>> model.states, model.probability.tolist()
    (2, [0.5, 0.5, 1.0])
    """

    structure: Structure
    probability: FloatArray

    def __post_init__(self) -> None:
        freeze(self, np.float64, "probability")
        _check_length("probability", self.probability, self.structure)
        _check_entries(self.structure, self.probability, "probability")
        total = np.add.reduceat(self.probability, self.structure.transition_start[:-1])
        off = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
        if len(off):
            choice = int(off[0])
            raise InputError(
                f"{self.structure.choice_name(choice)}: probabilities sum to {total[choice]:.12g}, not 1"
            )

    def hash(self) -> str:
        """Return the identity of the model."""
        return self.structure.identity(b"mdp", self.probability.tobytes())


@dataclass(frozen=True, eq=False, repr=False)
class IntervalMDP(Structured):
    """Every distribution with lower ≤ μ ≤ upper is possible at a choice, each choice on its own.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: (0.25, 0.5), 1: (0.5, 0.75)}), (1, "stay", {1: 1})])
    >>> model.lower.tolist(), model.upper.tolist()
    ([0.25, 0.5, 1.0], [0.5, 0.75, 1.0])
    """

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    factored: FactoredRows | None = field(default=None, kw_only=True)
    """What nature may do at choices of several commands that draw independently, more narrowly than the
    bounds of joint outcomes say. Whoever knows nothing of it reads the bounds, which enclose it."""

    def __post_init__(self) -> None:
        freeze(self, np.float64, "lower", "upper")
        for name in ("lower", "upper"):
            _check_length(name, getattr(self, name), self.structure)
        if self._seen[0]:
            return
        for name in ("lower", "upper"):
            _check_entries(self.structure, getattr(self, name), f"{name} bound")
        crossed = np.flatnonzero(self.lower > self.upper)
        if len(crossed):
            t = int(crossed[0])
            raise InputError(
                f"{self.structure.name_at(t)}: the interval "
                f"[{self.lower[t]:.12g}, {self.upper[t]:.12g}] has its bounds the wrong way round"
            )
        starts = self.structure.transition_start[:-1]
        low, high = np.add.reduceat(self.lower, starts), np.add.reduceat(self.upper, starts)
        for off, total, words in (
            (low > 1 + SUM_TOLERANCE, low, "lower bounds sum to {:.12g} > 1"),
            (high < 1 - SUM_TOLERANCE, high, "upper bounds sum to {:.12g} < 1"),
        ):
            if np.any(off):
                choice = int(np.argmax(off))
                raise InputError(
                    f"{self.structure.choice_name(choice)}: {words.format(total[choice])}, "
                    "so no distribution fits"
                )

    @cached_property
    def _seen(self) -> tuple[bool, bool]:
        start = self.structure.transition_start
        right, clean = _look_at(start, self.lower, self.upper, 0.5 * SUM_TOLERANCE)
        return bool(right), bool(clean)

    @property
    def sums_admit_one(self) -> bool:
        """Whether sums of bounds admit 1 up to rounding; may be False where one is close to that."""
        return self._seen[1]

    def _facts_(self) -> Facts:
        width = self.upper - self.lower
        known = int(np.count_nonzero(width == 0))
        text = f"{known:,} of {len(width):,} are points, the widest has {width.max(initial=0.0):.4g}"
        return [("intervals", text), *self.structure._facts_()]

    @property
    def without_factors(self) -> IntervalMDP:
        """The model of the bounds alone; itself where there is nothing else."""
        return self if self.factored is None else replace(self, factored=None)

    def hash(self) -> str:
        """Return the identity of the bounds; tighter factors make no other model."""
        return self.structure.identity(b"interval mdp", self.lower.tobytes(), self.upper.tobytes())


def _check_length(name: str, values: FloatArray, structure: Structure) -> None:
    check_type("structure", structure, Structure, "the structure of a model; tr.build_from_rows makes models")
    if values.shape != (structure.transitions,):
        raise InputError(f"'{name}' has {len(values)} entries for {structure.transitions} transitions")


def _check_entries(structure: Structure, values: FloatArray, what: str) -> None:
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        t = int(wrong[0])
        raise InputError(
            f"{structure.name_at(t)}: the {what} to state "
            f"{structure.state_name(int(structure.successor[t]))} is {values[t]:.12g}, not within [0, 1]"
        )


@kernel
def _look_at(
    transition_start: OffsetArray, lower: FloatArray, upper: FloatArray, tolerance: float
) -> tuple[bool, bool]:
    """Whether bounds are right up to `tolerance`, and whether they are up to the rounding of sums."""
    right, clean = True, True
    for c in range(len(transition_start) - 1):
        low, high = 0.0, 0.0
        first, last = transition_start[c], transition_start[c + 1]
        for t in range(np.uint64(first), np.uint64(last)):
            right &= (lower[t] >= 0.0) & (lower[t] <= upper[t]) & (upper[t] <= 1.0)
            low += lower[t]
            high += upper[t]
        slack = 0.5 * (last - first + 2) * SUM_UNIT
        right &= (low <= 1.0 + tolerance) & (high >= 1.0 - tolerance)
        clean &= (low <= 1.0 + slack) & (high >= 1.0 - slack)
    return right, clean


JOINT_BOUNDS = (
    "synchronised intervals are read as the products of their bounds, which enclose what the commands allow "
    "together, and more"
)
"""What a reader is told where factors are known but not used."""


@dataclass(frozen=True, eq=False, repr=False)
class FactoredRows(Record):
    """A game: a model's states, then layers of states in the middle of a step with one choice each."""

    structure: Structure
    lower: FloatArray
    upper: FloatArray
    layer_start: OffsetArray

    def __post_init__(self) -> None:
        freeze(self, np.float64, "lower", "upper")
        freeze(self, np.int64, "layer_start")
        s, own = self.structure, self.states
        if self.layer_start[-1] != s.states or np.any(np.diff(s.choice_start)[own:] != 1):
            raise InputError("states in the middle of a step have one choice each")
        for first, last in self.layers:
            begin, end = s.transition_start[[self.choices + first - own, self.choices + last - own]]
            if s.successor[begin:end].max(initial=0) >= first:
                raise InputError("states in the middle of a step lead to layers before their own")

    def _facts_(self) -> Facts:
        return [("states in the middle of a step", f"{self.structure.states - self.states:,}")]

    @property
    def states(self) -> int:
        """Those of the model itself."""
        return int(self.layer_start[0])

    @property
    def choices(self) -> int:
        """Those of the model itself."""
        return int(self.structure.choice_start[self.states])

    @property
    def layers(self) -> list[tuple[int, int]]:
        """The first state of each layer, and the one behind its last."""
        return list(pairwise(self.layer_start.tolist()))

    def lift(self, objective: Objective) -> Objective:
        """The same question about the game: inner states are no targets, never forbidden, earn nothing."""
        more, reward = self.structure.states - self.states, objective.reward
        if reward is not None:
            each = (reward.state, reward.choice)
            state, choice = (None if part is None else np.append(part, np.zeros(more)) for part in each)
            reward = RewardStructure(state, choice)
        return objective.moved(lambda held, inner: np.append(held, np.full(more, inner)), reward)

    def lift_choices(self, choice: OffsetArray) -> OffsetArray:
        """A choice per state, with the only ones of states in the middle of a step."""
        return np.append(choice, np.arange(self.choices, self.structure.choices))

    def lift_weights(self, weight: FloatArray) -> FloatArray:
        """The same for probabilities of choices."""
        return np.append(weight, np.ones(self.structure.choices - self.choices))


def counts_steps(objective: Objective) -> bool:
    """Whether an answer depends on how many steps a play takes."""
    timed = (ObjectiveKind.NEXT, ObjectiveKind.CUMULATIVE, ObjectiveKind.DISCOUNTED)
    return objective.kind in timed or objective.lower_steps > 0 or objective.upper_steps is not None
