"""Observed returns of episodes, beside what the model proves: both hold simultaneously at δ₁ + δ₂.

The episodes of a chain carry its value. Those of a process with choices carry the value of the policy that
made them, given or unknown, and prove no other claim. Of n independent episodes from the initial state, at
least k reached the target and at least f cannot reach it any more; undecided ones count against either end.
The probability, before a complement is taken, lies above every p with P(Bin(n, p) ≥ k) ≤ δ₂/2 and below every
p with P(Bin(n, p) ≤ n − f) ≤ δ₂/2 (Clopper and Pearson; n fixed in advance), or between those that the
beta-binomial mixture excludes at 1/δ₂, time-uniformly (`tightrope_check.statistics.binomial`). Returns
of rewards are counted above a lower limit, and below an upper limit where there is one. Each end is bet on at
δ₂/2, or the lower one alone at δ₂ (`exceeds`). By the union bound this and
all that uses the counts of transitions hold with probability at least 1 − δ₁ − δ₂, however the two depend on
each other.

No end of an interval is in a file: where a claim goes beyond what the model proves, its end is checked here.
Where the two parts exclude each other, the data contradict the model.

The README of this package has the bets on returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from math import inf, log, nextafter, sqrt
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import FloatArray, Number
from tightrope_check.budget import spend
from tightrope_check.fields import LARGEST
from tightrope_check.logarithms import log_ratio
from tightrope_check.statistics.binomial import UNIT, Intervals
from tightrope_check.verdict import Assumption, Contradiction, exactly

if TYPE_CHECKING:
    from tightrope_check.evidence import Data
    from tightrope_check.problem import Certificate, CertifiedProblem, Claim

METHODS = ("clopper-pearson", "beta-binomial", "betting on a planned number", "betting")
REWARDS = ("REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED")

_ROOT = Fraction(6369051672525773, 2**52)
FRACTIONS = Fraction(15, 16), *((_ROOT if j % 2 else 1) / Fraction(2 ** ((j + 1) // 2)) for j in range(1, 41))
_SHARES = 1 << 20


def trouble(data: Data) -> str | None:
    """Why what is said of episodes cannot be."""
    if data.seen is None or data.seen_delta is None or len(data.seen_delta) == 0 or len(data.seen) != 4:
        return "episodes are four numbers, with a part of δ"
    if data.seen[0] >= len(METHODS):
        return "episodes are a method, their number, successes and failures, with a part of δ"
    method, episodes, successes, failures = data.seen.tolist()
    known = episodes if data.episodes is None else data.episodes
    if successes + failures > episodes or episodes > known:
        return "more episodes, or more that are decided, than there are"
    if wrong := _trouble_with_returns(data, method, episodes):
        return wrong
    share = Fraction(data.seen_delta[0])
    if share <= 0 or Fraction(data.delta) + share >= 1:
        return "the parts of δ are no parts of a probability"
    reached = data.planned is not None and data.planned == data.episodes
    planned = (data.design == "trajectories" or reached) and not data.anytime
    return None if method % 2 or planned else "a number of episodes that was not fixed in advance"


def _trouble_with_returns(data: Data, method: int, episodes: int) -> str | None:
    assert data.seen is not None and data.seen_delta is not None
    ends, rows = data.seen_delta[1:], data.returns
    if method < 2:
        return None if rows is None and len(ends) == 0 else "returns of episodes that are counted"
    if rows is None or len(ends) not in (1, 2) or np.any(np.diff(ends) <= 0) or data.seen[2:].any():
        return "returns have one end or two, and no successes"
    side, value, count = rows.T
    one = np.diff(side) == 0
    rising = np.all(np.diff(side) >= 0) and np.all(np.diff(value)[one] > 0) and np.all(value > 0)
    whole = np.isin(side, np.arange(len(ends))).all() and np.all((count >= 1) & (count == np.floor(count)))
    few = all(count[side == i].sum() <= min(episodes, 2**50) for i in range(2))
    return None if rising and whole and few else "returns are no list of values above 0"


def trouble_with(problem: CertifiedProblem) -> str | None:
    """Why episodes say nothing of what is asked."""
    if problem.misfit is not None:
        return "episodes are those of a chain or a given policy, and of the process that the model is of"
    objective, data = problem.objective, problem.data
    if data is not None and data.returns is not None:
        fits = objective.kind in REWARDS and objective.earned is None
        return None if fits else "returns are those of rewards that are known"
    return None if objective.is_probability else "episodes are counted for a probability"


def is_about(problem: CertifiedProblem, claim: Claim) -> bool:
    """Whether episodes carry the value that is claimed: of a chain, of the given policy, of which it is
    assumed that it made them, or of what was done, whoever did it."""
    if claim.policy == "unknown":
        return True
    given = claim.name == "given policy" and claim.policy != "free" and claim.earlier is None
    return given or problem.graph.choices == problem.graph.states


def trouble_of(certificate: Certificate) -> str | None:
    """Why episodes say nothing of what is claimed."""
    if len({"given policy", "what was done"} & {claim.name for claim in certificate.claims}) > 1:
        return "what was done beside a policy that is said to have done it"
    if any(is_about(certificate.problem, claim) for claim in certificate.claims):
        return None
    return "episodes are those of a chain, or of a given policy"


def assumption(data: Data, named: Collection[str]) -> Assumption:
    assert data.seen is not None
    fixed = ", and their number was fixed in advance" if data.seen[0] % 2 == 0 else ""
    whose = "the given policy" if "given policy" in named else "the chain"
    if "what was done" in named:
        whose = "one unknown behaviour policy"
    words = f"{data.seen[1]} episodes from the initial state are independent draws of {whose}{fixed}"
    if data.returns is not None and data.seen_delta is not None:
        least, *most = map(exactly, data.seen_delta[1:].tolist())
        words += f"; each returns at least {least}" + "".join(f" and at most {end}" for end in most)
    return "episodes", "stated", words


def improved(problem: CertifiedProblem, claim: Claim, low: Number, high: Number) -> tuple[Number, Number]:
    """What the model proves of a value, met with what is claimed and the episodes prove."""
    data = problem.data
    if not is_about(problem, claim):
        return low, high
    assert data is not None and data.seen is not None and data.seen_delta is not None
    episodes = int(data.seen[1])
    above, below = _of_counts(problem, data) if data.returns is None else _of_returns(data)
    if above(high) or below(low):
        raise Contradiction(f"the value of the {claim.name} is not that of {episodes} episodes")
    low = Fraction(claim.lower) if claim.lower > low and above(claim.lower) else low
    return low, Fraction(claim.upper) if claim.upper < high and below(claim.upper) else high


_Ends = tuple[Callable[[Number], bool], Callable[[Number], bool]]
"""Whether the value is above, and whether it is below a number."""


def _of_counts(problem: CertifiedProblem, data: Data) -> _Ends:
    assert data.seen is not None and data.seen_delta is not None
    method, episodes, successes, failures = data.seen.tolist()
    if problem.objective.complement:
        successes, failures = failures, successes
    intervals = Intervals(METHODS[method], Fraction(data.seen_delta[0]))

    def above(end: Number) -> bool:
        """Of 0, where it happened at all."""
        inside = 0 < end < 1 and intervals.holds(successes, episodes, Fraction(end), False)
        return inside or (end == 0 and successes > 0)

    def below(end: Number) -> bool:
        inside = 0 < end < 1 and intervals.holds(episodes - failures, episodes, Fraction(end), True)
        return inside or (end == 1 and failures > 0)

    return above, below


def _of_returns(data: Data) -> _Ends:
    assert data.seen is not None and data.seen_delta is not None and data.returns is not None
    rows, (share, *ends) = data.returns, map(Fraction, data.seen_delta.tolist())
    planned, episodes = data.seen[0] % 2 == 0, int(data.seen[1])

    def holds(side: int, end: Number) -> bool:
        if side >= len(ends) or not -LARGEST <= end <= LARGEST:
            return False
        m = Fraction(end) - ends[0] if side == 0 else ends[1] - Fraction(end)
        above = nextafter(float(m), inf)  # in few bits: what is above more is above m
        known = rows[rows[:, 0] == side, 1:]
        return above < inf and exceeds(known, episodes, Fraction(above), share / len(ends), planned)

    return (lambda end: holds(0, end)), (lambda end: holds(1, end))


def exceeds(returns: FloatArray, number: int, m: Fraction, gamma: Fraction, planned: bool) -> bool:
    """Whether the mean of `number` returns is above m; `returns` are values above 0 and how often each was
    seen, all others count as 0."""
    if m <= 0 or not len(returns):
        return False
    used = FRACTIONS
    if planned:
        best = sqrt(2.0 * log(1.0 / float(gamma)) / max(number, 1))
        used = tuple(f for f in FRACTIONS if 0.1 * best <= f <= 10.0 * best) or FRACTIONS[:1]
    value, count = returns[:, 0], returns[:, 1].astype(np.int64).tolist()
    rest = number - sum(count)
    sizes = np.array([float(f) for f in used])[:, None]
    guess = np.log1p(sizes * (value / float(m) - 1.0)) @ returns[:, 1] + rest * np.log1p(-sizes[:, 0])
    weight = np.exp(guess - guess.max())
    share = np.floor(weight / weight.sum() * _SHARES).astype(np.int64)
    whole, total = int(share.sum()), 0
    spend("returns", 400 * int(np.count_nonzero(share)) * (len(count) + 2))
    for f, part in zip(used, share.tolist(), strict=True):
        if part:
            logs = [c * _log(1 - f + f * Fraction(y) / m) for y, c in zip(value.tolist(), count, strict=True)]
            own = sum(logs) + rest * _log(1 - f)
            total += part * (own + _log(Fraction(whole, len(used) * part)))
    return total + whole * _log(gamma) >= 0


def _log(x: Fraction) -> int:
    """Not above log x, in units of 2⁻¹²⁸."""
    top, bottom = log_ratio(x.numerator, x.denominator, False)
    return top * (UNIT // bottom)
