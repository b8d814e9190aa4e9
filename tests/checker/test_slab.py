"""Certificates of slabs: bets derived again, rows that contain what they must, what is refused by what."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from sys import modules

import numpy as np
import pytest

import tightrope as tr
from adversary.proved import NOT_COVERED, proved_code
from effort import EXPLORING
from learning_cases import case
from places import TESTS
from tightrope.certify.certificate_file import as_file
from tightrope.certify.comparison import Own, compare
from tightrope.certify.learned import certificate_of, data_of, to_data
from tightrope.cli.app import run
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.statistics.bets import Ends, Levels, scales, schedule
from tightrope.statistics.outcomes import Outcomes
from tightrope_check.archive import load
from tightrope_check.budget import WorkBudget
from tightrope_check.checker import check
from tightrope_check.fields import validate
from tightrope_check.learned import Learned, RowOrigin
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.search.betting import FROZEN_FROM, GRID, POINTS, BetTable
from tightrope_check.statistics import slab
from tightrope_check.statistics.likelihood import Forms
from tightrope_check.statistics.slab import BetSchedule, PlacedBets, levels, weight_of

pytestmark = pytest.mark.usefixtures("built_once")

PLAIN, PRODUCTS = "betting(3)", "glider(3,3)"
KINDS = {
    "given": (PLAIN, "expression"),
    "found": (PRODUCTS, "rectangular"),
    "open": (PRODUCTS, "expression"),
    "coupled": (PLAIN, "coupled"),
}
FAIR = "every bet follows from the batches before it, and is no better than fair"


@cache
def counts_of(kind, seed=4):
    counts = case(KINDS[kind][0]).counts(600 if kind == "found" else 200, seed)
    if kind == "open":
        return replace(counts, design=SamplingDesign(SamplingKind.ADAPTIVE, None, counts.steps))
    return counts


@cache
def certified(kind):
    name, sets = KINDS[kind]
    known = case(name)
    policy = known.policy if kind == "given" else None
    result = learn(known.problem, counts_of(kind), delta=0.05, region="slab", sets=sets, policy=policy)
    return result, certificate_of(result, counts_of(kind))


@cache
def linked(kind, n=FLOAT64):
    return Learned(certified(kind)[1], n)


def failed(certificate, n=FLOAT64):
    return [(one.name, one.detail) for one in check(certificate, n).checks if not one.passed]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_is_proved_in_both_arithmetics(kind):
    result, certificate = certified(kind)
    for n in (FLOAT64, RATIONAL) if kind != "coupled" else (FLOAT64,):
        verdict = check(certificate, n)
        assert verdict.valid, failed(certificate, n)
    value = result.value or result.robust
    name = "given policy" if kind == "given" else "robust policy"
    lower, upper = verdict.values[name]
    width = upper - lower
    assert (lower, upper) == pytest.approx((value.interval.lower, value.interval.upper), abs=1e-5 * width)
    assert not verdict.nominal
    given = "the given policy was chosen without these data"
    assert (given in verdict.assumes) == (kind == "given")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_checker_places_the_bets_of_the_learner(kind):
    """Found by two programs from the same rule: groups of outcomes may come in another order."""
    result, _ = certified(kind)
    bets, slab = linked(kind).statements.sources[RowOrigin.SLAB].bets, result.region.slab
    assert (bets.sides, bets.schedule.placed) == (slab.sides, slab.plan.placed)
    assert (bets.schedule.so_far, bets.schedule.planned) == (slab.plan.so_far, slab.plan.planned)
    assert np.any(bets.stake != 0)
    for place, side in enumerate(slab.sides):
        for scale, wagers in enumerate(slab.wagers[side]):
            for number, (mine, seen) in enumerate(zip(wagers.bets, wagers.seen, strict=True)):
                own = sorted(zip(mine.stake.tolist(), seen.tolist(), strict=True))
                derived = bets.stake[place, scale, number].tolist(), bets.seen[number].tolist()
                assert own == sorted(zip(*derived, strict=True))


STORED = TESTS / "stored" / "slab-before.cert"


def test_files_from_before_are_read_as_they_were():
    """Bets by all of the smoothing, on one policy: what such a file proved it proves. A value
    slab has other bets, of more betting strategies where policies are tied."""
    certificate = load(STORED).certificate
    assert certificate.problem.data.method == "slab"
    verdict = check(certificate)
    assert verdict.valid and verdict.values["robust policy"] == pytest.approx((4.00764867, 4.05652737))
    assert proved_code(STORED) == NOT_COVERED
    link = Learned(certificate, FLOAT64)
    before, now = (
        PlacedBets(Forms(link), replace(link.data, method=word), None, Fraction(1, 20))
        for word in ("slab", "value slab")
    )
    assert before.weight == [1] and before.stake.shape == now.stake.shape
    assert not np.array_equal(before.stake, now.stake)


CYCLE = [
    (0, "a", {1: "p", 0: "1-p"}),
    (0, "b", {1: "q/2", 2: "q/4", 0: "1-3*q/4"}),
    (1, "a", {2: "p/2", 3: "q/3", 0: "1-p/2-q/3"}),
    (1, "b", {3: "q", 0: "1-q"}),
    (2, "", {2: 1}),
    (3, "", {3: 1}),
]
ASKED = {
    "cycle": ('Pmax=? [ F "end" ]', {}),
    "given": ('Pmax=? [ F "end" ]', {"policy": [1.0, 0.0, 0.5, 0.5, 1.0, 1.0]}),
    "least": ('Pmin=? [ G !"end" ]', {}),
    "cost": ('Rmin=? [ F "end" | "lost" ]', {}),
    "discounted": ("Rmax=? [ Cdiscount=0.9 ]", {}),
    "steps": ('Pmax=? [ F<=6 "end" ]', {"sets": "expression"}),
    "window": ('Pmax=? [ F[2,7] "end" ]', {"sets": "expression", "policy": [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]}),
    "summed": ("Rmin=? [ C<=5 ]", {"sets": "expression"}),
    "joint": ('Pmax=? [ F "end" ]', {"region": "joint"}),
}


TIED = {"cost": "0.63", "summed": "0.63", "discounted": "0.67"}
"""Where two policies are about equally good: two betting strategies."""

TRIED = tuple(ASKED) if EXPLORING else ("given", "least", "cost", "window", "summed", "joint")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("asked", TRIED)
def test_the_proved_checker_places_the_same_bets(asked, tmp_path):
    """Two programs without a line in common, from one rule: with other stakes the rows of the slab would not
    follow."""
    parameters = tr.Parameters.box(p=("0.05", "0.7"), q=("0.05", "0.9"))
    question, words = ASKED[asked]
    labels, rewards = {"end": [2], "lost": [3]}, {"": [1, "1/2", 0, 0]}
    model = tr.build_from_rows(CYCLE, parameters, labels=labels, state_rewards=rewards)
    truth = model.instantiate(p=TIED.get(asked, "0.3"), q="0.6")
    episodes = 60 if asked in ("given", "window") else 300
    counts = Simulator(truth, None, None, 12, model.hash(), threads=1).episodes(episodes, 3)
    options = {"region": "slab", "sets": "rectangular", "outcomes": "none", **words}
    result = tr.learn(model.problem(question), counts, delta=0.05, **options)
    certificate = certificate_of(result, counts)
    path = tmp_path / "slab.cert"
    as_file(certificate).save(path)
    mine = Learned(certificate, FLOAT64).statements.sources[RowOrigin.SLAB].bets
    assert len(mine.weight) == result.region.slab.strategies == 1 + (asked in TIED)
    assert np.any(mine.stake != 0) and check(certificate).valid
    assert proved_code(path) in (0, NOT_COVERED)


@pytest.mark.parametrize(("kind", "each"), [("given", 12), ("found", 40)])
def test_bets_count_as_what_they_take(kind, each, monkeypatch):
    """So much for every transition each time they are placed, more where there are cycles: with this rule an
    honest slab of rover(125,125), 9.6 million transitions, counts as half of what its file is allowed."""
    link, known = linked(kind), case(KINDS[kind][0])
    given = known.policy.probability if kind == "given" else None

    def counted():
        budget = WorkBudget()
        with budget.counting():
            return PlacedBets(Forms(link), link.data, given, Fraction(link.data.delta)), budget.steps

    counted()  # what is derived once
    bets, steps = counted()
    monkeypatch.setattr(slab, "_work", lambda question: 0)
    without = counted()[1]
    shares = [bets.schedule.share(number) for number in range(len(bets.schedule.placed))]
    looks = 0 if kind == "given" else 1 + sum(share < FROZEN_FROM for share in shares)  # at 32 points each
    expected = (len(shares) + POINTS * looks) * each * known.model.transitions
    assert steps - without == pytest.approx(expected, rel=1e-9)


def test_plan_scales_and_levels_are_the_learners():
    counts = counts_of("given")
    batches = Outcomes.of(case(PLAIN).model).pooled_batches(counts)
    sizes = [int(seen.sum()) for seen in batches]
    for planned, design, anytime in (
        (None, "trajectories", False),
        (500, "adaptive", False),
        (9000, "adaptive", False),
        (None, "adaptive", False),
        (500, "adaptive", True),
        (None, "adaptive", True),
    ):
        plan = replace(counts.design, kind=SamplingKind(design), planned=planned, anytime=anytime)
        changed = replace(counts, design=plan)
        own = schedule(changed, np.array(sizes, dtype=np.float64))
        theirs = BetSchedule.of(to_data(changed, 0.05, "value slab", "events"), sizes)
        assert (theirs.placed, theirs.so_far, theirs.planned) == (own.placed, own.so_far, own.planned)
        weights = [(scale.amount, scale.weight) for scale in scales(own.planned, own.middle)]
        assert [(amount, float(weight)) for amount, weight in theirs.scales] == weights
    assert sum(map(weight_of, range(-500, 501))) <= 1
    for delta in (0.001, 0.05, 0.3):
        for both, ends in ((True, Ends.BOTH), (False, Ends.LOWER)):
            for free in (1, 3, 7, 40):
                guard, side = levels(Fraction(delta), both, free)
                assert guard + (2 if both else 1) * side == Fraction(delta)
                own_levels = Levels.of(delta, ends, free)
                assert (float(guard), float(side)) == pytest.approx((own_levels.guard, own_levels.lower))


def test_files_of_before_with_another_split_for_few_data_are_read(monkeypatch):
    """Two free parameters: 200 episodes are few, 600 are not; one end, or no plan, has no such split."""
    usual, method = Levels.of, "value slab of few data"
    others = [certified(kind)[1] for kind in ("found", "open")]  # by the rules of today
    monkeypatch.setattr(Levels, "of", staticmethod(lambda d, ends, free, guard: usual(d, ends, free, 0.3)))
    monkeypatch.setattr(
        modules[data_of.__module__], "data_of", lambda *of: replace(data_of(*of), method=method)
    )
    known, counts = case(PLAIN), counts_of("given")
    result = learn(known.problem, counts, delta=0.05, region="slab", sets="expression", policy=known.policy)
    former = certificate_of(result, counts)
    assert former.problem.data.method == method and check(former).valid
    bets = Learned(former, FLOAT64).statements.sources[RowOrigin.SLAB].bets
    delta = Fraction(former.problem.data.delta)
    assert (bets.guard, bets.side) == (delta * 3 / 10, delta * 7 / 20)
    for honest in others:
        assert honest.problem.data.method == "value slab"
        data = replace(honest.problem.data, method=method)
        ((name, why),) = failed(replace(honest, problem=replace(honest.problem, data=data)))
        assert (name, "few data" in why) == ("hints", True)


def test_bets_follow_from_earlier_batches_alone():
    """Other outcomes from some batch on change no bet that was placed by then."""
    link, other = linked("found"), certificate_of_other_seed()
    data, later = link.data, other.problem.data
    bets = link.statements.sources[RowOrigin.SLAB].bets
    third = bets.schedule.placed[2]
    cut, theirs = int(data.batch_start[third]), int(later.batch_start[third])
    mixed = replace(
        data,
        batch_transition=np.concatenate([data.batch_transition[:cut], later.batch_transition[theirs:]]),
        batch_count=np.concatenate([data.batch_count[:cut], later.batch_count[theirs:]]),
        batch_start=np.concatenate([data.batch_start[:third], later.batch_start[third:] - theirs + cut]),
    )
    changed = PlacedBets(Forms(link), mixed, None, Fraction(mixed.delta))
    assert changed.schedule == bets.schedule
    assert np.array_equal(changed.stake[:, :, :3], bets.stake[:, :, :3])
    assert not np.array_equal(changed.stake[:, :, 3], bets.stake[:, :, 3])


@cache
def certificate_of_other_seed():
    known = case(PRODUCTS)
    counts = counts_of("found", seed=9)
    return certificate_of(learn(known.problem, counts, delta=0.05, region="slab", sets="expression"), counts)


@pytest.mark.parametrize("gain", [GRID, 0.01, math.nan, GRID / 3])
def test_bets_that_are_better_than_fair_are_refused_from_any_source(gain, monkeypatch):
    """The search is trusted for one thing, that it sees earlier batches only: not for being fair."""
    honest, certificate = BetTable.place, certified("given")[1]  # which others are given, too

    def better(self, t, wanted, information, level):
        stake = honest(self, t, wanted, information, level)
        stake[np.flatnonzero(stake)[0]] += gain
        return stake

    monkeypatch.setattr(BetTable, "place", better)
    assert failed(certificate) == [(FAIR, "stakes of a group of outcomes win on average")]


@pytest.mark.parametrize("kind", ["given", "open"])
def test_rows_leave_out_nothing_that_the_betting_strategies_leave(kind):
    """Points whose wealth is below the price, and whose likelihood is not below the guard's, satisfy every
    row, in either arithmetic."""
    link = linked(kind)
    slab, outcomes, guard = link.sources[RowOrigin.SLAB], link.outcomes, link.sources[RowOrigin.CUT]
    hinted = link.certificate.learned.slab
    assert any(np.any(stage.guard > 0) for stage in hinted)
    forms = [link.space.affine(polynomial) for polynomial in link.polynomials]
    assert len(slab.rows) >= 2
    exact = linked(kind, RATIONAL).sources[RowOrigin.SLAB]
    low, high = (np.array(end, dtype=np.float64) for end in link.projection.box)
    free = len(link.space.free)
    draw, kept = np.random.default_rng(5), 0
    for t in draw.uniform(low[:free], high[:free], size=(60, free)):
        x = [Fraction(float(value)) for value in t]
        for left, right in link.space.products:
            x.append(x[left] * x[right])
        f = np.array([float(sum(a * v for a, v in zip(row, x, strict=True)) + c) for row, c in forms])
        likely = float(guard.weight @ np.log(f[guard.used])) >= float(guard.threshold) + 1e-6
        f = f[outcomes.expression]
        for place in range(len(slab.bets.sides)):
            stake, seen = slab.bets.stake[place], slab.bets.seen
            stands = (stake >= 0) | (f >= -2 * stake)
            part = np.logical_and.reduceat(stands, outcomes.start[:-1], axis=-1)
            taken = np.repeat(part, np.diff(outcomes.start), axis=-1) & (seen > 0)
            wealth = np.where(taken, seen * np.log1p(np.where(taken, stake / f, 0.0)), 0.0).sum(axis=(1, 2))
            weights = [float(weight) for _, weight in slab.bets.schedule.scales]
            inside = float(np.logaddexp.reduce(np.log(weights) + wealth)) < -math.log(slab.bets.side) - 1e-9
            lower, upper = link.projection.lower, link.projection.upper
            if (
                likely
                and inside
                and np.all((lower[outcomes.expression] <= f) & (f <= upper[outcomes.expression]))
            ):
                kept += 1
                for rows in (slab.rows, exact.rows):
                    for stage, hints in zip(rows, hinted, strict=True):
                        for number in np.flatnonzero(hints.side == place).tolist():
                            row, bound = stage[number]
                            assert sum(a * v for a, v in zip(row, x, strict=True)) <= bound
    assert kept > 5


def test_rows_of_both_arithmetics_agree():
    for kind in ("given", "open"):
        rough, exact = (linked(kind, n).sources[RowOrigin.SLAB].rows for n in (FLOAT64, RATIONAL))
        for one, other in zip(rough, exact, strict=True):
            for (row, bound), (_, exact_bound) in zip(one, other, strict=True):
                size = float(max(map(abs, row)))
                assert abs(float(bound - exact_bound)) <= 1e-9 * size


def test_what_does_not_fit_the_bets_is_refused_by_name():
    certificate = certified("open")[1]
    (stage, *rest) = certificate.learned.slab

    def forged(first, *others):
        return replace(certificate, learned=replace(certificate.learned, slab=(first, *others)))

    def refused(changed):
        ((name, detail),) = failed(changed)
        assert name == "hints"
        return detail

    fewer = replace(stage, share=stage.share[:, 1:])
    assert "the points or shares of a slab do not fit its bets" in refused(forged(fewer, *rest))
    fewer = forged(replace(stage, guard=stage.guard[1:]), *rest)
    with pytest.raises(InputError, match="does not fit the others"):
        validate(fewer)
    other = replace(stage, side=stage.side + 1)
    assert "the points or shares of a slab do not fit its bets" in refused(forged(other, *rest))
    many = [np.concatenate([part] * 65) for part in (stage.point, stage.share, stage.side, stage.guard)]
    many = replace(stage, **dict(zip(("point", "share", "side", "guard"), many, strict=True)))
    assert "the points or shares of a slab do not fit its bets" in refused(forged(many, *rest))
    for wrong in (-1.0, math.nan, math.inf, 2.0**21):
        forged_rows = replace(stage, guard=np.full_like(stage.guard, wrong))
        with pytest.raises(InputError, match="out of range"):
            validate(forged(forged_rows, *rest))
    none = replace(stage, share=stage.share * 0)
    assert "a row of a slab without shares" in refused(forged(none, *rest))
    circle = replace(stage.region, row=np.tile([[int(RowOrigin.SLAB), 0, 0]], (len(stage.region.row), 1)))
    assert "no such row of a slab" in refused(forged(replace(stage, region=circle), *rest))
    assert "no such row of a slab" in refused(
        replace(certificate, learned=replace(certificate.learned, slab=()))
    )
    plain = replace(certificate.problem, data=replace(certificate.problem.data, method="likelihood"))
    assert "the region does not fit the statement" in refused(replace(certificate, problem=plain))


def test_other_shares_and_points_give_worse_rows_and_no_wrong_ones():
    certificate = certified("open")[1]
    stages = [
        replace(
            stage,
            share=np.ones_like(stage.share),
            point=stage.point + 0.05,
            guard=np.where(stage.guard > 0, 5e-324, 2.0**20),
        )
        for stage in certificate.learned.slab
    ]
    worse = replace(certificate, learned=replace(certificate.learned, slab=tuple(stages)))
    honest, changed = (Learned(one, FLOAT64).projection for one in (certificate, worse))
    assert np.all(changed.lower <= honest.lower) and np.all(changed.upper >= honest.upper)
    assert failed(worse)


def test_stages_of_before_have_a_row_for_every_side():
    """Files without sides and evidence mean rows of the log-wealth alone, one a side, in their order."""
    certificate = certified("open")[1]
    plain = []
    for stage in certificate.learned.slab:
        first = [int(np.flatnonzero(stage.side == side)[0]) for side in range(int(stage.side.max()) + 1)]
        plain.append(
            replace(stage, point=stage.point[first], share=stage.share[first], side=None, guard=None)
        )
    older = replace(certificate, learned=replace(certificate.learned, slab=tuple(plain[:1]), region=None))
    validate(older)
    rows = Learned(older, FLOAT64).sources[RowOrigin.SLAB].rows
    sides = len(linked("open").sources[RowOrigin.SLAB].bets.sides)
    assert [len(stage) for stage in rows] == [sides]
    stated = replace(plain[0], side=np.arange(sides), guard=np.zeros(sides))
    again = replace(older, learned=replace(older.learned, slab=(stated,)))
    assert Learned(again, FLOAT64).sources[RowOrigin.SLAB].rows == rows


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda data: replace(data, delta=0.01), "the lower bound is inductive"),
        (lambda data: replace(data, planned=40_000, design="adaptive"), "the lower bound is inductive"),
        (
            lambda data: replace(data, planned=40_000, design="adaptive", method="slab"),
            "the lower bound is inductive",
        ),
        (lambda data: replace(data, batch_count=data.batch_count[::-1].copy()), "inductive"),
    ],
    ids=["budget", "many planned", "plan", "order"],
)
def test_other_budgets_plans_and_orders_prove_something_else(change, refused):
    """Without the user's data: the file is then about other data, and its vectors do not fit them."""
    certificate = certified("given")[1]
    changed = replace(
        certificate, problem=replace(certificate.problem, data=change(certificate.problem.data))
    )
    assert any(refused in name for name, _ in failed(changed))


