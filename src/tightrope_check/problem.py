"""The contents of a certificate: a problem, claims about it, and hints.

The problem is all of what is asked, and nothing that follows from something else in it. It can be rebuilt
from a model, a property and data (`tightrope.certify.problem`), and is compared field by field with the one
in a file. Three kinds of models:

* `probability`: doubles p, each standing for a number within p·(1 ± (k+2)·2⁻⁵²), k the successors of the
  choice;
* `lower`, `upper`: intervals, nature picks any distribution within them at every choice and step;
* `expression`, `polynomial`: exact polynomials over parameters, at a point `theta`, or over a `domain`: then
  the claim is about every instantiation in it, or with `data` about the true one, with probability 1 − δ.

A temporal question is about the runs of the model that an `automaton` accepts. With `time`, polynomials are
rates of a chain in continuous time (`tightrope_check.rates`). A wrong hint can only make a check fail.
Sizes that depend on derived quantities (events, coordinates) are compared where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.fields import LARGEST, Polynomial, list_fields
from tightrope_check.nature import Graph
from tightrope_check.numbers import bits_of
from tightrope_check.verdict import BELIEVED, MEANING, Assumption, exactly

if TYPE_CHECKING:
    from tightrope_check.evidence import Data, Domain, LearnedHints

MOST_STEPS = 1_000_000
MOST_WORK = 10**9
"""Steps times transitions of a bounded horizon; small models count as 20,000 transitions."""

MOST_BITS = 10**7
"""Of all monomials at a point."""

RUNS = ("AVERAGE", "TEMPORAL")
"""Kinds that are about whole runs: no sums, of which bets, coupled proofs and differences are."""


@dataclass(frozen=True, eq=False)
class CertifiedObjective:
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

    def boundary(self, states: int) -> tuple[BoolArray, FloatArray]:
        """The states whose value is given, and that value."""
        if self.target is None:
            return np.zeros(states, dtype=np.bool_), np.zeros(states)
        if self.kind == "REACH_REWARD":
            return self.target, np.where(self.target, 0.0 if self.terminal is None else self.terminal, 0.0)
        known = self.target if self.allowed is None else self.target | ~self.allowed
        return known, np.where(self.target, 1.0, 0.0)

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
class CertifiedProblem:
    """A model, an objective, and where the model is parametric what is known of its parameters.

    `assumed_support` EPS: it was assumed that a transition which can happen has at least probability
    min(EPS, its upper bound); lower bounds of 0 are raised to that. Parameters beyond the domain's are the
    reciprocals of `denominator`, in order (`tightrope_check.quotients`). `misfit`, 0 or one number at
    every choice: the process is within so much, in total variation, of a distribution over the domain or of
    the true one, at every step anew, with no transition that is not there. `passing`: states in the middle of
    a step, where steps are counted (`tightrope_check.layers`). `unseen`: states that stand for all
    outcomes of choices that were never seen, and may come next (`tightrope_check.statistics.unseen`).
    """

    graph: Graph = fields.part(Graph)
    objective: CertifiedObjective = fields.part(CertifiedObjective)
    probability: FloatArray | None = fields.reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    lower: FloatArray | None = fields.reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    upper: FloatArray | None = fields.reals("TRANSITIONS", least=0.0, most=1.0, optional=True)
    expression: OffsetArray | None = fields.integers("TRANSITIONS", optional=True)
    polynomial: tuple[Polynomial, ...] | None = fields.polynomials("expressions", optional=True)
    theta: tuple[Fraction, ...] | None = fields.rationals("PARAMETERS", optional=True)
    domain: Domain | None = fields.part("evidence.Domain", optional=True)
    data: Data | None = fields.part("evidence.Data", optional=True)
    assumed_support: float | None = fields.share(optional=True)
    automaton: Any = fields.part("product.RabinAutomaton", optional=True)
    denominator: tuple[Polynomial, ...] | None = fields.polynomials("denominators", optional=True)
    misfit: FloatArray | None = fields.reals("CHOICES", least=0.0, most=1 - 2.0**-53, optional=True)
    time: tuple[Fraction, ...] | None = fields.rationals("times", optional=True)
    passing: BoolArray | None = fields.truths("STATES", optional=True)
    unseen: BoolArray | None = fields.truths("STATES", optional=True)

    @property
    def has_vectors(self) -> bool:
        """Whether vectors prove the value; elsewhere the checker makes the steps."""
        timed = self.time and (len(self.time) == 2 or self.objective.kind == "TOTAL")
        return not timed and self.objective.steps is None

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
        if self.time is not None:
            from tightrope_check.rates import trouble

            if why := trouble(self):
                return why
        elif self.data is not None and self.data.waited is not None:
            return "exposures are of chains in continuous time"
        earns = self.objective.earned is not None and self.time is None
        if (earns or self.denominator is not None) and self.law != "domain":
            return "rewards with parameters and quotients are for models over a domain"
        if self.assumed_support is not None and self.law not in ("interval", "domain"):
            return "an assumption about supports that does not fit the model"
        if (self.automaton is not None) != (self.objective.kind == "TEMPORAL"):
            return "an automaton is for temporal questions, which need one"
        if self.objective.kind == "AVERAGE" and self.objective.earned is not None and self.time is None:
            return "averages are of rewards that are known"
        if self.data is not None and self.data.bets and self.objective.kind in RUNS:
            return "bets are about sums of policies without memory"
        if self.unseen is not None and (self.law != "domain" or self.assumed_support is not None):
            return "unseen outcomes are of models over a domain, and their support is not assumed"
        if self.data is not None and (self.unseen is not None) != (self.data.method == "unseen mass"):
            return "unseen outcomes have a method of their own"
        steps = (self.objective.upper_steps or 0) + self.objective.lower_steps
        if steps * max(self.graph.transitions, 20_000) > MOST_WORK:
            return f"{steps} steps and {self.graph.transitions} transitions are more than this program checks"
        if self.passing is not None:
            from tightrope_check.layers import trouble_within

            return trouble_within(self, self.passing, MOST_WORK)
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
        if earned is not None and self.data is not None and self.data.bets:
            return "a slab has no rewards with parameters"
        costs = None if self.data is None else self.data.costs
        if costs is not None and (
            earned is None or costs.transition.max(initial=0) >= self.graph.transitions
        ):
            return "costs of rewards without parameters, or of a transition that is not there"
        if self.data is not None and self.data.seen is not None:
            from tightrope_check.statistics.episodes import trouble_with

            if found := trouble_with(self):
                return found
        if self.data is not None and self.data.batch_transition.max(initial=-1) >= self.graph.transitions:
            return "a count of a transition that is not there"
        work = sum(bits_of(self.theta[i]) * e for m in monomials for i, e in m) if self.theta else 0
        return "the expressions are too large to be evaluated at the point" if work > MOST_BITS else None

    def assumptions(self, planned: bool, named: Collection[str]) -> list[Assumption]:
        """What is assumed for claims of these names, derived from method and design; what is not kept makes
        the confidence nominal."""
        listed = [] if self.data is None else self.data.assumptions(planned, named)
        if self.assumed_support is not None:
            words = f"every possible transition has a probability of at least {exactly(self.assumed_support)}"
            listed.append(("support", "stated", words))
        if self.misfit is not None:
            from tightrope_check.misfit import assumption

            listed.append(assumption(self))
        if self.automaton is not None:
            listed.append(("formula", "stated", BELIEVED if self.automaton.believed else MEANING))
        return listed


_PARAMETRIC = [f"expression polynomial {known}" for known in ("theta", "domain", "domain data")]
_LAWS = ("probability", "lower upper", *_PARAMETRIC)


@dataclass(frozen=True, eq=False)
class Claim:
    """lower ≤ value at the initial state ≤ upper, as the question asks for it.

    `policy` free: of the agent's best policy; fixed: of the policy `choice`; randomised: of the one that
    takes choice c with probability weight[c], divided by the sum of the weights of its state. A fixed policy
    may change with the step: until `earlier` steps (step, state, choice) were taken, the state's choice is
    another one (`tightrope_check.special`). Unknown: of what was done in the episodes, by whatever
    policy (`tightrope_check.statistics.episodes`). Of a pair: of the policy of claim pair[0], less that
    of the policy of claim pair[1], both under the same parameters.
    """

    name: str = fields.word("value", "robust policy", "given policy", "what was done", "difference")
    policy: str = fields.word("free", "fixed", "randomised", "unknown", "pair")
    lower: float = fields.real(most=inf)
    upper: float = fields.real(most=inf)
    choice: OffsetArray | None = fields.integers("states", optional=True)
    weight: FloatArray | None = fields.reals("choices", least=0.0, most=1.0, optional=True)
    earlier: OffsetArray | None = fields.integers("changes", "3", optional=True)
    pair: OffsetArray | None = fields.integers("2", most=3, optional=True)

    def weights(self, choices: int) -> FloatArray | None:
        """With which weights the policy takes the choices, so many; None where it is free."""
        if self.choice is None:
            return self.weight
        return np.bincount(self.choice, minlength=choices).astype(np.float64)

    def trouble(self) -> str | None:
        if (self.choice is not None) != (self.policy == "fixed"):
            return "a policy is given where it is fixed, and only there"
        if (self.weight is not None) != (self.policy == "randomised"):
            return "weights are given where the policy is randomised, and only there"
        if self.earlier is not None and self.policy != "fixed":
            return "choices of earlier steps are for policies that are fixed"
        if not (self.pair is not None) == (self.policy == "pair") == (self.name == "difference"):
            return "a pair of policies is given where their difference is claimed, and only there"
        if (self.policy == "unknown") != (self.name == "what was done"):
            return "what was done is by a policy that is unknown, and nothing else is"
        return None if self.lower <= self.upper else "a lower bound above the upper one"


@dataclass(frozen=True, eq=False)
class ValueHints:
    """Vectors that bound the value at every state, before `complement`: see
    `tightrope_check.checker`.

    Where a bounded number of steps gives the value there are none: the checker makes the steps. For F>=k they
    bound what is left after k steps. For averages `lower` and `upper` bound the gain, with a bias each. The
    states of a temporal question are those of the product. `witness`: the choices of a free agent.
    `upper_ranking` is `lower_ranking` where it is not given. `lower_basis`, `upper_basis`: for every choice a
    basis of the region (0 for an ellipsoid); −1 where the bounds of transitions say it all.
    """

    lower: FloatArray | None = fields.reals("states", optional=True, most=inf)
    upper: FloatArray | None = fields.reals("states", optional=True, most=inf)
    lower_ranking: OffsetArray | None = fields.integers("states", optional=True)
    upper_ranking: OffsetArray | None = fields.integers("states", optional=True)
    witness: OffsetArray | None = fields.integers("states", optional=True)
    lower_bias: FloatArray | None = fields.reals("states", optional=True)
    upper_bias: FloatArray | None = fields.reals("states", optional=True)
    lower_basis: OffsetArray | None = fields.integers("choices", least=-1, optional=True)
    upper_basis: OffsetArray | None = fields.integers("choices", least=-1, optional=True)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Claims about a problem, with hints for each. Nothing relies on `about`, what a file says of itself."""

    problem: CertifiedProblem = fields.part(CertifiedProblem)
    claims: tuple[Claim, ...] = fields.parts(Claim, 4)
    values: tuple[ValueHints, ...] = fields.parts(ValueHints, 4)
    learned: LearnedHints | None = fields.part("evidence.LearnedHints", optional=True)
    about: Mapping[str, str] = fields.texts()

    def trouble(self) -> str | None:
        if not self.claims or len(self.claims) != len(self.values):
            return "every claim needs its hints, and there must be one"
        if len({claim.name for claim in self.claims}) != len(self.claims):
            return "two claims have one name"
        if (self.learned is not None) != (self.problem.law == "domain"):
            return "hints about sets are for models over a domain, and they need them"
        query, proofs = self.problem.objective, () if self.learned is None else self.learned.coupled
        plain = [
            query.kind not in RUNS and (query.steps or one.earlier is None) and not self._is_of_episodes(one)
            for one in self.claims
        ]
        if any(proof.claim >= len(plain) or not plain[proof.claim] for proof in proofs):
            return (
                "a coupled proof of no claim, a formula, an average, what was done or steps without a bound"
            )
        if self.problem.data is not None and self.problem.data.seen is not None:
            from tightrope_check.statistics.episodes import trouble_of

            if wrong := trouble_of(self):
                return wrong
        if self.problem.misfit is not None:
            from tightrope_check.misfit import trouble as trouble_of_misfit

            if found := trouble_of_misfit(self):
                return found
        for number, (claim, hints) in enumerate(zip(self.claims, self.values, strict=True)):
            if claim.pair is not None:
                if trouble := self._misfit_of_pair(number, claim.pair, hints):
                    return f"claim {number}: {trouble}"
                continue
            least, most = self.problem.objective.range
            if not least <= claim.lower <= claim.upper <= most:
                return f"claim {number}: what is claimed is not a value of the quantity"
            if self.problem.automaton is not None:  # what they must fit is derived
                own = self.learned and (claim.name, claim.policy) == ("robust policy", "fixed")
                alone = claim.name == "given policy" and len(self.claims) == 1 and claim.earlier is None
                trouble = None if own or alone or claim.policy == "free" else "a policy without memory"
            else:
                trouble = misfit(self.problem, claim, hints)
            if trouble:
                return f"claim {number}: {trouble}"
        return None

    def _is_of_episodes(self, claim: Claim) -> bool:
        """Whether it is about what was done, or a difference to that: no policy of the model's."""
        pair = () if claim.pair is None else [i for i in claim.pair.tolist() if i < len(self.claims)]
        return "unknown" in (claim.policy, *(self.claims[i].policy for i in pair))

    def _misfit_of_pair(self, number: int, pair: OffsetArray, hints: ValueHints) -> str | None:
        known, usual = ("fixed", "randomised"), ("fixed", "randomised", "unknown")
        if any(
            one >= number or self.claims[one].policy not in words
            for one, words in zip(pair.tolist(), (known, usual), strict=True)
        ):
            return "a difference is that of two policies of claims before it"
        if self.problem.objective.kind in RUNS:
            return "a difference of averages, or of policies with memory"
        if any(getattr(hints, name) is not None for name, _ in list_fields(hints)):
            return "vectors beside a difference"
        return None


def misfit(problem: CertifiedProblem, claim: Claim, hints: ValueHints) -> str | None:
    """Why a claim and its hints do not fit the problem."""
    if claim.policy == "unknown":
        given = any(getattr(hints, name) is not None for name, _ in list_fields(hints))
        if given or problem.data is None or problem.data.seen is None:
            return "what was done shows in episodes, and in these alone"
        return None
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
        from tightrope_check.special import misfit_of_steps

        if trouble := misfit_of_steps(problem, claim.earlier):
            return trouble
    if claim.weight is not None:
        total = np.add.reduceat(claim.weight, start[:-1])
        if np.any(np.abs(total - 1) > 2.0**-40):
            return "the policy's weights are not distributions"
    if not (hints.lower is None) == (hints.upper is None) == (not problem.has_vectors):
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
