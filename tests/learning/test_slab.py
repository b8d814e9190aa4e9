"""Learning over slabs: narrower intervals that hold, what the ledger says, what is refused, plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from learning_cases import case, counts_of
from online_cases import source, truth
from tightrope.certify.learned import certificate_of
from tightrope.cli.app import run
from tightrope.data.counts import batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import _with_design, read_data
from tightrope.design.exploration import online
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.learning.online.run import OnlineRun
from tightrope.learning.options import LearnOptions
from tightrope.problem import Problem
from tightrope.statistics.bets import count_planned_episodes, scales, schedule
from tightrope_check.checker import check

NAME, DELTA = "betting(8)", 0.01


@cache
def learned(region, sets="coupled", given=True, name=NAME):
    known = case(name)
    policy = known.policy if given else None
    return learn(known.problem, counts_of(name), delta=DELTA, region=region, sets=sets, policy=policy)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sets", ["rectangular", "coupled"])
def test_the_interval_of_the_given_policy_is_narrower_and_holds(sets):
    known = case(NAME)
    plain, slab = learned("likelihood", sets), learned("slab", sets)
    assert slab.value.interval.width < 0.9 * plain.value.interval.width
    assert slab.value.interval.lower <= known.optimum <= slab.value.interval.upper
    assert slab.region.contains(known.instance.truth)


def test_the_robust_policy_is_bet_on_where_none_is_given():
    known = case(NAME)
    slab = learned("slab", given=False)
    assert slab.robust.interval.lower <= known.value_of(slab.robust.policy) <= slab.robust.interval.upper
    assert "bets are on the policy that was best by the data before them" in slab.ledger.lines


def test_the_confidence_budget_says_how_delta_is_split_and_what_is_assumed():
    ledger = learned("slab").ledger
    lines = "\n".join(ledger.lines)
    assert "value slab: δ = 0.01 for one statement (budget 'base region and bets')" in lines
    assert (
        "δ is split: 0.001 for the guard (a likelihood region), 0.0045 for each of the two betting strategies"
        in lines
    )
    assert "bets: sized for a plan of 3,000 episodes, of which 3% are the pilot" in lines
    assert "bets are on the given policy: assumes that it was not chosen by looking at these data" in lines
    assert ledger.holds


def test_the_confidence_budget_says_where_bets_are_missing(monkeypatch):
    known = case("glider(4,4)")
    monkeypatch.setattr("tightrope_check.search.value_slopes.MOST_CYCLIC", 3)
    found = learn(known.problem, counts_of("glider(4,4)"), delta=DELTA, region="slab", sets="rectangular")
    due = len(found.region.slab.plan.placed)
    assert f"no bets were placed {due} of the {due} times they were due" in "\n".join(found.ledger.lines)
    assert any(remark.startswith("bets were placed 0 times") for remark in found.region.remarks)
    assert found.ledger.holds


def test_a_policy_that_was_planned_needs_no_assumption():
    known, counts = case(NAME), counts_of(NAME)
    digest = known.policy.digest
    planned = replace(counts, design=replace(counts.design, bet_on=(digest,)))
    result = learn(
        known.problem, planned, delta=DELTA, region="slab", sets="rectangular", policy=known.policy
    )
    assert "bets are on the given policy, as was planned before the data came" in result.ledger.lines


def test_what_a_slab_has_no_use_for_is_refused():
    with pytest.raises(InputError, match="parameter sets have no use for it"):
        LearnOptions(region="slab", sets="parameter")
    known = case("aircraft(8,4)")
    late = Problem(known.model, replace(known.objective, lower_steps=5))
    with pytest.raises(InputError, match="this policy depends on the step"):
        learn(late, counts_of("aircraft(8,4)"), delta=DELTA, region="slab", sets="rectangular")


def test_plans_travel_with_the_data():
    design = counts_of(NAME).design
    assert design.planned == design.episodes == 3000
    stated = replace(design, late_plan=True, bet_on=("abc",))
    assert SamplingDesign.from_json(stated.to_json()) == stated
    assert SamplingDesign.from_json(design.to_json()) == design
    for wrong in ({"late_plan": 1}, {"bet_on": "abc"}, {"bet_on": [1]}, {"anytime": 1}):
        with pytest.raises(InputError, match="not one of ours"):
            SamplingDesign.from_json({**design.to_json(), **wrong})
    both = stated.merged(replace(stated, bet_on=("abc", "d")))
    assert (both.planned, both.late_plan, both.bet_on) == (6000, True, ("abc",))


def test_a_plan_that_contradicts_the_data_is_late():
    counts = counts_of(NAME)
    told = _with_design(counts, LogReadOptions(planned_episodes=3000)).design
    assert (told.planned, told.late_plan, told.censored) == (3000, False, ())
    other = _with_design(counts, LogReadOptions(planned_episodes=5000)).design
    assert (other.planned, other.late_plan) == (5000, True)
    assert other.censored == (
        "5,000 episodes were planned, the log has 3,000",
        "the plan of 5,000 episodes came late: the data record one of 3,000",
    )
    watched = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE, anytime=True))
    later = _with_design(watched, LogReadOptions(planned_episodes=2000))
    assert later.design.late_plan
    assert later.design.censored == ("the plan of 2,000 episodes came late: the data record one of 3,000",)
    assert not learn(
        case(NAME).problem, later, delta=DELTA, region="likelihood", sets="expression"
    ).ledger.holds


def online_learner(planned):
    return online(
        case("betting(4)").problem, delta=0.1, region="slab", sets="coupled", planned_episodes=planned
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize("planned", [None, 40])
def test_updates_over_slabs_say_what_learn_says(planned):
    """Bets are kept from one update to the next; a fresh look at the same data places them all again."""
    learner = online_learner(planned)
    records = list(OnlineRun(learner, source("betting(4)"), 40, truth("betting(4)")).records())
    assert len(records) > 5 and all(record["holds"] for record in records)
    counts = learner.data.counts()
    assert (counts.design.planned, counts.design.anytime) == (planned, True)
    line = "bets: nothing was planned, so bets of several sizes; a pilot of 10 batches"
    if planned:
        line = "bets: of several sizes, the middle one for the plan of 40 episodes; a pilot of 10 batches"
    assert line in learner.ledger.lines
    fresh = learn(learner.problem, counts, delta=0.1, region="slab", sets="coupled")
    assert learner.result().guarantee == fresh.guarantee
    assert learner.preview().guarantee == pytest.approx(fresh.guarantee, rel=1e-9)
    best = [record["best_guarantee"] for record in records]
    assert best == [max(r["guarantee"] for r in records[: k + 1]) for k in range(len(records))]
    assert learner.best_guarantee == max(r["guarantee"] for r in records if not r["final"])
    resumed = online_learner(7)  # goes on with the plan that it began with
    resumed.restore(learner.state())
    assert resumed.data.planned == planned and resumed.best_guarantee is None
    assert resumed.preview().guarantee == pytest.approx(fresh.guarantee, rel=1e-9)
    assert resumed.best_guarantee == learner.best_guarantee


def test_plans_of_data_that_are_looked_at_fix_no_pilot():
    counts = counts_of(NAME)
    watched = replace(counts, design=replace(counts.design, kind=SamplingKind.ADAPTIVE, anytime=True))
    sizes = np.array([float(count.sum()) for _, count in watched.batches])
    plan = schedule(watched, sizes)
    assert (plan.planned, plan.middle, plan.pilot) == (None, 3000.0, 10)
    assert count_planned_episodes(watched) is None
    every = scales(plan.planned, plan.middle)
    middle = next(scale for scale in every if scale.amount == 3000.0)
    assert middle.weight == 0.5 and sum(scale.weight for scale in every) <= 1.0
    assert SamplingDesign.from_json(watched.design.to_json()) == watched.design
    assert watched.design.merged(counts.design).anytime


def test_a_plan_fixes_the_pilot_of_adaptive_data_and_certificates_follow_it():
    known, counts = case(NAME), counts_of(NAME)
    adaptive = replace(counts.design, kind=SamplingKind.ADAPTIVE)
    planned = replace(counts, design=adaptive)
    unplanned = replace(counts, design=replace(adaptive, planned=None))
    late = replace(counts, design=replace(adaptive, late_plan=True))
    found = {
        words: learn(known.problem, data, delta=DELTA, region="likelihood", sets="expression")
        for words, data in (("plan", planned), ("none", unplanned), ("late", late), ("fixed", counts))
    }
    pilot = {words: result.region.evidence.pilot for words, result in found.items()}
    ends = batch_ends(3000)
    assert pilot["plan"] == pilot["fixed"] == np.searchsorted(ends, 300, side="right")
    shares = {words: result.region.evidence.shares for words, result in found.items()}
    assert shares["plan"] is None and shares["fixed"] is None
    assert shares["none"].sum() == 1 and np.array_equal(shares["none"], shares["late"])
    assert pilot["none"] == pilot["late"] == 10 * np.flatnonzero(shares["none"])[0]
    width = {words: result.robust.interval.width for words, result in found.items()}
    assert width["plan"] == width["fixed"] < 0.97 * width["none"] == 0.97 * width["late"]
    assert found["plan"].ledger.holds and "from any policy" in "".join(found["plan"].ledger.lines)
    certificate = certificate_of(found["plan"], planned)
    verdict = check(certificate)
    assert verdict.valid and not verdict.nominal
    assert "3,000 episodes were planned in advance" in verdict.assumes
    without = replace(certificate.problem.data, planned=None)
    moved = replace(certificate, problem=replace(certificate.problem, data=without))
    assert not check(moved).valid


def test_sample_records_the_policies_to_bet_on(tmp_path):
    known = case("betting(4)")
    policy, data = tmp_path / "policy.json", tmp_path / "data.parquet"
    with policy.open("w", encoding="utf-8") as stream:
        known.policy.write(stream)
    words = ["sample", "bench:betting(4)", "--episodes", "50", "--bet-on", str(policy), "-o", str(data)]
    assert run(words) == 0
    design = read_data(data, known.model).counts.design
    assert design.planned == 50
    assert design.bet_on == (known.policy.digest,)
