"""The range of a policy's value over a likelihood and bets in many coordinates: balls instead of cells.

In 8 coordinates or more nothing is enumerated: the likelihood becomes a ball, the value and the wealth of the
bets become quadratics on it, and the largest value follows from weak duality. Multipliers are found in plain
float64; what is computed of them is rounded outward. Proof: docs/proofs/values.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.coupled.chain import Chain
from tightrope.coupled.taylor import expand, order_for
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rounding import down, error_factor, up
from tightrope.statistics.bets import Slab, Wagers
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Evidence

Ends = tuple[FloatArray, FloatArray]

_SPARE = 1.0 + 1e-9
_ROUNDS = 3
_WEIGHT = 0.02
"""w, what a coordinate's range is worth beside the likelihood."""

_STEPS, _SECTIONS, _SIZES = 48, 24, 3
_PLACES = (1.0, 1.4)
"""Bounds of the wealth are tight at these multiples of the distance at which a strategy has won."""


@dataclass(frozen=True, eq=False)
class LikelihoodBall:
    """x = centre + axes·y, |y| ≤ radius; f(x) = middle + gradient·y ± fuzz, within `low` and `high`."""

    centre: FloatArray
    axes: FloatArray
    radius: float
    middle: FloatArray
    gradient: FloatArray
    fuzz: FloatArray
    low: FloatArray
    high: FloatArray


def ball_of(
    evidence: Evidence, functions: AffineFunctions, x: FloatArray, box: Ends, bounds: Ends
) -> LikelihoodBall | None:
    """The ball of what the evidence leaves of a box near its maximum x; None without evidence or proof."""
    ball = None
    for _ in range(_ROUNDS):
        again = _ball(evidence, functions, x, box, bounds)
        if again is None or (ball is not None and again.radius > ball.radius):
            break
        ball, bounds = again, (again.low, again.high)
    return ball


def _ball(
    evidence: Evidence, functions: AffineFunctions, x: FloatArray, box: Ends, bounds: Ends
) -> LikelihoodBall | None:
    (lower, upper), met, n = bounds, np.flatnonzero(evidence.weight > 0.0), len(x)
    if not len(met) or not math.isfinite(evidence.threshold):
        return None
    weight, own = evidence.weight[met], functions.take(met)
    phi = np.clip(own.constant + own.linear @ x, np.maximum(lower[met], 1e-12), upper[met])
    most = np.maximum(1.0, up(upper[met] / phi))
    middle = 0.5 * (box[0] + box[1])
    half = np.maximum(np.maximum(box[1] - middle, middle - box[0]) * _SPARE, 1e-9 * (1.0 + np.abs(middle)))
    # Σ steep·(value − aim)² ≤ 2·Σ pulled·value + …, values = constant + linear·x: expressions, coordinates
    linear, constant = np.concatenate([own.linear, np.eye(n)]), np.concatenate([own.constant, np.zeros(n)])
    aim, far = np.concatenate([phi, middle]), np.concatenate([np.ones(len(met)), half])
    steep = np.concatenate([weight / (phi * phi * most) * (1.0 - 1e-12), _WEIGHT / half**2])
    pulled = np.concatenate([weight / phi, np.zeros(n)])
    try:
        root = np.linalg.cholesky((linear * steep[:, None]).T @ linear)
        axes = np.linalg.inv(root).T
    except np.linalg.LinAlgError:
        return None
    pull = (pulled - steep * (constant + linear @ x - aim)) @ linear
    centre = x + axes @ (axes.T @ pull)
    if not np.all(np.isfinite(axes)) or not np.all(np.isfinite(centre)):
        return None
    gradient, off = linear @ axes, constant + linear @ centre - aim
    rounded = error_factor(n + 4)
    still = rounded * (np.abs(constant) + np.abs(linear) @ np.abs(centre) + np.abs(aim)) * _SPARE
    still[: len(met)] += own.slack * _SPARE
    moving = rounded * np.linalg.norm(np.abs(linear) @ np.abs(axes), axis=1) * _SPARE
    fine = error_factor(len(steep) + n + 16)
    square = (gradient * steep[:, None]).T @ gradient
    blur = fine * float(np.linalg.norm((np.abs(gradient) * steep[:, None]).T @ np.abs(gradient)))
    force = (pulled - steep * off) @ gradient
    first, second = 2.0 * weight * np.log(phi), 2.0 * weight * (off[: len(met)] / phi)
    terms = np.concatenate([first, second, -steep * off * off, np.full(n, _WEIGHT)])
    kappa = math.fsum(terms) - 2.0 * evidence.threshold
    kappa += fine * (float(np.abs(terms).sum()) + 2.0 * abs(evidence.threshold))
    slips = 2.0 * steep * far * _SPARE + 2.0 * pulled
    kappa += float((slips * still + 2.0 * steep * still**2).sum()) * _SPARE
    tilt = float(np.linalg.norm(force)) * _SPARE + 0.5 * float((slips * moving).sum()) * _SPARE
    tilt += fine * float(np.linalg.norm((pulled + steep * np.abs(off)) @ np.abs(gradient)))
    least = least_eigenvalue(square, 0.5)
    if least is None:
        return None
    least -= (blur + float((2.0 * steep * moving**2).sum())) * _SPARE
    if least <= 0.0 or not math.isfinite(kappa):
        return None
    radius = (tilt + math.sqrt(tilt * tilt + least * max(kappa, 0.0))) / least * _SPARE
    return _placed(functions, centre, axes, radius, lower, upper)


