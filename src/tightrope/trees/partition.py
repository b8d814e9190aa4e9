"""`partition`: where in its domain a parametric model meets a threshold, box by box.

The domain is a box of parameters. On a part of it the value of a chain is enclosed by a Taylor model over the
part's own parameters (`tightrope.coupled.taylor`). The optimum of a model with choices is bounded on one side
by such a model of one policy, and on the other by intervals of probabilities, where the policy suggests it.
A part is decided where the enclosure lies on one side of the threshold. Otherwise it is halved: with the same
model where the value itself varies most, with a model of its own where the model's error is too large.

*Products and reciprocals of parameters* are affine on a box up to a rest, which affine arithmetic bounds:
(a + g·y ± s)(b + h·y ± t) = ab + (ah + bg)·y ± (|g||h| + s(|b| + |h| + t) + t(|a| + |g| + s)).

Every verdict holds at all points of its part: enclosures are verified, and a ball around the part, one part
in 10⁹ larger than needed, covers the rounding of its corners.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.coupled.chain import Chain, chain_of
from tightrope.coupled.taylor import TaylorModel, expand, order_for
from tightrope.coupled.value import functions_of, rewards_at
from tightrope.errors import InputError
from tightrope.io.results import DomainPart, Interval
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.rounding import error_factor
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem
from tightrope.solver.solution import FALSE, OPEN, TRUE, Solution
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import AffineFunctions, Coordinates

_OUTWARD = 1.0 + 1e-9
_PRECISION = 1e-7
_GAIN = 0.125
"""What is left of an error of third order along halved axes; boxes that this leaves open are quartered."""
_MOST_DIMENSIONS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Record):
    """Where a property holds in the domain of a model: `names` of the parameters, and parts that cover it."""

    names: tuple[str, ...]
    parts: tuple[DomainPart, ...]
    enclosures: int
    seconds: float

    def share(self, truth: str) -> float:
        """The share of the domain whose parts have this verdict."""
        whole = math.fsum(part.volume for part in self.parts)
        return math.fsum(part.volume for part in self.parts if part.truth == truth) / whole

    def _title_(self) -> str:
        return f"Partition of the domain of {', '.join(self.names)}: {len(self.parts):,} parts"

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the domain by verdict."""
        return {"holds": self.share(TRUE), "fails": self.share(FALSE), "open": self.share(OPEN)}

    def _facts_(self) -> Facts:
        return [(name, f"{100 * share:.4g}% of the domain") for name, share in self.shares.items()]


@dataclass(eq=False)
class _Box:
    """A box in free parameters (two corners) with the enclosure last made around it, or a larger box."""

    corners: FloatArray
    model: TaylorModel | None = None

    @property
    def middle(self) -> FloatArray:
        return np.asarray(0.5 * (self.corners[0] + self.corners[1]))

    @property
    def widths(self) -> FloatArray:
        return np.asarray(self.corners[1] - self.corners[0])

    @property
    def half(self) -> FloatArray:
        """Half the widths, a little more."""
        return 0.5 * self.widths * _OUTWARD

    def part(self, truth: str) -> DomainPart:
        return DomainPart(tuple(Interval.of(low, high) for low, high in self.corners.T.tolist()), truth)

    def halves(self, size: FloatArray, model: TaylorModel | None = None) -> tuple[_Box, _Box]:
        """Both halves, cut along the axis where `size` is largest."""
        below, above, axis = self.corners.copy(), self.corners.copy(), int(np.argmax(size))
        below[1, axis] = above[0, axis] = self.middle[axis]
        return _Box(below, model), _Box(above, model)


