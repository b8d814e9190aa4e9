"""The likelihood region: evidence from batches that earlier batches predicted, and its tangent cuts.

With probability at least 1 − δ the true parameters satisfy ℓ(θ) = Σ K_f·log f(θ) ≥ T, K_f being the counts
after the pilot: evidence T less log(1/δ) and a price (README). Plug-ins are computed from earlier batches, so
they are predictable; cuts are tangents at points of the file.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import inf, lcm

import numpy as np

from tightrope_check.arrays import FloatArray, Number, OffsetArray
from tightrope_check.budget import longest, spend, spend_dots, spend_product, spend_sums
from tightrope_check.coordinates import Row, Space
from tightrope_check.evidence import Data
from tightrope_check.fields import Polynomial
from tightrope_check.learned import Learned, RowOrigin, Statements, point_of
from tightrope_check.logarithms import POINT, log_below, log_grid, log_ratio
from tightrope_check.numbers import RATIONAL, Numbers, as_fraction, parts_of, quick
from tightrope_check.search.smoothed_likelihood import SmoothedLikelihood
from tightrope_check.verdict import Check

MOST_WORK = 10**8
_PILOT_SHARE, _PILOT_STEP = 0.1, 10


def sizes_of(data: Data) -> list[int]:
    """How much was seen in every batch."""
    spend("batches", 100 * data.batches)
    return [int(data.batch_count[a:b].sum()) for a, b in pairwise(data.batch_start.tolist())]


def pilot_of(data: Data, sizes: list[int]) -> tuple[int, int | None]:
    """(batches of the pilot, j of the price): j is None where a plan decides on the pilot.

    If the amount of data was fixed in advance, or a number of episodes was planned before the first one: the
    batches within the first tenth of the plan. Otherwise, with interim analyses or with a prior, pilots of
    10·j batches share δ at a price of log((j+1)(j+2)), and the one that covers at most a tenth may be chosen
    after looking.
    """
    if data.design == "generative-fixed" and data.prior is None:
        return _within(np.cumsum(sizes)), None
    if data.episodes is not None and not data.anytime and data.prior is None:
        ends = planned_ends(data.episodes)
        if data.design == "trajectories" and len(ends) == len(sizes):
            return _within(np.array(ends)), None
        if data.planned is not None and len(ends) == len(sizes):
            return min(_within(np.array(planned_ends(data.planned))), len(sizes)), None
    number = _within(np.cumsum(sizes)) // _PILOT_STEP
    return number * _PILOT_STEP, number


def planned_ends(episodes: int) -> list[int]:
    """Where batches of so many episodes end: each end is 5/4 of the one before, at least one more."""
    ends = [0]
    while ends[-1] < episodes:
        ends.append(min(episodes, max(ends[-1] + 1, ends[-1] * 5 // 4)))
    return ends[1:]


def _within(ends: OffsetArray) -> int:
    return int(np.searchsorted(ends, _PILOT_SHARE * ends[-1], side="right")) if len(ends) else 0


def prove(about: Learned, delta: Fraction) -> Statements:
    """The region of what was seen after the pilot."""
    data = about.data
    assert data is not None
    likelihood = Likelihood(Forms(about), data, delta)
    pilots = " and ".join(map(str, likelihood.pilots))
    words = f"{data.batches} batches, a pilot of {pilots}, δ = {float(delta):g}"
    check = Check("every batch is predicted by those before it", True, words)
    return Statements(check, {RowOrigin.CUT: likelihood}, planned=likelihood.planned)


class Forms:
    """The polynomials of a problem in coordinates, whole·(x, 1)/common; `doubles` are (linear, constant)."""

    def __init__(self, about: Learned):
        self.about, self.space = about, about.space
        met = set(about.used)  # of rewards nothing is predicted, and they need not be affine here
        forms = [polynomial if e in met else {} for e, polynomial in enumerate(about.polynomials)]
        linear, constant = about.space.table(RATIONAL, forms)
        self.doubles = RATIONAL.floats(linear), RATIONAL.floats(constant)
        spend_sums("expressions in coordinates", 2 * linear.size, [[*linear.flat, *constant.flat]])
        self.whole, self.common = over_common(np.concatenate([linear, constant[:, None]], axis=1))

    def combine(self, weights: Numbers, used: OffsetArray) -> Numbers:
        """(linear, constant) of the sum of some polynomials with these weights."""
        whole, common = over_common(weights)
        return (whole @ self.whole[used]) * RATIONAL.array([Fraction(1, common * self.common)])


class Likelihood:
    """T, the weights K_f, and tangents."""

    def __init__(self, forms: Forms, data: Data, delta: Fraction):
        self.forms, about = forms, forms.about
        self.unknown = np.array([e for e in about.used if about.unknown[e]], dtype=np.int64)
        if data.batches * (len(self.unknown) * about.space.size + 1) > MOST_WORK:
            raise ValueError("there are more batches and expressions than this program checks")
        shares, threshold = self._shares(data, delta)
        self.pilots, self.pilot = list(shares), min(shares)
        linear, constant = (part[self.unknown] for part in forms.doubles)
        predictor = Predictor(about.space, linear, constant, data.prior)
        self._tangents, self.plug_ins = dict[bytes, Row](), list[FloatArray]()
        spend("batches", data.batches * (8_000 + len(shares) + len(about.polynomials) // 8))
        so_far = data.totals(about.expression, len(about.polynomials), 0, min(self.pilot, data.batches))
        weight = np.zeros_like(so_far)
        for batch in range(self.pilot, data.batches):
            seen = data.totals(about.expression, len(about.polynomials), batch, batch + 1) * about.unknown
            if seen.any():
                times = sum(share for pilot, share in shares.items() if pilot <= batch)
                self.plug_ins.append(predictor.estimate(so_far[self.unknown]))
                score = self._score(self.plug_ins[-1], seen)
                threshold = None if threshold is None or score is None else threshold + times * score
                so_far, weight = so_far + seen, weight + times * seen
        self.used = np.flatnonzero(weight)
        self.weight, self.threshold = weight[self.used], threshold
        logs = log_units(self.weight.astype(object), True)
        self._log_weight = self.weight.astype(object) @ logs  # Σ K·log K

    def _shares(self, data: Data, delta: Fraction) -> tuple[dict[int, int], Number]:
        """{batches of a pilot: its share, a whole number}, and a number not above log δ − price, times their
        sum."""
        pilot, number = pilot_of(data, sizes_of(data))
        given = self.forms.about.hints.pilot_share
        self.planned = number is None and data.design != "adaptive"
        if number is None:
            if given is not None:
                raise ValueError("shares of pilots where a plan decides on one")
            return {pilot: 1}, log_below(delta)
        shares = {number: 1} if given is None else {j: n for j, n in enumerate(given.tolist()) if n}
        spend("pilots", 2000 * len(shares))
        total = sum(shares.values())
        threshold = total * log_below(delta)
        for j, share in shares.items():
            threshold = threshold + share * log_below(Fraction(total, share * (j + 1) * (j + 2)))
        return {_PILOT_STEP * j: share for j, share in shares.items()}, threshold

    def _score(self, plug_in: FloatArray, seen: OffsetArray) -> Number:
        """A batch's log-likelihood at its plug-in, rounded down; None without a bound."""
        forms, space = self.forms, self.forms.space
        lifted = [Fraction(float(value)) for value in plug_in]
        for left, right in space.products:
            spend_product("products of parameters", 1, (lifted[left],), (lifted[right],))
            lifted.append(lifted[left] * lifted[right])
        spend_dots("plug-ins within the domain", space.domain_rows, lifted)
        bits = longest(lifted) + forms.common.bit_length()
        spend("scores of batches", 4 * forms.whole.size + 60 * len(self.unknown), bits)
        if not all(_dot(a, lifted) <= b for a, b in filter(None, space.domain_rows)):
            return None
        place, common = over_common(np.array([*lifted, Fraction(1)], dtype=object))
        value, seen = forms.whole[self.unknown] @ place, seen[self.unknown]
        met = np.flatnonzero(seen)
        if np.any(value < 0) or not np.all(value[met] > 0):  # all are probabilities there, seen or not
            return None
        logs = log_units(value[met], False) - log_units(np.array([common * forms.common], dtype=object), True)
        return of_units(int(seen[met].astype(object) @ logs))

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        """The tangent at a point; stages of a slab ask for many again."""
        point = point_of(points, index, part)
        if point.tobytes() not in self._tangents:
            self._tangents[point.tobytes()] = self._tangent(point)
        return self._tangents[point.tobytes()]

    def _tangent(self, point: FloatArray) -> Row:
        """−Σ t·f_linear·x ≤ Σ K·log(K/t) − Σ K − T + Σ t·f_constant."""
        forms, used = self.forms, self.used
        if self.threshold is None:
            raise ValueError("there is nothing to cut")
        bits = forms.common.bit_length() if forms.common >> 256 else 0
        spend("tangents to the likelihood", 10 * forms.whole.size + 60 * len(used), bits)
        chosen = (forms.doubles[0] @ point + forms.doubles[1])[used]
        if not np.all(chosen > 0):
            raise ValueError("a cut at a point where something seen has no probability")
        tilt = self.weight / chosen
        logs = self._log_weight - self.weight.astype(object) @ log_units(tilt, False)
        *linear, constant = forms.combine(tilt, used)
        bound = of_units(int(logs)) - self.threshold - int(self.weight.sum()) + constant
        return [-as_fraction(a) for a in linear], as_fraction(bound)


