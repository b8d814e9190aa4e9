"""Answers for units that differ: values, coverage by simulation, policies chosen on half of the units."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.free_columns import LogColumn
from tightrope.fleet import Fleet, learn_fleet
from tightrope.fleet.tolerance import MISS, order_of_most, support_risk
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.statistics.intervals import clopper_pearson
from tightrope.verdict import Word

PARAMETERS = tr.Parameters.box(p=("0.01", "0.99"), q=("0.01", "0.99"))
P, Q = PARAMETERS.symbols()
ENDS = [(1, "", {1: 1}), (2, "", {2: 1})]
CHAIN = tr.build_from_rows([(0, "run", {1: P, 2: 1 - P}), *ENDS], PARAMETERS, labels={"success": [1]})
CHOICE = tr.build_from_rows(
    [(0, "a", {1: P, 2: 1 - P}), (0, "b", {1: Q, 2: 1 - Q}), *ENDS], PARAMETERS, labels={"success": [1]}
)


def counts_of(model: ParametricMDP, transition: Any, unit: Any, planned: bool = False) -> tr.Counts:
    """One step a run."""
    transition, unit = np.asarray(transition), np.asarray(unit)
    log = EpisodeLog.of_episodes(transition, np.arange(len(unit)), len(unit), model.structure, model.hash())
    names = tuple(f"u{number:03}" for number in range(unit.max() + 1))
    column = LogColumn(unit.astype(np.int32), names)
    log = EpisodeLog(
        log.transition, log.previous, log.episode, log.over, log.model_hash, columns={"unit": column}
    )
    kind = SamplingKind.TRAJECTORIES if planned else SamplingKind.ADAPTIVE
    return log.counts(model, SamplingDesign(kind, repeats=False, planned=len(unit) if planned else None))


def chain_log(value: Any, runs: int, seed: int, planned: bool = False) -> tr.Counts:
    rng = np.random.default_rng(seed)
    success = rng.random((len(value), runs)) < np.asarray(value)[:, None]
    return counts_of(
        CHAIN, np.where(success, 0, 1).reshape(-1), np.repeat(np.arange(len(value)), runs), planned
    )


def learn(counts: tr.Counts, direction: str = "max", **words: Any) -> Fleet:
    problem = CHAIN.problem(f'P{direction}=? [ F "success" ]')
    return learn_fleet(problem, counts, "unit", **{"delta": 0.1, **words})


def test_bounds_of_units_are_those_of_their_frequencies_and_the_answers_order_statistics() -> None:
    counts = chain_log(np.linspace(0.5, 0.99, 40), 30, 1, planned=True)
    fleet = learn(counts, share=0.9)
    log = counts.log
    assert log is not None
    successes = np.bincount(np.arange(1200) // 30, log().transition == 0).astype(np.int64)
    lower = clopper_pearson(successes, np.full(40, 30), 2 * MISS)[0]
    assert [one.interval.lower for one in fleet.units] == lower.tolist()
    assert fleet.most.bounds is not None and fleet.next_unit.bounds is not None
    assert fleet.most.bounds.lower == np.sort(lower)[0]  # 0.92^40 <= 0.1 and no further
    assert fleet.next_unit.bounds.lower == np.sort(lower)[2]  # 3 <= 0.1 * 41 * 0.8
    assert fleet.verdict.word is Word.PROVED and "for 90 % of all units" in fleet.most.text
    assert {"units", "column", "episodes", "runs"} <= {one.name for one in fleet.most.verdict.assumptions}


def test_costs_are_bounded_from_above() -> None:
    fleet = learn(chain_log(np.linspace(0.01, 0.4, 40), 30, 2), "min")
    assert fleet.most.bounds is not None
    assert fleet.most.bounds.upper == max(one.interval.upper for one in fleet.units)
    assert fleet.most.bounds.lower == -math.inf and "at most" in fleet.most.text


def test_too_few_units_are_a_limit_that_names_how_many_it_takes() -> None:
    fleet = learn(chain_log([0.9] * 5, 30, 3))
    assert fleet.most.bounds is None and fleet.most.verdict.word is Word.LIMIT
    assert "5 units give no bound for 90 % of all units: it takes 28" in fleet.most.text
    assert fleet.next_unit.verdict.word is Word.LIMIT and "probability 0.79166" in fleet.next_unit.text


@pytest.mark.parametrize("planned", [False, True])
def test_answers_miss_at_most_as_often_as_they_say(planned: bool) -> None:
    missed, under = np.zeros(2), []
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        fleet = learn(chain_log(rng.beta(6, 2, 30), 20, seed, planned), share=0.9)
        assert fleet.most.bounds and fleet.next_unit.bounds and fleet.average.bounds
        missed += (
            fleet.most.bounds.lower > 0.5472,
            not fleet.average.bounds.lower <= 0.75 <= fleet.average.bounds.upper,
        )
        under.append((np.random.default_rng(0).beta(6, 2, 20_000) < fleet.next_unit.bounds.lower).mean())
    assert missed.max() <= 6 and np.mean(under) <= 0.1


def test_one_interval_for_all_runs_misses_where_units_differ() -> None:
    counts = chain_log([0.95] * 16 + [0.55] * 4, 60, 4)
    pooled = tr.learn(CHAIN.problem('Pmax=? [ F "success" ]'), counts, delta=0.1, outcomes="only")
    fleet = learn(counts, share=0.8)
    assert pooled.guarantee > 0.8
    assert fleet.most.bounds is not None and fleet.most.bounds.lower < 0.55


def test_a_policy_is_chosen_on_one_half_of_the_units_and_bounded_on_the_other() -> None:
    rng, units, runs = np.random.default_rng(8), 60, 40
    good, bad = rng.beta(50, 5, units), rng.beta(20, 20, units)
    action = rng.integers(0, 2, (units, runs))
    success = rng.random((units, runs)) < np.where(action == 0, good[:, None], bad[:, None])
    counts = counts_of(CHOICE, (2 * action + ~success).reshape(-1), np.repeat(np.arange(units), runs))
    fleet = learn_fleet(CHOICE.problem('Pmax=? [ F "success" ]'), counts, "unit", delta=0.1, share=0.9)
    assert fleet.policy is not None and fleet.policy.action(0) == "a"
    assert len(fleet.chosen_on) == len(fleet.units) == 30
    assert not set(fleet.chosen_on) & {one.name for one in fleet.units}
    assert fleet.most.bounds is not None and 0.4 < fleet.most.bounds.lower < 0.8
    assert fleet.average.bounds is not None and 50 / 55 in fleet.average.bounds
    assert fleet.verdict.word is Word.PROVED
    with pytest.raises(tr.CannotCertify, match="made from these units"):
        seen = tr.learn(CHOICE.problem('Pmax=? [ F "success" ]'), counts, delta=0.1).policy
        learn_fleet(CHOICE.problem('Pmax=? [ F "success" ]'), counts, "unit", delta=0.1, policy=seen)


def test_input_without_units_is_refused() -> None:
    counts = chain_log([0.9] * 5, 30, 3)
    with pytest.raises(tr.InputError, match="the column 'pump' is not in the log"):
        learn_fleet(CHAIN.problem('P=? [ F "success" ]'), counts, "pump")
    with pytest.raises(tr.InputError, match=r"`share` is 1\.0"):
        learn(counts, share=1.0)


def choice_log(units: int, runs: int) -> tr.Counts:
    rng = np.random.default_rng(8)
    good, bad = rng.beta(50, 5, units), rng.beta(20, 20, units)
    action = rng.integers(0, 2, (units, runs))
    success = rng.random((units, runs)) < np.where(action == 0, good[:, None], bad[:, None])
    return counts_of(CHOICE, (2 * action + ~success).reshape(-1), np.repeat(np.arange(units), runs))


def test_the_bound_by_all_units_says_whether_it_is_narrower_and_why() -> None:
    problem = CHOICE.problem('Pmax=? [ F "success" ]')
    fleet = learn_fleet(problem, choice_log(40, 40), "unit", delta=0.1, share=0.6)
    assert fleet.scenario is not None and fleet.scenario.bounds is not None
    shown = re.search(r" for ([0-9.]+) % of all units, confidence 0.9; ([0-9]) of 40", fleet.scenario.text)
    assert shown is not None
    kept = 1.0 - support_risk(40, int(shown[2]), 0.1) / (1.0 - MISS)
    assert float(shown[1]) == pytest.approx(100.0 * kept, rel=1e-4) and kept > 0.6
    assert fleet.scenario.text.startswith("wider (a hull bounds the worst unit): at least ")
    assert fleet.most.bounds is not None and fleet.scenario.bounds.lower < fleet.most.bounds.lower
    assert ("scenario", f"PROVED: {fleet.scenario.text}") in fleet.rows()
    few = learn_fleet(problem, choice_log(40, 40), "unit", delta=0.1, share=0.9)
    assert few.scenario is not None and "wider (it holds for too few units)" in few.scenario.text
    assert learn(chain_log([0.9] * 30, 10, 1)).scenario is None


def test_where_half_of_the_units_are_too_few_all_of_them_are_too_few_for_a_hull() -> None:
    for delta in (0.05, 0.1, 0.5):
        for units in range(4, 100, 5):
            shares = [
                share for share in (0.5, 0.8, 0.9) if order_of_most(units - units // 2, share, delta) == 0
            ]
            assert all(1.0 - support_risk(units, 1, delta) / (1.0 - MISS) < share for share in shares)


def test_runs_without_a_unit_are_not_left_out_in_silence() -> None:
    counts = chain_log([0.9] * 30, 10, 1)
    assert counts.log is not None
    log = counts.log()
    unit = np.where(log.transition == 0, log.columns["unit"].code, -1).astype(np.int32)  # failures have none
    column = LogColumn(unit, log.columns["unit"].labels)
    log = EpisodeLog(
        log.transition, log.previous, log.episode, log.over, log.model_hash, columns={"unit": column}
    )
    fleet = learn(log.counts(CHAIN, counts.design))
    assert fleet.verdict.word is Word.NOMINAL and "episodes have no 'unit'" in fleet.verdict.why
    with pytest.raises(tr.CannotCertify, match="no certificate is written: units of episodes"):
        fleet.certificate()


def nested_log(sites: int, machines: int, runs: int, seed: int) -> tr.Counts:
    """Sites with a success probability of their own, around which those of their machines lie."""
    rng = np.random.default_rng([41, seed])
    site = np.where(rng.random(sites) < 0.75, 0.95, 0.4)
    value = np.clip(site[:, None] + rng.uniform(-0.03, 0.03, (sites, machines)), 0.0, 1.0)
    good = rng.random((sites, machines, runs)) < value[:, :, None]
    transition = np.where(good, 0, 1).reshape(-1)
    episode = np.arange(len(transition))
    log = EpisodeLog.of_episodes(transition, episode, len(episode), CHAIN.structure, CHAIN.hash())
    codes = {"site": episode // (machines * runs), "machine": episode // runs % machines}
    columns = {
        name: LogColumn(code.astype(np.int32), tuple(f"{name} {one}" for one in range(code.max() + 1)))
        for name, code in codes.items()
    }
    columns["both"] = LogColumn((episode // runs).astype(np.int32), tuple(map(str, range(sites * machines))))
    made = (log.transition, log.previous, log.episode, log.over, log.model_hash)
    return EpisodeLog(*made, columns=columns).counts(
        CHAIN, SamplingDesign(SamplingKind.ADAPTIVE, repeats=False)
    )


def test_nested_units_are_represented_by_one_of_each() -> None:
    """Of all machines 0.75 have 0.92 at least; those of 9 sites are no 360 draws."""
    problem, missed = CHAIN.problem('P=? [ F "success" ]'), {"site/machine": 0, "both": 0}
    for seed in range(5):  # of 24 seeds 1 misses, and 6 where all machines count as draws
        for unit in missed:
            fleet = learn_fleet(problem, nested_log(9, 40, 40, seed), unit, delta=0.1, share=0.7)
            bounds = fleet.most.bounds
            missed[unit] += bounds is not None and bounds.lower > 0.44
    assert missed == {"site/machine": 0, "both": 3}
    fleet = learn_fleet(problem, nested_log(30, 5, 40, 1), "site/machine", delta=0.1)
    assert len(fleet.units) == 30 and all(one.episodes == 40 for one in fleet.units)
    assert len({one.name.partition("/")[0] for one in fleet.units}) == 30
    assert fleet.verdict.word is Word.PROVED
    assert any("1,200 episodes" in str(text) for _, text in fleet.rows())
