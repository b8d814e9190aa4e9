"""The problem that a certificate speaks of: all of it, and nothing that follows from something else in it.

It can be rebuilt from a model, a property and data (`tightrope.proof.problem`), and is compared field by
field with the one in a file. Three kinds of models:

* `probability`: doubles p, each standing for a number within p·(1 ± (k+2)·2⁻⁵²), k the successors of the
  choice;
* `lower`, `upper`: intervals, nature picks any distribution within them at every choice and step;
* `expression`, `polynomial`: exact polynomials over parameters, at a point `theta`, or over a `domain` of
  parameters: then the claim is about every instantiation in it, or with `data` about the true one, with
  probability 1 − δ.

A temporal question is about the runs of the model that an `automaton` accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.certificate.format.fields import (
    Polynomial,
    integers,
    is_offsets,
    part,
    polynomials,
    rationals,
    real,
    reals,
    share,
    truth,
    truths,
    whole,
    word,
)
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

MOST_STATES = 2**31
MOST_STEPS = 1_000_000
MOST_COUNTS = 2**50
"""Sums of counts, also over all outcomes, stay far below what int64 and doubles hold."""

MOST_WORK = 10**9
"""Steps times transitions of a bounded horizon; small models count as 20,000 transitions."""

MOST_ELIMINATION = 4 * 10**7
"""Of the equalities of a domain: their number³ · parameters · bits of a coefficient."""

MOST_ATOMS = 30
MOST_MARKS = 200_000
"""Memories times pairs and marks; there are at most a tenth as many memories."""

MOST_PAIRS = 2**28
"""Of a state and a memory."""

INTERVALS = ("clopper-pearson", "hoeffding", "beta-binomial")

MOST_BITS = 10**7
"""Of all monomials at a point."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Choices of state s: choice_start[s] to choice_start[s+1]; transitions of a choice likewise."""

    choice_start: OffsetArray = integers("STATES+1")
    transition_start: OffsetArray = integers("CHOICES+1")
    successor: OffsetArray = integers("TRANSITIONS")
    initial: int = whole()

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    @property
    def choices(self) -> int:
        return len(self.transition_start) - 1

    @property
    def transitions(self) -> int:
        return len(self.successor)

    def trouble(self) -> str | None:
        if not 1 <= self.states < MOST_STATES or not is_offsets(self.choice_start, self.choices):
            return "the choices of states do not fit"
        if not is_offsets(self.transition_start, self.transitions):
            return "the transitions of choices do not fit"
        inside = self.successor.max() < self.states and self.initial < self.states
        return None if inside else "a state's number is out of range"


@dataclass(frozen=True, eq=False)
class Objective:
    """What is asked, and who decides. `nature` ANY: the bounds hold whatever she picks. `earned`, in place of
    `reward`: the polynomial of the problem that each choice earns, over a domain."""

    kind: str = word(
        "UNTIL", "NEXT", "REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED", "AVERAGE", "TEMPORAL"
    )
    agent: str = word("MAX", "MIN")
    nature: str = word("MAX", "MIN", "ANY")
    complement: bool = truth()
    lower_steps: int = whole(most=MOST_STEPS)
    upper_steps: int | None = whole(most=MOST_STEPS, optional=True)
    discount: float | None = share(optional=True)
    reward: FloatArray | None = reals("CHOICES", optional=True)
    target: BoolArray | None = truths("STATES", optional=True)
    allowed: BoolArray | None = truths("STATES", optional=True)
    terminal: FloatArray | None = reals("STATES", optional=True)
    earned: OffsetArray | None = integers("CHOICES", optional=True)

    @property
    def steps(self) -> int | None:
        """The number of backups that give the value, or None."""
        return 1 if self.kind == "NEXT" else self.upper_steps

    def trouble(self) -> str | None:
        """Every field is there where the kind has a meaning for it, and nowhere else."""
        required, possible = _FIELDS[self.kind]
        named = ("upper_steps", "discount", "reward", "target", "allowed", "terminal")
        given = {name for name in named if getattr(self, name) is not None}
        if self.earned is not None:
            if self.reward is not None:
                return "rewards are given twice"
            given.add("reward")
        if not required <= given <= required | possible:
            return f"{', '.join(sorted(given))}: not the fields of {self.kind}"
        if self.lower_steps > 0 and self.kind != "UNTIL":
            return f"a lower bound on the steps has no meaning for {self.kind}"
        if self.upper_steps is not None and self.lower_steps > self.upper_steps:
            return "the bounds on the steps leave none"
        is_event = self.kind in ("UNTIL", "NEXT", "TEMPORAL")
        return "only a probability has a complement" if self.complement and not is_event else None


