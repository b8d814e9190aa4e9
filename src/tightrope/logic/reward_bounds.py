"""Bounds on earned rewards: `F{"cost"}<=k a`, late rewards `C[a,b]`, and quantiles, the best bound k.

The reward so far is remembered up to where it no longer matters. Rewards are whole numbers, so this memory is
finite, and the question is reachability in a product. A choice's reward is earned on the way: every choice
leads through a state of its own. The state that ends the path earns nothing any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.temporal import PathBounds
from tightrope.logic.values import (
    ANYTHING,
    PROBABILITY,
    BoundedValue,
    Directions,
    Solve,
    StateBounds,
    StateTruth,
    from_starts,
    reaching,
    rearranged,
)
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.product import MOST_STATES, Automaton, Letters, product_of
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.parse.property_syntax import PathFormula, PathOperator
from tightrope.prism.properties.resolve import StateFormulas, named_reward, steps_of
from tightrope.prism.properties.shape import is_path, without_negation
from tightrope.solver.solution import Solution

_TAKES = "a bound on a reward requires F, G and U over state formulas"


@dataclass(frozen=True, eq=False)
class RewardBounded:
    """`allowed U target` while rewards per choice are within their limits (`bounds`), or its complement."""

    target: BoolArray
    allowed: BoolArray
    bounds: tuple[tuple[FloatArray, tuple[int, int | None]], ...]
    complement: bool


def expand_reward_bound(
    path: syntax.Expression, formulas: StateFormulas, structure: Structure
) -> RewardBounded | None:
    """The problem of such a path; None where a path has no bound on a reward."""
    inner, negated = without_negation(path)
    if not isinstance(inner, PathFormula) or inner.bound is None or inner.bound.reward is None:
        return None
    if inner.operator not in (PathOperator.EVENTUALLY, PathOperator.GLOBALLY, PathOperator.UNTIL) or (
        is_path(inner.right) or (inner.left is not None and is_path(inner.left))
    ):
        raise syntax.Complaint(_TAKES, inner.position)
    bounds = []
    for one in (inner.bound, *inner.bound.also):
        reward = np.ones(structure.choices)
        if one.reward is not None:
            given = named_reward(one.reward, inner.position, structure)
            reward = whole_rewards(given, structure, f'"{one.reward}"', "a bound on them", inner.position)
        bounds.append((reward, steps_of(one, formulas, inner.position)))
    right = formulas.states(inner.right)
    is_global = inner.operator is PathOperator.GLOBALLY
    allowed = np.ones(structure.states, np.bool_) if inner.left is None else formulas.states(inner.left)
    target = ~right if is_global else right
    return RewardBounded(target, allowed, tuple(bounds), is_global != negated)


def whole_rewards(
    given: RewardStructure, structure: Structure, name: str, asks: str, position: syntax.Position | None
) -> FloatArray:
    """What choices earn; refuses what no finite memory adds up, and means, which no single play earns."""
    reward = given.per_choice(structure)
    if given.is_mean:
        raise syntax.Complaint(
            f"the rewards {name} differ by successor, and {asks} needs what every step earns",
            position,
            "let the reward be that of the state that is reached, or of a choice of its own",
        )
    if (reward < 0).any() or (reward % 1 != 0).any():
        raise syntax.Complaint(
            f"the rewards {name} are not all whole numbers from 0 on, as {asks} needs",
            position,
            "scale them in the model",
        )
    return reward


def bound_rewarded(
    model: MDP | IntervalMDP,
    problem: RewardBounded,
    directions: Directions,
    starts: OffsetArray,
    solve: Solve,
) -> PathBounds:
    """Bounds on the probability from `starts`; the memory holds a sum per bound, as far as it matters."""
    states, longer = model.states, through_choices(model)
    earned, limits = zip(*problem.bounds, strict=True)
    most = [least if last is None else last + 1 for least, last in limits]
    shape = tuple(end + 1 for end in most)
    if math.prod(shape) > MOST_STATES:
        raise syntax.Complaint(f"bounds on rewards remember at most {MOST_STATES:,} sums", None)
    free = np.zeros((len(earned), 1))
    amounts, place = np.unique(np.hstack([free, np.stack(earned)]), axis=1, return_inverse=True)
    place = place.reshape(-1)
    letter = np.concatenate([np.full(states, place[0]), place[1:]]).astype(np.int32)
    held = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape))
    sums = np.minimum(held[:, :, None] + amounts[:, None, :], np.array(most)[:, None, None])
    following = np.ravel_multi_index(tuple(sums.astype(np.int64)), shape).astype(np.int32)
    letters = Letters(letter, tuple(range(amounts.shape[1])))
    product = product_of(Support.of(longer), letters, Automaton(following), starts)
    first = np.array([least for least, _ in limits])[:, None]
    last = np.array([end if last is None else last for end, (_, last) in zip(most, limits, strict=True)])
    is_open: BoolArray = np.all(held <= last[:, None], axis=0)
    inside = is_open & np.all(held >= first, axis=0)
    choices = np.ones(model.structure.choices, np.bool_)
    target = np.concatenate([problem.target, ~choices])[product.state] & inside[product.memory]
    allowed = np.concatenate([problem.allowed, choices])[product.state] & is_open[product.memory]
    solution = solve(
        product.model(longer), reaching(directions, target, allowed | target, problem.complement)
    )
    return PathBounds(from_starts(solution, starts, states, PROBABILITY), solution)


def through_choices(model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    """The model in which every choice leads to a new state first."""
    structure, states, every = model.structure, model.states, np.arange(model.choices)
    owner = np.concatenate([structure.choice_state, states + every])
    rows = np.concatenate([-1 - states - every, every])
    return rearranged(model, owner, rows, initial_states=structure.initial_states)[0]


# Late rewards: `C[a,b]`, of the steps behind the first a up to b, and `C>=a`, of all behind. `C[0,b]` is
# `C<=b`, `C>=0` is `C`; on a chain `C[a,b]` is `C<=b` minus `C<=a`. With choices, bounds of `C<=b-a` in every
# state are the last values of a steps that earn nothing. A total reward may be infinite, so `C>=a` is that of
# a product with a counter of steps, whose choices earn nothing until it is full.

Found = tuple[StateBounds, list[Solution]]


def bound_window(
    model: MDP | IntervalMDP,
    reward: FloatArray,
    steps: tuple[int, int | None],
    directions: Directions,
    starts: OffsetArray,
    solve: Solve,
) -> Found:
    """Bounds on the reward of the steps behind the first `steps[0]`, up to `steps[1]` (None: for ever)."""
    first, last = steps
    if last is None:
        return _bound_late(model, reward, first, directions, starts, solve)
    earned = _cumulative(directions, last - first, RewardStructure(choice=reward), None)
    inner = solve(model, earned)
    if first == 0:
        return StateBounds(inner.lower, inner.upper), [inner]
    below, above = (
        solve(model, _cumulative(directions, first, RewardStructure(), end))
        for end in (inner.lower, inner.upper)
    )
    return StateBounds(below.lower, above.upper), [inner, below, above]


def _cumulative(
    directions: Directions, steps: int, reward: RewardStructure, terminal: FloatArray | None
) -> Objective:
    return Objective(
        ObjectiveKind.CUMULATIVE, *directions, upper_steps=steps, reward=reward, terminal=terminal
    )


def _bound_late(
    model: MDP | IntervalMDP,
    reward: FloatArray,
    first: int,
    directions: Directions,
    starts: OffsetArray,
    solve: Solve,
) -> Found:
    if first >= MOST_STATES:
        raise syntax.Complaint(f"C>=k takes a k below {MOST_STATES:,}", None)
    counter = Automaton(np.minimum(np.arange(1, first + 2), first)[:, None].astype(np.int32))
    letters = Letters(np.zeros(model.states, np.int32), (0,))
    product = product_of(Support.of(model), letters, counter, starts)
    late = product.memory[product.structure.choice_state] == first
    earned = RewardStructure(choice=np.where(late, reward[product.choice], 0.0))
    solution = solve(product.model(model), Objective(ObjectiveKind.TOTAL, *directions, reward=earned))
    return from_starts(solution, starts, model.states, ANYTHING), [solution]


# `quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])`: the least k for which a threshold is met. The
# probability is monotone in k. Doubling and halving k finds, per state, the last k that certainly fails and
# the first that certainly holds. They are neighbours unless a probability is closer to the threshold than its
# bounds; then the quantile lies between them. The path without a bound, the limit in k, shows that there is
# no such k: ∞ where no k is large enough, or every k holds; −∞ where a largest k is asked for and not even 0
# holds. Where the limit is open, as in uncertain models, hardly any k holds for certain: few are tried.

MOST, FEW = 1 << 15, 1 << 10
"""The largest k that is tried, and that is tried where the limit does not hold for certain."""

_FORM = 'quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])'
_RISES = {
    formulas.PathOperator.EVENTUALLY: True,
    formulas.PathOperator.UNTIL: True,
    formulas.PathOperator.GLOBALLY: False,
}


@dataclass(frozen=True)
class Threshold:
    """The operator with the bound, whether larger k help it, and whether the unbounded path is the limit."""

    operator: formulas.ValueOperator
    rises: bool
    has_limit: bool

    def at(self, k: int | None) -> formulas.ValueOperator:
        """With a number in place of the variable; None: without a bound."""
        assert isinstance(self.operator.path, syntax.Expression)
        path, negated = without_negation(self.operator.path)
        assert isinstance(path, formulas.PathFormula) and path.bound is not None
        number = syntax.Literal(k or 0, syntax.Type.INT, path.position)
        is_upper, bound = path.bound.lower is None, path.bound
        bound = replace(bound, upper=number) if is_upper else replace(bound, lower=number)
        inner: syntax.Expression = replace(path, bound=None if k is None else bound)
        return replace(self.operator, path=syntax.Unary("!", inner, path.position) if negated else inner)


def read_threshold(quantile: formulas.Quantile) -> Threshold:
    """What is asked, or a complaint where the bound of one path is not the variable alone."""
    operator = quantile.operand
    if not isinstance(operator, formulas.ValueOperator) or operator.is_reward or operator.comparison is None:
        raise syntax.Complaint("a quantile is about one P with a threshold", quantile.position, _FORM)
    if operator.condition is not None or not isinstance(operator.path, syntax.Expression):
        raise syntax.Complaint("a quantile is about a path with a bound", operator.position, _FORM)
    path, negated = without_negation(operator.path)
    bound = path.bound if isinstance(path, formulas.PathFormula) else None
    if (
        not isinstance(path, formulas.PathFormula)
        or bound is None
        or bound.also
        or path.operator not in _RISES
    ):
        why = "a quantile is about F, G or U with a bound on steps or a reward, and no other"
        raise syntax.Complaint(why, operator.position, _FORM)
    is_upper = bound.lower is None and _is(bound.upper, quantile.variable)
    if not is_upper and not (bound.upper is None and _is(bound.lower, quantile.variable)):
        raise syntax.Complaint(
            f"the bound is the variable {quantile.variable} alone, on one side", path.position, _FORM
        )
    likelier = (_RISES[path.operator] != negated) == is_upper
    rises = likelier == operator.comparison.startswith(">")
    if rises != quantile.is_least:
        notes = "from some k on" if rises else "up to some k"
        raise syntax.Complaint(
            f"this holds {notes}: the {'least' if rises else 'largest'} one is the quantile",
            quantile.position,
            f"write quantile({'min' if rises else 'max'} {quantile.variable}, …)",
        )
    return Threshold(operator, rises, is_upper)


def find_quantile(
    query: Threshold, decide: Callable[[formulas.ValueOperator], StateTruth], wanted: BoolArray
) -> tuple[StateBounds, int]:
    """Bounds on the quantile in the states that are `wanted`, and how many k were tried."""
    known: dict[int, StateTruth] = {}

    def meets(k: int) -> StateTruth:
        """Larger k help; turned round where smaller ones do."""
        if k not in known:
            known[k] = decide(query.at(k))
        return known[k] if query.rises else known[k].negated()

    never, ends = np.zeros(len(wanted), np.bool_), np.ones(len(wanted), np.bool_)
    if query.has_limit:
        limit = decide(query.at(None))
        never, ends = (limit.fails, limit.holds) if query.rises else (limit.holds, limit.fails)
    sought = wanted & ~never
    open_from = _first(lambda k: ~meets(k).fails, sought, np.full(len(wanted), MOST))
    holds_from = _first(lambda k: meets(k).holds, sought, np.where(ends, MOST, FEW))
    lower, upper = (np.where(never, np.inf, end) for end in (open_from, holds_from))
    if not query.rises:  # the last k before the first that fails
        lower, upper = (np.where(end == 0, -np.inf, end - 1) for end in (lower, upper))
    lower[np.isposinf(lower) & ~never] = MOST  # nothing is known beyond
    lower[~wanted], upper[~wanted] = -np.inf, np.inf
    return StateBounds(lower, upper), len(known)


def _first(holds: Callable[[int], BoolArray], sought: BoolArray, most: OffsetArray) -> FloatArray:
    """The first k at which something holds that holds from then on, per state; ∞ beyond the largest tried."""
    at_least = np.zeros(len(sought), np.int64)
    result = np.full(len(sought), np.inf)
    k = 0
    while True:  # double until it holds everywhere
        now = holds(k)
        result = np.where(now & np.isinf(result), float(k), result)
        at_least = np.where(now, at_least, np.maximum(at_least, k + 1))
        if (now | ~sought | (k >= most)).all():
            break
        k = min(max(1, 2 * k), MOST)
    while True:
        spread = np.where(sought & np.isfinite(result), result - at_least, 0.0)
        if not (spread > 0).any():
            return result
        widest = int(np.argmax(spread))
        k = int(at_least[widest] + (result[widest] - at_least[widest]) // 2)
        now = holds(k)
        result = np.where(now, np.minimum(result, float(k)), result)
        at_least = np.where(now, at_least, np.maximum(at_least, k + 1))


def _is(bound: syntax.Expression | None, variable: str) -> bool:
    return isinstance(bound, syntax.Name) and bound.name == variable


# `CVaR{"cost",α}min=? [ F "goal" ]`, conditional value at risk: the mean of the worst 1 − α of all costs.
#
# CVaR is the least v + E[(X − v)⁺] / (1 − α) over all v (Rockafellar, Uryasev, 2000). Costs are whole
# numbers, so the rest of a budget v is a finite memory. A minimising agent takes the least value over whole
# v, at most the best value found. A maximising one may mix policies: the least over v of the largest value
# H(v), convex, evaluated at a few points; lines through neighbours bound it from below elsewhere.
#
# On interval models nature must want what the agent wants.

FIRST_BUDGET = 8
MOST_POINTS = 60
"""Of a convex function, that are evaluated per state."""
WIDE = "not close enough"
GRID = Fraction(1, 1 << 20)
"""Budgets are multiples of it, so that they and their parts are exact doubles."""


class CvarProblem:
    """The costs beyond any budget, for one reward, one objective and one level."""

    def __init__(self, model: MDP | IntervalMDP, objective: Objective, level: Fraction, solve: Solve):
        reward = objective.reward
        assert reward is not None
        self._model, self._solve, self._objective = model, solve, objective
        self._longer = through_choices(model)
        self._cost = reward.per_choice(model.structure)
        amounts, place = np.unique(np.concatenate([[0.0], self._cost]), return_inverse=True)
        letter = np.concatenate([np.full(model.states, place[0]), place[1:]])
        self._amounts, self._letters = amounts, Letters(letter.astype(np.int32), tuple(range(len(amounts))))
        exact = RationalArray.from_fractions([1 - level])
        self._share = StateBounds(exact.to_float_down(), exact.to_float_up())
        self.iterations = 0
        self.is_certified = True

    def values(self, starts: OffsetArray, budgets: OffsetArray, part: float = 0.0) -> StateBounds:
        """v + E[(X − v)⁺] / (1 − α) from states with budgets, v = budget − part; a row of all."""
        most = int(budgets.max())
        if most + 1 >= MOST_STATES:
            raise InputError(
                f"the costs are so large that budgets of {most:,} and more matter to CVaR",
                hint="scale the costs down in the model",
            )
        left = np.maximum(np.arange(most + 1)[:, None] - self._amounts[None, :], 0).astype(np.int32)
        product = product_of(Support.of(self._longer), self._letters, Automaton(left), starts, budgets)
        spent = self._amounts[self._letters.letter[product.state]]
        beyond = np.maximum(spent - product.memory, 0.0)
        beyond += np.where((product.memory > 0) & (spent >= product.memory), part, 0.0)
        objective = replace(self._objective, reward=RewardStructure(state=beyond))
        if objective.target is not None:
            on_choices = np.zeros(self._model.structure.choices, np.bool_)
            target: BoolArray = np.concatenate([objective.target, on_choices])[product.state]
            objective = replace(objective, target=target)
        if objective.upper_steps is not None:  # a step leads through the state of its choice
            objective = replace(objective, upper_steps=2 * objective.upper_steps)
        solution: Solution = self._solve(product.model(self._longer), objective)
        self.iterations += solution.iterations
        self.is_certified &= solution.is_certified
        excess = StateBounds(solution.lower[: len(starts)], solution.upper[: len(starts)])
        beginning = np.asarray(budgets - part, np.float64)
        ones = np.ones(len(starts))
        share = StateBounds(self._share.lower * ones, self._share.upper * ones)
        result = StateBounds(beginning, beginning).plus(excess.divided_by(share))
        return StateBounds(np.where(np.isposinf(excess.lower), np.inf, result.lower), result.upper)


def bound_least_cvar(problem: CvarProblem, starts: OffsetArray, states: int) -> BoundedValue:
    """Where the agent minimises, or nobody decides anything."""
    most = FIRST_BUDGET
    while True:
        budgets = np.tile(np.arange(most + 1), len(starts))
        result = problem.values(np.repeat(starts, most + 1), budgets)
        low, high = (end.reshape(len(starts), most + 1) for end in (result.lower, result.upper))
        best = high.min(axis=1)
        if (best[np.isfinite(best)] <= most + 1).all():  # a larger budget is worth at least itself
            break
        most *= 2
    lower, upper = (np.full(states, end) for end in ANYTHING)
    lower[starts], upper[starts] = (
        np.minimum(low.min(axis=1), np.where(np.isinf(best), np.inf, most + 1)),
        best,
    )
    return BoundedValue(StateBounds(lower, upper), problem.iterations, None if problem.is_certified else WIDE)


def bound_largest_cvar(
    problem: CvarProblem, starts: OffsetArray, states: int, level: Fraction, precision: float
) -> BoundedValue:
    """Where the agent maximises."""
    lower, upper = (np.full(states, end) for end in ANYTHING)
    missed = False
    for start in starts.tolist():

        def value(v: float, start: int = start) -> tuple[float, float]:
            budget = int(np.ceil(v))
            result = problem.values(np.array([start]), np.array([budget]), budget - v)
            return float(result.lower[0]), float(result.upper[0])

        convex = Convex(value, 1 - 1 / (1 - level))
        low, high = convex.minimum(precision)
        lower[start], upper[start] = low, high = max(low, 0.0), high  # costs are not negative
        missed |= low < high and not high - low <= precision * max(1.0, abs(low))
    wide = missed or not problem.is_certified
    return BoundedValue(StateBounds(lower, upper), problem.iterations, WIDE if wide else None)


class Convex:
    """The least value of a convex function H(v) ≥ v on [0, ∞), whose slope is at most 1, and `leftmost` for
    v below 0.

    Lines through points are followed exactly, by rationals; the points are multiples of `GRID`."""

    def __init__(self, value: Callable[[float], tuple[float, float]], leftmost: Fraction):
        self._value, self._leftmost = value, leftmost
        self._seen: dict[Fraction, tuple[Fraction, Fraction]] = {}

    def minimum(self, precision: float) -> tuple[float, float]:
        """Bounds on it."""
        first = self._value(0.0)
        if not np.isfinite(first).all():
            return first
        self._seen[Fraction(0)] = Fraction(first[0]), Fraction(first[1])
        self._try(Fraction(1))
        for _ in range(MOST_POINTS):
            least, where = self._below()
            best = min(high for _, high in self._seen.values())
            if best - least <= Fraction(precision) * max(Fraction(1), abs(best)) or not self._try(where):
                break
        exact = RationalArray.from_fractions([self._below()[0], min(high for _, high in self._seen.values())])
        return float(exact.to_float_down()[0]), float(exact.to_float_up()[1])

    def _try(self, where: Fraction) -> bool:
        """Evaluate near a point; whether that was a new one."""
        v = Fraction(round(where / GRID)) * GRID
        if v in self._seen:
            return False
        low, high = self._value(float(v))
        self._seen[v] = Fraction(low), Fraction(high)
        return True

    def _below(self) -> tuple[Fraction, Fraction]:
        """A bound from below on all values, and where it is attained."""
        points = [KnownCosts(v, *ends) for v, ends in sorted(self._seen.items())]
        best, where = min((point.low, point.v) for point in points)
        falls = [self._leftmost, *((b.low - a.high) / (b.v - a.v) for a, b in pairwise(points))]
        rises = [*((b.high - a.low) / (b.v - a.v) for a, b in pairwise(points)), Fraction(1)][1:]
        result = [
            _crossing(one, other, fall, rise)
            for (one, other), fall, rise in zip(pairwise(points), falls[:-1], rises, strict=True)
        ]
        last = points[-1]
        if falls[-1] < 0:  # behind the last point: on its line, and at least v
            at = max((last.low - falls[-1] * last.v) / (1 - falls[-1]), last.v)
            result.append((at, at))
        return min([*result, (best, where)])


@dataclass(frozen=True)
class KnownCosts:
    """A point of the function, and bounds on its value."""

    v: Fraction
    low: Fraction
    high: Fraction


def _crossing(
    one: KnownCosts, other: KnownCosts, falls: Fraction, rises: Fraction
) -> tuple[Fraction, Fraction]:
    """The least value between two points of two lines no steeper than `falls` and `rises`, and where."""
    if falls >= 0:
        return one.low, one.v
    if rises <= 0:
        return other.low, other.v
    at = (other.low - one.low + falls * one.v - rises * other.v) / (falls - rises)
    at = min(max(at, one.v), other.v)
    return max(one.low + falls * (at - one.v), other.low + rises * (at - other.v)), at
