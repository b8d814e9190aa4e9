"""What a learned certificate may claim: nothing that a point of the honest region refutes.

The regions are worked out here from the data file alone, by their definitions and in plain floats, and
shrunk a little: every point kept lies in the region that the method promises to cover. A claimed interval
that leaves out the policy's exact value at one of these points is false.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution

from adversary.archive import Forgery
from adversary.honest import SPREAD, Honest
from adversary.truth_values import Question, objective_of
from exact_reference import INFINITE, TinyModel
from tightrope.model.objective import Objective
from tightrope_check.archive import load
from tightrope_check.learned import Learned, RowOrigin
from tightrope_check.numbers import FLOAT64

DELTA = 0.05
SHRINK = 1e-7
"""Boundary points are moved inwards by this share, far more than floats err."""

Point = tuple[Fraction, ...]
Form = tuple[tuple[float, ...], float]
"""linear·x + constant in the coordinates x."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """A model by hand: choices of (state, outcomes), an outcome being (successor, expression)."""

    choices: Sequence[Sequence[Sequence[tuple[int, str]]]]
    forms: dict[str, Form]
    """Of every unknown expression, in the coordinates."""
    events: dict[str, list[str]]
    """Event → expressions that are it ('+') or its complement ('-')."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    size: int
    lift: Callable[[Sequence[float]], list[float]]
    domain: Callable[[Sequence[float]], bool]
    exact: Callable[[Point], dict[str, Fraction]]

    def at(self, free: Sequence[float]) -> dict[str, float]:
        x = self.lift(free)
        return {
            name: sum(a * v for a, v in zip(linear, x, strict=True)) + c
            for name, (linear, c) in self.forms.items()
        }


def walk_at(point: Point) -> dict[str, Fraction]:
    (p,) = point
    return {"p": p, "-p": 1 - p, "1/4": Fraction(1, 4), "3/4": Fraction(3, 4), "1": Fraction(1)}


def _spread_exact(point: Point) -> dict[str, Fraction]:
    p, q = point
    r = p / 2
    both = {"p": p, "q": q, "rest": 1 - p - q, "pq": p * q, "-pq": 1 - p * q, "r": r, "-r": 1 - r}
    return both | {"-p": 1 - p, "1": Fraction(1)}


WALK_SKETCH = Sketch(
    [
        [[(1, "p"), (2, "-p")], [(2, "3/4"), (3, "1/4")]],
        [[(0, "-p"), (3, "p")]],
        [[(0, "p"), (4, "-p")]],
        [[(3, "1")]],
        [[(4, "1")]],
    ],
    {"p": ((1.0,), 0.0), "-p": ((-1.0,), 1.0)},
    {"p": ["+p", "--p"]},
    (0.1,),
    (0.9,),
    1,
    lambda free: list(free),
    lambda free: 0.1 <= free[0] <= 0.9,
    walk_at,
)

SPREAD_SKETCH = Sketch(
    [
        [[(1, "p"), (2, "q"), (3, "rest")]],
        [[(3, "pq"), (4, "-pq")], [(3, "r"), (4, "-r")]],
        [[(0, "p"), (4, "-p")]],
        [[(3, "1")]],
        [[(4, "1")]],
    ],
    {
        "p": ((1.0, 0.0, 0.0), 0.0),
        "q": ((0.0, 1.0, 0.0), 0.0),
        "rest": ((-1.0, -1.0, 0.0), 1.0),
        "pq": ((0.0, 0.0, 1.0), 0.0),
        "-pq": ((0.0, 0.0, -1.0), 1.0),
        "r": ((0.5, 0.0, 0.0), 0.0),
        "-r": ((-0.5, 0.0, 0.0), 1.0),
        "-p": ((-1.0, 0.0, 0.0), 1.0),
    },
    {"p": ["+p", "--p"], "q": ["+q"], "rest": ["+rest"], "pq": ["+pq", "--pq"], "r": ["+r", "--r"]},
    (0.1, 0.1, 0.01),
    (0.5, 0.5, 0.25),
    3,
    lambda free: [free[0], free[1], free[0] * free[1]],
    lambda free: all(0.1 <= x <= 0.5 for x in free),
    _spread_exact,
)