def test_data_in_another_order_are_other_data():
    known, certificate = case(PLAIN), certified("given")[1]
    own = Own(known.model, known.objective, counts=counts_of("given"), policy=known.policy)
    assert compare(certificate, own) == (
        {"model": True, "property": True, "data": True, "policy": True},
        None,
    )
    data = certificate.problem.data
    start = data.batch_start
    order = [*range(20), 21, 20, *range(22, data.batches)]
    spans = [np.arange(start[i], start[i + 1]) for i in order]
    moved, sizes = np.concatenate(spans), [len(span) for span in spans]
    swapped = replace(
        data,
        batch_transition=data.batch_transition[moved],
        batch_count=data.batch_count[moved],
        batch_start=np.concatenate([[0], np.cumsum(sizes)]),
    )
    changed = replace(certificate, problem=replace(certificate.problem, data=swapped))
    _, trouble = compare(changed, own)
    assert trouble is not None and "other data: 'batch_" in trouble
    _, trouble = compare(
        replace(changed, problem=replace(changed.problem, data=replace(data, planned=7))), own
    )
    assert trouble == "this certificate is about other data: 'planned' differs"


def test_bets_on_another_policy_than_the_data_were_collected_for_are_refused():
    known, counts = case(PLAIN), counts_of("given")
    other = tr.Policy(known.model, np.diff(known.model.structure.choice_start) - 1)
    assert other.digest != known.policy.digest

    def trouble(kind, **design):
        planned = replace(counts_of(kind), design=replace(counts_of(kind).design, **design))
        about = case(KINDS[kind][0])
        return compare(certified(kind)[1], Own(about.model, about.objective, counts=planned))[1]

    assert counts.design.bet_on == ()
    assert trouble("given", bet_on=(other.digest, known.policy.digest)) is None
    assert trouble("given", bet_on=(other.digest,), followed=known.policy.digest) is None
    words = "this certificate is about bets on another policy than those that your data were collected to bet"
    assert trouble("given", bet_on=(other.digest,)) == f"{words} on"
    assert trouble("found", bet_on=(other.digest,)) is None  # bets on the best policy name none


def test_learn_writes_and_verify_reads_them(tmp_path, capsys):
    data, proof = str(tmp_path / "data.parquet"), str(tmp_path / "slab.cert")
    assert run(["sample", "bench:betting(4)", "--episodes", "400", "-o", data]) == 0
    words = ["learn", "bench:betting(4)", "--data", data, "--region", "slab", "--sets", "rectangular"]
    assert run([*words, "--certificate", proof]) == 0
    capsys.readouterr()
    assert run(["verify", proof, "--model", "bench:betting(4)", "--data", data, "--verbose"]) == 0
    assert "every bet follows from" in capsys.readouterr().out
    other = str(tmp_path / "other.parquet")
    assert run(["sample", "bench:betting(4)", "--episodes", "400", "--seed", "8", "-o", other]) == 0
    assert run(["verify", proof, "--model", "bench:betting(4)", "--data", other]) == 1
    assert "about other data" in capsys.readouterr().err
