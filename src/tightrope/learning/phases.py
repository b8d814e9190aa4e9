"""Sojourns in phases (`phase=N`): sums of N exponential times, learned and tested.

A state is left after N unobserved phases of one rate λ, then by transition t with probability r(t),
independently of the time. λ has a mixture likelihood ratio's interval, r beta-binomial ones, and other rates
are learned without the time in these states. All statements share δ. The test mixes Gamma and Weibull laws;
`phase=fit` takes the likeliest N. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaincc, gammaln, logsumexp

from tightrope.data.exposure import Exposure, Pieces
from tightrope.errors import InputError
from tightrope.learning.amendments import Amendment
from tightrope.learning.rates import RateResult, estimate, fixed_rewards, result_of
from tightrope.logic.timed import RateBounds, bound_over_rates
from tightrope.model.continuous import IntervalCTMC, ParametricCTMC
from tightrope.model.structure import Structure
from tightrope.monitoring.examination import Examination, Finding
from tightrope.monitoring.rate_fit import examine_rates
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.problem import Problem
from tightrope.solver.solution import SolveOptions
from tightrope.statistics.intervals import beta_binomial

MOST = 32
STEPS, NEAR = (0.02, 0.001), 60
"""Of the lattices of log λ, and how far from the best rate their terms are taken."""

SHAPES = (0.25, 0.5, 0.7, 1.5, 2.0, 4.0)
"""Of Gamma laws, by N, and of Weibull laws: what the test looks for."""


@dataclass(frozen=True)
class Sojourns:
    """Times in one state: complete ones, with the transitions that ended them, and those cut off."""

    lasted: FloatArray
    ended: OffsetArray
    cut: FloatArray

    @staticmethod
    def of(pieces: Pieces, state: int) -> Sojourns:
        total = pieces.since_entry + pieces.duration
        follows = np.r_[
            (np.diff(pieces.episode) == 0) & (np.diff(pieces.state) == 0) & (np.diff(pieces.since_entry) > 0),
            False,
        ]
        here, done = pieces.state == state, pieces.transition >= 0
        cut = total[here & ~done & ~follows]
        return Sojourns(total[here & done], pieces.transition[here & done], cut[cut > 0.0])

    def log_likelihood(self, rate: FloatArray, phases: int) -> FloatArray:
        """Of rates, up to what is free of them."""
        x = rate[:, None] * self.cut
        tails = gammaincc(phases, x)
        far = tails < 1e-280  # here Σ is at most N times its last term
        bound = math.log(phases) + (phases - 1) * np.log(np.maximum(x, 1.0)) - gammaln(phases) - x
        tails = np.where(far, bound, np.log(np.where(far, 1.0, tails)))
        result: FloatArray = (
            phases * len(self.lasted) * np.log(rate) - rate * self.lasted.sum() + tails.sum(axis=1)
        )
        return result

    def best(self, phases: int) -> float:
        """About the rate with the largest likelihood."""
        time = float(self.lasted.sum() + self.cut.sum())
        low, high = math.log(0.1 / time), math.log(10.0 * phases * (len(self.lasted) + 1) / time)
        for _ in range(50):
            a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
            first, second = self.log_likelihood(np.exp([a, b]), phases)
            low, high = (a, high) if first < second else (low, b)
        return math.exp(0.5 * (low + high))

    def interval(self, phases: int, gamma: float) -> tuple[float, float]:
        """Bounds on the rate of the phases at level 1 − gamma, at all times."""
        best = self.best(phases)
        log_q = _mixed(best, phases, lambda rates: self.log_likelihood(rates, phases))
        least = log_q - math.log(1.0 / gamma)
        least -= 1e-9 * (1.0 + abs(least) + phases * len(self.lasted) + len(self.cut))
        ends = []
        for sign in (-1.0, 1.0):
            inner, outer = math.log(best), math.log(best) + sign
            while self._at(outer, phases) > least and abs(outer) < 600.0:
                outer += sign * (1.0 + abs(outer - math.log(best)))
            if self._at(outer, phases) > least:
                ends.append(0.0 if sign < 0.0 else math.inf)
                continue
            for _ in range(60):
                middle = 0.5 * (inner + outer)
                inner, outer = (middle, outer) if self._at(middle, phases) > least else (inner, middle)
            ends.append(math.exp(outer) * (1.0 + sign * 1e-12))
        return ends[0], ends[1]

    def _at(self, log_rate: float, phases: int) -> float:
        return float(self.log_likelihood(np.exp([log_rate]), phases)[0])

    def evidence(self, phases: int) -> float:
        """The logarithm of an e-value against phases."""
        if not len(self.lasted):
            return 0.0
        best, logs = self.best(phases), np.log(self.lasted)
        own = (phases - 1) * logs.sum() - gammaln(phases) * len(logs)
        null = float(self.log_likelihood(np.array([best]), phases)[0] + own) + 1e-6
        terms = []
        for shape in SHAPES:
            a, middle = shape * phases, shape * best

            def gamma_law(rates: FloatArray, a: float = a) -> FloatArray:
                with np.errstate(divide="ignore"):
                    tails = np.log(gammaincc(a, rates[:, None] * self.cut)).sum(axis=1)
                whole = a * np.log(rates) * len(logs) - rates * self.lasted.sum() + tails
                result: FloatArray = whole + (a - 1.0) * logs.sum() - gammaln(a) * len(logs)
                return result

            def weibull_law(rates: FloatArray, k: float = shape) -> FloatArray:
                every = np.r_[self.lasted, self.cut]
                result: FloatArray = (
                    len(logs) * (math.log(k) + k * np.log(rates))
                    + (k - 1.0) * logs.sum()
                    - ((rates[:, None] * every) ** k).sum(axis=1)
                )
                return result

            slow = float((len(logs) / (np.r_[self.lasted, self.cut] ** shape).sum()) ** (1.0 / shape))
            terms += [_mixed(middle, phases, gamma_law), _mixed(slow, phases, weibull_law)]
        return float(logsumexp(terms)) - math.log(len(terms)) - null


def _mixed(best: float, phases: int, log_likelihood: Callable[[FloatArray], FloatArray]) -> float:
    """The log of a mixture over two lattices of rates, weights h/(3π)/(1 + (kh/3)²); terms near `best` are
    taken."""
    total = []
    for step in STEPS:
        nearest = round(math.log(best / phases) / step)
        place = (nearest + np.arange(-NEAR, NEAR + 1)) * step
        weight = math.log(step / (3.0 * math.pi) / 1.01) - np.log1p((place / 3.0) ** 2)
        total.append(float(logsumexp(weight + log_likelihood(phases * np.exp(place)))))
    return float(logsumexp(total)) - math.log(2.0)


@dataclass(frozen=True, eq=False)
class PhasedRates:
    """A chain with phases at some states: their numbers, and the log of the states without them."""

    amendment: Amendment
    model: ParametricCTMC
    exposure: Exposure
    phases: Mapping[int, int]
    sojourns: Mapping[int, Sojourns]
    rest: Exposure
    claims: str


def choose_phases(
    model: ParametricCTMC, pieces: Pieces, change: Amendment, named: BoolArray
) -> dict[int, int]:
    """How many phases each state in question has, by the log that amendments are chosen on."""
    word = change.feature.partition(":")[0]
    if word != "fit" and not (word.isdecimal() and 2 <= int(word) <= MOST):
        raise InputError(
            f"`{change.text}`: '{word}' is not a number of phases from 2 to {MOST}, nor 'fit'",
            hint="phase=3, phase=fit, or of one state phase=3:STATE",
        )
    structure = model.structure
    leaves = np.zeros(model.states, np.bool_)
    owner = structure.choice_state[structure.transition_choice]
    leaves[owner[structure.successor != owner]] = True
    states = np.flatnonzero(named & leaves).tolist()
    if change.choices is not None:
        states = [state for state in states if state in change.choices]
    result = {}
    for state in states:
        seen = Sojourns.of(pieces, state)
        number = _fitting(seen) if word == "fit" else int(word)
        if len(seen.lasted) and number > 1:
            result[state] = number
    if not result:
        raise InputError(f"`{change.text}`: the log shows no phases in these states")
    return result


def _fitting(seen: Sojourns) -> int:
    """The number of phases with the largest likelihood."""
    if not len(seen.lasted):
        return 1
    logs = np.log(seen.lasted).sum()

    def value(phases: int) -> float:
        own = (phases - 1) * logs - gammaln(phases) * len(seen.lasted)
        return float(seen.log_likelihood(np.array([seen.best(phases)]), phases)[0] + own)

    return max(range(1, MOST + 1), key=value)


def with_phases(
    model: ParametricCTMC, pieces: Pieces, change: Amendment, like: Exposure, phases: Mapping[int, int]
) -> PhasedRates:
    """The sojourns of the states in question, and the log without the time in them."""
    refuse_rewards(model, list(phases), change)
    sojourns = {state: Sojourns.of(pieces, state) for state in phases}
    if empty := [state for state, seen in sojourns.items() if not len(seen.lasted)]:
        name = model.structure.state_name(empty[0])
        raise InputError(f"`{change.text}`: the part of the log to learn from never leaves {name}")
    if any((seen.lasted <= 0.0).any() for seen in sojourns.values()):
        raise InputError(f"`{change.text}`: the log has sojourns of length 0, which no phases explain")
    others = np.flatnonzero(~np.isin(pieces.state, list(phases)))
    structure, left = model.structure, take(pieces, others)
    rest = exposure_from(structure, left, like)
    shown = ", ".join(f"{number} in {structure.state_name(state)}" for state, number in phases.items())
    claims = f"sojourns are sums of exponential ones ({shown}), what follows does not depend on how long"
    return PhasedRates(change, model, exposure_from(structure, pieces, like), phases, sojourns, rest, claims)


def refuse_rewards(model: ParametricCTMC, states: Sequence[int], change: Amendment) -> None:
    """Refuse rewards that are, or may be, earned by events whose rates are amended."""
    structure = model.structure
    owner = structure.choice_state[structure.transition_choice]
    number = model.expressions.is_constant[model.expression] & np.isin(owner, states)
    fixed = np.unique(owner[number & (structure.successor != owner)])
    for reward in model.earned.values():
        is_known = reward.expressions.is_constant
        amount = reward.expressions.values_many(np.zeros((1, len(model.parameters))))[0][reward.expression]
        if not is_known.all() or (amount[fixed] != 0.0).any():
            raise InputError(f"`{change.text}`: rewards that depend on rates cannot be revised yet")


def take(pieces: Pieces, rows: OffsetArray) -> Pieces:
    """Some stretches of time; episodes are numbered anew."""
    return Pieces(
        pieces.state[rows],
        pieces.duration[rows],
        pieces.transition[rows],
        np.unique(pieces.episode[rows], return_inverse=True)[1].astype(np.int64),
        pieces.since_entry[rows],
        pieces.since_start[rows],
        pieces.before[rows],
        None if pieces.clock is None else pieces.clock[rows],
        {name: column.select(rows) for name, column in pieces.columns.items()},
    )


def exposure_from(structure: Structure, pieces: Pieces, like: Exposure) -> Exposure:
    """The totals of some stretches of time."""
    ended = pieces.transition[pieces.transition >= 0]
    return replace(
        like,
        jumps=np.bincount(ended, minlength=structure.transitions).astype(np.int64),
        waited=np.bincount(pieces.state, weights=pieces.duration, minlength=structure.states).astype(
            np.float64
        ),
        rows=len(pieces.state),
        episodes=int(pieces.episode.max(initial=-1)) + 1,
        censored=0,
        pieces=lambda: pieces,
    )


def examine_phases(made: PhasedRates, alpha: float) -> Examination:
    """Test the sojourns of the states in question, and all other rates."""
    beside = examine_rates(made.model, made.rest, alpha=alpha)
    weight = -math.log(len(made.phases) + 1)
    findings = [
        Finding(
            "rate",
            "phase",
            f"sojourns in {made.model.structure.state_name(state)} are not sums of {number} exponential ones",
            made.sojourns[state].evidence(number),
            contexts=(state,),
            log_weight=weight,
        )
        for state, number in made.phases.items()
    ]
    findings += [replace(one, log_weight=one.log_weight + weight) for one in beside.findings]
    own = [one.weighed for one in findings[: len(made.phases)]]
    total, stated = (
        float(logsumexp([log_e + weight, *own])) for log_e in (beside.log_e_value, beside.log_e_stated)
    )
    rows = made.exposure.rows
    listed = tuple(sorted(findings, key=lambda one: -one.weighed))
    first = rows if total >= math.log(1.0 / alpha) else None
    return Examination(listed, total, alpha, first, rows, log_e_stated=stated)


def learn_phases(
    question: Problem | None, made: PhasedRates, tested: Examination, delta: float
) -> RateResult | None:
    """Bounds on the value of the chain with phases."""
    if question is None:
        return None
    model, structure = made.model, made.model.structure
    owner = structure.choice_state[structure.transition_choice]
    exits = {s: np.flatnonzero((owner == s) & (structure.successor != s)) for s in made.phases}
    own = sum(1 + (len(one) if len(one) > 1 else 0) for one in exits.values())
    gamma = delta / (own + 1)
    events, region, ledger = estimate(model, made.rest, gamma)
    note = f"{own} statements about phases and what follows them, at {gamma:.3g} each"
    ledger = replace(ledger, delta=delta, notes=(*ledger.notes, note))

    def bound(plain: IntervalCTMC) -> tuple[IntervalCTMC, RateBounds]:
        chain = _expanded(model, plain, made, exits, gamma)
        return chain, bound_over_rates(chain, question.query.on(chain.structure), SolveOptions(1e-6))

    return result_of(question, model, made.exposure, (events, region, ledger), tested, bound)


def _expanded(
    model: ParametricCTMC,
    plain: IntervalCTMC,
    made: PhasedRates,
    exits: Mapping[int, OffsetArray],
    gamma: float,
) -> IntervalCTMC:
    """N states in a row for each with phases, and intervals of all rates."""
    structure = model.structure
    first, copies = [], list[int]()
    for state in range(model.states):
        first.append(len(copies))
        copies += [state] * made.phases.get(state, 1)
    lists: list[list[tuple[int, float, float]]] = [[] for _ in copies]
    starts, to = structure.transition_start.tolist(), structure.successor.tolist()
    for state in range(model.states):
        if state not in made.phases:
            for at in range(starts[state], starts[state + 1]):
                e = int(plain.expression[at])
                lists[first[state]].append((first[to[at]], float(plain.lower[e]), float(plain.upper[e])))
            continue
        seen, number = made.sojourns[state], made.phases[state]
        low, high = seen.interval(number, gamma)
        if not math.isfinite(high):
            raise InputError(f"`{made.amendment.text}`: too little was seen of {structure.state_name(state)}")
        last = first[state] + number - 1
        for at in range(first[state], last):
            lists[at].append((at + 1, low, high))
        ways = exits[state]
        came = np.array([np.count_nonzero(seen.ended == way) for way in ways.tolist()], np.int64)
        least, most = np.ones(1), np.ones(1)
        if len(ways) > 1:
            least, most = beta_binomial(came, np.full(len(ways), len(seen.lasted)), gamma)
        for way, down, up in zip(ways.tolist(), least.tolist(), most.tolist(), strict=True):
            bounds = low * down * (1.0 - 1e-15), high * up * (1.0 + 1e-15)
            lists[last].append((first[to[way]], *bounds))
    behind = np.array(copies)
    flat = [one for each in lists for one in each]
    start = np.r_[0, np.cumsum([len(one) for one in lists])]
    built = Structure(
        choice_start=np.arange(len(copies) + 1),
        transition_start=start,
        successor=np.array([one[0] for one in flat], np.int32),
        initial_states=tuple(first[state] for state in structure.initial_states),
        labels={name: members[behind] for name, members in structure.labels.items() if name != "init"},
        valuations={name: column[behind] for name, column in structure.valuations.items()},
        definitions=structure.definitions,
    )
    earned = fixed_rewards(model, behind)
    lower, upper = (np.array([one[end] for one in flat]) for end in (1, 2))
    return IntervalCTMC(built, np.arange(len(flat), dtype=np.int32), lower, upper, earned)
