"""Tests of constant rates in continuous time, feature by feature.

For a feature known at every moment a mixture of rates by its values, over the largest likelihood of one rate,
is at most a non-negative martingale from 1 at any stopping time; bets on transitions and states are joint.
Mixtures are shrunk to a common mean, or tilted in time. All features share one budget. Proof:
docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln, logsumexp

from tightrope.data.exposure import Exposure, Pieces
from tightrope.data.free_columns import LogColumn
from tightrope.io.results import power_text
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.ranges import ranges_over_box
from tightrope.monitoring.copies import weigh_timed_copies
from tightrope.monitoring.departures import bet_on_all
from tightrope.monitoring.examination import Examination, Finding
from tightrope.monitoring.features import AS_LABELS
from tightrope.monitoring.urns import sums
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, ranges
from tightrope.statistics.rates import SHAPE, RateClasses, texts_of

SHAPES = (1.0, 8.0, 64.0, 512.0)
STEPS = (0.4, 0.02)
"""Of the two lattices of mean rates, in logarithms."""

NEAR = (0, 1, -1, 3, -3)
TILTS = (-0.5, -0.25, 0.25, 0.5, 1.0, 2.0)
LOWEST, HIGHEST = -24, 40
"""The first and the last bin of times, by powers of √2 of the unit."""

MOST_VALUES = 64
LISTED = 3

WEIGHTS = {
    "since-entry": (0.2, "the time since the state was entered"),
    "since-start": (0.12, "the time since the episode began"),
    "clock": (0.1, "when it happens"),
    "prev": (0.15, "the state before"),
    "unit:episode": (0.13, "the episode"),
    "tie": (0.12, "the transition, though the model says that they share one rate"),
}
OF_COLUMNS, OF_COPIES = 0.17, 0.01
"""How the evidence is divided among features, shown or not; columns share theirs."""


def examine_rates(model: ParametricCTMC, exposure: Exposure, *, alpha: float) -> Examination:
    """Test what the rates of a chain could depend on; where the rows are gone, only what totals show.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(lam=(0.01, 10))
    >>> (lam,) = parameters.symbols()
    >>> model = tr.build_ctmc_from_rows([(0, {1: lam}), (1, {0: 1})], parameters)
    >>> log = tr.simulate_times(model.instantiate(lam=2), 40, seed=1, time=50)
    >>> examine_rates(model, tr.read_exposure(log, model), alpha=0.01).alarm
    False
    """
    test = _RateTest(model, exposure)
    findings = [test.finding(name, cells) for name, cells in test.features()] + test.ties()
    if test.pieces is not None:
        findings += Finding.of_copies(weigh_timed_copies(test.pieces), OF_COPIES)
    findings.sort(key=lambda one: -one.log_e_value)
    total = float(logsumexp([one.weighed for one in findings])) if findings else 0.0
    stated = [one.weighed for one in findings if one.is_stated]
    rows, first = exposure.rows, exposure.rows if total >= math.log(1.0 / alpha) else None
    known = float(logsumexp(stated)) if stated else -math.inf
    return Examination(tuple(findings), max(total, -700.0), alpha, first, rows, log_e_stated=known)


@dataclass(frozen=True)
class _RateCells:
    """Events and exposures of transitions where a feature has a value; `times` are the middles of bins."""

    transition: OffsetArray
    value: OffsetArray
    events: FloatArray
    exposure: FloatArray
    names: tuple[str, ...]
    times: FloatArray | None = None

    def merged(self, group: OffsetArray, value: OffsetArray, shared: bool) -> _RateCells:
        """Cells of the same group (−1: none) and value as one; their exposure is shared, or adds up."""
        inside = np.flatnonzero(group >= 0)
        key = (group * (int(value.max(initial=0)) + 1) + value)[inside]
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        first = inside[first]
        exposure = self.exposure[first] if shared else sums(which, self.exposure[inside], len(first))
        events = sums(which, self.events[inside], len(first))
        return replace(self, transition=group[first], value=value[first], events=events, exposure=exposure)

    def paired(self) -> _RateCells:
        """Bins of times, two by two."""
        return self if self.times is None else self.merged(self.transition, self.value // 2, False)


@dataclass(frozen=True)
class _Units:
    """What is bet on at a time, with the range of its rate over the domain and a rate in the middle."""

    low: FloatArray
    high: FloatArray
    middle: FloatArray
    is_there: BoolArray

    def log_e(self, cells: _RateCells) -> FloatArray:
        """The evidence of each unit."""
        size = len(self.low)
        events = sums(cells.transition, cells.events, size)
        exposure = sums(cells.transition, cells.exposure, size)
        best = np.clip(events / np.where(exposure > 0.0, exposure, 1.0), self.low, self.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            null = np.where(events > 0, events * np.log(best), 0.0) - best * exposure
        bet = self._shrunk(cells.paired(), events, exposure)
        if cells.times is not None:
            bet = np.logaddexp(bet, self._tilted(cells, events)) - math.log(2.0)
        seen = self.is_there & (exposure > 0.0)
        return np.where(seen, bet - np.where(seen, null, 0.0), 0.0)

    def _shrunk(self, cells: _RateCells, events: FloatArray, exposure: FloatArray) -> FloatArray:
        unit, size = cells.transition, len(events)
        seen = self.is_there & (exposure > 0.0)
        rate = np.where(seen, np.maximum(events, 0.5) / np.where(seen, exposure, 1.0), self.middle)
        terms = []
        for shape in SHAPES:
            counted = gammaln(shape + cells.events) - gammaln(shape)
            for step in STEPS:
                nearest = np.rint(np.log(rate / self.middle) / step)
                for offset in NEAR:
                    place = np.abs(nearest + offset)
                    scale = shape / (self.middle * np.exp(step * (nearest + offset)))
                    log_q = counted - cells.events * np.log(scale[unit] + cells.exposure)
                    log_q -= shape * np.log1p(cells.exposure / scale[unit])
                    total = sums(unit, log_q, size)
                    terms.append(total - math.log(1.5) - np.log((place + 1.0) * (place + 2.0)))
        result: FloatArray = logsumexp(terms, axis=0) - math.log(len(SHAPES) * len(STEPS))
        return result

    def _tilted(self, cells: _RateCells, events: FloatArray) -> FloatArray:
        assert cells.times is not None
        unit, size = cells.transition, len(events)
        place = np.log(cells.times)[cells.value]
        terms = []
        for exponent in TILTS:
            weighed = sums(unit, np.exp(exponent * place) * cells.exposure, size)
            gained = exponent * sums(unit, place * cells.events, size)
            scale = SHAPE / self.middle
            log_q = gammaln(SHAPE + events) - gammaln(SHAPE) - events * np.log(scale + weighed)
            terms.append(gained + log_q - SHAPE * np.log1p(weighed / scale))
        result: FloatArray = logsumexp(terms, axis=0) - math.log(len(TILTS))
        return result

    def combined(self, log_e: FloatArray) -> float:
        """Bets on all units together, without paying for each."""
        each = log_e[self.is_there]
        return bet_on_all(each, len(each))


class _RateTest:
    """The transitions of a model with what a log says of them."""

    def __init__(self, model: ParametricCTMC, exposure: Exposure):
        self.model, self.exposure = model, exposure
        structure = model.structure
        self.owner = structure.choice_state[structure.transition_choice].astype(np.int64)
        moves = model.successor != self.owner
        low, high = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
        low, high = np.maximum(low, 0.0)[model.expression], np.maximum(high, 0.0)[model.expression]
        self.transitions = _units(low * (1 - 1e-12), high * (1 + 1e-12), moves)
        leaving = [sums(self.owner[moves], x[moves], model.states) for x in (low, high)]
        exits = np.bincount(self.owner[moves], minlength=model.states)
        self.states = _units(leaving[0] * (1 - 1e-12), leaving[1] * (1 + 1e-12), exits > 0)
        self.has_races = bool((exits > 1).any())

    @cached_property
    def pieces(self) -> Pieces | None:
        return None if self.exposure.pieces is None else self.exposure.pieces()

    def features(self) -> Iterator[tuple[str, _RateCells]]:
        """The features that the log has, with events and exposures by their values."""
        pieces, middle = self.pieces, self.states.middle[self.states.is_there]
        unit = 1.0 / float(np.median(middle)) if len(middle) else 1.0
        if pieces is None:
            return
        yield "since-entry", self._by_time(pieces.since_entry, unit)
        yield "since-start", self._by_time(pieces.since_start, unit)
        name = self.model.structure.state_name
        names = tuple(f"from {name(state)}" for state in range(self.model.states))
        yield "prev", self._by_code(pieces.before, (*names, "at the start"))
        if int(pieces.episode[-1]) > 0:
            yield "unit:episode", self._by_code(pieces.episode, ())
            if pieces.clock is not None:
                yield "clock", self._by_time(pieces.clock - pieces.clock.min(), unit)
        for column, held in pieces.columns.items():
            code, labels = _binned(held) if _is_binned(held) else (held.code.astype(np.int64), held.labels)
            yield f"column:{column}", self._by_code(code, (*labels, "missing"))

    def _show(self, name: str, log_e: float, shown: tuple[int, str, _RateCells, int]) -> Finding:
        """A feature's evidence in words, with its weight, which is fixed before the first row.

        `shown` are a state, what is there, and where it shows most: the values with the most events and what
        the rate is there, against all.
        """
        state, subject, cells, unit = shown
        cells, column = cells.paired(), None
        if name in WEIGHTS:
            weight, words = WEIGHTS[name]
        else:
            columns = {} if self.pieces is None else self.pieces.columns
            column = columns[name.partition(":")[2]]
            weight = OF_COLUMNS / len(columns) * (1.0 - AS_LABELS if _is_binned(column) else AS_LABELS)
            words = f"the column {name.partition(':')[2]}"
        own = cells.transition == unit
        value, events, exposure = cells.value[own], cells.events[own], cells.exposure[own]
        pooled = events.sum() / max(exposure.sum(), 1e-300)
        surprise = np.abs(events - pooled * exposure) / np.sqrt(np.maximum(pooled * exposure, 1.0))
        parts = []
        for i in np.sort(np.argsort(-surprise, kind="stable")[:LISTED]).tolist():
            number = int(value[i]) * (2 if cells.times is not None else 1)
            label = cells.names[number] if number < len(cells.names) else f"number {number}"
            time = f"{exposure[i]:,.0f}" if exposure[i] >= 1000 else f"{exposure[i]:.4g}"
            rate = f"{events[i] / max(exposure[i], 1e-300):.3g}"
            parts.append(f"{label}: {rate} ({int(events[i]):,} in {time})")
        parts.append(f"overall {pooled:.3g}")
        text = f"{subject} depends on {words} (e-value {power_text(log_e)}): {'; '.join(parts)}"
        effect = float(np.abs(events - pooled * exposure).sum() / max(2.0 * events.sum(), 1.0))
        rest = effect, math.log(weight), column is None or column.is_known
        return Finding("rate", name, text, log_e, (state,) if state >= 0 else (), (), *rest)

    def _name(self, transition: int) -> str:
        name = self.model.structure.state_name
        return f"{name(int(self.owner[transition]))} to {name(int(self.model.successor[transition]))}"

    def ties(self) -> list[Finding]:
        """Whether transitions whose rates are multiples of one unknown rate have it in common."""
        model, structure = self.model, self.model.structure
        classes = RateClasses.of(model)
        number = classes.of_expression[model.expression].astype(np.int64)
        factor = np.array([float(one) for one in classes.factor])[model.expression]
        shared = np.flatnonzero(self.transitions.is_there & (number >= 0) & (factor > 0.0))
        number, factor = number[shared], factor[shared]
        several = np.bincount(number, minlength=len(classes)) > 1
        low, high = (np.full(len(classes), end) for end in (math.inf, 0.0))
        np.minimum.at(low, number, self.transitions.low[shared] / factor * (1 - 1e-12))
        np.maximum.at(high, number, self.transitions.high[shared] / factor * (1 + 1e-12))
        names = tuple(map(self._name, range(structure.transitions)))
        if not several.any():
            return []
        events, waited = self.exposure.jumps[shared], self.exposure.waited[self.owner[shared]]
        cells = _RateCells(number, shared, events.astype(np.float64), factor * waited, names)
        units = _units(np.where(several, low, 0.0), high, several)
        log_e = units.log_e(cells)
        worst = int(np.argmax(np.where(several, log_e, -math.inf)))
        text = f"the rate {texts_of(classes, model.parameters.names)[worst]}"
        return [self._show("tie", units.combined(log_e), (-1, text, cells, worst))]

    def _by_code(self, code: OffsetArray, names: tuple[str, ...]) -> _RateCells:
        pieces = self.pieces
        assert pieces is not None
        size = max(int(code.max(initial=0)), len(names) - 2) + 2
        value = np.where(code < 0, size - 1, code)
        key, which = np.unique(pieces.state * size + value, return_inverse=True)
        waited = sums(which, pieces.duration, len(key))
        ends = pieces.transition >= 0
        jumped = pieces.transition[ends] * size + value[ends]
        if names and len(names) < size:
            names = (*names[:-1], *([""] * (size - len(names))), names[-1])
        return self._cells(key, waited, jumped, size, names)

    def _by_time(self, since: FloatArray, unit: float) -> _RateCells:
        pieces = self.pieces
        assert pieces is not None
        edges = unit * np.sqrt(2.0) ** np.arange(LOWEST, HIGHEST + 1)
        size, until = len(edges) + 1, since + pieces.duration
        waited = np.zeros((self.model.states, size))
        least, most = float(since.min(initial=0.0)), float(until.max(initial=0.0))
        for value, (low, high) in enumerate(zip([0.0, *edges], [*edges, math.inf], strict=True)):
            if low < most and high > least:
                here = np.minimum(until, high) - np.maximum(since, low)
                waited[:, value] = sums(pieces.state, np.maximum(here, 0.0), self.model.states)
        ends = pieces.transition >= 0
        bins = np.searchsorted(edges, until[ends], side="left")
        key = np.flatnonzero(waited.ravel() > 0.0)
        times = np.r_[edges[0] / 2**0.25, edges * 2**0.25] / unit
        names = tuple(f"from {edge:.3g} on" for edge in [0.0, *edges])
        cells = self._cells(key, waited.ravel()[key], pieces.transition[ends] * size + bins, size, names)
        return replace(cells, times=times)

    def _cells(
        self, key: OffsetArray, waited: FloatArray, jumped: OffsetArray, size: int, names: tuple[str, ...]
    ) -> _RateCells:
        """Exposures of states by value, shared by all their transitions, and the events of these."""
        structure = self.model.structure
        start = structure.transition_start[structure.choice_start]
        transition, each = ranges(start, key // size)
        value = (key % size)[each]
        wanted, counted = np.unique(np.r_[jumped, np.iinfo(np.int64).max], return_counts=True)
        place = np.searchsorted(wanted, transition * size + value)
        events = np.where(wanted[place] == transition * size + value, counted[place], 0).astype(np.float64)
        return _RateCells(transition, value, events, waited[each], names)

    def finding(self, name: str, cells: _RateCells) -> Finding:
        """The evidence of transitions, and of states with all their transitions."""
        alone = self.transitions.log_e(cells)
        log_e = self.transitions.combined(alone)
        worst, shown = int(np.argmax(alone)), cells
        structure = self.model.structure
        state = int(self.owner[worst])
        text = f"the rate from {self._name(worst)}"
        if self.has_races:
            leaving = np.where(self.transitions.is_there, self.owner, -1)
            together = cells.merged(leaving[cells.transition], cells.value, True)
            of_states = self.states.log_e(together)
            both = self.states.combined(of_states)
            if float(of_states.max()) > float(alone[worst]):
                worst, shown = int(np.argmax(of_states)), together
                state, text = worst, f"the rate of leaving {structure.state_name(worst)}"
            log_e = float(np.logaddexp(log_e, both) - math.log(2.0))
        return self._show(name, log_e, (state, text, shown, worst))


def _units(low: FloatArray, high: FloatArray, is_there: BoolArray) -> _Units:
    middle = np.where(low > 0.0, np.sqrt(low * np.minimum(high, 1e300)), np.minimum(high, 1e300) / 100.0)
    return _Units(low, high, np.maximum(middle, 1e-300), is_there)


def _is_binned(column: LogColumn) -> bool:
    return len(column.labels) > MOST_VALUES and column.values is not None


def _binned(column: LogColumn) -> tuple[OffsetArray, tuple[str, ...]]:
    """Numbers by their sign and size, in powers of 2; −1 where there is none."""
    values = column.values
    assert values is not None
    size = np.zeros(len(values))
    there = np.isfinite(values) & (values != 0.0)
    size[there] = np.sign(values[there]) * (np.clip(np.floor(np.log2(np.abs(values[there]))), -30, 30) + 31)
    code = np.where(np.isfinite(values), size + 61, -1).astype(np.int64)
    names = (
        f"about {'-' if n < 61 else ''}{2.0 ** (abs(n - 61) - 31):.3g}" if n != 61 else "0"
        for n in range(123)
    )
    return code, tuple(names)
