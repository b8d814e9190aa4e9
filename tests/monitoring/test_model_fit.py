"""Does the model fit: e-values of batches against exact ones, and what `learn` says of wrong models."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

import tightrope as tr
from tightrope.data.counts import Batches, Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.io.results import ModelFit
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.departures import log_sum
from tightrope.monitoring.e_process import SHARES, BatchTest, weigh_batches
from tightrope.monitoring.examination import weigh_fit

LOW, HIGH = 0.1, 0.9


@pytest.fixture(scope="module")
def coins() -> ParametricMDP:
    """`a` and `b` win with p, `c` with p/2, `d` with 1/2 (its successors are tied); nothing else happens."""
    parameters = tr.Parameters.box(p=(LOW, HIGH))
    (p,) = parameters.symbols()
    chances = {"a": p, "b": p, "c": p / 2, "d": Fraction(1, 2)}
    rows = [(0, name, {1: chance, 2: 1 - chance}) for name, chance in chances.items()]
    rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    return tr.build_from_rows(rows, parameters, labels={"won": [1]})


def counted(model: ParametricMDP, batches: list[list[int]]) -> Counts:
    """Batches of transitions by index."""
    parts = [np.unique(np.array(batch, dtype=np.int64), return_counts=True) for batch in batches]
    design = SamplingDesign(SamplingKind.ADAPTIVE)
    return Counts.from_batches(Batches.from_parts(parts), model.transition_start, design, model.hash())


def chance(transition: int, p: float) -> float:
    won = {0: p, 1: p, 2: p / 2, 3: 0.5}[transition // 2]
    return won if transition % 2 == 0 else 1.0 - won


def drawn(choice: int, p: float, tosses: int, rng: np.random.Generator) -> list[int]:
    won = rng.random(tosses) < chance(2 * choice, p)
    return [2 * choice + int(not win) for win in won]


def in_batches(events: list[int], growth: float = 1.5) -> list[list[int]]:
    ends = [0]
    while ends[-1] < len(events):
        ends.append(min(len(events), max(ends[-1] + 4, int(growth * ends[-1]))))
    return [events[low:high] for low, high in itertools.pairwise(ends)]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sizes", [(2, 1, 3), (6,), (1, 1, 1, 1, 1, 1)], ids=str)
def test_the_mean_of_the_e_value_is_at_most_one(coins: ParametricMDP, sizes: tuple[int, ...]) -> None:
    """Over all outcomes, under a policy that looks at the past."""
    totals = dict.fromkeys((LOW, 0.5, HIGH), 0.0)
    for outcomes in itertools.product((0, 1), repeat=sum(sizes)):
        choices = [0, *(1 + (k + outcome) % 3 for k, outcome in enumerate(outcomes[:-1]))]
        events = [2 * choice + outcome for choice, outcome in zip(choices, outcomes, strict=True)]
        ends = list(itertools.accumulate(sizes, initial=0))
        counts = counted(coins, [events[low:high] for low, high in itertools.pairwise(ends)])
        e_value = math.exp(weigh_batches(BatchTest(coins, counts), counts)[-1][1])
        for p in totals:
            totals[p] += e_value * math.prod(chance(event, p) for event in events)
    assert all(0.02 < total <= 1.0 for total in totals.values())


def krichevsky(numbers: list[int]) -> float:
    half, total = 0.5 * len(numbers), sum(numbers)
    terms = sum(math.lgamma(n + 0.5) - math.lgamma(0.5) for n in numbers)
    return terms + math.lgamma(half) - math.lgamma(total + half)


def test_the_e_value_of_counts_without_order_is_the_ratio_of_free_and_best_predictions(
    coins: ParametricMDP,
) -> None:
    won, lost = (30, 5, 9, 11), (10, 25, 31, 12)
    events = [2 * c + k for c in range(4) for k, n in ((0, won[c]), (1, lost[c])) for _ in range(n)]
    together = krichevsky([35, 35]), krichevsky([9, 31]), krichevsky([11, 12])
    half = 23 * math.log(0.5)
    free = together[0] + together[1]
    apart = krichevsky([30, 10]) + krichevsky([5, 25]) + together[1]
    best = max(
        35 * math.log(p) + 35 * math.log(1 - p) + 9 * math.log(p / 2) + 31 * math.log(1 - p / 2) + half
        for p in np.linspace(LOW, HIGH, 100_001).tolist()
    )
    ties = [apart + half, apart + half, free + together[2]]
    exact = SHARES["expression"] * math.exp(free + half - best)
    exact += SHARES["tie"] / 3 * sum(math.exp(value - best) for value in ties)
    counts = counted(coins, [events])
    found = weigh_batches(BatchTest(coins, counts), counts)
    assert found == weigh_batches(BatchTest(coins, counts), replace(counts, batches=None))
    assert found[0][0] == len(events)
    assert math.log(exact) - 1e-2 < found[0][1] <= math.log(exact)


def fit_of(model: ParametricMDP, events: list[int], ordered: bool = True) -> ModelFit:
    counts = counted(model, in_batches(events) if ordered else [events])
    return weigh_fit(model, counts)


def tosses(p: dict[int, float], each: int, seed: int) -> list[int]:
    """The same number of tosses of all four coins, in turn."""
    rng = np.random.default_rng(seed)
    rows = [drawn(choice, p.get(choice, 0.4), each, rng) for choice in range(4)]
    return [event for turn in zip(*rows, strict=True) for event in turn]


def test_data_of_the_model_fit(coins: ParametricMDP) -> None:
    found = fit_of(coins, tosses({}, 1000, 1))
    assert found.verdict == "no evidence against it" and not found.alarm and found.misfit is None
    assert found.events == 4000 == found.looks[-1].events and found.ordered
    assert found.e_value < 0.1 and found.log_e_value == found.looks[-1].log_e_value
    assert found.text.startswith("no evidence against it: e-value 10^-") and "at most 0.001" in found.text
    again = fit_of(coins, tosses({}, 1000, 1), ordered=False)
    assert (
        again.verdict == "no evidence against it"
        and not again.ordered
        and "counts without order" in again.text
    )


@pytest.mark.parametrize("ordered", [True, False], ids=["batches", "no order"])
@pytest.mark.parametrize(
    ("wrong", "kind", "where"),
    [({2: 0.8}, "expression", "'c'"), ({1: 0.6}, "tie", "'b'")],
    ids=["wrong expression", "broken tie"],
)
def test_a_wrong_model_is_contradicted_and_the_culprit_named(
    coins: ParametricMDP, wrong: dict[int, float], kind: str, where: str, ordered: bool
) -> None:
    found = fit_of(coins, tosses(wrong, 1500, 2), ordered)
    assert found.verdict == "model contradicted" and found.first_alarm is not None
    assert found.first_alarm < found.events if ordered else found.first_alarm == found.events
    named = [suspect for suspect in found.suspects if suspect.kind == kind]
    assert where in named[0].text or (kind == "tie" and "'a'" in named[0].text)
    assert found.misfit is not None and "the data contradict the model: e-value 10^" in found.misfit
    seen = named[0].outcomes[0]
    assert abs(seen.observed - seen.expected) > 0.05


def test_a_change_is_dated_and_the_parameter_named(coins: ParametricMDP) -> None:
    later = tosses(dict.fromkeys((0, 1, 2), 0.6), 1500, 4)
    found = fit_of(coins, tosses({}, 1500, 3) + later)
    assert found.verdict == "model contradicted"
    first = found.suspects[0]
    assert first.kind == "drift" and first.moved[0].parameter == "p" and first.moved[0].standard_errors > 5
    assert first.since is not None and 4000 < first.since < 8000
    assert found.first_alarm is not None and found.first_alarm > 6000


def test_what_is_missing_makes_the_rate_nominal_and_a_point_is_not_tested(coins: ParametricMDP) -> None:
    counts = counted(coins, in_batches(tosses({}, 20, 1)))
    missing = replace(counts, design=replace(counts.design, censored=("3 rows left out",)))
    assert weigh_fit(coins, missing).nominal == ("3 rows left out",)
    assert "nominally" in weigh_fit(coins, missing).text
    nothing = weigh_fit(coins, counted(coins, []))
    assert (nothing.verdict, nothing.e_value, nothing.suspects) == ("not tested", 1.0, ())
    parameters = tr.Parameters.box(p=("1/2", "1/2"))
    (p,) = parameters.symbols()
    point = tr.build_from_rows([(0, "a", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})], parameters)
    untested = weigh_fit(point, counted(point, [[0, 1, 1]]))
    assert untested.verdict == "not tested" and untested.text.startswith("not tested: ")


def test_learn_says_whether_the_model_fits_and_results_keep_it(coins: ParametricMDP, tmp_path: Path) -> None:
    problem = coins.problem('Pmax=? [ F "won" ]')
    wrong = counted(coins, in_batches(tosses({1: 0.6}, 600, 2)))
    results = tr.learn_all(problem, wrong, delta=0.01, kinds=["tied", "rectangular"])
    for result in results.values():
        assert result.fit == weigh_fit(coins, wrong) and result.fit.alarm
        assert result.misfit == result.fit.misfit and result.seconds["fit"] > 0
        assert result.ledger.delta == 0.01
    assert result.to_json()["fit"]["verdict"] == "model contradicted"
    saved = tr.load_result(result.save(f"{tmp_path}/run"), model=coins)
    assert saved == result
    assert saved.fit is not None and saved.fit.first_alarm == result.fit.first_alarm
    assert tr.solve(problem).fit is None


@pytest.mark.usefixtures("empty_pictures")
def test_the_report_shows_evidence_and_what_fits_worst(coins: ParametricMDP, tmp_path: Path) -> None:
    later = tosses(dict.fromkeys((0, 1, 2), 0.6), 800, 4)
    counts = counted(coins, in_batches(tosses({}, 800, 3) + later))
    result = tr.learn(coins.problem('Pmax=? [ F "won" ]'), counts, sets="tied")
    axes = result.plot_fit()
    assert (
        axes.get_xlabel() == "events (observed transitions)" and axes.get_ylabel() == "log10 of the e-value"
    )
    events, values = axes.lines[0].get_data()
    assert list(events) == [look.events for look in result.fit.looks]
    assert values[-1] == pytest.approx(result.fit.log_e_value / math.log(10))
    keys = [text.get_text() for text in axes.get_legend().get_texts()]
    assert keys == ["evidence against the model", "alarm: 1,000", "first alarm", "no evidence: 1"]
    assert [line for line in axes.lines if list(line.get_ydata()) == [3.0, 3.0]]
    observed = result.plot_observed()
    dots = [line.get_xdata()[0] for line in observed.lines if line.get_marker() == "."]
    seen = [s.observed for suspect in result.fit.suspects for s in suspect.outcomes]
    assert set(dots) <= set(seen) and len(dots) >= 4
    pyplot.close("all")
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Model fit" in page and "The data contradict the model: the e-value is 10^" in page
    assert "</b>: the parameters since about event" in page and "own e-value" in page
    assert page.index("Evidence against the model") < page.index('id="intervals"')
    worst = result.fit.suspects[0]
    assert f"<b>{worst.kind}</b>: " in page and '<a href="#findings">Evidence against the model</a>' in page
    fits = tr.learn(result.problem, counted(coins, in_batches(tosses({}, 800, 3))), sets="tied")
    assert 'id="findings"' not in fits.report(tmp_path / "fits.html").read_text(encoding="utf-8")
    with pytest.raises(tr.InputError, match="there is nothing to draw: there were no data"):
        tr.solve(result.problem).plot_fit()


def test_a_guarantee_does_not_rest_silently_on_a_model_that_evidence_grows_against(
    coins: ParametricMDP,
) -> None:
    """Half of the way to an alarm is no refutation, and no test that was passed either."""
    problem = coins.problem('Pmax=? [ F "won" ]')
    result = tr.learn(problem, counted(coins, in_batches(tosses({1: 0.53}, 500, 6))), sets="tied")
    assert result.fit is not None and result.fit.verdict == "evidence growing" and not result.fit.alarm
    assert result.verdict.word.value == "nominal" and result.verdict.exit_code == 1
    (model,) = [one for one in result.verdict.assumptions if one.name == "model"]
    assert model.kept.value == "unknown" and "tightrope doctor" in model.why
    fits = replace(result, fit=replace(result.fit, verdict="no evidence against it"))
    assert fits.verdict.word.value == "proved"


def test_coordinates_of_unconstrained_rows_have_no_names_of_their_own() -> None:
    """What is said of them names the row and the outcome."""
    model = tr.build_from_rows(
        [(0, "go", {0: tr.free, 1: tr.free, 2: tr.free}), (1, "", {1: 1}), (2, "", {2: 1})]
    )
    assert [model.expression_text(int(e)) for e in model.expression[:3]] == [
        f"go in 0 → {k}" for k in range(3)
    ]
    rng = np.random.default_rng(1)
    events = [*rng.choice(3, 400, p=(0.2, 0.4, 0.4)), *rng.choice(3, 400, p=(0.5, 0.1, 0.4))]
    monitor = tr.Monitor(model)
    monitor.observe(np.array(events))
    batched = weigh_fit(model, counted(model, in_batches([int(one) for one in events])))
    for suspects in (monitor.explain(), batched.suspects):
        assert {"drift", "expression"} <= {one.kind for one in suspects}
        assert "go in 0 → 1" in str(suspects) and model.parameters.names[0] not in str(suspects)


def test_sums_of_huge_e_values() -> None:
    """Beyond 10^17 a difference of 40 is nothing to a double."""
    assert 1e18 * (1 - 1e-14) < log_sum(np.array([1e18, 3.0])) <= 1e18
    assert log_sum(np.array([-math.inf, math.inf])) == math.inf
    assert log_sum(np.array([0.0, 0.0])) == pytest.approx(math.log(2), abs=2e-9)