def partition(problem: Problem, share: float, seconds: float, progress: Callable[[str], None]) -> Partition:
    """Split the domain until a threshold is decided on all but a `share` of it, or time runs out.

    Parameters
    ----------
    problem
        A parametric model, and one probability or reward with a threshold.
    share
        The part of the domain's volume that may stay open.
    seconds
        A limit of time; what is open then stays so.
    progress
        Receives how much is open, after every part.
    """
    begin = time.perf_counter()
    if not 0 < share < 1:
        raise InputError(f"the open share is {share:g}, not between 0 and 1", hint="write 5% or 0.05")
    if problem.query.kind not in (QueryKind.PLAIN, QueryKind.LTL):
        raise InputError(
            f"{problem.text}: a domain is split for one probability or reward with a threshold",
            hint="ask for one value at a point: --at, problem.at(…)",
        )
    search = _Splitter.of(problem)
    root = _Box(search.corners)
    whole, done, order = float(np.prod(root.widths)), [], itertools.count(1)
    waiting, open_volume = [(-whole, 0, root)], whole
    while waiting and open_volume > share * whole and time.perf_counter() < begin + seconds:
        volume, _, box = heapq.heappop(waiting)
        truth, children = search.examine(box)
        if truth != OPEN:
            done.append(box.part(truth))
            open_volume += volume
        progress(f"solve: {100 * open_volume / whole:.1f}% of the domain open, {len(done):,} parts decided")
        for child in children:
            heapq.heappush(waiting, (float(-np.prod(child.widths)), next(order), child))
    done += [box.part(OPEN) for _, _, box in waiting]
    names = tuple(search.model.parameters.names[i] for i in search.coordinates.free)
    return Partition(names, tuple(done), search.enclosures, time.perf_counter() - begin)