def _placed(
    functions: AffineFunctions,
    centre: FloatArray,
    axes: FloatArray,
    radius: float,
    lower: FloatArray,
    upper: FloatArray,
) -> LikelihoodBall:
    """The ball with what it says of the expressions."""
    middle, gradient = functions.at(centre), functions.linear @ axes
    extent = np.abs(functions.constant) + np.abs(functions.linear) @ np.abs(centre)
    extent += radius * np.linalg.norm(np.abs(functions.linear) @ np.abs(axes), axis=1)
    fuzz = (functions.slack + error_factor(len(centre) + 4) * extent) * _SPARE
    reach = radius * np.linalg.norm(gradient, axis=1) * _SPARE
    low = np.maximum(lower, down(middle - reach - fuzz))
    high = np.minimum(upper, up(middle + reach + fuzz))
    return LikelihoodBall(centre, axes, radius, middle, gradient, fuzz, low, np.maximum(high, low))


def least_eigenvalue(matrix: FloatArray, start: float) -> float | None:
    """A lower bound on a symmetric matrix's eigenvalues (exact entries); None where none above 0 holds."""
    n, trace = len(matrix), float(np.abs(np.diag(matrix)).sum())
    slip = 4.0 * error_factor(n + 4) * trace + 1e-300
    try:
        guess = float(np.linalg.eigvalsh(matrix)[0])
    except np.linalg.LinAlgError:
        return None
    for share in (1.0 - 1e-9, 0.999, 0.9, start):
        shift = guess * share - slip
        if shift <= 0.0:
            return None
        try:
            np.linalg.cholesky(matrix - shift * np.eye(n))
        except np.linalg.LinAlgError:
            continue
        return shift - slip
    return None


@dataclass(frozen=True, eq=False)
class Wealth:
    """Λ(y) ≥ constant + slope·y − yᵀ·bend·y on a ball."""

    constant: float
    slope: FloatArray
    bend: FloatArray


def wealth_below(wagers: Wagers, outcomes: Outcomes, ball: LikelihoodBall, near: FloatArray) -> Wealth:
    """A quadratic below the log-wealth on the ball, tight near probabilities `near` of the expressions."""
    e, start = outcomes.expression, outcomes.start[:-1]
    owner, size = outcomes.signature, len(ball.middle)
    low, high = ball.low[e], ball.high[e]
    slope, first, second, number = np.zeros(size), np.zeros(size), np.zeros(size), 0
    constants: list[FloatArray] = []
    for bets, seen in zip(wagers.bets, wagers.seen, strict=True):
        stake, times = bets.stake, seen.astype(np.float64)
        losing = stake < 0.0
        floor = np.where(losing, np.maximum(low, -2.0 * stake), np.maximum(low, 1e-9 * high))
        touched = np.clip(near[e], floor, np.maximum(high, floor))
        risky = losing & (low < -2.0 * stake)
        apart = risky & ((touched < -2.0 * stake * (1.0 + 1e-6)) | (high < -2.0 * stake))
        met, staked = _any(seen > 0, start)[owner], _any(stake != 0.0, start)[owner]
        dropped = _any(apart, start)[owner]
        bad = np.flatnonzero(dropped & losing & (seen > 0))
        constants.append(times[bad] * np.log1p(stake[bad] / floor[bad]))
        used = np.flatnonzero(met & staked & ~dropped & (high > 0.0))
        a, k, phi = stake[used], times[used], touched[used]
        height, rise = np.log1p(a / phi), -a / (phi * (phi + a))
        bend = np.where(losing[used], k * _bend(-a, floor[used], phi), 0.0)
        whole = np.zeros(len(stake))  # what each tangent is at most
        ends = [k * (height + rise * (end - phi)) for end in (low[used], high[used])]
        whole[used] = np.maximum(*ends)
        others = np.add.reduceat(whole, start)[owner][used] - whole[used]
        edge = -2.0 * a
        there = k * (height + rise * (edge - phi))
        with np.errstate(divide="ignore", invalid="ignore"):
            raised = (others + there + 1e-9 * (np.abs(others) + np.abs(there))) / (phi - edge) ** 2
        bend = np.where(risky[used], np.maximum(bend, raised * (1.0 + 1e-9)), bend)
        bend *= 1.0 + 1e-9
        np.add.at(slope, e[used], k * rise + 2.0 * bend * phi)
        np.add.at(first, e[used], bend)
        np.add.at(second, e[used], np.abs(k * rise) + 2.0 * bend * phi)
        constants += [k * height, -k * rise * phi, -bend * phi * phi]
        number += len(used)
    middle, own = ball.middle, ball.gradient
    parts = np.concatenate([*constants, slope * middle, -first * middle * middle])
    fine = error_factor(number + size + 64)
    reach = np.abs(middle) + ball.radius * np.linalg.norm(own, axis=1)
    extent = float(np.abs(parts).sum()) + float(second @ reach) + 2.0 * float(first @ (reach * reach))
    loss = float((second + 3.0 * first) @ ball.fuzz) + fine * extent
    tilt = (slope - 2.0 * first * middle) @ own
    bend_matrix = (own * first[:, None]).T @ own
    loss += fine * ball.radius * float(np.linalg.norm((second + 2.0 * first * np.abs(middle)) @ np.abs(own)))
    loss += fine * ball.radius**2 * float(np.linalg.norm((np.abs(own) * first[:, None]).T @ np.abs(own)))
    return Wealth(math.fsum(parts) - loss * _SPARE, tilt, 0.5 * (bend_matrix + bend_matrix.T))


