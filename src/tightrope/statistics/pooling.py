"""Intervals of one probability per group, whose predictors learn from the other groups: partial pooling.

Any predictions from earlier rows, those of other groups included, give a likelihood ratio whose level set
holds time-uniformly (Ville); no similarity is assumed. Half of the predictor is the group alone, half (k +
κ·m)/(n + κ) with the share m in other groups, κ mixed by success. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from tightrope.data.design import SamplingDesign
from tightrope.data.episode_log import EpisodeLog
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, ranges
from tightrope.statistics.confidence_budget import ConfidenceBudget, assumed_of
from tightrope.statistics.estimates import EventIntervals, Events, IntervalMethod, share
from tightrope.statistics.intervals import interval_of_evidence, log_beta_binomial

STRENGTHS = (2.0, 8.0, 32.0, 128.0, 512.0, math.inf)


def trials_of(events: Events, log: EpisodeLog) -> tuple[OffsetArray, OffsetArray, BoolArray]:
    """All trials of a log in its order: the row of each, its event, and whether it succeeded."""
    outcomes = events.outcomes
    counted = np.flatnonzero(events.counted)
    start = np.searchsorted(outcomes.signature[counted], np.arange(len(outcomes.start)))
    came = outcomes.of_transition[log.transition]
    signature = outcomes.signature[came]
    place, row = ranges(start, signature)
    outcome = counted[place]
    event = events.of_outcome[outcome].astype(np.int64)
    return row, event, (outcome == came[row]) != events.flipped[outcome]


def pooled_events(
    events: Events,
    log: EpisodeLog,
    of_row: OffsetArray,
    groups: int,
    delta: float,
    statements: int,
    predictors: str,
    design: SamplingDesign,
) -> list[EventIntervals]:
    """The intervals of all events in each group of rows; so many statements share δ."""
    row, event, success = trials_of(events, log)
    gamma, method = share(delta, max(statements, 1)), IntervalMethod.BETA_BINOMIAL
    arrays = pooled_intervals(event, of_row[row], success, (len(events), groups), gamma)
    assumed = assumed_of(method.assumption, design, tied=True, ordered=True)
    name, budget = f"beta-binomial, predicted from {predictors}", events.budget.value
    ledger = ConfidenceBudget(delta, statements, gamma, name, budget, method.assumption, assumed)
    seen, trials, low, high = arrays
    return [
        EventIntervals(events, seen[:, group], trials[:, group], low[:, group], high[:, group], ledger)
        for group in range(groups)
    ]


def pooled_intervals(
    event: OffsetArray, group: OffsetArray, success: BoolArray, sizes: tuple[int, int], gamma: float
) -> tuple[OffsetArray, OffsetArray, FloatArray, FloatArray]:
    """Successes, trials and bounds [event, group] at level 1 − gamma; group −1 only trains predictions."""
    shape = sizes
    trials, successes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    log_q = np.zeros(shape)
    for one in range(shape[0]):
        mine = np.flatnonzero(event == one)
        of, came = group[mine], success[mine]
        if not len(of):
            continue
        known = of >= 0
        np.add.at(trials[one], of[known], 1)
        np.add.at(successes[one], of[known], came[known])
        np.add.at(log_q[one], of[known], _predicted(of, came)[known])
    k, n = successes.reshape(-1), trials.reshape(-1)
    both = np.logaddexp(log_beta_binomial(k, n), log_q.reshape(-1)) - math.log(2.0)
    lower, upper = interval_of_evidence(k, n, both, gamma)
    return successes, trials, lower.reshape(shape), upper.reshape(shape)


def _predicted(group: OffsetArray, success: BoolArray) -> FloatArray:
    """The logarithm of what was predicted of each trial of one event, from those before it."""
    size = len(group)
    order = np.argsort(group, kind="stable")
    began = np.r_[True, np.diff(group[order]) != 0]
    first = np.maximum.accumulate(np.where(began, np.arange(size), 0))
    before: OffsetArray = np.cumsum(success[order]) - success[order]
    n, k = np.empty(size), np.empty(size)
    n[order], k[order] = np.arange(size) - first, before - before[first]
    others = np.arange(size) - n
    share = (np.cumsum(success) - success - k + 0.5) / (others + 1.0)
    chances = [share if math.isinf(c) else (k + c * share) / (n + c) for c in STRENGTHS]
    chance = np.stack([(k + 0.5) / (n + 1.0), *chances])
    log_q = np.where(success, np.log(chance), np.log1p(-chance))
    weight = np.cumsum(log_q, axis=1) - log_q
    weight -= weight.max(axis=0)
    result: FloatArray = logsumexp(weight + log_q, axis=0) - logsumexp(weight, axis=0)
    return result
