"""`multi(…)`: is it achievable, how much is, and what does one objective cost the other.

* All objectives with thresholds: true if a mixture of policies meets them (checked with rationals), false
  if some weights w have Σ w·t > U(w).
* One `=?`: the best value of it that leaves the thresholds met, between what a mixture attains and the least
  (U(w) − Σ w·t) / w₁ over the weights that were tried.
* Two `=?`: the Pareto curve, points that policies attain and lines that none crosses.

Each next weight is the one that the points so far leave most open: a small linear program, of which nothing
is believed but the weights it proposes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.accepting import AcceptingComponents, accepting_components
from tightrope.logic.formula import Formula
from tightrope.logic.solving import require_constant
from tightrope.logic.temporal import Translator
from tightrope.logic.translation import progression
from tightrope.model.graph.components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.product import Letters, beside, product_of
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.prism.parse.property_syntax import (
    Multi,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.syntax import Complaint, position_of
from tightrope.prism.properties.resolve import reward_structure_of, threshold_of
from tightrope.prism.properties.shape import check_is_path, has_operators
from tightrope.prism.properties.state_formulas import StateFormulas
from tightrope.solver.solution import Solution

MOST_WEIGHTS = 200
MOST_OF_CURVE = 40
MARGIN = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Achieved(Record):
    """What was found out about several objectives.

    * `points`: a row per policy, what it attains at least of each objective (at most, of minimised ones).
    * `weights`, `limits`: no policy has Σ weights·objectives beyond the limit, each turned so that more is
      better.
    * `shares`: how a mixture draws one of `controllers` when a play begins; it meets what was asked.
    * `objectives` are their texts, which `maximised` wants to be large; `probabilities` are no rewards.
    """

    points: FloatArray
    weights: FloatArray
    limits: FloatArray
    shares: FloatArray
    controllers: tuple[Policy, ...]
    lower: float
    upper: float
    verdict: str | None
    objectives: tuple[str, ...] = ()
    maximised: tuple[bool, ...] = ()
    probabilities: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _facts_(self) -> Facts:
        shown = [", ".join(f"{value:.6g}" for value in row) for row in self.points[:6]]
        return [("verdict", self.verdict or "a curve or a value"), *(("point", row) for row in shown)]


class ParetoSearch:
    """Points and weights, tried one after the other."""

    def __init__(self, trade: WeightedObjectives):
        self.trade = trade
        self.points: list[ParetoPoint] = []
        self.weights: list[FloatArray] = []
        self.limits: list[float] = []

    def try_weights(self, weights: FloatArray) -> float:
        """Solve for weights; how far beyond its points they can still go."""
        bound, point = self.trade.upper(weights)
        self.weights.append(weights)
        self.limits.append(bound)
        if np.isfinite(point.value).all():
            self.points.append(point)
        return bound

    def begin(self) -> None:
        """Each objective almost alone, and all together."""
        count = self.trade.count
        self.try_weights(np.full(count, 1 / count))
        for number in range(count):
            self.try_weights(np.where(np.arange(count) == number, 1.0, 1e-4 if count > 1 else 1.0))

    def meets(self, wanted: Sequence[Fraction]) -> bool:
        """Whether a mixture of points meets thresholds, by rationals."""
        return self.mixture(wanted, None) is not None

    def mixture(
        self, wanted: Sequence[Fraction | None], better: int | None
    ) -> tuple[FloatArray, float] | None:
        """Shares of the points that meet thresholds (None: no matter), best in one objective, and what they
        attain of it (0 where there is none)."""
        from scipy.optimize import linprog  # late: a quarter of a second that `learn` needs nothing of

        if not self.points:
            return None
        values = np.array([point.value for point in self.points])
        rows = [i for i, least in enumerate(wanted) if least is not None]
        bounds = np.array([float(wanted[i] or 0) for i in rows])
        if better is not None:
            bounds += MARGIN * np.maximum(1.0, np.abs(bounds))  # rationals look at it again
        goal = np.zeros(len(values) + 1)
        if better is None:
            goal[-1] = -1.0
        else:
            goal[:-1] = -values[:, better]
        slack = np.ones((len(rows), 1))
        program = linprog(
            goal,
            A_ub=np.hstack([-values[:, rows].T, slack]) if rows else None,
            b_ub=-bounds if rows else None,
            A_eq=np.hstack([np.ones((1, len(values))), [[0.0]]]),
            b_eq=[1.0],
            bounds=[(0, 1)] * len(values) + [(0 if better is not None else None, 1)],
        )
        if program.status != 0:
            return None
        shares = [Fraction(max(float(share), 0.0)) for share in program.x[:-1]]
        shares = [share / sum(shares) for share in shares]
        exact = [exact_point(point.value) for point in self.points]
        mixed = [
            sum((s * p[i] for s, p in zip(shares, exact, strict=True)), Fraction(0))
            for i in range(len(wanted))
        ]
        for i in rows:
            least = wanted[i]
            if least is not None and mixed[i] < least:
                return None
        attained = float(np.nextafter(float(mixed[better]), -np.inf)) if better is not None else 0.0
        return np.array([float(share) for share in shares]), attained

    def open_weights(self, wanted: FloatArray, without: int | None = None) -> FloatArray | None:
        """The weights by which a point lies farthest beyond all points so far, perhaps `without` an
        objective."""
        from scipy.optimize import linprog

        values = np.array([point.value for point in self.points])
        count = self.trade.count
        program = linprog(
            np.concatenate([-wanted, [1.0]]),
            A_ub=np.hstack([values, -np.ones((len(values), 1))]),
            b_ub=np.zeros(len(values)),
            A_eq=[[1.0] * count + [0.0]],
            b_eq=[1.0],
            bounds=[(0, 0 if i == without else 1) for i in range(count)] + [(None, None)],
        )
        if program.status != 0:
            return None
        weights: FloatArray = np.maximum(program.x[:count], 0.0)
        return weights

    def is_refuted(self, wanted: Sequence[Fraction], strict: Sequence[bool]) -> bool:
        """Whether some weights show that thresholds cannot all be met."""
        for weights, limit in zip(self.weights, self.limits, strict=True):
            if not np.isfinite(limit):
                continue
            total = sum((Fraction(float(w)) * t for w, t in zip(weights, wanted, strict=True)), Fraction(0))
            needs_more = any(s and w > 0 for s, w in zip(strict, weights, strict=True))
            if total > Fraction(limit) or (needs_more and total == Fraction(limit)):
                return True
        return False

    def best(self, number: int, wanted: Sequence[Fraction | None]) -> float:
        """An upper bound on one objective where the others meet their thresholds."""
        least = np.inf
        for weights, limit in zip(self.weights, self.limits, strict=True):
            if weights[number] > 0 and np.isfinite(limit):
                rest = Fraction(limit)
                for i, threshold in enumerate(wanted):
                    if threshold is not None:
                        rest -= Fraction(float(weights[i])) * threshold
                bound = rest / Fraction(float(weights[number]))
                least = min(least, float(np.nextafter(float(bound), np.inf)))
        return least

    def result(self, shares: FloatArray | None, lower: float, upper: float, verdict: str | None) -> Achieved:
        """All of it; of the controllers those that the mixture uses, or all points of a curve."""
        used = np.arange(len(self.points)) if shares is None else np.flatnonzero(shares)
        sign = np.array([1.0 if wish.is_maximised else -1.0 for wish in self.trade.wishes])
        offset = np.array([0.0 if w.is_maximised or w.formula is None else 1.0 for w in self.trade.wishes])
        values = np.array([p.value for p in self.points]).reshape(-1, self.trade.count)
        return Achieved(
            points=offset + sign * values,
            weights=np.array(self.weights),
            limits=np.array(self.limits),
            shares=np.ones(len(used)) / max(len(used), 1) if shares is None else shares[used],
            controllers=tuple(self.trade.controller(self.points[i]) for i in used if self.trade.is_steered),
            lower=lower,
            upper=upper,
            verdict=verdict,
            objectives=tuple(wish.text for wish in self.trade.wishes),
            maximised=tuple(wish.is_maximised for wish in self.trade.wishes),
            probabilities=tuple(wish.formula is not None for wish in self.trade.wishes),
        )


def decide(trade: WeightedObjectives, wanted: Sequence[Fraction], strict: Sequence[bool]) -> Achieved:
    """Whether one policy, perhaps a mixture, meets all thresholds."""
    search = ParetoSearch(trade)
    search.begin()
    nearly = [_beyond(t, s) for t, s in zip(wanted, strict, strict=True)]
    for _ in range(MOST_WEIGHTS):
        mixture = search.mixture(nearly, None)
        if mixture is not None:
            return search.result(mixture[0], 1.0, 1.0, "true")
        if search.is_refuted(wanted, strict):
            return search.result(None, 0.0, 0.0, "false")
        weights = search.open_weights(np.array([float(t) for t in wanted])) if search.points else None
        if weights is None or _is_tried(search, weights):
            break
        search.try_weights(weights)
    return search.result(None, 0.0, 1.0, "not certified")


def optimise(
    trade: WeightedObjectives,
    number: int,
    wanted: Sequence[Fraction | None],
    strict: Sequence[bool],
    precision: float,
) -> Achieved:
    """The best of one objective that leaves the thresholds of the others met; turned so that more is
    better."""
    search = ParetoSearch(trade)
    search.begin()
    nearly = [None if t is None else _beyond(t, s) for t, s in zip(wanted, strict, strict=True)]
    lower, shares = -np.inf, None
    for _ in range(MOST_WEIGHTS):
        mixture = search.mixture(nearly, number)
        if mixture is not None:
            shares, lower = mixture
        upper = search.best(number, wanted)
        if np.isfinite(lower) and upper - lower <= precision * max(1.0, abs(lower)):
            break
        constraints = [Fraction(0) if t is None else t for t in wanted]
        if not search.points:
            break
        aim = np.array([float(t) for t in constraints])
        if np.isfinite(lower):
            aim[number] = (lower + upper) / 2 if np.isfinite(upper) else lower + 1
        weights = search.open_weights(aim, None if np.isfinite(lower) else number)
        if weights is None or _is_tried(search, weights):
            break
        search.try_weights(weights)
    verdict = "false" if shares is None and _impossible(search, number, wanted, strict) else None
    return search.result(shares, lower, search.best(number, wanted), verdict)


def _impossible(
    search: ParetoSearch, number: int, wanted: Sequence[Fraction | None], strict: Sequence[bool]
) -> bool:
    """Whether the thresholds cannot be met: shown by weights that leave the open objective out, or by a bound
    on it below all that it can be."""
    wish = search.trade.wishes[number]
    if (wish.formula is not None or wish.is_maximised) and search.best(number, wanted) < 0:
        return True
    remaining = [i for i, weights in enumerate(search.weights) if weights[number] == 0]
    alone = ParetoSearch(search.trade)
    alone.weights, alone.limits = (
        [search.weights[i] for i in remaining],
        [search.limits[i] for i in remaining],
    )
    return alone.is_refuted([Fraction(0) if t is None else t for t in wanted], strict)


def curve(trade: WeightedObjectives, precision: float) -> Achieved:
    """The Pareto curve of two objectives: between neighbours the line through them says where to look."""
    search = ParetoSearch(trade)
    search.begin()
    while len(search.weights) < MOST_OF_CURVE:
        weights = _next_on_curve(search, precision)
        if weights is None:
            return search.result(None, 0.0, 0.0, "certified")
        search.try_weights(weights)
    return search.result(None, 0.0, 0.0, "not certified")


def _next_on_curve(search: ParetoSearch, precision: float) -> FloatArray | None:
    """Weights across the first pair of neighbours that leave more open than `precision` between them."""
    values = np.array([point.value for point in search.points])
    order = np.lexsort((-values[:, 1], values[:, 0]))
    front: list[int] = []
    for index in order[::-1].tolist():  # from the right, each higher than those before it
        if not front or values[index, 1] > values[front[-1], 1] + precision / 10:
            front.append(index)
    for right, left in pairwise(front):
        across = np.array([values[left, 1] - values[right, 1], values[right, 0] - values[left, 0]])
        if across.min() <= precision / 10:
            continue
        weights: FloatArray = across / across.sum()
        if not _is_tried(search, weights):
            return weights
    return None


def _is_tried(search: ParetoSearch, weights: FloatArray) -> bool:
    return any(np.abs(weights - tried / tried.sum()).max() < 1e-9 for tried in search.weights)


def _beyond(threshold: Fraction, strict: bool) -> Fraction:
    """What a mixture must reach: a little more where the threshold itself does not count."""
    return threshold + Fraction(1, 10**12) if strict else threshold


# `multi(…)` read and answered: from the objectives of a text to what was achieved.
#
# An objective with a threshold is turned by its comparison (`P>=0.9` wants much, `R<=5` little), one with
# `=?` by its letters. No `=?`: is it achievable? One: its best value beside the thresholds. Two: the Pareto
# curve.


@dataclass(frozen=True, eq=False)
class MultiAnswer:
    """What was achieved; `lower` and `upper` are bounds of the value where one was asked for."""

    achieved: Achieved
    lower: float | None = None
    upper: float | None = None
    verdict: str | None = None


@dataclass(frozen=True, eq=False)
class _Asked:
    wish: SingleObjective
    threshold: Fraction | None
    is_strict: bool


def answer_multi(
    multi: Multi,
    file: PropertyFile,
    model: MDP | IntervalMDP,
    formulas: StateFormulas,
    precision: float,
    solve: Solve,
    start: int,
) -> MultiAnswer:
    """The answer for one state that plays begin in."""
    translator = Translator(formulas)
    read = [_read(part, file, model.structure, formulas, translator) for part in multi.objectives]
    open_ = [number for number, one in enumerate(read) if one.threshold is None]
    if len(open_) > 2 or (len(open_) == 2 and len(read) > 2):
        raise Complaint(
            f"multi(…) asks for {len(open_)} values at once: one beside thresholds, or two alone (a curve)",
            multi.position,
            "give thresholds to the others: P>=0.9 [ … ]",
        )
    if len(open_) == 2 and len(model.structure.initial_states) > 1:
        raise Complaint("the curve of two objectives is about one initial state", multi.position)
    trade = WeightedObjectives(model, [one.wish for one in read], translator.atoms, solve, start)
    wanted, strict = [one.threshold for one in read], [one.is_strict for one in read]
    if not open_:
        result = decide(trade, [Fraction(0) if t is None else t for t in wanted], strict)
        return MultiAnswer(result, verdict=result.verdict)
    if len(open_) == 2:
        result = curve(trade, precision)
        return MultiAnswer(result, verdict=result.verdict)
    (number,) = open_
    result = optimise(trade, number, wanted, strict, precision)
    if result.verdict == "false":
        raise Complaint("no policy meets the thresholds together, so there is no best value", multi.position)
    wish = read[number].wish
    if wish.is_maximised:
        lower, upper = result.lower, result.upper
    elif wish.formula is None:
        lower, upper = -result.upper, -result.lower
    else:
        lower, upper = (
            float(np.nextafter(1 - result.upper, -np.inf)),
            float(np.nextafter(1 - result.lower, np.inf)),
        )
    if wish.formula is not None:
        lower, upper = max(lower, 0.0), min(upper, 1.0)
    return MultiAnswer(result, lower, upper)


def _read(
    part: object, file: PropertyFile, structure: Structure, formulas: StateFormulas, translator: Translator
) -> _Asked:
    if not isinstance(part, ValueOperator):
        raise Complaint(
            "the objectives of multi(…) are P and R operators", None, "multi(Pmax=? [ F a ], P>=0.9 [ G b ])"
        )
    if part.condition is not None:
        raise Complaint("conditional probabilities do not go with multi(…)", part.position)
    if part.agent is not None and part.nature == part.agent:
        raise Complaint("in multi(…) nature is against every objective", part.position, "write one direction")
    if part.comparison is None and part.agent is None:
        raise Complaint("an objective with =? says its direction", part.position, "Pmax=? or Pmin=?")
    is_maximised = part.comparison.startswith(">") if part.comparison is not None else part.agent == "max"
    threshold = threshold_of(part, formulas)
    text, path = file.text_of(part), part.path
    if isinstance(path, RewardFormula):
        if not part.is_reward or path.operator is not RewardOperator.TOTAL:
            raise Complaint("in multi(…) rewards are total ones", path.position, 'write R{"name"}max=? [ C ]')
        reward = reward_structure_of(part, structure).per_choice(structure)
        if (reward < 0).any():
            raise Complaint("in multi(…) rewards are not negative", part.position)
        wish = SingleObjective(text, is_maximised, reward=reward)
        turned = threshold if threshold is None or is_maximised else -threshold
    else:
        check_is_path(path)
        if has_operators(path):
            raise Complaint("in multi(…) paths hold no further operators", position_of(path))
        formula, negation = translator.both_ways(path)
        wish = SingleObjective(text, is_maximised, formula=formula if is_maximised else negation)
        turned = threshold if threshold is None or is_maximised else 1 - threshold
    return _Asked(wish, turned, part.comparison in ("<", ">"))


# Several objectives at once: what one policy can achieve of all of them, with certified bounds.
#
# Every objective is turned so that more is better. For weights w ≥ 0 one solve gives an upper bound U(w) on Σ
# w·y over all policies, and a policy, whose objectives are then bounded one by one: a point y that it attains
# at least. Mixtures of policies (drawn once, when a play begins) attain mixtures of points, and no policy
# lies beyond w·y ≤ U(w); so points are an inner and weights an outer bound of what is achievable (Forejt,
# Kwiatkowska, Parker, 2012). On interval models nature is against every objective on its own for points, and
# against the sum for weights: what is said to be achieved holds whatever nature does, and what is said to be
# impossible fails under some pick of nature.
#
# A play may *rest* in an end component in which nothing is earned or paid (`accepting_components`): there it
# satisfies all that its memory has settled, and of the formulas about what happens for ever one of the
# largest sets that can be satisfied together almost surely. The model that is solved has one state for each
# such component, with all ways out of it and a choice to stop for every such set.
#
# Maximised rewards are sums of gains until a play stops, minimised ones sums of costs. Both together are
# added with their signs, which has a meaning where nothing can be earned or paid for ever; otherwise it is
# refused.

Solve = Callable[[MDP | IntervalMDP, Objective, Policy | None], Solution]


class Sums(Enum):
    """What is added up on the way."""

    GAINS = "maximised rewards, or none"
    COSTS = "minimised rewards"
    BOTH = "rewards of both directions"


@dataclass(frozen=True, eq=False)
class SingleObjective:
    """One objective: the probability of a `formula`, which is the negation of what is minimised, or a total
    `reward` (one number per choice)."""

    text: str
    is_maximised: bool
    formula: Formula | None = None
    reward: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class ParetoPoint:
    """What a policy attains at least of every objective, each turned so that more is better."""

    value: FloatArray
    policy: OffsetArray


class WeightedObjectives:
    """The objectives on one product, from one initial state, solved for any weights."""

    def __init__(
        self,
        model: MDP | IntervalMDP,
        wishes: Sequence[SingleObjective],
        atoms: list[BoolArray],
        solve: Solve,
        start: int,
    ):
        self.base, self.wishes, self._solve = model, wishes, solve
        self.is_steered = len(model.structure.initial_states) == 1  # where controllers begin
        require_constant(model, "several objectives")
        directions = {wish.is_maximised for wish in wishes if wish.reward is not None}
        self.sums = Sums.BOTH if len(directions) == 2 else Sums.COSTS if False in directions else Sums.GAINS
        self.letters = Letters.of(atoms, model.states)
        formulas = [wish.formula for wish in wishes if wish.formula is not None]
        parts = [progression(formula, self.letters.bits) for formula in formulas]
        self.automaton, states = beside([part[0] for part in parts], self.letters.bits)
        self.product = product_of(Support.of(model), self.letters, self.automaton, np.array([start]))
        lefts = [[left[state[i]] for state in states] for i, (_, left) in enumerate(parts)]
        free = np.ones(self.product.structure.choices, np.bool_)
        for reward in self._running:
            free &= reward == 0
        there = self.product.model(model)
        self.resting: AcceptingComponents = accepting_components(
            there, self.product, formulas, lefts, self.letters, free
        )
        self.model = self.resting.model
        if self.sums is Sums.BOTH:
            self._require_end()

    @property
    def count(self) -> int:
        return len(self.wishes)

    def upper(self, weights: FloatArray) -> tuple[float, ParetoPoint]:
        """A bound on Σ w·y over all policies, and what the policy that was found attains."""
        total = sum(
            (w * part for w, part in zip(weights, self._parts, strict=True)), np.zeros(self.model.choices)
        )
        solution = self._solve(self.model, self._objective(total), None)
        policy = solution.policy
        if self.sums is Sums.COSTS:
            spared = sum(w for w, wish in zip(weights, self.wishes, strict=True) if wish.formula is not None)
            bound = float(np.nextafter(np.nextafter(spared, np.inf) - solution.lower[0], np.inf))
        else:
            bound = float(solution.upper[0])
        return bound, ParetoPoint(
            np.array([self._evaluate(i, policy) for i in range(self.count)]), policy.choice
        )

    def controller(self, point: ParetoPoint) -> Policy:
        """The policy of a point, with what it does where it rests."""
        rows = self.resting.rows(point.policy, self.automaton, self.letters)
        return Policy(self.base, rows.restrict_to_reached(Support.of(self.base)))

    def _evaluate(self, number: int, policy: Policy) -> float:
        solution = self._solve(self.model, self._objective(self._parts[number]), policy)
        if self.sums is not Sums.COSTS:
            return float(solution.lower[0])
        worst = float(solution.upper[0])
        return float(np.nextafter(1 - worst, -np.inf)) if self.wishes[number].formula is not None else -worst

    def _objective(self, reward: FloatArray) -> Objective:
        earned = RewardStructure(choice=reward)
        if self.sums is Sums.GAINS:
            return Objective(ObjectiveKind.TOTAL, Direction.MAX, Direction.MIN, reward=earned)
        done = np.zeros(self.model.states, np.bool_)
        done[-1] = True
        agent = Direction.MIN if self.sums is Sums.COSTS else Direction.MAX
        return Objective(ObjectiveKind.REACH_REWARD, agent, agent.opposite, target=done, reward=earned)

    def _require_end(self) -> None:
        going_on = np.ones(self.model.states, np.bool_)
        going_on[-1] = False
        if maximal_end_components(Support.of(self.model), within=going_on).count:
            raise InputError(
                "rewards that are to be large and rewards that are to be small go together in multi(…) where "
                "none of them can be earned for ever",
                hint="ask for one of the two kinds beside probabilities",
            )

    @cached_property
    def _running(self) -> list[FloatArray]:
        """The rewards of choices of the product; zero for probabilities."""
        nothing = np.zeros(self.product.structure.choices)
        return [nothing if w.reward is None else w.reward[self.product.choice] for w in self.wishes]

    @cached_property
    def _parts(self) -> list[FloatArray]:
        """What every choice of the model that is solved gives to, or takes from, each objective."""
        own, result = self.resting.own, []
        gained = iter(self.resting.satisfied)
        for wish, running in zip(self.wishes, self._running, strict=True):
            part = np.where(own >= 0, running[np.maximum(own, 0)], 0.0)
            if self.sums is Sums.BOTH and not wish.is_maximised:
                part = -part
            stops = (own < 0) & (own >= -self.resting.stops)
            if wish.formula is not None:
                won = next(gained)[-1 - own[stops]].astype(np.float64)
                part[stops] = 1 - won if self.sums is Sums.COSTS else won
            result.append(part)
        return result


def exact_point(point: FloatArray) -> list[Fraction]:
    """The numbers that doubles are; −∞ is what no mixture may use."""
    return [Fraction(float(value)) for value in point]