def _any(flags: BoolArray, start: OffsetArray) -> BoolArray:
    return np.logical_or.reduceat(flags, start)


def _bend(s: FloatArray, low: FloatArray, phi: FloatArray) -> FloatArray:
    """h with log(1 − s/f) ≥ its tangent at φ − h·(f − φ)² for all f ≥ low ≥ 2s; 0 where s ≤ 0."""
    s, far = np.maximum(s, 0.0), phi - low > 1e-2 * phi
    with np.errstate(divide="ignore", invalid="ignore"):
        most = 0.5 * s * (2.0 * low - s) / (low * low * (low - s) ** 2)
        line = np.log1p(-s / phi) + s / (phi * (phi - s)) * (low - phi)
        mean = (line - np.log1p(-s / low)) / (low - phi) ** 2
    return np.where(s > 0.0, np.where(far, np.minimum(most, mean * (1.0 + 1e-6)), most), 0.0)


def largest(
    value: tuple[float, FloatArray, FloatArray], wealth: Wealth | None, level: float, radius: float
) -> float:
    """A bound on value[0] + value[1]·y + yᵀ·value[2]·y where |y| ≤ radius and the wealth is below `level`."""
    constant, slope, curve = value

    def terms(nu: float) -> tuple[float, FloatArray, FloatArray]:
        if wealth is None or nu <= 0.0:
            return constant, slope, curve
        return (
            constant + nu * (level - wealth.constant),
            slope - nu * wealth.slope,
            curve + nu * wealth.bend,
        )

    def solve(nu: float) -> tuple[float, float, FloatArray]:
        """(what is nearly the bound, τ, z) in plain float64."""
        base, own, bent = terms(nu)
        eigen, basis = np.linalg.eigh(bent)
        along, top = basis.T @ own, max(float(eigen[-1]), 0.0)
        size = max(float(np.abs(eigen).max()), float(np.abs(own).max()) / radius, 1e-300)

        def bound(gap: float) -> float:
            return (top + gap) * radius**2 + 0.25 * float((along**2 / (top + gap - eigen)).sum())

        ends = math.log(1e-7 * size), math.log(10 * size)
        gap = math.exp(golden_section(lambda log: bound(math.exp(log)), *ends, _SECTIONS)[0])
        return base + bound(gap), top + gap, basis @ (0.5 * along / (top + gap - eigen))

    tries = [0.0]
    if wealth is not None and np.any(wealth.slope):
        scale = float(slope @ wealth.slope) / float(wealth.slope @ wealth.slope)
        if scale > 0.0:
            log = golden_section(lambda log: solve(scale * math.exp(log))[0], -3.0, 1.5, _SECTIONS)[0]
            tries.append(scale * math.exp(log))
    best = math.inf
    for nu in tries:
        _, tau, z = solve(nu)
        base, own, bent = terms(nu)
        matrix = tau * np.eye(len(own)) - bent
        least = least_eigenvalue(matrix, 0.1)
        if least is None:
            continue
        fine = error_factor(4 * len(own) + 32)
        rest = own - 2.0 * (matrix @ z)
        slip = np.abs(own) + 2.0 * (np.abs(matrix) @ np.abs(z))
        left = float(np.linalg.norm(rest)) + fine * float(np.linalg.norm(slip))
        total = base + tau * radius**2 + float(own @ z) - float(z @ matrix @ z) + left**2 / (4.0 * least)
        used = 0.0 if wealth is None else nu
        price = 0.0 if wealth is None else abs(level) + abs(wealth.constant)
        extent = abs(constant) + used * price + tau * radius**2 + float(np.abs(z) @ slip)
        blurred = float(np.linalg.norm(curve)) + abs(tau)  # of the sums that `own` and `bent` are
        pushed = float(np.linalg.norm(slope))
        if wealth is not None:
            blurred += nu * float(np.linalg.norm(wealth.bend))
            pushed += nu * float(np.linalg.norm(wealth.slope))
        extent += blurred * radius**2 * math.sqrt(len(own)) + pushed * radius
        best = min(best, up(total + fine * extent * _SPARE))
    return best