_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "UNTIL": ({"target"}, {"upper_steps", "allowed"}),
    "NEXT": ({"target"}, set()),
    "REACH_REWARD": ({"reward", "target"}, {"terminal"}),
    "CUMULATIVE": ({"reward", "upper_steps"}, set()),
    "TOTAL": ({"reward"}, set()),
    "DISCOUNTED": ({"reward", "discount"}, set()),
    "AVERAGE": ({"reward"}, set()),
    "TEMPORAL": (set(), set()),
}
"""What each kind needs, and what it may have beside that."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton that reads the letter of every state that is visited, beginning in 0.

    `atom[i, s]`: state formula i holds in s. Letters are the columns of it that occur, in the order of the
    numbers Σ atom[i, s]·2^i. Reading letter l in memory q, it goes on in successor[q, l]. It accepts a run
    that for some k marks avoided[k] finitely often, and every repeated[j] with pair[j] = k infinitely often.
    `believed`: another program made it of the formula.
    """

    atom: BoolArray = truths("atoms", "STATES")
    successor: OffsetArray = integers("memories", "letters")
    avoided: BoolArray = truths("pairs", "memories", "letters")
    pair: OffsetArray = integers("marks")
    repeated: BoolArray = truths("marks", "memories", "letters")
    believed: bool = truth()

    @cached_property
    def letters(self) -> OffsetArray:
        """The number of every state's letter."""
        weight = np.left_shift(1, np.arange(len(self.atom)))
        found: OffsetArray = np.unique(weight @ self.atom, return_inverse=True)[1].reshape(-1)
        return found

    @property
    def memories(self) -> int:
        return len(self.successor)

    def trouble(self) -> str | None:
        marked = self.memories * (len(self.avoided) + len(self.repeated))
        pairs = self.atom.shape[1] * self.memories
        if len(self.atom) > MOST_ATOMS or pairs > MOST_PAIRS or max(marked, 10 * self.memories) > MOST_MARKS:
            return "the automaton is larger than this program checks"
        if self.successor.size == 0 or self.successor.max() >= self.memories:
            return "the automaton leads nowhere"
        if self.letters.max() + 1 != self.successor.shape[1]:
            return "the automaton does not read the letters that occur"
        return "a mark of no pair" if self.pair.max(initial=-1) >= len(self.avoided) else None


