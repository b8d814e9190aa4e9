"""Certificates from solutions of known models: plain values, temporal formulas, long-run averages.

*Temporal formulas.* The checker's own code derives the product and its targets
(`tightrope_check.product`); the solver only bounds the probability of reaching these.

*Averages* have a gain and a bias on each side (`docs/proofs/values.md`). Of a maximiser, from above: the gain
is the quotient's upper bound, constant on end components; the bias is that of the components, with C·w added,
w ≥ 1 + p·w. From below likewise, for one policy. Where rounding leaves an inequality open, ε·(1 + w) is added
to the gain (taken from it, below) until the checker's own backups confirm it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from tightrope import __version__
from tightrope.certify.certificate_file import CertificateFile, answered_file, shown_value
from tightrope.certify.problem import Asked, asked_of, to_problem
from tightrope.errors import CannotCertify, InputError
from tightrope.logic import long_run
from tightrope.logic.accepting import towards
from tightrope.logic.model_checking import Answer
from tightrope.logic.values import under
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, policy_of
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import difference
from tightrope.numerics.text import text_above, text_below
from tightrope.problem import Problem, require_discrete
from tightrope.solver.bellman.factored import FactoredOperator
from tightrope.solver.equations.system import assume_support
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import limits_of, solve
from tightrope_check import problem as certified
from tightrope_check.checker import prove
from tightrope_check.laws import boxes_of
from tightrope_check.nature import Boxes, rows_of
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate, CertifiedProblem, Claim, ValueHints
from tightrope_check.product import (
    MOST_PAIRS,
    AutomatonProduct,
    given_weights,
    product_of,
    under_policy,
)

LARGEST_SLACK = 1e-6
Solve = Callable[..., Solution]
"""Solves a model for an objective, of the best policy or of a given one (`policy`)."""


def about_problem(problem: Problem) -> dict[str, object]:
    """What a certificate says beside its problem: which model and property that is."""
    return {"tightrope": __version__, "model_hash": problem.model.hash(), "property": problem.text}


def solved_file(
    problem: Problem,
    solved: Solution | Answer | None,
    theta: tuple[Fraction, ...] | None,
    effort: SolveOptions,
    policy: Policy | None = None,
    about: Mapping[str, object] | None = None,
    verify: bool = True,
) -> CertificateFile:
    """What proves an answer about a model, at the point `theta` where it has parameters. An answer that is
    not there is not compared."""
    model, query, support = require_discrete(problem.model), problem.query, effort.assume_support
    shown = None if solved is None else shown_value(solved.bounds, solved.truth, query)
    if isinstance(solved, Solution):
        assumed = support if isinstance(model, IntervalMDP) else None
        statement = to_problem(model, query.objective, theta=theta, assumed_support=assumed)
        return answered_file(to_certificate(statement, solved, policy, about), shown, verify)
    question = asked_of(query, effort.translator)
    proof = composed_certificate(model, question, theta, effort, support, about, policy)
    claim, bounds = proof.claims[0], None if solved is None else solved.bounds
    if shown is not None and bounds is not None and not bounds[0] <= claim.lower <= claim.upper <= bounds[1]:
        proved = f"[{text_below(claim.lower)}, {text_above(claim.upper)}]"
        wider = f"the certificate proves {proved}, a slightly wider interval than the answer"
        shown = replace(shown, notes=(wider,))
    if shown is not None and isinstance(model, IntervalMDP) and model.factored is not None:
        assert query.directions is not None
        shown = shown.beyond(query.directions[1])
    return answered_file(proof, shown, verify)


def to_certificate(
    problem: CertifiedProblem,
    solution: Solution,
    policy: Policy | None = None,
    about: Mapping[str, object] | None = None,
) -> Certificate:
    """The certificate of a solution of this problem; `policy` is the one given to the solve.

    The problem is that of the model itself (`tightrope.certify.problem`): what the solver made of it on the
    way, the checker makes again. The model that was solved is the one whose value can be proved (`provable`
    there).
    """
    if solution.is_eliminated:
        raise CannotCertify(
            "the bounds come from elimination of states, because float64 holds no inductive bounds, and "
            "certificates need inductive bounds. The answer without a certificate is proved"
        )
    initial = problem.graph.initial
    bounds = float(solution.lower[initial]), float(solution.upper[initial])
    claim = to_claim("value" if policy is None else "given policy", bounds, policy, problem.objective)
    if isinstance(solution.kernel, FactoredOperator):
        rows, choice, weight = solution.kernel.rows, claim.choice, claim.weight
        choice = None if choice is None else rows.lift_choices(choice)
        claim = replace(claim, choice=choice, weight=None if weight is None else rows.lift_weights(weight))
    hints = value_hints(solution, policy)
    return Certificate(problem, (claim,), (hints,), about=to_words(about or {}))


def to_claim(
    name: str, bounds: tuple[float, float], policy: Policy | None, objective: certified.CertifiedObjective
) -> Claim:
    """Bounds at the initial state, within the quantity's own range, of a policy or of the best one."""
    least, most = objective.range
    bounds = max(bounds[0], least), min(bounds[1], most)
    if policy is None:
        return Claim(name, "free", *bounds)
    if policy.steps is not None:
        choice, earlier = choices_by_step(policy.steps, objective)
        return Claim(name, "fixed", *bounds, choice=choice, earlier=earlier)
    if policy.is_deterministic:
        return Claim(name, "fixed", *bounds, choice=policy.choice)
    return Claim(name, "randomised", *bounds, weight=policy.probability)