@dataclass(eq=False)
class _Splitter:
    """What every box needs: the question, the expressions in coordinates, the chain where there is one."""

    problem: Problem
    model: ParametricMDP
    coordinates: Coordinates
    functions: AffineFunctions
    chain: Chain | str | None
    enclosures: int = 0

    @staticmethod
    def of(problem: Problem) -> _Splitter:
        """Refuse what is no question of parts of a box."""
        model, query = problem.model, problem.query
        if not isinstance(model, ParametricMDP) or not model.parameters.shown.names:
            raise InputError("a domain is split for models with parameters", hint="leave the share out")
        if not query.is_threshold:
            raise InputError(
                f"{query.text} asks for a value, and a domain is split by a threshold",
                hint='write a threshold: P>=0.9 [ F "goal" ]',
            )
        if model.parameters.constraints or model.parameters.free:
            raise InputError(
                "a domain that is split is a box, and this one has constraints between parameters",
                hint="give ranges only: --param p=0.1:0.9",
            )
        if model.parameters.lower == model.parameters.upper:
            raise InputError("the domain is a single point", hint="ask for its value: --at")
        if len(model.structure.initial_states) > 1:
            raise InputError("a domain is split for one initial state", hint="let one state be initial")
        coordinates = Coordinates.of(model.expressions, model.parameters)
        if len(coordinates.free) > _MOST_DIMENSIONS:
            raise InputError(
                f"{len(coordinates.free)} parameters: domains of at most {_MOST_DIMENSIONS} are split",
                hint="fix some of them: --param p=0.5:0.5",
            )
        functions = functions_of(coordinates, model, query.objective)
        is_chain, box = model.structure.is_chain, (model.parameters.lower, model.parameters.upper)
        chain = chain_of(model, query.objective, Policy.uniform(model)) if is_chain else None
        if isinstance(chain, str) and ranges_over_box(model.expressions, *box)[0].min() <= 0.0:
            chain = None  # infinite unless a transition vanishes
        return _Splitter(problem, model, coordinates, functions, chain)

    @property
    def size(self) -> int:
        return len(self.coordinates.free)

    @property
    def corners(self) -> FloatArray:
        """Of the whole domain."""
        return np.stack([self.coordinates.lower[: self.size], self.coordinates.upper[: self.size]])

    def examine(self, box: _Box) -> tuple[str, tuple[_Box, ...]]:
        """The verdict on a box, or its halves."""
        if isinstance(self.chain, str):
            return self.problem.answer(math.inf, math.inf), ()
        model, whole = box.model or self.enclose(box), self.corners[1] - self.corners[0]
        value, swing, error = self._range(box, model)
        reach, agent = float(swing.sum()), None if self.chain else self.problem.objective.agent
        radius = reach + error + error_factor(8) * (abs(value) + reach + error)
        low = -math.inf if agent is Direction.MIN else value - radius
        high = math.inf if agent is Direction.MAX else value + radius
        if (truth := self._truth(low, high)) != OPEN:
            return truth, ()
        if agent and (error == math.inf or self._truth(value - reach, value + reach) != OPEN):
            functions = self._functions_on(box)
            if low == -math.inf:
                low = self._optimum(functions, Direction.MIN).at_initial_states.lower
            if high == math.inf:
                high = self._optimum(functions, Direction.MAX).at_initial_states.upper
            if (truth := self._truth(low, high)) != OPEN:
                return truth, ()
            value, reach, error = 0.5 * (low + high), 0.0, 0.5 * (high - low)
        elif error <= reach:
            return OPEN, box.halves(swing, model)
        elif box.model is not None:
            return OPEN, (_Box(box.corners),)
        halves = box.halves(box.widths / whole)
        reach += _GAIN * error
        if self._truth(value - reach, value + reach) != OPEN:
            return OPEN, halves
        return OPEN, tuple(part for half in halves for part in half.halves(half.widths / whole))

    def _truth(self, low: float, high: float) -> str:
        less, more = 1.0 - error_factor(8), 1.0 + error_factor(8)
        low, high = min(low * less, low * more), max(high * less, high * more)
        if self.problem.objective.complement:
            low, high = 1.0 - high - error_factor(4), 1.0 - low + error_factor(4)
        return self.problem.answer(low, high)

    def _range(self, box: _Box, model: TaylorModel) -> tuple[float, FloatArray, float]:
        """The value at the middle of a box, how far each axis moves it, and the error of the model there."""
        constant, slope, bend = model.at(0)
        scale = model.axes.diagonal()
        middle = (box.middle - model.centre) / scale
        half = box.half / scale
        value = constant + slope @ middle + middle @ bend @ middle
        swing = half * np.abs(slope + 2 * bend @ middle) + half * (np.abs(bend) @ half)
        reach = np.abs(middle) + half
        size = abs(constant) + np.abs(slope) @ reach + reach @ np.abs(bend) @ reach
        error = model.error[0] + error_factor(6 * self.size + 12) * size
        return float(value), swing, float(error)

    def enclose(self, box: _Box) -> TaylorModel:
        """The value over a box: a chain's Taylor model where one is proved, bounds of an optimum."""
        self.enclosures += 1
        axes, radius = np.diag(box.half), math.sqrt(self.size) * _OUTWARD
        chain = self.chain or self._witness(box)
        # Without a model a play need not stop: smaller boxes are tried.
        parts = np.zeros(1), np.zeros((1, self.size)), np.zeros((1, 0, 0)), np.full(1, np.inf)
        if isinstance(chain, Chain):
            origin, eye = np.zeros(self.size), np.eye(self.size)
            order, row = order_for(chain, eye), slice(chain.initial, chain.initial + 1)
            model = expand(chain, self._functions_on(box), origin, eye, radius, order)
            if model is not None:
                parts = model.constant[row], model.slope[row], model.curvature[row], model.error[row]
        return TaylorModel(box.middle, axes, radius, *parts)

    def _witness(self, box: _Box) -> Chain | str:
        """The chain of a policy that is optimal in the middle of a box, where its value is finite there."""
        best = self._optimum(self._functions_on(_Box(np.stack([box.middle, box.middle]))), Direction.MIN)
        is_finite = best.at_initial_states.upper < math.inf
        return chain_of(self.model, self.problem.objective, best.policy) if is_finite else "infinite"

    def _optimum(self, functions: AffineFunctions, nature: Direction) -> Solution:
        """Where nature picks probabilities in the box at every choice."""
        spread = np.abs(functions.linear).sum(axis=1) + functions.slack
        spread += error_factor(self.size + 4) * (np.abs(functions.constant) + spread)
        lower, upper = functions.constant - spread, functions.constant + spread
        rows, model = self.model.expression, self.model
        outcomes = np.diff(model.structure.transition_start)
        sure = np.repeat(outcomes == 1, outcomes)
        low = np.where(sure, 1.0, np.clip(lower[rows], 0.0, 1.0))
        high = np.where(sure, 1.0, np.clip(upper[rows], 0.0, 1.0))
        objective = rewards_at(self.problem.objective, lower if nature is Direction.MIN else upper, model)
        objective = replace(objective, nature=nature, complement=False)
        return solve(IntervalMDP(model.structure, low, high), objective, precision=_PRECISION, threads=1)

    def _functions_on(self, box: _Box) -> AffineFunctions:
        """The expressions on a box as affine functions of y, |y| ≤ 1 in every axis."""
        forms = affine_forms(self.coordinates, box.middle, box.half)
        given, magnitude = self.functions, np.abs(self.functions.linear)
        reach = magnitude @ (np.abs(forms.constant) + np.abs(forms.linear).sum(axis=1) + forms.slack)
        rounding = error_factor(self.coordinates.size + self.size + 8) * (reach + np.abs(given.constant))
        return AffineFunctions(
            given.linear @ forms.linear,
            given.constant + given.linear @ forms.constant,
            magnitude @ forms.slack + 2.0 * given.slack + 2.0 * rounding,
        )


