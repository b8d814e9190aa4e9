"""The evidence for the likelihood region: how well a predictable plug-in did on the data.

The likelihood ratio of a plug-in, estimated from earlier batches, against the true parameters is a
nonnegative martingale under any adaptive policy. Ville's inequality turns it into a time-uniform region. The
pilot never depends on outcomes: it is a tenth of what was fixed or planned, else pilots are mixed with fixed
weights. Probabilities at the plug-in are rounded down, which only enlarges the region. Proof:
docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.data.counts import Counts, batch_ends
from tightrope.data.design import SamplingKind
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import UNIT, error_factor
from tightrope.statistics.bets import Predictions, best_shares, count_planned_episodes, price_of_shares
from tightrope.statistics.confidence_budget import Assumption
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.priors import Prior, pseudo_counts

PILOT_SHARE = 0.1
PILOT_STEP = 10
_EARLIER = 2
"""Of pilots in tens, so many below the one that covers at most a tenth are considered."""

_ROUNDS = 8
_SPARE = 1e-9
"""Taken off the threshold: another program, or machine, finds the same estimates up to rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Record):
    """The truth satisfies Σ weight·log f(θ) ≥ threshold with the confidence it was made for.

    `estimate` is the smoothed maximum of the left side, `pilot` the number of batches left out of it,
    `plug_ins` the free parameters that predicted each batch after the pilot. Where nothing was planned,
    `shares` are those of pilots of 0, 10, 20, … batches; weights are multiples of 2⁻¹⁰ then. `priors` are
    pseudo-counts of the plug-ins (`tightrope.statistics.priors`).
    """

    weight: FloatArray
    threshold: float
    estimate: FloatArray
    pilot: int
    batches: int
    assumption: Assumption
    plug_ins: FloatArray
    shares: FloatArray | None = None
    priors: tuple[Prior, ...] = ()

    def note(self) -> str:
        """The pilot, or the pilots, in a line, with the priors."""
        stated = ", ".join(prior.text for prior in self.priors)
        return self._pilots() + (f"; predictions begin with the prior {stated}" if stated else "")

    def _pilots(self) -> str:
        if self.shares is None or np.count_nonzero(self.shares) <= 1:
            return f"pilot: the first {self.pilot} of {self.batches} batches"
        parts = ", ".join(f"{PILOT_STEP * j} ({self.shares[j]:.0%})" for j in np.flatnonzero(self.shares))
        return f"pilots, mixed: the first {parts} of {self.batches} batches"


def prequential(
    outcomes: Outcomes,
    counts: Counts,
    delta: float,
    predictions: Predictions | None = None,
    priors: tuple[Prior, ...] = (),
) -> Evidence:
    """Predict every batch after the pilot from those before it and from `priors`."""
    known, informative = predictions or Predictions(), outcomes.informative
    by_batch = [outcomes.by_expression(seen) for seen in known.pooled_batches(outcomes, counts)]
    sizes = np.array([float(seen.sum()) for seen in by_batch])
    pilot, assumption = _planned_pilot(counts, sizes)
    if priors:
        pilot, assumption = None, Assumption.ADAPTIVE_ANYTIME
    first, usual = (pilot, 0) if pilot is not None else _first_mixed(sizes)
    first = 0 if priors else first
    functions, maximiser = outcomes.functions, outcomes.maximiser
    plug_ins, scores = _predict(outcomes, by_batch, first, known, priors)
    guess = plug_ins[-1] if plug_ins else maximiser.start
    shares, price = None, 0.0
    batch_weight = np.ones(len(scores))
    if pilot is None:
        probability = functions.at(maximiser.lifted(guess))
        log_f = np.log(np.maximum(probability, 1e-300)) * informative
        excess = [float(seen @ log_f) - score for seen, score in zip(by_batch[first:], scores, strict=True)]
        visits = [float(seen @ informative) for seen in by_batch[first:]]
        shares, price = _mix(first, usual, np.array(excess), np.array(visits), delta)
        batch_weight = np.repeat(np.cumsum(shares), PILOT_STEP)[first : len(by_batch)]
    used = np.flatnonzero(batch_weight > 0.0)
    skipped = int(used[0]) if len(used) else len(scores)
    terms = [-math.log(1.0 / delta) - price - _SPARE, *(float(batch_weight[b]) * scores[b] for b in used)]
    weight = np.zeros(len(functions))
    for b in used:
        weight += batch_weight[b] * by_batch[first + b]
    weight *= informative
    threshold = math.fsum(terms) - 4.0 * UNIT * math.fsum(abs(term) for term in terms)
    return Evidence(
        weight=weight,
        threshold=threshold,
        estimate=maximiser.estimate(weight, guess),
        pilot=first + skipped,
        batches=len(by_batch),
        assumption=assumption,
        plug_ins=np.array(plug_ins[skipped:]).reshape(-1, len(maximiser.start)),
        shares=shares,
        priors=priors,
    )


