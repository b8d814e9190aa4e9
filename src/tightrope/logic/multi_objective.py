"""`multi(…)`: achievability, the best value of one objective under thresholds, and Pareto curves.

Every objective is signed so that more is better. For weights w ≥ 0 one solve gives an upper bound U(w) on Σ
w·y over all policies and a policy that attains a point y. Mixtures of policies attain mixtures of points
(Forejt, Kwiatkowska, Parker, 2012). Thresholds t hold if a mixture meets them (checked with rationals), and
fail if Σ w·t > U(w). On interval models nature opposes each objective separately for points, and their sum
for limits.

A play may stop in an end component without rewards (`accepting_components`). Gains and costs are added only
if neither can accrue for ever. A gain that can be earned for ever is ∞ for every mixture that gives such a
policy a share ε, and is left out of the search, whose result leaves room for ε.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import mul

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.accepting import AcceptingComponents, accepting_components
from tightrope.logic.formula import Formula, progression
from tightrope.logic.temporal import Translator
from tightrope.logic.values import StateBounds, require_constant
from tightrope.model.graph.components import maximal_end_components
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.product import Automaton, Letters, beside, product_of
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.late import optimize
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.numerics.rounding import up
from tightrope.prism.parse.property_syntax import (
    Multi,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
    is_infinite,
)
from tightrope.prism.parse.syntax import Complaint, Type, position_of
from tightrope.prism.properties.resolve import StateFormulas, reward_structure_of, threshold_of
from tightrope.prism.properties.shape import check_is_path, has_operators
from tightrope.solver.solution import Solution

MOST_WEIGHTS = 200
MOST_OF_CURVE = 40
MOST_STEPS = 10_000
MARGIN = 1e-9
SHARE = Fraction(1, 1 << 40)
"""How often a mixture draws policies that earn an objective forever, where one can be."""

Solve = Callable[[MDP | IntervalMDP, Objective, Policy | None], Solution]


@dataclass(frozen=True, eq=False)
class SingleObjective:
    """The probability of a `formula`, or a total `reward` per choice, and its `threshold`, turned alike."""

    text: str
    is_maximised: bool
    formula: Formula | None = None
    reward: FloatArray | None = None
    threshold: Fraction | None = None
    is_strict: bool = False
    steps: int | None = None
    """The reward is that of so many steps."""

    @property
    def is_cost(self) -> bool:
        return self.reward is not None and not self.is_maximised

    @property
    def wanted(self) -> Fraction:
        """What weights are compared with; those of an objective without a threshold are 0."""
        return Fraction(0) if self.threshold is None else self.threshold

    def reachable_threshold(self, loss: Fraction) -> Fraction | None:
        """What a mixture must attain: more where the threshold does not count or a part is lost."""
        if self.threshold is None:
            return None
        return (self.threshold + (Fraction(1, 10**12) if self.is_strict else 0)) / (1 - loss)


@dataclass(frozen=True, eq=False, repr=False)
class Achieved(Record):
    """Results about several objectives.

    * `points`: a row per policy, a lower bound on each objective (upper, of minimised ones).
    * `weights`, `limits`: no policy has Σ weights·objectives beyond the limit, signed so that more is better.
    * `shares`: probabilities with which a mixture draws one of `controllers` at the start; it meets the
      question.
    * `bounds` of the best value if one was asked for; `verdict`: true, false, or a curve.
    * `objectives`: texts of all `wishes`; `maximised`, `probabilities`: which are maximised, and are no
      rewards.
    """

    points: FloatArray
    weights: FloatArray
    limits: FloatArray
    shares: FloatArray
    controllers: tuple[Policy, ...]
    bounds: tuple[float, float] | None = None
    verdict: str | None = None
    wishes: tuple[SingleObjective, ...] = ()

    def __post_init__(self) -> None:
        freeze_fields(self)

    @property
    def objectives(self) -> tuple[str, ...]:
        return tuple(wish.text for wish in self.wishes)

    @property
    def maximised(self) -> tuple[bool, ...]:
        return tuple(wish.is_maximised for wish in self.wishes)

    @property
    def probabilities(self) -> tuple[bool, ...]:
        return tuple(wish.formula is not None for wish in self.wishes)

    def _facts_(self) -> Facts:
        shown = [", ".join(f"{value:.6g}" for value in row) for row in self.points[:6]]
        return [("verdict", self.verdict or "a curve or a value"), *(("point", row) for row in shown)]


def answer_multi(
    multi: Multi,
    file: PropertyFile,
    model: MDP | IntervalMDP,
    formulas: StateFormulas,
    precision: float,
    solve: Solve,
    start: int,
) -> Achieved:
    """What is achieved from one state that plays begin in."""
    translator = Translator(formulas)
    parts = [part for part in multi.objectives if not _is_always_met(part)]
    wishes = [_read(part, file, model.structure, formulas, translator) for part in parts]
    boundless = {number for number, part in enumerate(parts) if _is_boundless(part)}
    if not wishes:
        raise Complaint(
            "every objective of multi(…) is always met", multi.position, "ask for its parts alone"
        )
    open_ = [number for number, wish in enumerate(wishes) if wish.threshold is None]
    require_constant(model, "several objectives")
    endless = _earned_for_ever(model, wishes, solve, start) if len(open_) <= 2 else {}
    _refuse(multi, wishes, open_, endless, boundless, model.structure)
    others = [wish for number, wish in enumerate(wishes) if number not in endless]

    def search(sought: Sequence[SingleObjective]) -> ParetoSearch:
        loss = SHARE if endless else Fraction(0)
        return ParetoSearch(WeightedObjectives(model, sought, translator.atoms, solve, start), loss)

    if len(open_) == 2:
        return curve(search(others), precision)
    if not open_:
        result = decide(search(others))
    elif open_[0] in endless:
        result = decide(search(others))
        least = np.inf if result.verdict == "true" else 0.0
        result = replace(result, bounds=None if result.verdict == "false" else (least, np.inf))
    else:
        number = others.index(wishes[open_[0]])
        result = optimise(search(others), number, precision)
        if result.verdict == "false" and others[number].is_cost:
            rest = decide(search([wish for wish in others if wish is not others[number]]))
            at_least = np.inf if rest.verdict == "true" else 0.0
            result = replace(
                result, verdict=rest.verdict, bounds=None if rest.verdict == "false" else (at_least, np.inf)
            )
    if open_ and result.bounds is None:
        several = len(model.structure.initial_states) > 1
        where = f" from the initial state {model.structure.state_name(start)}" if several else ""
        text = f"no policy meets all thresholds{where}, so there is no best value"
        raise Complaint(text, multi.position)
    if open_:
        result = replace(result, verdict=None)
    return _with_endless(result, wishes, endless) if endless else result


def _refuse(
    multi: Multi,
    wishes: Sequence[SingleObjective],
    open_: Sequence[int],
    endless: Mapping[int, Policy],
    boundless: set[int],
    structure: Structure,
) -> None:
    """Refuse questions with too many values, and values that are or are not infinite."""
    if len(open_) > 2 or (len(open_) == 2 and len(wishes) > 2):
        raise Complaint(
            f"multi(…) asks for {len(open_)} values at once: one beside thresholds, or two alone (a curve)",
            multi.position,
            "give thresholds to the others: P>=0.9 [ … ]",
        )
    if len(open_) == 2 and len(structure.initial_states) > 1:
        raise Complaint("the curve of two objectives is about one initial state", multi.position)
    if endless and len(open_) == 2:
        raise Complaint(
            f"{wishes[min(endless)].text} can be infinite at almost no cost for the other objective: there "
            "is no curve",
            multi.position,
            "ask for one value beside a threshold",
        )
    if finite := boundless - endless.keys():
        raise Complaint(
            f"{wishes[min(finite)].text} is not infinite, or not so beside costs that are to be small",
            multi.position,
            "ask for it alone: R>=1.0/0.0 [ C ]",
        )


def _is_boundless(part: object) -> bool:
    return isinstance(part, ValueOperator) and part.is_reward and is_infinite(part.threshold)


def _is_always_met(part: object) -> bool:
    """`R<=1.0/0.0`; what is to be finite, or more than infinite, is refused."""
    if not isinstance(part, ValueOperator) or not _is_boundless(part):
        return False
    if part.comparison in ("<", ">"):
        raise Complaint(
            f"R{part.comparison}1.0/0.0 cannot be combined with other objectives",
            part.position,
            "ask for it alone, or write R<=1.0/0.0 or R>=1.0/0.0",
        )
    return part.comparison == "<="


def _read(
    part: object, file: PropertyFile, structure: Structure, formulas: StateFormulas, translator: Translator
) -> SingleObjective:
    if not isinstance(part, ValueOperator):
        raise Complaint(
            "the objectives of multi(…) are P and R operators", None, "multi(Pmax=? [ F a ], P>=0.9 [ G b ])"
        )
    if part.condition is not None:
        raise Complaint("conditional probabilities cannot be used with multi(…)", part.position)
    if part.agent is not None and part.nature == part.agent:
        raise Complaint("in multi(…) nature opposes every objective", part.position, "write one direction")
    if part.comparison is None and part.agent is None:
        raise Complaint("an objective with =? needs a direction", part.position, "Pmax=? or Pmin=?")
    is_maximised = part.comparison.startswith(">") if part.comparison is not None else part.agent == "max"
    threshold = Fraction(0) if _is_boundless(part) else threshold_of(part, formulas)
    wish = SingleObjective(file.text_of(part), is_maximised, is_strict=part.comparison in ("<", ">"))
    path = part.path
    if isinstance(path, RewardFormula):
        if not part.is_reward or path.operator not in (RewardOperator.TOTAL, RewardOperator.CUMULATIVE):
            raise Complaint(
                "in multi(…) rewards are total ones, or those of some steps",
                path.position,
                'write R{"name"}max=? [ C ] or [ C<=k ]',
            )
        if path.bound is not None:
            wish = replace(wish, steps=_step_number(path, formulas))
        reward = reward_structure_of(part, structure).per_choice(structure)
        if (reward < 0).any():
            raise Complaint("in multi(…) rewards are not negative", part.position)
        turned = threshold if threshold is None or is_maximised else -threshold
        return replace(wish, reward=reward, threshold=turned)
    check_is_path(path)
    if has_operators(path):
        raise Complaint("in multi(…) paths hold no further operators", position_of(path))
    formula, negation = translator.both_ways(path)
    turned = threshold if threshold is None or is_maximised else 1 - threshold
    return replace(wish, formula=formula if is_maximised else negation, threshold=turned)


def _step_number(path: RewardFormula, formulas: StateFormulas) -> int:
    assert path.bound is not None
    steps = formulas.number(path.bound, Type.INT, "a number of steps") - path.bound_strict
    if steps < 0:
        raise Complaint("a number of steps cannot be negative", position_of(path.bound))
    if steps > MOST_STEPS:
        raise Complaint(
            f"in multi(…) rewards are those of up to {MOST_STEPS:,} steps", position_of(path.bound)
        )
    return int(steps)


def _earned_for_ever(
    model: MDP | IntervalMDP, wishes: Sequence[SingleObjective], solve: Solve, start: int
) -> dict[int, Policy]:
    """Rewards that can be infinite with a policy that earns them for ever; none beside costs."""
    if any(wish.is_cost for wish in wishes):
        return {}
    components = maximal_end_components(Support.of(model))
    endless = {}
    for number, wish in enumerate(wishes):
        if (
            wish.reward is None
            or wish.steps is not None
            or not (components.internal & (wish.reward > 0)).any()
        ):
            continue
        total = Objective(
            ObjectiveKind.TOTAL, Direction.MAX, Direction.MIN, reward=RewardStructure(choice=wish.reward)
        )
        policy = solve(model, total, None).policy
        if np.isposinf(solve(model, total, policy).lower[start]):
            endless[number] = policy
    return endless


def _with_endless(
    result: Achieved, wishes: Sequence[SingleObjective], endless: Mapping[int, Policy]
) -> Achieved:
    """The same about all objectives: a row and a share for each policy that earns one of them for ever."""
    others = [number for number in range(len(wishes)) if number not in endless]
    nothing = np.array([float(wish.formula is not None and not wish.is_maximised) for wish in wishes])
    points = np.tile(nothing, (len(result.points) + len(endless), 1))
    points[: len(result.points), others] = result.points
    weights = np.zeros((len(result.weights), len(wishes)))
    weights[:, others] = result.weights
    for row, number in enumerate(endless, start=len(result.points)):
        points[row, number] = np.inf
    rest = float(1 - SHARE) if len(result.shares) else 0.0
    shares = np.concatenate([result.shares * rest, np.full(len(endless), (1 - rest) / len(endless))])
    is_mixed = len(result.shares) == len(result.controllers)
    return replace(
        result,
        points=points,
        weights=weights,
        shares=shares,
        controllers=(*result.controllers, *endless.values()) if is_mixed else (),
        wishes=tuple(wishes),
    )


class ParetoSearch:
    """Points and weights, tried one after the other; `loss` is the share of a mixture that goes elsewhere."""

    def __init__(self, trade: WeightedObjectives, loss: Fraction = Fraction(0)):
        self.trade, self.wishes, self.loss = trade, trade.wishes, loss
        self.points: list[ParetoPoint] = []
        self.weights: list[FloatArray] = []
        self.limits: list[float] = []

    def try_weights(self, weights: FloatArray) -> None:
        """Solve for weights; of the points those stay that no other one is as good as in everything."""
        bound, point = self.trade.upper(weights)
        self.weights.append(weights)
        self.limits.append(bound)
        if np.isfinite(point.value).all() and all((point.value > p.value).any() for p in self.points):
            self.points = [p for p in self.points if (p.value > point.value).any()] + [point]

    def begin(self) -> None:
        """Each objective almost alone, and all together."""
        count = len(self.wishes)
        self.try_weights(np.full(count, 1 / count))
        for number in range(count):
            self.try_weights(np.where(np.arange(count) == number, 1.0, 1e-4 if count > 1 else 1.0))

    def is_tried(self, weights: FloatArray) -> bool:
        return any(np.abs(weights - tried / tried.sum()).max() < 1e-9 for tried in self.weights)

    def mixture(self, better: int | None = None) -> tuple[FloatArray, float] | None:
        """Shares of points that meet all thresholds, best in one objective, and what they attain."""
        if not self.points:
            return None
        values = np.array([point.value for point in self.points])
        wanted = [wish.reachable_threshold(self.loss) for wish in self.wishes]
        least = {i: threshold for i, threshold in enumerate(wanted) if threshold is not None}
        rows = list(least)
        bounds = np.array([float(threshold) for threshold in least.values()])
        if better is not None:
            beyond = bounds + MARGIN * np.maximum(1.0, np.abs(bounds))  # rationals look at it again
            bounds = np.minimum(beyond, values[:, rows].max(axis=0))
        goal = np.zeros(len(values) + 1)
        if better is None:
            goal[-1] = -1.0
        else:
            goal[:-1] = -values[:, better]
        slack = np.ones((len(rows), 1))
        program = optimize.linprog(
            goal,
            A_ub=np.hstack([-values[:, rows].T, slack]) if rows else None,
            b_ub=-bounds if rows else None,
            A_eq=np.hstack([np.ones((1, len(values))), [[0.0]]]),
            b_eq=[1.0],
            bounds=[(0, 1)] * len(values) + [(0 if better is not None else None, 1)],
            options={"primal_feasibility_tolerance": MARGIN / 10},
        )
        if program.status != 0:
            return None
        shares = [Fraction(max(float(share), 0.0)) for share in program.x[:-1]]
        shares = [share / sum(shares) for share in shares]

        mixed = [sum(map(mul, shares, map(Fraction, column)), Fraction(0)) for column in values.T.tolist()]
        if any(mixed[number] < threshold for number, threshold in least.items()):
            return None
        attained = Fraction(0) if better is None else mixed[better] * (1 - self.loss)
        return np.array(shares, np.float64), float(RationalArray.constant(attained, 1).to_float_down()[0])

    def open_weights(self, wanted: FloatArray, without: int | None = None) -> FloatArray | None:
        """The weights by which a point lies farthest beyond all points so far; None where nothing is left."""
        if not self.points:
            return None
        values, count = np.array([point.value for point in self.points]), len(self.wishes)
        program = optimize.linprog(
            np.concatenate([-wanted, [1.0]]),
            A_ub=np.hstack([values, -np.ones((len(values), 1))]),
            b_ub=np.zeros(len(values)),
            A_eq=[[1.0] * count + [0.0]],
            b_eq=[1.0],
            bounds=[(0, 0 if i == without else 1) for i in range(count)] + [(None, None)],
        )
        if program.status != 0:
            return None
        weights: FloatArray = np.where(program.x[:count] < 1e-12, 0.0, program.x[:count])
        return None if self.is_tried(weights) else weights

    def is_refuted(self, without: int | None = None) -> bool:
        """Whether some weights, perhaps `without` an objective, show that thresholds cannot all be met."""
        for weights, limit in zip(self.weights, self.limits, strict=True):
            if without is not None and weights[without] > 0:
                continue
            if np.isneginf(limit):
                return True  # every policy pays for ever
            if np.isposinf(limit):
                continue
            needs_more = any(wish.is_strict for w, wish in zip(weights, self.wishes, strict=True) if w > 0)
            rest = self._beyond_thresholds(weights, limit)
            if rest < 0 or (needs_more and rest == 0):
                return True
        return False

    def best(self, number: int) -> float:
        """An upper bound on one objective where the others meet their thresholds."""
        least = np.inf
        for weights, limit in zip(self.weights, self.limits, strict=True):
            if np.isneginf(limit):
                return limit
            if weights[number] > 0 and np.isfinite(limit):
                bound = self._beyond_thresholds(weights, limit) / Fraction(float(weights[number]))
                least = min(least, float(RationalArray.constant(bound, 1).to_float_up()[0]))
        return least

    def _beyond_thresholds(self, weights: FloatArray, limit: float) -> Fraction:
        wanted = [wish.wanted for wish in self.wishes]
        return Fraction(limit) - sum(map(mul, map(Fraction, weights.tolist()), wanted), Fraction(0))

    def result(
        self,
        shares: FloatArray | None = None,
        bounds: tuple[float, float] | None = None,
        verdict: str | None = None,
    ) -> Achieved:
        """All of it; of the policies those that the mixture uses, or all points of a curve."""
        used = np.arange(len(self.points)) if shares is None else np.flatnonzero(shares)
        sign = np.array([1.0 if wish.is_maximised else -1.0 for wish in self.wishes])
        offset = np.array([float(wish.formula is not None and not wish.is_maximised) for wish in self.wishes])
        values = np.array([p.value for p in self.points]).reshape(len(self.points), len(self.wishes))
        return Achieved(
            points=np.maximum(offset + sign * values, 0.0) + 0.0,  # no zero has a sign
            weights=np.array(self.weights).reshape(len(self.weights), len(self.wishes)),
            limits=np.array(self.limits),
            shares=np.ones(len(used)) / max(len(used), 1) if shares is None else shares[used],
            controllers=tuple(self.trade.controller(self.points[i]) for i in used if self.trade.is_steered),
            bounds=bounds,
            verdict=verdict,
            wishes=tuple(self.wishes),
        )


def decide(search: ParetoSearch) -> Achieved:
    """Whether one policy, perhaps a mixture, meets all thresholds."""
    if not search.wishes:
        return search.result(np.zeros(0), verdict="true")
    search.begin()
    wanted = np.array([float(wish.wanted) for wish in search.wishes])
    for _ in range(MOST_WEIGHTS):
        mixture = search.mixture()
        if mixture is not None:
            return search.result(mixture[0], verdict="true")
        if search.is_refuted():
            return search.result(verdict="false")
        weights = search.open_weights(wanted)
        if weights is None:
            break
        search.try_weights(weights)
    return search.result(verdict="not certified")


def optimise(search: ParetoSearch, number: int, precision: float) -> Achieved:
    """The best of one objective under the thresholds of the others; "false" if these cannot be met."""
    search.begin()
    wish = search.wishes[number]
    lower, upper, shares = -np.inf, np.inf, None
    for _ in range(MOST_WEIGHTS):
        mixture = search.mixture(number)
        if mixture is not None:
            shares, lower = mixture
        upper = search.best(number)
        if np.isfinite(lower) and upper - lower <= precision * max(1.0, abs(lower)):
            break
        aim = np.array([float(one.wanted) for one in search.wishes])
        if np.isfinite(lower):
            aim[number] = (lower + upper) / 2 if np.isfinite(upper) else lower + 1
        weights = search.open_weights(aim, None if np.isfinite(lower) else number)
        if weights is None:
            break
        search.try_weights(weights)
    upper = search.best(number)
    below_all = upper < 0 if wish.formula is not None or wish.is_maximised else np.isneginf(upper)
    if shares is None and (below_all or search.is_refuted(without=number)):
        return search.result(verdict="false")
    if wish.formula is not None and not wish.is_maximised:
        rest = StateBounds.constant(1.0, 1.0, 1).plus(StateBounds.constant(lower, upper, 1).negated())
        lower, upper = float(rest.lower[0]), float(rest.upper[0])
    elif not wish.is_maximised:
        lower, upper = -upper, -lower
    if wish.formula is not None:
        lower, upper = max(lower, 0.0), min(upper, 1.0)
    return search.result(shares, (lower, upper))


def curve(search: ParetoSearch, precision: float) -> Achieved:
    """The Pareto curve of two objectives (finite costs): lines through neighbours say where to look."""
    search.begin()
    if not search.points:
        raise InputError(
            "one cost of multi(…) is infinite under every policy: there is no curve",
            hint="ask for one value beside a threshold",
        )
    while len(search.weights) < MOST_OF_CURVE:
        weights = _next_on_curve(search, precision)
        if weights is None:
            return search.result(verdict="certified")
        search.try_weights(weights)
    return search.result(verdict="not certified")


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
        if not search.is_tried(weights):
            return weights
    return None


class Sums(Enum):
    """What is added up on the way."""

    GAINS = "maximised rewards, or none"
    COSTS = "minimised rewards"
    BOTH = "rewards of both directions"


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
        directions = {wish.is_maximised for wish in wishes if wish.reward is not None}
        self.sums = Sums.BOTH if len(directions) == 2 else Sums.COSTS if False in directions else Sums.GAINS
        self.letters = Letters.of(atoms, model.states)
        formulas = [wish.formula for wish in wishes if wish.formula is not None]
        parts = [progression(formula, self.letters.bits) for formula in formulas]
        longest = max((wish.steps or 0 for wish in wishes), default=0)
        counter = Automaton(
            np.minimum(np.arange(longest + 1) + 1, longest)[:, None].repeat(len(self.letters.bits), 1)
        )
        self.automaton, states = beside([*(part[0] for part in parts), counter], self.letters.bits)
        self._counted = np.array([state[-1] for state in states])
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

    def upper(self, weights: FloatArray) -> tuple[float, ParetoPoint]:
        """A bound on Σ w·y over all policies, and what the policy behind it attains."""
        total = sum(
            (w * part for w, part in zip(weights, self._parts, strict=True)), np.zeros(self.model.choices)
        )
        solution = self._solve(self.model, self._objective(total), None)
        policy = solution.policy
        if self.sums is Sums.COSTS:
            spared = sum(w for w, wish in zip(weights, self.wishes, strict=True) if wish.formula is not None)
            least = float(solution.lower[0])
            bound = -np.inf if np.isinf(least) else float(up(up(spared) - least))
        else:
            bound = float(solution.upper[0])
        return bound, ParetoPoint(
            np.array([self._evaluate(i, policy) for i in range(len(self.wishes))]), policy.choice
        )

    def controller(self, point: ParetoPoint) -> Policy:
        """The policy of a point, with what it does where it rests."""
        rows = self.resting.rows(point.policy, self.automaton, self.letters)
        return Policy(self.base, rows.restrict_to_reached(Support.of(self.base)))

    def _evaluate(self, number: int, policy: Policy) -> float:
        """A formula is as likely as it is to stop where it is won, which the graph knows to be 0 or 1."""
        objective = self._objective(self._parts[number])
        if self.wishes[number].formula is not None:
            won = self._stops & (self._parts[number] == (self.sums is not Sums.COSTS))
            objective = Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN, won[policy.choice])
        solution = self._solve(self.model, objective, policy)
        is_cost = objective.agent is Direction.MIN
        return -float(solution.upper[0]) if is_cost else float(solution.lower[0])

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
                "multi(…) cannot maximise some rewards and minimise others if any of them can be earned "
                "forever",
                hint="ask for one of the two kinds beside probabilities",
            )

    @cached_property
    def _running(self) -> list[FloatArray]:
        """The rewards of choices of the product; zero for probabilities."""
        product, result = self.product, []
        for wish in self.wishes:
            earned = np.zeros(product.structure.choices)
            if wish.reward is not None:
                earned = wish.reward[product.choice]
            if wish.steps is not None:
                begun = self._counted[product.memory[product.structure.choice_state]]
                earned = np.where(begun < wish.steps, earned, 0.0)
            result.append(earned)
        return result

    @cached_property
    def _stops(self) -> BoolArray:
        """The choices that stop, in an end component."""
        return (self.resting.own < 0) & (self.resting.own >= -self.resting.stops)

    @cached_property
    def _parts(self) -> list[FloatArray]:
        """What every choice of the model that is solved gives to, or takes from, each objective."""
        own, result = self.resting.own, []
        gained = iter(self.resting.satisfied)
        for wish, running in zip(self.wishes, self._running, strict=True):
            part = np.where(own >= 0, running[np.maximum(own, 0)], 0.0)
            if self.sums is Sums.BOTH and not wish.is_maximised:
                part = -part
            if wish.formula is not None:
                won = next(gained)[-1 - own[self._stops]].astype(np.float64)
                part[self._stops] = 1 - won if self.sums is Sums.COSTS else won
            result.append(part)
        return result
