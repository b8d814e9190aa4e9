"""What the rows of units that differ say against a model that holds within each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import CountTable
from tightrope.io.results import power_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.copies import weigh_repeated
from tightrope.monitoring.examination import ALPHA, SHARES, weigh_fit
from tightrope.monitoring.features import codes, list_features
from tightrope.monitoring.urns import weigh_counts
from tightrope.numerics.arrays import OffsetArray
from tightrope.statistics.outcomes import Outcomes

WITHIN = ("tie", "memory", "column")
"""Kinds of features on which outcomes may depend within units."""


def refuted_within(
    model: ParametricMDP, parts: Sequence[EpisodeLog], counts: Counts, by_returns: bool
) -> str | None:
    """What the rows of units say against independent runs, where these alone bound their values, or else
    against the model: half of α is for all units together, the rest for each alone."""
    whole, each = sum(parts[1:], start=parts[0]), np.arange(len(parts))
    if by_returns:
        copies = weigh_repeated(whole, np.repeat(each, [part.episodes for part in parts]))
        return copies.text if copies.log_e >= math.log(1.0 / ALPHA) else None
    log_e, feature = weigh_within(model, whole, np.repeat(each, [len(part) for part in parts]))
    if log_e >= math.log(2 / ALPHA):
        return f"within units, outcomes depend on {feature}: e-value {power_text(log_e)}"
    for part in parts:
        fit = weigh_fit(model, part.counts(model, counts.design))
        if fit.log_e_value >= math.log(2 * len(parts) / fit.alpha):
            return f"the rows of one unit contradict the model: {fit.text}"
    return None


def weigh_within(model: ParametricMDP, log: EpisodeLog, unit: OffsetArray) -> tuple[float, str]:
    """The logarithm of an e-value for rows that depend, within units, on more than the model says, and the
    feature with most evidence; `unit` numbers the unit of each row.

    A choice of one unit is a context of its own, so units may have any parameters; for ties, choices that
    share a distribution are one context. Each context has an e-value by its counts alone (`weigh_counts`), so
    products of (1 + E)/2 over contexts, and mixtures of these over features, are e-values.
    """
    structure, outcomes = model.structure, Outcomes.of(model)
    width = np.diff(structure.transition_start)
    signature = np.repeat(np.arange(len(outcomes.width)), outcomes.width)
    best, terms = (-math.inf, ""), [-math.inf]
    for feature in list_features(model, log):
        if feature.kind not in WITHIN or not feature.is_stated:
            continue
        tied = feature.kind == "tie"
        of_row = outcomes.of_transition[log.transition] if tied else log.transition
        context, sizes = (signature, outcomes.width) if tied else (structure.transition_choice, width)
        place = unit * len(context) + of_row
        used, place = np.unique(place, return_inverse=True)
        owner = used // len(context) * len(sizes) + context[used % len(context)]
        names, owner = np.unique(owner, return_inverse=True)
        table = CountTable.of(codes(feature.name, model, log), place)
        _, gain = weigh_counts(table, owner.astype(np.int32), sizes[names % len(sizes)])
        share = math.log(SHARES[feature.kind] * feature.weight)
        terms.append(float(np.logaddexp(0.0, gain).sum()) - len(gain) * math.log(2.0) + share)
        best = max(best, (terms[-1], feature.words))
    return float(np.logaddexp.reduce(terms)), best[1]