def _predict(
    outcomes: Outcomes, by_batch: list[FloatArray], first: int, known: Predictions, priors: tuple[Prior, ...]
) -> tuple[list[FloatArray], list[float]]:
    """(plug-ins, their scores) of every batch from the first on, each from those before it."""
    informative, seeded, strength = outcomes.informative, outcomes.maximiser, np.zeros(0)
    if priors:
        both, strength = pseudo_counts(priors, outcomes.coordinates, outcomes.functions)
        seeded = LikelihoodMaximiser(outcomes.coordinates, both)
    so_far = np.sum(by_batch[:first], axis=0) if first else np.zeros(len(outcomes.functions))
    scores: list[float] = []
    for number in range(first, len(by_batch)):
        if number not in known.plug_ins:
            known.plug_ins[number] = seeded.estimate(np.concatenate([so_far * informative, strength]))
        score = known.scores.get(number)
        if score is None:
            score = _score(outcomes.maximiser, known.plug_ins[number], by_batch[number] * informative)
            if number < len(by_batch) - 1:
                known.scores[number] = score
        scores.append(score)
        so_far = so_far + by_batch[number]
    return [known.plug_ins[number] for number in range(first, len(by_batch))], scores


def _planned_pilot(counts: Counts, sizes: FloatArray) -> tuple[int | None, Assumption]:
    """(batches of the pilot that a plan fixes, what that assumes); None where there is no plan."""
    fixed = _plan_pilot(counts, sizes)
    if fixed is not None:
        return fixed, Assumption.TRAJECTORIES
    plan = count_planned_episodes(counts)
    if plan is None:
        return None, Assumption.ADAPTIVE_ANYTIME
    before = int(np.searchsorted(batch_ends(plan), PILOT_SHARE * plan, side="right"))
    return min(before, len(sizes)), Assumption.ADAPTIVE_ANYTIME


def _first_mixed(sizes: FloatArray) -> tuple[int, int]:
    """(batches of the least pilot that is considered, j of the one that covers at most a tenth)."""
    usual = _within(np.cumsum(sizes)) // PILOT_STEP
    return PILOT_STEP * max(usual - _EARLIER, 0), usual


def mix_pilots(
    number: OffsetArray, excess: FloatArray, visits: FloatArray, delta: float
) -> tuple[FloatArray, float]:
    """(shares of pilots of 10·number batches, their price) that make the region small (Dinkelbach)."""
    weight = 1.0 / ((number + 1.0) * (number + 2.0))
    level = math.log(1.0 / delta)
    ratio = float(((excess - np.log(weight) + level) / visits).min())
    for _ in range(_ROUNDS):
        share = best_shares(weight, ratio * visits - excess)
        price = price_of_shares(weight, share)
        ratio = min(ratio, float((share @ excess + level + price) / (share @ visits)))
    return share, price


def _mix(
    first: int, usual: int, excess: FloatArray, visits: FloatArray, delta: float
) -> tuple[FloatArray, float]:
    """(shares of pilots of 0, 10, 20, … batches, their price); `usual` covers at most a tenth."""
    count = max((first + len(visits) - 1) // PILOT_STEP, usual) + 1
    number = np.arange(first // PILOT_STEP, count)
    start = PILOT_STEP * number - first
    later = np.array([visits[one:].sum() for one in start])
    cost = np.array([excess[one:].sum() for one in start])
    possible = np.flatnonzero((later > 0.0) & np.isfinite(cost))
    if len(possible) == 0:
        possible, later, cost = np.array([usual - number[0]]), np.ones(count), np.zeros(count)
    shares = np.zeros(count)
    shares[number[possible]], price = mix_pilots(number[possible], cost[possible], later[possible], delta)
    return shares, price


def _plan_pilot(counts: Counts, sizes: FloatArray) -> int | None:
    """The pilot of planned draws or trajectories (steps depend on outcomes); None without a plan."""
    assert counts.batches is not None
    if counts.design.kind is SamplingKind.GENERATIVE_FIXED:
        return _within(np.cumsum(sizes))
    if counts.design.kind is SamplingKind.TRAJECTORIES and counts.design.episodes is not None:
        ends = batch_ends(counts.design.episodes)
        if counts.design.by_episodes and len(ends) == len(counts.batches):
            return _within(ends.astype(np.float64))
    return None


def _within(ends: FloatArray) -> int:
    """How many batches end within the pilot's share of the whole."""
    if len(ends) == 0:
        return 0
    return int(np.searchsorted(ends, PILOT_SHARE * ends[-1], side="right"))


def _score(maximiser: LikelihoodMaximiser, guess: FloatArray, seen: FloatArray) -> float:
    """A lower bound on the log-likelihood of a batch at its plug-in; −∞ where that is not in the domain."""
    if not maximiser.is_inside(guess):
        return -math.inf
    return _safe_log_likelihood(maximiser.functions, maximiser.lifted(guess), seen, np.flatnonzero(seen > 0))


def _safe_log_likelihood(
    functions: AffineFunctions, x: FloatArray, seen: FloatArray, met: OffsetArray
) -> float:
    """A lower bound on Σ seen·log f at the exact point whose coordinates round to x."""
    linear, constant = functions.linear[met], functions.constant[met]
    size = np.abs(linear) @ np.abs(x) + np.abs(constant)
    value = linear @ x + constant - functions.slack[met] - error_factor(3 * len(x) + 6) * size
    if np.any(value <= 0.0):
        return -math.inf
    terms = seen[met] * np.log(value)
    spread = 6.0 * UNIT * math.fsum(np.abs(terms))
    return math.fsum(terms) - spread