def claim_between(
    name: str,
    low: Solution,
    high: Solution,
    policy: Policy | None,
    objective: certified.CertifiedObjective,
) -> Claim:
    """The claim between the lower vector of one solution and the upper one of another."""
    initial = low.kernel.structure.initial
    bounds = float(low.fixpoint_lower[initial]), float(high.fixpoint_upper[initial])
    if low.objective.complement:
        bounds = 0.0 - difference(bounds[1], 1.0), difference(1.0, bounds[0])
    return to_claim(name, bounds, policy, objective)


def refuse_steps(policy: Policy | None, objective: Objective) -> None:
    """Refuse a policy that changes with the step where no certificate can follow it."""
    if policy is None or policy.steps is None or objective.is_bounded:
        return
    if policy.steps.horizon > objective.lower_steps:
        raise InputError(
            "the policy depends on the step; without a step bound, certificates cover policies with one "
            "choice per state",
            hint="leave the certificate or the policy out, or ask for a bounded number of steps",
        )


def choices_by_step(
    steps: TimeVaryingChoices, objective: certified.CertifiedObjective
) -> tuple[OffsetArray, OffsetArray]:
    """The choices at the last step that counts, and those of earlier steps as claims list them: (step, state,
    choice), the last step first, none that says nothing new."""
    last = objective.lower_steps if objective.steps is None else max(objective.steps - 1, 0)
    owner = np.repeat(np.arange(steps.states), np.diff(steps.start))
    ends = np.flatnonzero((np.diff(owner) == 0) & (steps.step[1:] <= last) & (np.diff(steps.choice) != 0))
    rows = np.stack([steps.step[ends + 1] - 1, owner[ends], steps.choice[ends]], axis=1)
    return steps.at(last), rows[np.argsort(-rows[:, 0], kind="stable")].astype(np.int64)


def value_hints(solution: Solution, policy: Policy | None = None, high: Solution | None = None) -> ValueHints:
    """The vectors of a solution, the upper ones of `high` where it is given; the witness of a free agent."""
    if solution.objective.is_bounded:
        return ValueHints()
    tail = tail_of(solution, policy)
    if (game := tail.game) is not None:
        witness = None if policy is not None else game.policy.astype(np.int64)
        return ValueHints(game.lower, game.upper, game.ranking.astype(np.int64), witness=witness)
    above = tail if high is None else tail_of(high, policy)
    discounted = solution.objective.discount is not None
    return ValueHints(
        lower=tail.fixpoint_lower,
        upper=above.fixpoint_upper,
        lower_ranking=None if discounted else tail.ranking.astype(np.int64),
        upper_ranking=None if discounted or above is tail else above.ranking.astype(np.int64),
        witness=None if policy is not None else tail.choice.astype(np.int64),
    )