@dataclass(frozen=True, eq=False)
class Data:
    """Counts by batch of (state, choice, successor)."""

    batches: list[dict[tuple[int, int, int], int]]

    def total(self) -> dict[tuple[int, int, int], int]:
        whole: dict[tuple[int, int, int], int] = {}
        for batch in self.batches:
            for key, count in batch.items():
                whole[key] = whole.get(key, 0) + count
        return whole


def read_data(honest: Honest) -> Data:
    lines = (honest.folder() / "data.csv").read_text().splitlines()[1:]
    batches: dict[int, dict[tuple[int, int, int], int]] = {}
    for row in csv.DictReader(lines):
        key = int(row["state"]), int(row["choice"]), int(row["next_state"])
        batches.setdefault(int(row["batch"]), {})[key] = int(row["count"])
    return Data([batches[b] for b in sorted(batches)])


Inside = Callable[[Sequence[float]], bool]


def region_of(honest: Honest) -> tuple[Sketch, Inside, list[float]]:
    """(model, membership in free parameters, a point inside)."""
    sketch = SPREAD_SKETCH if honest.text == SPREAD else WALK_SKETCH
    if not honest.data:
        middle = [0.5 * (a + b) for a, b in zip(sketch.low, sketch.high, strict=True)]
        return sketch, sketch.domain, middle[: 2 if sketch is SPREAD_SKETCH else 1]
    data = read_data(honest)
    kind = honest.name.split("/")[1]
    if kind == "events" and honest.name.endswith("untied"):
        inside = _untied(sketch, data)
    elif kind in ("events", "polytope", "anytime", "hoeffding"):
        inside = _events(sketch, data, kind)
    elif kind == "slab":
        inside = _slab(honest, sketch, data)
    else:
        inside = {"l1": _balls, "ellipsoid": _ellipsoid, "likelihood": _likelihood}[kind](sketch, data)
    centre = _estimate(sketch, _by_expression(sketch, data.total()))
    return sketch, lambda free: sketch.domain(free) and inside(free), centre