def _dot(a: list[Fraction], x: list[Fraction]) -> Fraction:
    return sum((c * v for c, v in zip(a, x, strict=True) if c), Fraction(0))


class Predictor:
    """Plug-ins from counts: smoothed estimates, found from the analytic centre of the domain. A prior counts
    a parameter p and 1 − p as seen so often."""

    def __init__(
        self, space: Space, linear: FloatArray, constant: FloatArray, prior: FloatArray | None = None
    ):
        size = len(space.free)
        self.strength = np.zeros(0)
        if prior is not None and len(prior):
            if int(prior[-1, 0]) >= space.parameters:
                raise ValueError("a prior of a parameter that there is not")
            of_prior: list[Polynomial] = [{((int(i), 1),): Fraction(1)} for i in prior[:, 0].tolist()]
            forms = space.table(RATIONAL, of_prior)
            a, c = RATIONAL.floats(forms[0]), RATIONAL.floats(forms[1])
            linear = np.concatenate([linear, np.stack([a, -a], axis=1).reshape(-1, space.size)])
            constant = np.concatenate([constant, np.stack([c, 1.0 - c], axis=1).reshape(-1)])
            self.strength = prior[:, 1:].reshape(-1)
        rows = [row for row in space.domain_rows if row is not None and any(row[0][:size])]
        faces = np.array([[float(a) for a in row[:size]] for row, _ in rows]).reshape(-1, size)
        bounds = np.array([float(b) for _, b in rows])
        self.search = SmoothedLikelihood(space.products, linear, constant, faces, bounds)
        lower, upper = space.start_box()
        middle = [float(low + high) / 2 for low, high in zip(lower[:size], upper[:size], strict=True)]
        self.centre = self.search.interior(np.array(middle))
        self.centre = self.search.maximise(self.centre, np.zeros(len(constant)))

    def estimate(self, seen: OffsetArray) -> FloatArray:
        """The free parameters that predict what comes after these counts."""
        linear, faces = self.search.linear.shape, len(self.search.faces)
        free = self.search.faces.shape[1]
        spend("plug-ins", 30 * (linear[0] * linear[1] * (1 + free // 8) + faces * free + 20 * linear[1]))
        weight = np.concatenate([seen.astype(np.float64), self.strength])
        return self.search.maximise(self.centre, weight)


def log_units(array: Numbers, upward: bool) -> Numbers:
    """Logarithms of positive numbers in units of 2⁻¹²⁸, as integers on a side: within 2⁻⁵⁸, but quickly.

    A double is m·2^e, 1/2 ≤ m < 1, and c = i/1024 is next to m: its logarithm is e·log(2) + log(c) +
    2·atanh(z), z = (m − c)/(m + c). m − c is exact and |z| ≤ 2⁻¹¹: in float64 z is off by at most 2u
    relatively, and four terms of the series give 2·atanh(z) ≤ 2⁻¹⁰ within 2⁻⁶⁰. Of a rational q next to a
    double v, 1 − v/q ≤ log(q/v) ≤ q/v − 1.
    """
    near = RATIONAL.floats(array) if array.dtype == object else array
    if not np.all((near > 0) & (near < inf)):
        exact = [log_ratio(*parts_of(value), upward)[0] for value in array.reshape(-1).tolist()]
        return np.array(exact, dtype=object).reshape(array.shape)
    mantissa, exponent = np.frexp(near)
    i = np.rint(1024 * mantissa).astype(np.int64)
    z = (mantissa - i / 1024) / (mantissa + i / 1024)
    square = z * z
    rest = 2 * z * (1 + square * (1 / 3 + square * (1 / 5 + square / 7)))
    units = np.rint(np.ldexp(rest, 72)).astype(np.int64).astype(object) << 56
    units = units + exponent.astype(object) * _log_units(2048)
    units = units + np.array([*map(_log_units, i.reshape(-1).tolist())], dtype=object).reshape(i.shape)
    if array.dtype == object:
        pairs = zip(array.reshape(-1).tolist(), near.reshape(-1).tolist(), strict=True)
        units = units + np.array([_log_off(q, v, upward) for q, v in pairs], dtype=object).reshape(
            array.shape
        )
    result: Numbers = units + (1 << 70) if upward else units - (1 << 70)
    return result


def _log_off(value: Number, near: float, upward: bool) -> int:
    """log(value/near) in units, on a side."""
    (a, b), (c, d) = parts_of(value), near.as_integer_ratio()
    return -(((c * b - a * d) << 128) // (c * b)) if upward else ((a * d - c * b) << 128) // (a * d)


def over_common(array: Numbers) -> tuple[Numbers, int]:
    """Integers in the place of numbers, and the denominator that they have in common."""
    parts = [parts_of(value) for value in array.reshape(-1).tolist()]
    common = lcm(*{bottom for _, bottom in parts})
    return np.array([a * (common // b) for a, b in parts], dtype=object).reshape(array.shape), common


def of_units(units: int) -> Number:
    """A number of units of 2⁻¹²⁸, as a rational."""
    return quick(Fraction(units, 1 << 128))


@cache
def _log_units(i: int) -> int:
    return log_grid(i) >> (POINT - 128)
