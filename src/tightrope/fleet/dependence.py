"""Dependence within units: an e-value for rows that depend on more than the model says, whatever units are.

A choice of one unit is a context of its own, so units may have any parameters. Each context has an e-value by
its counts alone (`monitoring.urns.weigh_counts`), so products of (1 + E)/2 over contexts, and mixtures of
these over features, are e-values. For ties the choices that share a distribution are
one context of a unit, and the choice is the feature.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import CountTable
from tightrope.io.results import power_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.examination import SHARES, WORDS
from tightrope.monitoring.features import codes, is_stated, list_features, part_of
from tightrope.monitoring.model_fit import ALPHA
from tightrope.monitoring.urns import weigh_counts
from tightrope.numerics.arrays import OffsetArray
from tightrope.statistics.outcomes import Outcomes

KINDS = ("tie", "memory", "column")


def refuted_within(model: ParametricMDP, log: EpisodeLog, unit: OffsetArray) -> str | None:
    """Words about an e-value at half of α; the other half is for each unit alone."""
    log_e, feature = weigh_within(model, log, unit)
    if log_e < math.log(2 / ALPHA):
        return None
    return f"within units, outcomes depend on {feature}: e-value {power_text(log_e)}"


def weigh_within(model: ParametricMDP, log: EpisodeLog, unit: OffsetArray) -> tuple[float, str]:
    """The logarithm of the e-value, and the feature with most evidence; `unit` numbers the unit of each
    row."""
    structure, outcomes = model.structure, Outcomes.of(model)
    width = np.diff(structure.transition_start)
    signature = np.repeat(np.arange(len(outcomes.width)), outcomes.width)
    best, terms = (-math.inf, ""), [-math.inf]
    for feature in list_features(model, log):
        if feature.kind not in KINDS or not is_stated(feature.name, log):
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
        share = math.log(SHARES[feature.kind] * feature.weight * part_of(feature.name, log))
        terms.append(float(np.logaddexp(0.0, gain).sum()) - len(gain) * math.log(2.0) + share)
        best = max(best, (terms[-1], WORDS.get(feature.name, feature.name)))
    return float(np.logaddexp.reduce(terms)), best[1]