def to_words(about: Mapping[str, object]) -> dict[str, str]:
    """What a file says of itself, as texts."""
    return {name: _text(value) for name, value in about.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)[:4096]


def tail_of(solution: Solution, policy: Policy | None) -> Solution:
    """What an unbounded `F>=k` comes to after k steps; the solution itself for anything else."""
    objective = solution.objective
    if objective.lower_steps == 0 or objective.upper_steps is not None:
        return solution
    if policy is not None and policy.steps is not None:
        policy = policy.at(objective.lower_steps)
    return solve(
        solution.kernel,
        replace(objective, lower_steps=0),
        policy=policy,
        precision=solution.precision,
        relative=solution.relative,
    )


def composed_certificate(
    model: MDP | IntervalMDP | ParametricMDP,
    question: Asked,
    theta: Sequence[Fraction] | None,
    effort: SolveOptions,
    support: float | None = None,
    about: Mapping[str, object] | None = None,
    policy: Policy | None = None,
) -> Certificate:
    """The certificate of a long-run average or a temporal formula: of a model, at a point where it has
    parameters, with an assumed `support`; of the best policy, or of one that is given."""
    if policy is not None and (policy.has_memory or policy.depends_on_step):
        raise InputError(
            "certificates of averages and temporal formulas are about policies without memory",
            hint="leave the certificate or the policy out",
        )
    if policy is not None and question.automaton is None and not policy.is_deterministic:
        raise InputError(
            "certificates of averages are about policies that take one choice per state",
            hint="leave the certificate or the policy out",
        )
    assumed = support if isinstance(model, IntervalMDP) else None
    problem = to_problem(model, question, theta=theta, assumed_support=assumed)
    if isinstance(model, IntervalMDP):
        model = model.without_factors  # what the problem is about
    known = model.instantiate(theta) if isinstance(model, ParametricMDP) else model
    if support is not None:
        known = assume_support(known, support)
    precision = effort.precision / 4 if problem.automaton is None else effort.precision
    solved: Solve = partial(solve, **limits_of(effort.within(precision)))
    name = "value" if policy is None else "given policy"
    claim = to_claim(name, problem.objective.range, policy, problem.objective)
    boxes, _ = boxes_of(problem, FLOAT64)
    if problem.automaton is None:
        nature = _nature_of(problem)
        claim, hints = average_claim(problem, boxes, claim, known, (nature, nature), precision, solved)
    else:
        whole, objective, followed = product_model(problem, boxes, claim, known, policy)
        solution = solved(whole, objective, policy=followed)
        low, high = float(solution.lower[whole.initial]), float(solution.upper[whole.initial])
        claim = replace(claim, lower=max(low, 0.0), upper=min(high, 1.0))
        hints = value_hints(solution, followed)
    return Certificate(problem, (claim,), (hints,), about=to_words(about or {}))


def _nature_of(problem: CertifiedProblem) -> Direction:
    """The direction of nature; any will do where she has no say."""
    nature = problem.objective.nature
    return Direction["MAX" if nature == "ANY" else nature]


def product_model(
    problem: CertifiedProblem,
    boxes: Boxes,
    claim: Claim | None,
    model: MDP | IntervalMDP,
    policy: Policy | None,
) -> tuple[MDP | IntervalMDP, Objective, Policy | None]:
    """The model on the product that the checker derives, what is asked there, and a given policy."""
    product = derive_product(problem, boxes, claim)
    if not product.check.passed:
        raise CannotCertify(
            f"certificates of temporal formulas need a graph that nature cannot change: {product.check.name} "
            f"{product.check.detail}"
        )
    whole = model_of(product, model)
    followed = None if policy is None else Policy(whole, policy.probability[product.choice])
    return whole, objective_of(problem, product), followed