def golden_section(
    function: Callable[[float], float], low: float, high: float, steps: int
) -> tuple[float, float]:
    """Where a function with one valley is least, and its value there."""
    share = 0.5 * (math.sqrt(5.0) - 1.0)
    left, right = high - share * (high - low), low + share * (high - low)
    one, two = function(left), function(right)
    for _ in range(steps):
        if one <= two:
            high, right, two = right, left, one
            left = high - share * (high - low)
            one = function(left)
        else:
            low, left, one = left, right, two
            right = low + share * (high - low)
            two = function(right)
    return (left, one) if one <= two else (right, two)


def range_over_ball(
    chain: Chain,
    functions: AffineFunctions,
    ball: LikelihoodBall,
    slab: Slab | None,
    outcomes: Outcomes,
    complement: bool = False,
) -> tuple[float, float] | None:
    """The ends of the chain's value at its initial row over what the evidence and the bets leave; None where
    no model of the value is verified on the ball. `complement`: what is bet on is 1 less this value.

    Of bets of several sizes Σ w_j·exp Λ_j < 1/α, so each Λ_j is below log(1/α) + log(1/w_j).
    """
    model = expand(chain, functions, ball.centre, ball.axes, ball.radius, order_for(chain, ball.axes))
    if model is None:
        return None
    ends = []
    for sign in (-1.0, 1.0):
        constant, slope, curve = model.at(chain.initial)
        value = sign * constant, sign * slope, sign * 0.5 * (curve + curve.T)
        best = largest(value, None, 0.0, ball.radius)
        side = int((sign > 0.0) != complement)
        for wagers, level in _strategies(slab, side, value[1], ball, outcomes):
            for near in _places(value[1], ball, wagers, outcomes, level):
                wealth = wealth_below(wagers, outcomes, ball, near)
                best = min(best, largest(value, wealth, level, ball.radius))
        ends.append(up(best + float(model.error[chain.initial])))
    return -ends[0], ends[1]


def _strategies(
    slab: Slab | None, side: int, slope: FloatArray, ball: LikelihoodBall, outcomes: Outcomes
) -> list[tuple[Wagers, float]]:
    """The strategies for one end with levels of their wealth: of many sizes those that have won most."""
    if slab is None:
        return []
    listed = [
        (wagers, up(slab.price[side] - math.log(scale.weight) * (1.0 + 1e-14)))
        for wagers, scale in zip(slab.wagers[side], slab.every, strict=False)
    ]
    far = _along(slope, ball)(ball.radius)
    listed.sort(key=lambda one: one[1] - one[0].log_wealth(outcomes, far))
    return listed[:_SIZES]


def _along(slope: FloatArray, ball: LikelihoodBall) -> Callable[[float], FloatArray]:
    """Probabilities of the expressions so far from the centre along a slope."""
    unit = slope / max(float(np.linalg.norm(slope)), 1e-300)
    return lambda way: np.clip(ball.middle + ball.gradient @ (way * unit), ball.low, ball.high)


def _places(
    slope: FloatArray, ball: LikelihoodBall, wagers: Wagers, outcomes: Outcomes, level: float
) -> list[FloatArray]:
    """Probabilities of the expressions where the betting strategy has won, on the way along the slope."""
    probability, low, high = _along(slope, ball), 0.0, ball.radius
    for _ in range(_STEPS):
        way = 0.5 * (low + high)
        won = wagers.log_wealth(outcomes, probability(way)) >= level
        low, high = (low, way) if won else (way, high)
    return [probability(min(times * high, ball.radius)) for times in _PLACES]