def _by_expression(sketch: Sketch, counts: dict[tuple[int, int, int], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (state, choice, successor), count in counts.items():
        name = dict(sketch.choices[state][choice])[successor]
        found[name] = found.get(name, 0) + count
    return found


def _trials(sketch: Sketch, counts: dict[tuple[int, int, int], int]) -> dict[str, tuple[int, int]]:
    """Successes and trials of every event; a visit is one trial, also where both sides are outcomes."""
    found = {}
    for event, members in sketch.events.items():
        successes = trials = 0
        for state, choices in enumerate(sketch.choices):
            for number, outcomes in enumerate(choices):
                seen = {name: counts.get((state, number, t), 0) for t, name in outcomes}
                signs = {member[1:]: member[0] for member in members}
                met = [name for name in seen if name in signs]
                if met:
                    visits = sum(seen.values())
                    name = met[0]
                    trials += visits
                    successes += seen[name] if signs[name] == "+" else visits - seen[name]
        found[event] = successes, trials
    return found


def interval_of(kind: str, k: int, n: int, gamma: float) -> Callable[[float], bool]:
    if kind == "anytime":
        mixture = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1.0) - math.log(math.pi)
        return lambda p: mixture - k * math.log(p) - (n - k) * math.log(1 - p) < math.log(1 / gamma)
    if kind == "hoeffding":
        return lambda p: abs(p - k / n) <= math.sqrt(math.log(2 / gamma) / (2 * n))
    low = float(beta_distribution.ppf(gamma / 2, k, n - k + 1)) if k else 0.0
    high = float(beta_distribution.isf(gamma / 2, k + 1, n - k)) if k < n else 1.0
    return lambda p: low <= p <= high


def _events(sketch: Sketch, data: Data, kind: str) -> Inside:
    gamma = DELTA / len(sketch.events)
    tests = {
        event: interval_of(kind, k, n, gamma) for event, (k, n) in _trials(sketch, data.total()).items() if n
    }
    return lambda free: all(test(sketch.at(free)[event]) for event, test in tests.items())


def _untied(sketch: Sketch, data: Data) -> Inside:
    """Every choice on its own counts, at the largest share of δ that a choice could get."""
    counts, tests = data.total(), []
    for state, choices in enumerate(sketch.choices):
        for number, outcomes in enumerate(choices):
            visits = sum(counts.get((state, number, t), 0) for t, _ in outcomes)
            for t, name in outcomes:
                if name in sketch.forms and visits:
                    tests.append((name, counts.get((state, number, t), 0), visits))
    gamma = 2 * DELTA / len(tests)
    checks = [(name, interval_of("events", k, n, gamma)) for name, k, n in tests]
    return lambda free: all(check(sketch.at(free)[name]) for name, check in checks)


def _balls(sketch: Sketch, data: Data) -> Inside:
    counts, pooled = data.total(), {}
    for state, choices in enumerate(sketch.choices):
        for number, outcomes in enumerate(choices):
            if any(name in sketch.forms for _, name in outcomes):
                key = tuple(sorted(name for _, name in outcomes))
                seen = pooled.setdefault(key, dict.fromkeys(key, 0))
                for t, name in outcomes:
                    seen[name] += counts.get((state, number, t), 0)
    gamma = DELTA / len(pooled)

    def inside(free: Sequence[float]) -> bool:
        value = sketch.at(free)
        for key, seen in pooled.items():
            visits = sum(seen.values())
            if visits:
                radius = math.sqrt(2 * math.log((2 ** len(key) - 2) / gamma) / visits)
                if sum(abs(value[name] - seen[name] / visits) for name in key) > radius:
                    return False
        return True

    return inside


def _ellipsoid(sketch: Sketch, data: Data) -> Inside:
    counts, size, ridge = data.total(), sketch.size, 0.1
    low, high = np.array(sketch.low), np.array(sketch.high)
    origin, half = (low + high) / 2, (high - low) / 2
    matrix, vector = ridge * np.eye(size), np.zeros(size)
    for state, choices in enumerate(sketch.choices):
        for number, outcomes in enumerate(choices):
            visits = sum(counts.get((state, number, t), 0) for t, _ in outcomes)
            for t, name in outcomes:
                if name in sketch.forms:
                    linear, constant = sketch.forms[name]
                    slope = np.array(linear) * half
                    level = constant + float(np.array(linear) @ origin)
                    matrix += visits * np.outer(slope, slope)
                    vector += slope * (counts.get((state, number, t), 0) - visits * level)
    centre = np.linalg.solve(matrix, vector)
    growth = np.linalg.slogdet(matrix)[1] - size * math.log(ridge)
    radius = math.sqrt(growth / 2 + math.log(1 / DELTA)) + math.sqrt(ridge * size)

    def inside(free: Sequence[float]) -> bool:
        away = (np.array(sketch.lift(free)) - origin) / half - centre
        return float(away @ matrix @ away) <= radius**2

    return inside


def _log_likelihood(sketch: Sketch, seen: dict[str, int], free: Sequence[float]) -> float:
    value = sketch.at(free)
    if any(value[name] <= 0 for name, count in seen.items() if count and name in value):
        return -math.inf
    return sum(count * math.log(value[name]) for name, count in seen.items() if count and name in value)


def _estimate(sketch: Sketch, seen: dict[str, int]) -> list[float]:
    """The smoothed maximum of the likelihood in the domain's box."""
    free = 2 if sketch is SPREAD_SKETCH else 1
    low, high = np.array(sketch.low[:free]), np.array(sketch.high[:free])

    def loss(free: Sequence[float]) -> float:
        point = np.asarray(free)
        if np.any(point <= low) or np.any(point >= high):
            return math.inf
        smooth = 0.5 * float(np.log(point - low).sum() + np.log(high - point).sum())
        return -_log_likelihood(sketch, seen, point) - smooth

    found = minimize(loss, 0.5 * (low + high), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    return [float(x) for x in found.x]


def _likelihood(sketch: Sketch, data: Data, delta: float = DELTA, pilot: int | None = None) -> Inside:
    """Plug-ins are smoothed estimates; half a unit of the logarithm is left for other ways to smooth."""
    ends = np.cumsum([sum(batch.values()) for batch in data.batches])
    if pilot is None:
        pilot = int(np.searchsorted(ends, 0.1 * ends[-1], side="right"))
    threshold, so_far, later = math.log(delta) + 0.5, {}, {}
    for number, batch in enumerate(data.batches):
        seen = _by_expression(sketch, batch)
        if number >= pilot:
            threshold += _log_likelihood(sketch, seen, _estimate(sketch, so_far))
            later = {name: later.get(name, 0) + seen.get(name, 0) for name in {*later, *seen}}
        so_far = {name: so_far.get(name, 0) + seen.get(name, 0) for name in {*so_far, *seen}}
    return lambda free: _log_likelihood(sketch, later, free) >= threshold


def _slab(honest: Honest, sketch: Sketch, data: Data) -> Inside:
    """The guard, and at every point the wealth of the honest bets in plain floats."""
    link = Learned(load(honest.certificate).certificate, FLOAT64)
    slab, guard = (link.statements.sources[origin] for origin in (RowOrigin.SLAB, RowOrigin.CUT))
    bets, outcomes = slab.bets, link.outcomes
    linear, constant = slab.forms.doubles
    likely = _likelihood(sketch, data, float(bets.guard), guard.pilot)
    weights = np.log([float(weight) for _, weight in bets.schedule.scales])

    def inside(free: Sequence[float]) -> bool:
        f = (linear @ np.array(sketch.lift(free)) + constant)[outcomes.expression]
        stands = (bets.stake >= 0) | (f >= -2 * bets.stake)
        part = np.logical_and.reduceat(stands, outcomes.start[:-1], axis=-1)
        taken = np.repeat(part, np.diff(outcomes.start), axis=-1) & (bets.seen > 0)
        terms = np.where(taken, bets.seen * np.log1p(np.where(taken, bets.stake / f, 0.0)), 0.0)
        wealth = np.logaddexp.reduce(weights + terms.sum(axis=(2, 3)), axis=1)
        return likely(free) and bool(np.all(wealth < -math.log(bets.side)))

    return inside


@cache
def points_of(honest: Honest) -> tuple[Sketch, tuple[Point, ...]]:
    """Points of the honest region: a centre and, in many directions, points next to the boundary."""
    sketch, inside, centre = region_of(honest)
    assert inside(centre), f"{honest.name}: the estimate lies outside the region"
    size = len(centre)
    turns = 24 if size > 1 else 2
    found = [centre]
    for k in range(turns):
        way = (
            [math.cos(2 * math.pi * k / turns), math.sin(2 * math.pi * k / turns)]
            if size > 1
            else [1.0 if k else -1.0]
        )
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if inside([c + middle * w for c, w in zip(centre, way, strict=True)]):
                low = middle
            else:
                high = middle
        for share in (0.5, 1.0):
            reach = share * low * (1 - SHRINK)
            found.append([c + reach * w for c, w in zip(centre, way, strict=True)])
    return sketch, tuple(tuple(Fraction(x).limit_denominator(10**9) for x in point) for point in found)


Weights = tuple[tuple[Fraction, ...], ...]


@cache
def asked(honest: Honest) -> Objective:
    """The question of the honest problem: probabilities, rewards, discounted or within steps."""
    return objective_of(Forgery.of(honest.certificate))


@cache
def range_of(honest: Honest, weights: Weights | None) -> tuple[Fraction, Fraction]:
    """The least and the greatest exact value over the points of the honest region: of a policy, or of the
    best one at each point.
    """
    sketch, points = points_of(honest)
    values = []
    for point in points:
        probability = sketch.exact(point)
        model = TinyModel(
            tuple(
                tuple(tuple((t, probability[name], probability[name]) for t, name in one) for one in choices)
                for choices in sketch.choices
            )
        )
        values.append(Question(model, asked(honest), 0).value(weights))
    assert max(values) < INFINITE
    return min(values), max(values)
