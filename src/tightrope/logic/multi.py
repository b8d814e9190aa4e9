"""`multi(…)`: is it achievable, how much is, and what does one objective cost the other.

* All objectives with thresholds: true if a mixture of policies meets them (checked with rationals), false
if some
  weights w have Σ w·t > U(w).
* One `=?`: the best value of it that leaves the thresholds met, between what a mixture attains and the least
  (U(w) − Σ w·t) / w₁ over the weights that were tried.
* Two `=?`: the Pareto curve, points that policies attain and lines that none crosses.

Each next weight is the one that the points so far leave most open: a small linear program, of which nothing
is believed but the weights it proposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog

from tightrope.logic.trade_offs import Point, TradeOffs, exact_point
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record, freeze_fields

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


class Search:
    """Points and weights, tried one after the other."""

    def __init__(self, trade: TradeOffs):
        self.trade = trade
        self.points: list[Point] = []
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
        found = linprog(
            goal,
            A_ub=np.hstack([-values[:, rows].T, slack]) if rows else None,
            b_ub=-bounds if rows else None,
            A_eq=np.hstack([np.ones((1, len(values))), [[0.0]]]),
            b_eq=[1.0],
            bounds=[(0, 1)] * len(values) + [(0 if better is not None else None, 1)],
        )
        if found.status != 0:
            return None
        shares = [Fraction(max(float(share), 0.0)) for share in found.x[:-1]]
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
        values = np.array([point.value for point in self.points])
        count = self.trade.count
        found = linprog(
            np.concatenate([-wanted, [1.0]]),
            A_ub=np.hstack([values, -np.ones((len(values), 1))]),
            b_ub=np.zeros(len(values)),
            A_eq=[[1.0] * count + [0.0]],
            b_eq=[1.0],
            bounds=[(0, 0 if i == without else 1) for i in range(count)] + [(None, None)],
        )
        if found.status != 0:
            return None
        weights: FloatArray = np.maximum(found.x[:count], 0.0)
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


def decide(trade: TradeOffs, wanted: Sequence[Fraction], strict: Sequence[bool]) -> Achieved:
    """Whether one policy, perhaps a mixture, meets all thresholds."""
    search = Search(trade)
    search.begin()
    nearly = [_beyond(t, s) for t, s in zip(wanted, strict, strict=True)]
    for _ in range(MOST_WEIGHTS):
        found = search.mixture(nearly, None)
        if found is not None:
            return search.result(found[0], 1.0, 1.0, "true")
        if search.is_refuted(wanted, strict):
            return search.result(None, 0.0, 0.0, "false")
        weights = search.open_weights(np.array([float(t) for t in wanted])) if search.points else None
        if weights is None or _is_tried(search, weights):
            break
        search.try_weights(weights)
    return search.result(None, 0.0, 1.0, "not certified")


def optimise(
    trade: TradeOffs, number: int, wanted: Sequence[Fraction | None], strict: Sequence[bool], precision: float
) -> Achieved:
    """The best of one objective that leaves the thresholds of the others met; turned so that more is
    better."""
    search = Search(trade)
    search.begin()
    nearly = [None if t is None else _beyond(t, s) for t, s in zip(wanted, strict, strict=True)]
    lower, shares = -np.inf, None
    for _ in range(MOST_WEIGHTS):
        found = search.mixture(nearly, number)
        if found is not None:
            shares, lower = found
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
    search: Search, number: int, wanted: Sequence[Fraction | None], strict: Sequence[bool]
) -> bool:
    """Whether the thresholds cannot be met: shown by weights that leave the open objective out, or by a bound
    on it below all that it can be."""
    wish = search.trade.wishes[number]
    if (wish.formula is not None or wish.is_maximised) and search.best(number, wanted) < 0:
        return True
    kept = [i for i, weights in enumerate(search.weights) if weights[number] == 0]
    alone = Search(search.trade)
    alone.weights, alone.limits = [search.weights[i] for i in kept], [search.limits[i] for i in kept]
    return alone.is_refuted([Fraction(0) if t is None else t for t in wanted], strict)


def curve(trade: TradeOffs, precision: float) -> Achieved:
    """The Pareto curve of two objectives: between neighbours the line through them says where to look."""
    search = Search(trade)
    search.begin()
    while len(search.weights) < MOST_OF_CURVE:
        weights = _next_on_curve(search, precision)
        if weights is None:
            return search.result(None, 0.0, 0.0, "certified")
        search.try_weights(weights)
    return search.result(None, 0.0, 0.0, "not certified")


def _next_on_curve(search: Search, precision: float) -> FloatArray | None:
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


def _is_tried(search: Search, weights: FloatArray) -> bool:
    return any(np.abs(weights - tried / tried.sum()).max() < 1e-9 for tried in search.weights)


def _beyond(threshold: Fraction, strict: bool) -> Fraction:
    """What a mixture must reach: a little more where the threshold itself does not count."""
    return threshold + Fraction(1, 10**12) if strict else threshold
