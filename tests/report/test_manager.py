"""What a report says to those who decide: names instead of codes, what is saved, and values on a grid."""

from __future__ import annotations

import html
import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import tightrope as tr
from tightrope.cli.app import run
from tightrope.regions.bounds import tracks_in
from tightrope.regions.event_polytope import domain_region
from tightrope.report.policy_map import MapVariable, PolicyMap
from tightrope.report.statement import saving
from tightrope.report.style import PAPER, named, shorten, span_of
from tightrope.report.what_if import NO_TRACKS, REFUTED, what_if

PUMP = """mdp
const double p;
const double q;
module pump
  wear : [0..3] init 0;
  [run] wear<2 -> p:(wear'=wear+1) + (1-p):(wear'=wear);
  [run] wear=2 -> q:(wear'=3) + (1-q):(wear'=2);
  [service] wear>0 & wear<3 -> (wear'=0);
  [broken] wear=3 -> (wear'=3);
endmodule
label "failed" = wear=3;
"""
ASKED = 'Pmin=? [ F<=30 "failed" ]'
NAMES = {"0": "new", "1": "used", "2": "worn / old", "3": "failed"}
ROWS = {
    ("new", "run"): {"new": 180, "used": 20},
    ("used", "run"): {"used": 180, "worn": 20},
    ("worn", "run"): {"old": 80, "failed": 120},
    ("old", "service"): {"new": 50},
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A result of a log with names, beside today's policy, which never services."""
    folder = tmp_path_factory.mktemp("pump")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _learn()
        yield folder / "run"


def _learn() -> None:
    Path("pump.prism").write_text(PUMP)
    lines = [
        f"{state},{action},{after},{count}"
        for (state, action), row in ROWS.items()
        for after, count in row.items()
    ]
    Path("counts.csv").write_text("\n".join(["wear,action,wear',count", *lines, ""]))
    model = tr.load("pump.prism", params={"p": (0.01, 0.5), "q": (0.01, 0.9)})
    tr.Policy(model, {"wear=1": "run", "wear=2": "run"}).save("today.json")
    names = "wear: new=0, used=1, worn=2, old=2, failed=3"
    words = ["--param", "p=0.01:0.5,q=0.01:0.9", "--prop", ASKED, "--delta", "0.05", "--design", "fixed"]
    words += ["--ends", "complete"]
    words += ["--map", names, "--policy", "today.json", "-o", "run", "--sets", "parameter"]
    assert run(["learn", "pump.prism", "--data", "counts.csv", *words]) == 0


@pytest.mark.usefixtures("empty_pictures")
def test_the_page_has_names_and_what_is_saved(learned: Path) -> None:
    document = json.loads((learned / "result.json").read_text())
    assert document["data"]["names"] == {"wear": NAMES}
    assert run(["report", "run"]) == 0
    page = (learned / "report.html").read_text()
    shown = json.loads(page.split('id="policy-data">')[1].split("</script>")[0])
    assert shown["variables"][0]["labels"] == ["used", "worn / old"]
    assert shown["policies"] == ["robust", "optimistic", "given"]
    main = document["results"][-1]
    gain = main["value"]["lower"] - main["robust_policy"]["upper"]
    assert gain > 0.3
    assert f"on average {math.floor(1000 * gain):,} fewer of 1,000 runs with reaching “failed”" in page
    cards = ["rule", "whatif", "intervals", "policy", "binding", "ledger", "parameters", "provenance"]
    places = [page.index(f'id="{card}"') for card in cards]
    assert places == sorted(places)
    assert '<p class="rule">If wear is used, run; otherwise service.</p>' in page
    values, best = main["estimate"]
    assert values["given"] > values["best"] <= values["robust"]
    assert best["upper"] >= main["robust_policy"]["upper"]
    for name in ("robust policy", "best policy at the best fit", "today&#39;s policy"):
        assert f"<td>{name}</td>" in page
    assert "They differ in 1 of 2 states." in page


@pytest.mark.usefixtures("empty_pictures")
def test_reports_written_in_python_have_the_names_of_the_log(learned: Path) -> None:
    model = tr.load("pump.prism", params={"p": (0.01, 0.5), "q": (0.01, 0.9)})
    maps = {"wear": {"new": 0, "used": 1, "worn": 2, "old": 2, "failed": 3}}
    reading = tr.read_data("counts.csv", model, maps=maps, design="fixed", ends="complete")
    assert reading.counts.names == {"wear": NAMES}
    result = tr.learn(model.problem(ASKED), reading, delta=0.05, sets="parameter")
    page = result.report("python.html").read_text()
    shown = json.loads(page.split('id="policy-data">')[1].split("</script>")[0])
    assert shown["variables"][0]["labels"] == ["used", "worn / old"]
    saved = tr.load_result(result.save("python"))
    assert saved.document.data.names == {"wear": NAMES}


def test_values_on_the_grid_are_those_of_the_policies(learned: Path) -> None:
    saved = tr.load_result(learned)
    found = saved._what_if()
    assert {curve.name for curve in found.curves} == {"p", "q"}
    for curve in found.curves:
        known = saved.parameters[curve.name]
        assert known.lower <= curve.grid[0] < curve.grid[-1] <= known.upper
        for i in (0, len(curve.grid) // 2, -1):
            point = {**curve.others[i], curve.name: curve.grid[i]}
            for name, policy in (("robust", saved.policy), ("given", tr.Policy(saved.model, "today.json"))):
                exact = tr.solve(saved.model.instantiate(point), ASKED, policy=policy, precision=1e-9)
                assert curve.values[name][i] == pytest.approx(float(exact.lower[0]), rel=3e-5)
    first = found.curves[0]
    assert first.effect == max(curve.effect for curve in found.curves) > 0
    (learned.parent / "pump.prism").unlink()
    assert tr.load_result(learned)._what_if().remark.startswith("left out: ")


def sums(domain: str = "") -> tr.ParametricMDP:
    """A sum that is known well, of two parameters of which little is known."""
    box = tr.Parameters.box(p=("0.05", "0.95"), q=("0.05", "0.95"))
    p, q = box.symbols()
    rows = [(0, "both", {1: (p + q) / 2, 2: 1 - (p + q) / 2}), (1, "one", {3: p, 2: 1 - p})]
    return tr.build_from_rows([*rows, (2, "", {2: 1}), (3, "", {3: 1})], box, labels={"won": [3]})


@pytest.mark.parametrize("region", ["polytope", "likelihood", "ellipsoid"])
def test_the_slider_stays_inside_the_region(region: str, tmp_path: Path) -> None:
    """At every point of it: the point is in the region, and no value contradicts what is certified."""
    model = sums()
    steps: list[Any] = [[(0, "both", 1 + (i % 2))] for i in range(600)]
    steps += [[(0, "both", 1), (1, "one", 2 + (i % 3 > 0))] for i in range(90)]
    random.Random(1).shuffle(steps)  # in this order the parameters would seem to change
    words: Any = {"delta": 0.1, "region": region, "outcomes": "none"}
    result = tr.learn(model.problem('P=? [ F "won" ]'), steps, **words)
    assert result.region is not None
    middle = [0.5 * (ends.lower + ends.upper) for ends in result.parameters.values()]
    widest = [result.parameters["p"].lower, result.parameters["q"].lower]
    assert result.region.contains(middle) or region != "polytope"
    assert not result.region.contains(widest)  # the box has corners that the region has not
    saved = tr.load_result(result.save(tmp_path / "run"), model=model)
    found = result._what_if()
    assert saved._what_if() == found and [curve.name for curve in found.curves] == ["p", "q"]
    for curve in found.curves:
        known, index = result.parameters[curve.name], ["p", "q"].index(curve.name)
        assert curve.grid[-1] - curve.grid[0] > 0.8 * known.width
        for x, others, value in zip(curve.grid, curve.others, curve.values["robust"], strict=True):
            (other,) = others.values()
            assert result.region.contains([other, x] if index else [x, other])
            assert isinstance(value, float) and value in result.interval


def test_points_that_observed_returns_exclude_are_not_on_the_slider() -> None:
    """The certified interval is narrower than the region: what episodes returned makes it so."""
    model = sums()
    steps: list[Any] = [[(0, "both", 2)]] * 200 + [[(0, "both", 1), (1, "one", 3)]] * 200
    result = tr.learn(model.problem('P=? [ F "won" ]'), steps, delta=0.1)
    assert result.seen is not None and result.seen.model is not None
    assert result.interval.width < result.seen.model.width
    for curve in result._what_if().curves:
        assert all(isinstance(v, float) and v in result.interval for v in curve.values["robust"])


def test_equalities_of_the_domain_are_kept_on_the_slider() -> None:
    parameters = tr.Parameters.box(a=(0, 1), b=(0, 1), c=(0, 1), where="a + b + c = 1")
    a, b, c = parameters.symbols()
    rows = [(0, "", {1: a, 2: b, 3: 1 - a - b}), (3, "", {1: c, 2: 1 - c}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"x": [1]})
    steps: list[Any] = [[(0, "", 1 + (i % 2))] for i in range(60)]
    steps += [[(0, "", 3), (3, "", 1 + (i % 3 > 0))] for i in range(30)]
    random.Random(1).shuffle(steps)
    result = tr.learn(model.problem('P=? [ F "x" ]'), steps, delta=0.1)
    curves = result._what_if().curves
    assert {curve.name for curve in curves} == {"a", "b", "c"}
    for curve in curves:
        for x, others in zip(curve.grid, curve.others, strict=True):
            assert x + sum(others.values()) == pytest.approx(1.0, abs=1e-12)


DRIFTING = [("new", "run", "used")] * 300 + [("new", "run", "new")] * 300
WORN = [("used", "run", "failed"), ("used", "run", "used"), ("used", "service", "new")] * 40


@pytest.mark.usefixtures("empty_pictures")
def test_a_contradicted_report_begins_with_not_to_act(tmp_path: Path) -> None:
    """And says no rule and no promise; states have the names of the log, in a drafted model, too."""
    rows = [(i, *step) for i, step in enumerate([*DRIFTING, *WORN])]
    names = ("episode", "state", "action", "next_state")
    log = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    model = tr.draft(log).model
    reading = tr.read_data(log, model, order="as-read", ends="complete")
    result = tr.learn(model.problem('Pmin=? [ F "failed" ]'), reading, delta=0.1)
    assert result.verdict.word.value == "contradicted"
    page = html.unescape(result.report(tmp_path / "report.html").read_text())
    first = page.split('<section id="rule">')[1].split("</section>")[0]
    assert "Do not act on this result: the data contradict the model." in first
    assert not re.search("Promise|More data|otherwise|guaranteed", first)
    assert "run in new → used" in page and "state=0" not in page and "free1" not in page


def test_an_axis_has_whole_numbers_and_no_offset() -> None:
    assert shorten("to wear=worn, age=12", 11) == "to we…ge=12"
    with PAPER.style():
        axes = Figure().subplots()
        axes.set_xlim(*span_of([6119.99999, 6120.00001]))
        axes.figure.draw_without_rendering()
        texts = [label.get_text() for label in axes.get_xticklabels()]
        assert axes.xaxis.get_offset_text().get_text() == ""
    assert len(set(texts)) == len(texts) > 3 and max(map(len, texts)) <= 6


def test_a_policy_is_told_as_the_smallest_rule_that_agrees_with_it() -> None:
    wear, hot = np.repeat(np.arange(4), 2), np.tile([0, 1], 4)
    service = np.where((wear >= 2) | (hot == 1), 1, 0)
    variables = (MapVariable("wear", ("0", "1", "2", "3"), wear), MapVariable("hot", ("false", "true"), hot))
    policies = PolicyMap(variables, ("run", "service"), {"robust": service})
    rule = policies.rule()
    assert rule is not None and rule.nodes == 2
    assert rule.decide({"wear": wear, "hot": hot}).tolist() == service.tolist()
    assert rule.sentence() == "If wear is at least 2, service; otherwise if not hot, run; otherwise service."
    assert replace(policies, is_plain=False).rule() is None
    mixed = PolicyMap(variables[:1], ("run", "service"), {"robust": service})
    assert mixed.rule() is None  # states with the same values have different actions


def test_a_refuted_model_and_sets_without_a_region_have_no_slider() -> None:
    model = sums()
    steps: list[Any] = [[(0, "both", 1 + (i % 2))] for i in range(40)]
    problem = model.problem('P=? [ F "won" ]')
    assert tr.learn(problem, steps, delta=0.1, sets="tied")._what_if().remark == NO_TRACKS
    drifted: list[Any] = [[(0, "both", 1)]] * 300 + [[(0, "both", 2)]] * 300
    refuted = tr.learn(problem, drifted, delta=0.1)
    assert refuted.verdict.word.value == "contradicted" and refuted._what_if().remark == REFUTED


def test_values_that_are_not_known_are_left_out() -> None:
    box = tr.Parameters.box(p=(0, 1))
    (p,) = box.symbols()
    rows = [(0, "try", {1: p, 0: 1 - p}), (1, "", {1: 1}), (2, "try", {2: 1})]
    words: Any = {"labels": {"done": [1], "never": [2]}, "choice_rewards": {"cost": [1, 0, 1]}}
    model = tr.build_from_rows(rows, box, **words)
    tracks = {"p": [[x] for x in (0.0, 0.25, 0.3, 0.5)]}
    problem = model.problem('R{"cost"}min=? [ F "done" ]')
    policy = tr.Policy.uniform(model)
    (curve,) = what_if(problem, {"robust": policy}, tracks, {}).curves
    assert curve.values["robust"][0] == "inf"  # p = 0: it never ends
    assert curve.values["robust"][1:] == pytest.approx([1 / x for x in curve.grid[1:]], rel=2e-5)
    assert curve.effect == pytest.approx(2.0, rel=1e-4)
    (inside,) = what_if(problem, {"robust": policy}, tracks, {"robust": tr.Interval(1.0, 3.5)}).curves
    assert inside.grid == [0.3, 0.5]
    nothing = what_if(model.problem('R{"cost"}min=? [ F "never" ]'), {"robust": policy}, tracks, {})
    assert not nothing.curves and "no value is finite" in nothing.remark


def test_large_models_show_fewer_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    box = tr.Parameters.box(p=(0, 1), q=(0, 1))
    p, q = box.symbols()
    rows = [(0, "go", {1: p, 0: 1 - p}), (1, "go", {2: q, 1: 1 - q}), (2, "", {2: 1})]
    problem = tr.build_from_rows(rows, box, labels={"end": [2]}).problem('Pmax=? [ F<=3 "end" ]')
    tracks = {"p": [[0.2, 0.5], [0.4, 0.5]], "q": [[0.3, 0.5], [0.3, 0.6]]}
    monkeypatch.setattr("tightrope.report.what_if.MOST_WORK", 100)
    found = what_if(problem, {"robust": tr.Policy.uniform(problem.model)}, tracks, {})
    assert [curve.name for curve in found.curves] == ["p"]
    assert found.remark == "1 more parameter is not shown."


def test_constraints_bound_how_far_a_parameter_moves() -> None:
    box = tr.Parameters.box(p=(0, 1), q=(0, 1), where="p + q <= 1")
    p, q = box.symbols()
    rows = [(0, "toss", {1: p, 2: q, 0: 1 - p - q}), (1, "", {1: 1}), (2, "", {2: 1})]
    problem = tr.build_from_rows(rows, box, labels={"won": [1]}).problem('Pmax=? [ F<=1 "won" ]')
    assert isinstance(problem.model, tr.ParametricMDP)
    tracks = tracks_in(domain_region(problem.model), problem.model, None)
    policy = tr.solve(problem.at(p=0.2, q=0.2)).policy
    curves = what_if(problem, {"robust": policy}, tracks, {}).curves
    (p_curve,) = [curve for curve in curves if curve.name == "p"]
    assert p_curve.grid[0] < 0.01 and p_curve.grid[-1] > 0.99
    assert all(x + others["q"] <= 1 for x, others in zip(p_curve.grid, p_curve.others, strict=True))
    assert p_curve.values["robust"] == pytest.approx(p_curve.grid, abs=1e-5)


@pytest.mark.parametrize(
    "track", [[[0.2]], [[0.2, 0.2, 0.2]], [[math.nan, 0.2]], [[0.7, 0.7]], [[1e308, 1e308]], []]
)
def test_tracks_of_a_damaged_file_are_not_shown(track: list[list[float]]) -> None:
    box = tr.Parameters.box(p=(0, 1), q=(0, 1), where="p + q <= 1")
    p, q = box.symbols()
    rows = [(0, "toss", {1: p, 2: q, 0: 1 - p - q}), (1, "", {1: 1}), (2, "", {2: 1})]
    problem = tr.build_from_rows(rows, box, labels={"won": [1]}).problem('Pmax=? [ F<=1 "won" ]')
    policy = tr.Policy.uniform(problem.model)
    assert not what_if(problem, {"robust": policy}, {"p": track}, {}).curves
    assert not what_if(problem, {"robust": policy}, {"x": [[0.1, 0.1]]}, {}).curves


def test_what_is_saved_is_said_in_the_unit_of_the_property() -> None:
    assert (
        saving('Pmax=? [ F "goal" ]', True, 0.0548) == "on average 54 more of 1,000 runs with reaching “goal”"
    )
    assert saving('Pmin=? [ F "hit" ]', False, 2e-5).startswith("on average 0.02 fewer of 1,000 runs")
    cost = saving('R{"euro"}min=? [ F "done" ]', False, 12.5)
    assert cost == "on average 12.5 saved (“euro”) until reaching “done”"
    assert named("wear=2, x=1", {"wear": {"2": "worn"}}) == "wear=worn, x=1"
