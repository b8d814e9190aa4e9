"""Certificates of learned results: every family, region and kind of sets; no mutation gets through.

Also of `tightrope_check/misfit.py`, `tightrope_check/rectangular.py`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from adversary.proved import NOT_COVERED, proved_code
from cases.learned_certificates import added, certified, changed, failures, moved, proved, values
from learning_cases import FAMILIES, case, counts_of
from tightrope.certify.certificate_file import as_file
from tightrope.certify.learned import certificate_of
from tightrope.cli.app import run
from tightrope.data.counts import Batches, Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.model.builder import build_from_rows
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Parameters
from tightrope.problem import Problem
from tightrope.statistics.estimates import IntervalMethod
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.learned import Learned, RowOrigin
from tightrope_check.numbers import FLOAT64

AIRCRAFT, BETTING, ENGAGEMENT, ROVER, GLIDER, PARALLEL = FAMILIES
SMALL = "aircraft(3,2)"
"""What is mutated, many times."""
COMBINATIONS = [
    (None, "untied"),
    (None, "tied"),
    ("polytope", "parameter"),
    ("polytope", "expression"),
    ("polytope", "rectangular"),
    ("l1", "rectangular"),
    ("likelihood", "rectangular"),
]


OF_ALL_FAMILIES = [(None, "untied"), ("polytope", "rectangular"), ("likelihood", "rectangular")]
"""Without a region, over vertices, over cuts; the others where expressions are affine, and where not."""


@pytest.mark.thinned(7)
@pytest.mark.parametrize(
    ("family", "region", "sets"),
    [
        (family, *combination)
        for family in FAMILIES
        for combination in (COMBINATIONS if family in (AIRCRAFT, GLIDER) else OF_ALL_FAMILIES)
    ],
)
def test_results_of_every_family_are_proved(family, region, sets):
    result, certificate = certified(family, region, sets)
    assert failures(certificate) == []
    low, high = values(certificate)["robust policy"]
    assert low == pytest.approx(result.robust.interval.lower, rel=1e-6)
    assert high == pytest.approx(result.robust.interval.upper, rel=1e-6)
    truth = case(family).value_of(result.robust.policy)
    assert low <= truth * (1 + 1e-6) and truth <= high * (1 + 1e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("region", "sets"), [(None, "untied"), *COMBINATIONS[3:]])
def test_the_same_in_rationals(region, sets):
    _, certificate = certified(SMALL, region, sets)
    assert failures(certificate, exactly=True) == []


@pytest.mark.parametrize("method", ["clopper-pearson", "hoeffding", "beta-binomial"])
def test_every_interval_method_is_derived_again(method):
    for region, sets in ((None, "untied"), ("polytope", "expression")):
        _, certificate = certified(ENGAGEMENT, region, sets, method)
        assert failures(certificate) == []
        assert failures(moved(certificate, "problem.data.delta", certificate.problem.data.delta / 1.5))


def test_randomised_policies_and_step_bounds_are_covered():
    subject, counts = case(ROVER), counts_of(ROVER)
    start = subject.model.choice_start
    weight = np.repeat(1.0 / np.diff(start), np.diff(start))
    uniform = learn(subject.problem, counts, delta=0.05, sets="expression", policy=weight)
    certificate = certificate_of(uniform, counts)
    assert certificate.claims[1].policy == "randomised"
    assert failures(certificate) == []
    bounded = replace(subject.objective, upper_steps=4)
    for objective in (bounded, replace(bounded, agent=Direction.MIN), replace(bounded, lower_steps=1)):
        certificate = certificate_of(
            learn(Problem(subject.model, objective), counts, delta=0.05, sets="tied"), counts
        )
        assert certificate.claims[0].policy == "fixed" and certificate.values[0].lower is None
        assert failures(certificate) == []
        claim = certificate.claims[0]
        assert claim.upper == 0 or failures(moved(certificate, "claims.0.lower", claim.upper - 1e-9))


def test_steps_of_rectangular_sets_are_covered_by_the_expression_sets_around_them():
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    objective = replace(subject.objective, upper_steps=3)
    result = learn(
        Problem(subject.model, objective), counts, delta=0.05, region="polytope", sets="rectangular"
    )
    certificate = certificate_of(result, counts)
    assert certificate.values[0].lower_basis is None
    assert failures(certificate) == []
    low, high = values(certificate)["robust policy"]
    assert low <= result.robust.interval.lower and result.robust.interval.upper <= high


def test_late_targets_are_covered():
    subject, counts = case(ROVER), counts_of(ROVER)
    objective = replace(subject.objective, lower_steps=2)
    for agent in (Direction.MAX, Direction.MIN):
        result = learn(
            Problem(subject.model, replace(objective, agent=agent)),
            counts,
            delta=0.05,
            sets="tied",
            policy=subject.policy,
        )
        certificate = certificate_of(result, counts)
        assert certificate.values[0].lower is not None
        assert failures(certificate) == []


def test_rewards_costs_and_complements_are_covered():
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    target = subject.objective.target
    for agent in (Direction.MAX, Direction.MIN):
        objective = Objective(ObjectiveKind.UNTIL, agent, agent.opposite, target=target, complement=True)
        result = learn(
            Problem(subject.model, objective), counts, delta=0.05, region="polytope", sets="rectangular"
        )
        certificate = certificate_of(result, counts)
        assert failures(certificate) == []
        low, high = values(certificate)["robust policy"]
        assert low == pytest.approx(result.robust.interval.lower, abs=1e-6)
        assert high == pytest.approx(result.robust.interval.upper, abs=1e-6)


def coin(tails=3):
    """Reach the goal with probability p within [0, 1]; nothing but tails was seen."""
    parameters = Parameters.box(p=("0", "1"))
    (p,) = parameters.symbols()
    rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "stay", {1: 1}), (2, "stay", {2: 1})]
    model = build_from_rows(rows, parameters, labels={"goal": [1]})
    seen = np.array([0, tails, 0, 0], dtype=np.int64)
    design = SamplingDesign(SamplingKind.GENERATIVE_FIXED)
    return model, Counts(seen, model.transition_start, design, model.hash())


@pytest.mark.parametrize("sets", ["untied", "tied"])
def test_assumed_supports_are_named_and_nothing_else_is_assumed(sets):
    model, counts = coin()
    options = LearnOptions(assume_support=0.05, interval=IntervalMethod.CLOPPER_PEARSON)
    result = learn(Problem(model, 'Pmax=? [ F "goal" ]'), counts, delta=0.05, sets=sets, **options.words)
    certificate = certificate_of(result, counts)
    verdict = check(certificate)
    assert verdict.valid and verdict.values["robust policy"][0] == pytest.approx(0.05)
    assert any("a probability of at least 0.05" in line for line in verdict.assumes)
    for other in (None, 0.04):
        assert failures(moved(certificate, "problem.assumed_support", other))
    plain = learn(Problem(model, 'Pmax=? [ F "goal" ]'), counts, delta=0.05, sets=sets)
    verdict = check(certificate_of(plain, counts))
    assert verdict.values["robust policy"][0] == 0 and len(verdict.assumes) == 1


# --- mutations ------------------------------------------------------------------------------------------


def tightened(array):
    """Every lower bound raised a little."""
    return np.where((array > 0) & (array < 1), array + 1e-7, array)


def one_tightened(array):
    """One lower bound raised a little."""
    inside = np.flatnonzero((array > 0) & (array < 0.9))
    array[inside[len(inside) // 2]] += 1e-7
    return array


def lowered(array):
    return np.where((array < 1) & (array > 0), array - 1e-7, array)


def another_policy(certificate):
    """The policy takes another choice where there is one; the claim stays."""
    start = certificate.problem.graph.choice_start
    choice = certificate.claims[0].choice
    other = start[:-1] + (choice - start[:-1] + 1) % np.diff(start)
    return replace(
        certificate, claims=(replace(certificate.claims[0], choice=other),), values=certificate.values[:1]
    )


def with_a_wrong_sum(certificate):
    """The last expression is doubled."""
    *others, last = certificate.problem.polynomial
    return moved(certificate, "problem.polynomial", (*others, {name: 2 * c for name, c in last.items()}))


def narrower_domain(certificate):
    upper = certificate.problem.domain.upper
    return moved(certificate, "problem.domain.upper", tuple(value / 2 for value in upper))


DATA, HINTS, REGION = "problem.data", "learned", "learned.region"

EXPRESSION = [
    ("a count", changed(f"{DATA}.batch_count", lambda a: np.where(a == a.max(), a + 9, a))),
    ("a negative count", changed(f"{DATA}.batch_count", lambda a: np.where(a == a.max(), -a, a))),
    ("a count left out", changed(f"{DATA}.batch_count", lambda a: a[:-1])),
    ("delta", changed(f"{DATA}.delta", lambda d: d * 0.9)),
    ("the method", changed(f"{DATA}.method", "hoeffding")),
    ("an event's lower bound", changed(f"{HINTS}.lower", tightened)),
    ("an event's upper bound", changed(f"{HINTS}.upper", lowered)),
    ("an event left out", changed(f"{HINTS}.lower", lambda a: a[:-1])),
    ("an event more", changed(f"{HINTS}.lower", lambda a: np.append(a, 0.0))),
    ("a coefficient", with_a_wrong_sum),
    ("the domain", changed("problem.domain.lower", lambda a: a[1:])),
    ("a transition's expression", changed("problem.expression", added(0, 1))),
    (
        "a row's origin",
        changed(f"{REGION}.row", lambda a: np.where([True, False, False], RowOrigin.DOMAIN, a)),
    ),
    ("a row's side", changed(f"{REGION}.row", lambda a: np.where([False, False, True], 1 - a, a))),
    ("a row before the first", changed(f"{REGION}.row", lambda a: a - 1)),
    ("bases of bounds", changed(f"{REGION}.bound_basis", lambda a: (a + 1) % (a.max() + 1))),
    ("a basis out of range", changed(f"{REGION}.bound_basis", added(0, 10_000))),
    ("a basis before the first", changed(f"{REGION}.bound_basis", added(0, -10_000))),
    ("which expression was bounded", changed(f"{REGION}.bound_expression", lambda a: a[::-1])),
    ("one event's lower bound", changed(f"{HINTS}.lower", one_tightened)),
    ("all lower values", changed("values.0.lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-5, a))),
    ("all upper values", changed("values.0.upper", lambda a: np.where((a > 0) & (a < 1), a - 1e-5, a))),
    ("the claim", changed("claims.0.lower", lambda v: v + 1e-12)),
    ("the policy", another_policy),
    ("another target", changed("problem.objective.target", lambda a: ~a)),
    ("no claim", lambda certificate: replace(certificate, claims=(), values=())),
]


@pytest.mark.parametrize(("words", "mutate"), EXPRESSION, ids=[words for words, _ in EXPRESSION])
def test_mutations_of_a_polytope_certificate_fail(words, mutate):
    assert failures(mutate(proved(SMALL, "polytope", "expression", "clopper-pearson"))), words


RECTANGULAR = [
    ("bases of choices", changed(f"{REGION}.choice_basis", lambda a: a[::-1] if len(a) > 1 else a + 1)),
    ("no bases of choices", changed("values.0.lower_basis", lambda a: np.full_like(a, -1))),
    ("a choice's basis out of range", changed("values.0.lower_basis", lambda a: a + 10_000)),
    ("a basis of the box out of range", changed(f"{REGION}.box_basis", added(0, 10_000))),
    ("half a stage", changed(f"{REGION}.box_basis", lambda a: a[1:])),
    ("lower values", changed("values.0.lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-5, a))),
]


@pytest.mark.parametrize(("words", "mutate"), RECTANGULAR, ids=[words for words, _ in RECTANGULAR])
def test_mutations_of_a_rectangular_certificate_fail(words, mutate):
    _, certificate = certified(SMALL, "polytope", "rectangular")
    assert certificate.values[0].lower_basis is not None
    assert failures(mutate(certificate)), words


def test_a_box_may_only_be_made_wider():
    """The box is derived: a file that wants a smaller one gets what is proved, and no more."""
    _, certificate = certified(SMALL, "polytope", "rectangular")
    middle = (certificate.learned.region.box_lower + certificate.learned.region.box_upper) / 2
    boxes = []
    for wanted in (None, middle):
        region = replace(certificate.learned.region, box_lower=wanted, box_upper=wanted)
        link = Learned(moved(certificate, REGION, region), FLOAT64)
        boxes.append(link.projection.box)
    assert boxes[0] == boxes[1]


LIKELIHOOD = [
    ("a batch", changed(f"{DATA}.batch_count", lambda a: np.where(a == a.max(), a + 30, a))),
    ("one batch of everything", changed(f"{DATA}.batch_start", lambda a: a[[0, -1]])),
    ("delta", changed(f"{DATA}.delta", lambda d: d / 10)),
    ("cut points", changed(f"{REGION}.point", lambda a: a[::-1])),
    ("intervals of its own", changed(HINTS, lambda h: replace(h, lower=np.zeros(1), upper=np.ones(1)))),
]


@pytest.mark.parametrize(("words", "mutate"), LIKELIHOOD, ids=[words for words, _ in LIKELIHOOD])
def test_mutations_of_a_likelihood_certificate_fail(words, mutate):
    assert failures(mutate(proved(SMALL, "likelihood", "rectangular"))), words


def test_a_likelihood_certificate_assumes_its_batches():
    assert any("batches" in line for line in check(proved(SMALL, "likelihood", "rectangular")).assumes)


@pytest.mark.parametrize(
    ("words", "mutate"),
    [
        ("delta", changed(f"{DATA}.delta", lambda d: d / 2)),
        ("a set of outcomes", changed(f"{REGION}.row", lambda a: np.where([False, False, True], 1, a))),
        ("a choice", changed(f"{REGION}.row", lambda a: np.where([False, True, False], 10**6, a))),
        ("half the counts", changed(f"{DATA}.batch_count", lambda a: np.maximum(a // 2, 1))),
    ],
)
def test_mutations_of_an_l1_certificate_fail(words, mutate):
    _, certificate = certified(SMALL, "l1", "rectangular")
    assert failures(mutate(certificate)), words


@pytest.mark.parametrize(
    ("words", "mutate"),
    [
        ("a count", changed(f"{DATA}.batch_count", lambda a: np.where(a == a.max(), a + 1, a))),
        ("delta", changed(f"{DATA}.delta", lambda d: d * 0.99)),
        ("a bound", changed(f"{HINTS}.upper", lowered)),
    ],
)
def test_mutations_of_an_untied_certificate_fail(words, mutate):
    _, certificate = certified(SMALL, None, "untied")
    assert failures(mutate(certificate)), words


def test_rows_that_rest_on_proved_bounds_prove_no_bounds():
    """A bound must not follow from itself: rows of expressions serve choices only."""
    _, certificate = certified(SMALL, "polytope", "expression", "clopper-pearson")
    region = certificate.learned.region
    e, side = int(region.bound_expression[0]), int(region.bound_side[0])
    row = np.vstack([region.row, [[int(RowOrigin.EXPRESSION), e, 1 - side]]])
    basis = region.bound_basis.copy()
    basis[0, 0] = 2 * region.point.shape[1] + len(region.row)
    assert failures(moved(certificate, REGION, replace(region, row=row, bound_basis=basis)))
    assert failures(moved(certificate, REGION, replace(region, row=row[::-1].copy())))


def test_files_round_trip(tmp_path):
    _, certificate = certified(SMALL, "likelihood", "rectangular")
    digest = as_file(certificate).save(tmp_path / "learned.cert")
    again = load(tmp_path / "learned.cert")
    assert again.digest == digest
    assert values(again.certificate) == values(certificate)
    assert failures(again.certificate) == []


# --- what nobody can say in a file, and what the checker says itself -------------------------------------


def test_events_are_the_models_own():
    """An event that is no outcome of the model, [0, 1] for 1 − p with multiplicity −1, proved p ≥ 1 once."""
    _, certificate = certified(SMALL, "polytope", "expression", "clopper-pearson")
    names = {field.name for field in fields(certificate.learned)}
    ends = {f"{of}{end}" for of in ("", "cost_", "rate_") for end in ("lower", "upper")}
    assert names == {*ends, "pilot_share", "region", "coupled", "slab"}
    bogus = replace(
        certificate.learned,
        lower=np.append(certificate.learned.lower, 0.0),
        upper=np.append(certificate.learned.upper, 1.0),
    )
    assert failures(replace(certificate, learned=bogus))
    row = certificate.learned.region.row.copy()
    row[row[:, 0] == RowOrigin.EVENT, 1] = len(certificate.learned.lower)
    assert failures(moved(certificate, f"{REGION}.row", row))


def test_counts_cannot_wrap_around():
    """Entries of 2⁶³ − 1 in a pilot cancelled later counts modulo 2⁶⁴ once."""
    _, certificate = certified(SMALL, "likelihood", "rectangular")
    for large in (2**63 - 1, 2**62, 2**50):
        entry = np.where(certificate.problem.data.batch_count > 1, large, 1)
        raised = moved(certificate, f"{DATA}.batch_count", entry)
        assert any("batch_count" in line or "counts" in line for line in failures(raised))
    unsigned = moved(certificate, f"{DATA}.batch_count", lambda a: a.astype(np.uint64))
    assert failures(unsigned)


def test_plug_ins_are_a_function_of_earlier_batches():
    """Whatever comes later, the predictions of earlier batches stay; there is no field to say otherwise."""
    _, certificate = certified(SMALL, "likelihood", "rectangular")
    found = likelihood_of(certificate)
    data = certificate.problem.data
    late = data.batch_count.copy()
    late[data.batch_start[-2] :] = 1
    other = likelihood_of(moved(certificate, f"{DATA}.batch_count", late))
    assert np.array_equal(found.plug_ins, other.plug_ins) and found.pilot == other.pilot
    assert found.threshold != other.threshold
    early = data.batch_count.copy()
    early[0] += 50
    other = likelihood_of(moved(certificate, f"{DATA}.batch_count", early))
    assert not np.array_equal(other.plug_ins, found.plug_ins)


def unplanned_certificate():
    """Of adaptive data of which nobody planned the amount, from the small instance."""
    subject, counts = case(SMALL), counts_of(SMALL)
    counts = replace(counts, design=SamplingDesign(SamplingKind.ADAPTIVE))
    result = learn(subject.problem, counts, delta=0.05, region="likelihood", sets="rectangular")
    return result, certificate_of(result, counts)


def test_shares_of_pilots_are_hints(tmp_path):
    """Any shares give a valid region, at a price that the checkers work out; where a plan decides, none."""
    result, certificate = unplanned_certificate()
    shares = certificate.learned.pilot_share
    assert shares.sum() == 1024 and failures(certificate) == [] and failures(certificate, exactly=True) == []
    assert np.array_equal(shares / 1024, result.region.evidence.shares)
    found = likelihood_of(certificate)
    assert float(found.threshold) / 1024 == pytest.approx(result.region.evidence.threshold, abs=1e-6)
    single = likelihood_of(moved(certificate, "learned.pilot_share", None))
    assert single.pilot == 10 * (single.pilot // 10) and single.weight.sum() < found.weight.sum()
    alone = np.zeros(single.pilot // 10 + 1, dtype=np.int64)
    alone[-1] = 7
    same = likelihood_of(moved(certificate, "learned.pilot_share", alone))
    assert float(same.threshold) == pytest.approx(7 * float(single.threshold), rel=1e-12)
    assert np.array_equal(same.weight, 7 * single.weight)
    nothing = likelihood_of(moved(certificate, "learned.pilot_share", np.append(np.zeros(50, np.int64), 1)))
    assert len(nothing.weight) == 0
    assert failures(moved(certificate, "learned.pilot_share", np.zeros(3, dtype=np.int64)))
    assert failures(moved(certificate, "learned.pilot_share", np.array([4000, 4000])))
    assert failures(moved(certificate, "learned.pilot_share", np.array([5, -4])))
    assert failures(moved(certificate, "learned.pilot_share", np.array([0, 0, 0, 0, 0, 1])))
    as_file(certificate).save(tmp_path / "mixed.cert")
    assert proved_code(tmp_path / "mixed.cert") in (0, NOT_COVERED)
    _, planned = certified(SMALL, "likelihood", "rectangular")
    assert planned.learned.pilot_share is None
    assert failures(moved(planned, "learned.pilot_share", shares))
    _, other = certified(SMALL, "polytope", "expression")
    assert failures(moved(other, "learned.pilot_share", shares))


def likelihood_of(certificate):
    return Learned(certificate, FLOAT64).statements.sources[RowOrigin.CUT]


def test_the_assumption_follows_from_method_and_design():
    """A Clopper–Pearson certificate of adaptive data holds no more than nominally, whatever a file says."""
    _, certificate = certified(SMALL, "polytope", "expression", "clopper-pearson")
    assert certificate.problem.data.design == "trajectories"
    verdict = check(certificate)
    assert verdict.valid and verdict.nominal and "NOMINAL" in verdict.assumes[0]
    fixed = check(moved(certificate, f"{DATA}.design", "generative-fixed"))
    assert fixed.valid and not fixed.nominal
    _, anytime = certified(SMALL, "polytope", "expression", "beta-binomial")
    assert not check(anytime).nominal
    censored = check(moved(anytime, f"{DATA}.censored", True))
    assert censored.valid and censored.nominal and "excluded because of their outcomes" in censored.assumes[0]
    _, untied = certified(SMALL, None, "untied", "clopper-pearson")
    once = moved(moved(untied, f"{DATA}.repeats", False), f"{DATA}.design", "trajectories")
    assert not check(once).nominal and check(moved(once, f"{DATA}.repeats", True)).nominal


DESIGNS = [
    SamplingDesign(SamplingKind.GENERATIVE_FIXED),
    SamplingDesign(SamplingKind.TRAJECTORIES, 3, 3, repeats=False),
    SamplingDesign(SamplingKind.TRAJECTORIES, 3, 3, repeats=True),
    SamplingDesign(SamplingKind.ADAPTIVE),
]
STATEMENTS = [
    (None, "untied", "clopper-pearson"),
    (None, "tied", "clopper-pearson"),
    (None, "tied", "hoeffding"),
    (None, "untied", "beta-binomial"),
    ("polytope", "expression", "beta-binomial"),
    ("l1", "expression", None),
    ("likelihood", "expression", None),
    ("ellipsoid", "expression", None),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d.kind.value} {d.repeats}")
@pytest.mark.parametrize(("region", "sets", "method"), STATEMENTS)
def test_the_checker_and_the_confidence_budget_agree_on_what_holds(region, sets, method, design):
    model, counts = coin(tails=30)
    parts = [(np.array([0, 1]), np.array([2, 3])), (np.array([1]), np.array([25]))]
    counts = Counts.from_batches(Batches.from_parts(parts), model.transition_start, design, model.hash())
    options = LearnOptions(interval=None if method is None else IntervalMethod(method))
    asked = Problem(model, 'Pmax=? [ F "goal" ]')
    result = learn(asked, counts, delta=0.05, region=region, sets=sets, **options.words)
    certificate = certificate_of(result, counts)
    verdict = check(certificate)
    assert verdict.valid and verdict.nominal == (not result.ledger.holds)
    assert verdict.nominal == any("NOMINAL" in line for line in verdict.assumes)
    assert check(moved(certificate, "problem.data.censored", True)).nominal


@pytest.mark.parametrize("seed", [6, 7])
def test_certificates_of_squares_of_a_parameter_verify(seed: int, tmp_path: Path) -> None:
    """The learner's box was wider than the checker's by rounding, and the bound not inductive there."""
    (tmp_path / "m.prism").write_text(
        "dtmc\nconst double p;\nmodule m\n  s : [0..3] init 0;\n"
        "  [] s=0 -> p*p:(s'=0) + 2*p*(1-p):(s'=1) + (1-p)*(1-p):(s'=2);\n"
        "  [] s=1 -> (s'=3);\n  [] s>=2 -> true;\nendmodule\n"
    )
    model = [str(tmp_path / "m.prism"), "--param", "p=0.1:0.9"]
    log, proof = str(tmp_path / "log.csv"), str(tmp_path / "c.cert")
    question = ["--prop", "P=? [ F s=3 ]", "--data", log]
    drawn = ["--at", "p=0.4", "--episodes", "30", "--seed", str(seed), "--raw", "-o", log]
    assert run(["sample", *model, *drawn]) == 0
    assert run(["learn", *model, *question, "--delta", "0.1", "--certificate", proof]) == 0
    assert run(["verify", proof, "--model", *model, *question]) == 0