def derive_product(problem: CertifiedProblem, boxes: Boxes, claim: Claim | None = None) -> AutomatonProduct:
    """The product as the checker derives it, for a claim about a given policy where there is one."""
    assert problem.automaton is not None
    graph, weight = problem.graph, None if claim is None else given_weights(problem, claim)
    used = np.arange(graph.choices)
    if weight is not None:
        used = np.flatnonzero(weight > 0)
        graph, boxes, _ = under_policy(graph, boxes, weight)
    agent = problem.objective.agent
    product = product_of(graph, problem.automaton, agent, boxes, MOST_PAIRS, weight is not None)
    _, transition = rows_of(problem.graph.transition_start, used)
    return replace(product, choice=used[product.choice], transition=transition[product.transition])


def structure_of(product: AutomatonProduct) -> Structure:
    """The graph of the product, as the solver takes it."""
    graph = product.graph
    return Structure(
        choice_start=graph.choice_start,
        transition_start=graph.transition_start,
        successor=graph.successor.astype(np.int32),
        initial_states=(graph.initial,),
        declared_mdp=True,
    )


def objective_of(problem: CertifiedProblem, product: AutomatonProduct) -> Objective:
    """Reaching what is won there."""
    agent, complement = Direction[problem.objective.agent], problem.objective.complement
    nature, target = _nature_of(problem), product.target
    return Objective(ObjectiveKind.UNTIL, agent, nature, target=target, complement=complement)