def affine_forms(coordinates: Coordinates, centre: FloatArray, half: FloatArray) -> AffineFunctions:
    """Every coordinate on a box as an affine function of y, |y| ≤ 1 in every axis, within `slack`."""
    size, first = len(half), len(coordinates.free) + len(coordinates.denominators)
    forms = AffineFunctions(
        np.zeros((coordinates.size, size)), np.zeros(coordinates.size), np.full(coordinates.size, np.nan)
    )
    forms.linear[:size] = np.diag(half)
    forms.constant[:size] = centre
    forms.slack[:size] = error_factor(4) * (np.abs(centre) + half)
    _multiply(coordinates, first, forms)
    if not coordinates.denominators:
        return forms
    below = coordinates.denominator_functions()
    for k in range(len(coordinates.denominators)):
        used = below.linear[k] != 0
        value = float(below.constant[k] + below.linear[k, used] @ forms.constant[used])
        slope = below.linear[k, used] @ forms.linear[used]
        rest = float(below.slack[k] + np.abs(below.linear[k, used]) @ forms.slack[used])
        rest += error_factor(coordinates.size + 8) * float(
            abs(below.constant[k]) + np.abs(below.linear[k, used]) @ (np.abs(forms.constant[used]) + 1.0)
        )
        swing = float(np.abs(slope).sum()) + rest
        least = abs(value) - swing
        if least <= 0.0:
            low, high = coordinates.lower[size + k], coordinates.upper[size + k]
            form = (0.5 * (low + high), np.zeros(size), 0.5 * (high - low) * _OUTWARD)
        else:
            form = (1.0 / value, -slope / value**2, (rest + swing * swing / least) / value**2 * _OUTWARD)
        _place(forms, size + k, *form)
    _multiply(coordinates, first, forms)
    return forms


def _multiply(coordinates: Coordinates, first: int, forms: AffineFunctions) -> None:
    """The products whose factors are there, in order."""
    for number, (left, right) in enumerate(coordinates.products, start=first):
        a, b = forms.constant[left], forms.constant[right]
        s, t = forms.slack[left], forms.slack[right]
        g, h = forms.linear[left], forms.linear[right]
        if np.isnan(s + t):
            continue
        size_a, size_b = np.abs(g).sum(), np.abs(h).sum()
        rest = size_a * size_b + s * (abs(b) + size_b + t) + t * (abs(a) + size_a)
        _place(forms, number, a * b, a * h + b * g, rest * _OUTWARD)


def _place(forms: AffineFunctions, number: int, value: float, slope: FloatArray, rest: float) -> None:
    forms.constant[number], forms.linear[number] = value, slope
    forms.slack[number] = rest + error_factor(12) * (abs(value) + float(np.abs(slope).sum()) + rest)
