"""The problem that a certificate speaks of: all of it, and nothing that follows from something else in it.

It can be rebuilt from a model, a property and data (`tightrope.certify.problem`), and is compared field by
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
from math import inf
from typing import TYPE_CHECKING

from tightrope.certificate.format import fields
from tightrope.certificate.format.fields import LARGEST, Polynomial, is_offsets
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.evidence import Data, Domain
    from tightrope.certificate.game.product import Automaton

MOST_STATES = 2**31
MOST_STEPS = 1_000_000
MOST_WORK = 10**9
"""Steps times transitions of a bounded horizon; small models count as 20,000 transitions."""

MOST_BITS = 10**7
"""Of all monomials at a point."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Choices of state s: choice_start[s] to choice_start[s+1]; transitions of a choice likewise."""

    choice_start: OffsetArray = fields.integers("STATES+1")
    transition_start: OffsetArray = fields.integers("CHOICES+1")
    successor: OffsetArray = fields.integers("TRANSITIONS")
    initial: int = fields.whole()

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
        inside = max(self.successor.max(), self.initial) < self.states
        return None if inside else "a state's number is out of range"


@dataclass(frozen=True, eq=False)
class Objective:
    """What is asked, and who decides. `nature` ANY: the bounds hold whatever she picks. `earned`, in place of
    `reward`: the polynomial of the problem that each choice earns, over a domain."""

    kind: str = fields.word(
        "UNTIL", "NEXT", "REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED", "AVERAGE", "TEMPORAL"
    )
    agent: str = fields.word("MAX", "MIN")
    nature: str = fields.word("MAX", "MIN", "ANY")
    complement: bool = fields.truth()
    lower_steps: int = fields.whole(most=MOST_STEPS)
    upper_steps: int | None = fields.whole(most=MOST_STEPS, optional=True)
    discount: float | None = fields.share(optional=True)
    reward: FloatArray | None = fields.reals("CHOICES", optional=True)
    target: BoolArray | None = fields.truths("STATES", optional=True)
    allowed: BoolArray | None = fields.truths("STATES", optional=True)
    terminal: FloatArray | None = fields.reals("STATES", optional=True)
    earned: OffsetArray | None = fields.integers("CHOICES", optional=True)

    @property
    def steps(self) -> int | None:
        """The number of backups that give the value, or None."""
        return 1 if self.kind == "NEXT" else self.upper_steps

    @property
    def is_probability(self) -> bool:
        return self.kind in ("UNTIL", "NEXT", "TEMPORAL")

    @property
    def range(self) -> tuple[float, float]:
        """Between what the value lies, whatever the model is: what is claimed beyond that is no claim."""
        if self.is_probability:
            return 0.0, 1.0
        earned = [part for part in (self.reward, self.terminal) if part is not None]
        negative = self.earned is not None or any(part.min(initial=0.0) < 0 for part in earned)
        return -inf if negative else 0.0, inf if self.kind in ("REACH_REWARD", "TOTAL") else LARGEST

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
        lonely = self.complement and not self.is_probability
        return "only a probability has a complement" if lonely else None


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
class Problem:
    """A model, an objective, and where the model is parametric what is known of its parameters.

    `assumed_support` EPS: it was assumed that a transition which can happen has at least probability
    min(EPS, its upper bound); lower bounds of 0 are raised to that. Parameters beyond the domain's are the
    reciprocals of `denominator`, in order (`tightrope.certificate.region.quotients`).
    """

    graph: Graph = fields.part(Graph)
    objective: Objective = fields.part(Objective)
    probability: FloatArray | None = fields.reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    lower: FloatArray | None = fields.reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    upper: FloatArray | None = fields.reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    expression: OffsetArray | None = fields.integers("TRANSITIONS", optional=True)
    polynomial: tuple[Polynomial, ...] | None = fields.polynomials("expressions", optional=True)
    theta: tuple[Fraction, ...] | None = fields.rationals("PARAMETERS", optional=True)
    domain: Domain | None = fields.part("evidence.Domain", optional=True)
    data: Data | None = fields.part("evidence.Data", optional=True)
    assumed_support: float | None = fields.share(optional=True)
    automaton: Automaton | None = fields.part("game.product.Automaton", optional=True)
    denominator: tuple[Polynomial, ...] | None = fields.polynomials("denominators", optional=True)

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
        if (self.objective.earned is not None or self.denominator is not None) and self.law != "domain":
            return "rewards with parameters and quotients are for models over a domain"
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
        if any(i >= len(known) + len(self.denominator or ()) for monomial in monomials for i, _ in monomial):
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
        work = sum(bits_of(self.theta[i]) * e for m in monomials for i, e in m) if self.theta else 0
        return "the expressions are too large to be evaluated at the point" if work > MOST_BITS else None


def bits_of(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


_LAWS = (
    "probability",
    "lower upper",
    "expression polynomial theta",
    "expression polynomial domain",
    "expression polynomial domain data",
)