def model_of(product: AutomatonProduct, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    structure, which = structure_of(product), product.transition
    if isinstance(model, MDP):
        return MDP(structure, model.probability[which])
    return IntervalMDP(structure, model.lower[which], model.upper[which])


def average_claim(
    problem: CertifiedProblem,
    boxes: Boxes,
    claim: Claim,
    model: MDP | IntervalMDP,
    natures: tuple[Direction, Direction],
    precision: float,
    solve: Solve,
) -> tuple[Claim, ValueHints]:
    """What is proved of an average, of the best policy or of the one that is claimed, against these natures
    at its two ends."""
    objective, reward = problem.objective, problem.objective.reward
    assert reward is not None
    if claim.choice is not None:
        model, reward = under(model, claim.choice), reward[claim.choice]
    flipped = objective.agent == "MIN" and claim.choice is None
    reward = -reward if flipped else reward
    searches = {
        nature: _AverageSearch(model, reward, nature.opposite if flipped else nature, precision, solve)
        for nature in set(natures)
    }
    first, last = (searches[nature] for nature in natures)
    choice = first.policy()
    sides = (first.from_below(choice), last.from_above())
    if flipped:
        sides = (sides[1].negated(), sides[0].negated())
    scale = max(1.0, float(np.abs(reward).max(initial=0.0)))
    hints = ValueHints(witness=choice if claim.choice is None else None)
    for side, upward in zip(sides, (False, True), strict=True):
        for slack in (0.0, *(scale * 10.0**power for power in range(-16, 0))):
            hints = side.hints(hints, slack, upward)
            checks, _ = prove(problem, boxes, claim, hints, upward)
            if all(check.passed for check in checks):
                break
            if slack > LARGEST_SLACK * scale:
                raise CannotCertify(
                    "no certificate is written: the bounds of the average are too uneven to be proved as "
                    "vectors"
                )
    assert hints.lower is not None and hints.upper is not None
    (least, most), initial = objective.range, problem.graph.initial
    low, high = max(float(hints.lower[initial]), least), min(float(hints.upper[initial]), most)
    return replace(claim, lower=low, upper=high), hints


@dataclass(frozen=True, eq=False)
class _Side:
    """A gain and a bias, and what is added to the gain for every unit of slack."""

    gain: FloatArray
    bias: FloatArray
    room: FloatArray

    def negated(self) -> _Side:
        return _Side(-self.gain, -self.bias, -self.room)

    def hints(self, hints: ValueHints, slack: float, upward: bool) -> ValueHints:
        gain = self.gain + slack * self.room
        if upward:
            return replace(hints, upper=gain, upper_bias=self.bias)
        return replace(hints, lower=gain, lower_bias=self.bias)


class _AverageSearch:
    """Averages of a maximiser: components, what they are worth, what it is worth to reach them."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        reward: FloatArray,
        nature: Direction,
        precision: float,
        solve: Solve,
    ):
        self.model, self.reward, self.nature, self.solve = model, reward, nature, solve
        self.gains: long_run.Gains = long_run.gains_of(model, reward, nature, precision, solve)
        self.quotient = long_run.ComponentQuotient.of(model, self.gains.components)
        self.reached: long_run.Reached = long_run.reached_averages(self.quotient, self.gains, nature, solve)

    def _side(self, share: FloatArray | None, steps: FloatArray, sign: int) -> _Side:
        """On the states of the model, from probabilities of winning on the quotient."""
        if not np.isfinite(steps).all():
            raise CannotCertify("no certificate is written: runs take too long to end")
        floor, gain = self.reached.floor, np.full(self.model.states, self.reached.floor)
        if share is not None:
            gain = (floor + (self.reached.largest - floor) * share)[self.quotient.node]
        return _Side(gain, self.gains.bias + sign * self._margin(gain, sign) * steps, sign * (1 + steps))

    def from_above(self) -> _Side:
        above = self.reached.above
        stopping = self.quotient.stopping(np.ones(self.quotient.components))
        steps = self.solve(stopping, self.quotient.walking()).upper[self.quotient.node]
        return self._side(None if above is None else above.fixpoint_upper, steps, 1)

    def from_below(self, choice: OffsetArray) -> _Side:
        below, structure = self.reached.below, self.model.structure
        stopped = self._stops()
        ones = RewardStructure(choice=np.ones(structure.choices))
        walking = Objective(
            ObjectiveKind.REACH_REWARD, Direction.MAX, Direction.MAX, target=stopped, reward=ones
        )
        steps = self.solve(self.model, walking, policy=policy_of(structure, choice, None)).upper
        return self._side(None if below is None else below.fixpoint_lower, steps, -1)

    def _margin(self, gain: FloatArray, sign: int) -> float:
        """By how much one step can miss the second inequality, whatever it leads to; a little more."""
        spread = float(np.ptp(self.gains.bias))
        owner = self.model.structure.choice_state
        missed = float((sign * (self.reward - gain[owner])).max()) + spread
        return max(0.0, missed) * 1.01 + 2.0**-20

    def _stops(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """States of components in which the policy of the lower bound stays."""
        inside = self.gains.components.component >= 0
        below = self.reached.below
        if below is None:
            return inside
        stops: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.quotient.choice[below.choice] < 0
        return inside & stops[self.quotient.node]

    def policy(self) -> OffsetArray:
        """The policy of the lower bound: walk, stop, and then what is best for the bias."""
        structure, components = self.model.structure, self.gains.components
        stopped, internal = self._stops(), components.internal
        worth = self.reward + long_run.expectation(self.model, self.nature)(self.gains.bias)
        worth = np.where(internal, worth, -np.inf)
        best = np.lexsort((-worth, structure.choice_state))
        choice = best[structure.choice_start[:-1]].astype(np.int64)
        below = self.reached.below
        if below is None:
            return choice
        choices = self.quotient.choice[below.choice]
        leaving = choices[choices >= 0]
        door = structure.choice_state[leaving]
        is_door = np.zeros(structure.states, np.bool_)
        is_door[door] = True
        walk, _ = towards(structure, is_door & (components.component >= 0), internal)
        inside = (components.component >= 0) & ~stopped
        choice[inside] = walk[inside]
        choice[door] = leaving
        return choice