@dataclass(frozen=True, eq=False)
class Domain:
    """lower ≤ θ ≤ upper, and for every row r: Σ coefficient[r·n + i]·θ_i ≤ bound[r] (= if is_equality[r])."""

    lower: tuple[Fraction, ...] = rationals("PARAMETERS")
    upper: tuple[Fraction, ...] = rationals("PARAMETERS")
    coefficient: tuple[Fraction, ...] = rationals("coefficients")
    bound: tuple[Fraction, ...] = rationals("rows")
    is_equality: BoolArray = truths("rows")

    def trouble(self) -> str | None:
        size = len(self.lower)
        if len(self.coefficient) != size * len(self.bound):
            return "the domain's constraints do not fit its parameters"
        equal = [row for row in self.constraints if row[2]]
        longest = max((_bits(c) for row in equal for c in row[0]), default=0)
        if len(equal) ** 3 * size * longest > MOST_ELIMINATION:
            return f"{len(equal)} equalities are more than this program solves"
        return None

    @property
    def constraints(self) -> list[tuple[tuple[Fraction, ...], Fraction, bool]]:
        size = len(self.lower)
        return [
            (self.coefficient[r * size : (r + 1) * size], bound, bool(self.is_equality[r]))
            for r, bound in enumerate(self.bound)
        ]


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs that were seen at transitions: how many, their sum and that of their squares. They lie within
    [lower, upper], or their standard deviation given the past is at most `deviation`."""

    transition: OffsetArray = integers("costs")
    count: OffsetArray = integers("costs", least=1, most=MOST_COUNTS)
    total: tuple[Fraction, ...] = rationals("costs")
    square: tuple[Fraction, ...] = rationals("costs")
    lower: float | None = real(optional=True)
    upper: float | None = real(optional=True)
    deviation: float | None = real(least=5e-324, optional=True)

    def trouble(self) -> str | None:
        if np.any(np.diff(self.transition) <= 0):
            return "the transitions of costs do not rise strictly"
        ranged = self.lower is not None and self.upper is not None and self.lower < self.upper
        bare = self.lower is None and self.upper is None and self.deviation is not None
        return None if (ranged and self.deviation is None) or bare else "costs need a range or a deviation"


@dataclass(frozen=True, eq=False)
class Data:
    """What was seen, in time-ordered batches, how it was sampled, and the statement that is made of it.

    Batch b saw batch_transition[i] batch_count[i] times, batch_start[b] ≤ i < batch_start[b+1]. Methods that
    do not use the order have one batch. `anytime`: they were looked at while they came. `shared_by`: for
    intervals, whose δ is shared: events, g and 1 − g being one; outcomes, each g; or transitions, each with
    its own counts.
    """

    delta: float = share()
    method: str = word(*INTERVALS, "weissman", "likelihood", "slab", "ellipsoid")
    shared_by: str = word("events", "outcomes", "transitions")
    design: str = word("generative-fixed", "trajectories", "adaptive")
    repeats: bool = truth()
    censored: bool = truth()
    anytime: bool = truth()
    batch_start: OffsetArray = integers("batches+1")
    batch_transition: OffsetArray = integers("counts")
    batch_count: OffsetArray = integers("counts", least=1, most=MOST_COUNTS)
    episodes: int | None = whole(optional=True)
    planned: int | None = whole(optional=True)
    costs: Costs | None = part(Costs, optional=True)

    def trouble(self) -> str | None:
        if not is_offsets(self.batch_start, len(self.batch_transition), rising=False):
            return "the batches do not fit"
        falls = np.flatnonzero(np.diff(self.batch_transition) <= 0) + 1
        if not np.isin(falls, self.batch_start).all():
            return "the transitions of a batch do not rise strictly"
        if self.batch_count.astype(np.float64).sum() > MOST_COUNTS:
            return f"there are more than {MOST_COUNTS} counts"
        plain = self.shared_by == "events" or self.has_intervals
        return None if plain else f"{self.method} shares its confidence in one way only"

    @property
    def has_intervals(self) -> bool:
        """Whether the statement is one interval for each event, outcome or transition."""
        return self.method in INTERVALS

    @property
    def is_untied(self) -> bool:
        return self.shared_by == "transitions"

    @property
    def batches(self) -> int:
        return len(self.batch_start) - 1


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, an objective, and where the model is parametric what is known of its parameters.

    `assumed_support` EPS: it was assumed that a transition which can happen has at least probability
    min(EPS, its upper bound); lower bounds of 0 are raised to that.
    """

    graph: Graph = part(Graph)
    objective: Objective = part(Objective)
    probability: FloatArray | None = reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    lower: FloatArray | None = reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    upper: FloatArray | None = reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    expression: OffsetArray | None = integers("TRANSITIONS", optional=True)
    polynomial: tuple[Polynomial, ...] | None = polynomials("expressions", optional=True)
    theta: tuple[Fraction, ...] | None = rationals("PARAMETERS", optional=True)
    domain: Domain | None = part(Domain, optional=True)
    data: Data | None = part(Data, optional=True)
    assumed_support: float | None = share(optional=True)
    automaton: Automaton | None = part(Automaton, optional=True)

    @property
    def law(self) -> str:
        """plain, interval, point or domain."""
        if self.probability is not None:
            return "plain"
        return "interval" if self.lower is not None else "point" if self.theta is not None else "domain"

    def trouble(self) -> str | None:
        names = ("probability", "lower", "upper", "expression", "polynomial", "theta", "domain", "data")
        given = " ".join(name for name in names if getattr(self, name) is not None)
        if given not in _LAWS:
            return f"{given or 'nothing'}: not what labels the transitions of one model"
        if (self.law == "interval") == (self.objective.nature == "ANY"):
            return "nature's direction does not fit the model"
        if self.objective.earned is not None and self.law != "domain":
            return "rewards with parameters are for models over a domain"
        if self.assumed_support is not None and self.law not in ("interval", "domain"):
            return "an assumption about supports that does not fit the model"
        if (self.automaton is not None) != (self.objective.kind == "TEMPORAL"):
            return "an automaton is for temporal questions, which need one"
        if self.objective.kind == "AVERAGE" and self.law == "domain":
            return "averages are about models that are known"
        if self.automaton is not None and self.data is not None and self.data.method == "slab":
            return "bets are about policies without memory"
        steps = (self.objective.upper_steps or 0) + self.objective.lower_steps
        if steps * max(self.graph.transitions, 20_000) > MOST_WORK:
            return f"{steps} steps and {self.graph.transitions} transitions are more than this program checks"
        return None if self.polynomial is None else self._parametric_trouble(self.polynomial)

    def _parametric_trouble(self, polynomial: tuple[Polynomial, ...]) -> str | None:
        assert self.expression is not None
        known = self.theta or (() if self.domain is None else self.domain.lower)
        monomials = {monomial for one in polynomial for monomial in one}
        if any(i >= len(known) for monomial in monomials for i, _ in monomial):
            return "a parameter's number is out of range"
        earned = self.objective.earned
        if max(self.expression.max(initial=0), 0 if earned is None else earned.max()) >= len(polynomial):
            return "an expression's number is out of range"
        if earned is not None and self.data is not None and self.data.method == "slab":
            return "a slab has no rewards with parameters"
        costs = None if self.data is None else self.data.costs
        if costs is not None and (
            earned is None or costs.transition.max(initial=0) >= self.graph.transitions
        ):
            return "costs of rewards without parameters, or of a transition that is not there"
        if self.data is not None and self.data.batch_transition.max(initial=-1) >= self.graph.transitions:
            return "a count of a transition that is not there"
        work = sum(_bits(self.theta[i]) * e for m in monomials for i, e in m) if self.theta else 0
        return "the expressions are too large to be evaluated at the point" if work > MOST_BITS else None


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


_LAWS = (
    "probability",
    "lower upper",
    "expression polynomial theta",
    "expression polynomial domain",
    "expression polynomial domain data",
)
