"""Chains in continuous time against matrix exponentials, Storm and exact sums.

Also of `logic/timed.py`.
"""

from __future__ import annotations

import importlib.util
import json
from fractions import Fraction
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stormpy
from scipy.linalg import expm

import tightrope as tr
from places import TESTS
from tightrope.cli.app import run
from tightrope.continuous.poisson import poisson_weights
from tightrope.errors import InputError
from tightrope.loading import ModelRequest, read_model
from tightrope.model.continuous import CTMC, ParametricCTMC, over_box
from tightrope.prism.load import load_prism_text

QUEUE = """
ctmc
const int c = 3; const double lam = 12; const double mu = 1.8; const double kappa = 4;
module first
  x : [0..c]; ph : [1..2];
  [] x<c -> lam : (x'=x+1);
  [route] x>0 & ph=1 -> mu : (x'=x-1);
  [] x>0 & ph=1 -> 0.2 : (ph'=2);
  [route] x>0 & ph=2 -> 2 : (ph'=1) & (x'=x-1);
endmodule
module second
  y : [0..c];
  [route] y<c -> 1 : (y'=y+1);
  [] y>0 -> kappa : (y'=y-1);
endmodule
label "full" = x=c & y=c & ph=2;
rewards "customers" true : x+y; endrewards
rewards "routes" [route] true : 2; y>1 : 0.5; endrewards
"""
FARM = """
ctmc
const int N = 3; const double lam; const double mu;
module farm
  up : [0..N] init N;
  [fail] up>0 -> lam*up : (up'=up-1);
  [repair] up<N -> mu : (up'=up+1);
endmodule
label "down" = up=0;
rewards "lost" true : N-up; endrewards
rewards "repairs" [repair] true : lam; endrewards
"""
STIFF = """
ctmc
module m
  s : [0..3];
  [] s=0 -> 1000 : (s'=1) + 0.001 : (s'=3);
  [] s=1 -> 500 : (s'=0) + 0.002 : (s'=2);
  [] s=2 -> 10 : (s'=0);
endmodule
label "bad" = s=3;
rewards s<3 : 1; [] s=1 : 2; endrewards
"""
EPIDEMIC = """
ctmc
const int N = 6;
module people
  i : [0..N] init 2; r : [0..N];
  [infect] i>0 & i+r<N -> 0.3*i*(N-i-r) : (i'=i+1);
  [recover] i>0 & r<N -> 0.8*i : (i'=i-1) & (r'=r+1);
endmodule
label "over" = i=0;
rewards "sick" true : i; endrewards
rewards "infections" [infect] true : 1; endrewards
"""
POLLING = """
ctmc
const int n = 3; const double lam = 0.5; const double switch = 5; const double serve = 1.5;
module server
  at : [1..n]; busy : bool;
  [next1] at=1 & !busy -> switch : (at'=2);
  [take1] at=1 & !busy -> switch : (busy'=true);
  [done1] at=1 & busy -> serve : (busy'=false) & (at'=2);
  [next2] at=2 & !busy -> switch : (at'=3);
  [take2] at=2 & !busy -> switch : (busy'=true);
  [done2] at=2 & busy -> serve : (busy'=false) & (at'=3);
  [next3] at=3 & !busy -> switch : (at'=1);
  [take3] at=3 & !busy -> switch : (busy'=true);
  [done3] at=3 & busy -> serve : (busy'=false) & (at'=1);
endmodule
module one
  w1 : [0..1];
  [] w1=0 -> lam : (w1'=1);
  [next1] w1=0 -> 1 : true;
  [take1] w1=1 -> 1 : true;
  [done1] w1=1 -> 1 : (w1'=0);
endmodule
module two = one [ w1=w2, next1=next2, take1=take2, done1=done2 ] endmodule
module three = one [ w1=w3, next1=next3, take1=take3, done1=done3 ] endmodule
label "all" = w1+w2+w3=3;
rewards "waiting" true : w1+w2+w3; endrewards
"""
KNOWN = (
    (EPIDEMIC, 'P=? [ F<=4 "over" ]'),
    (EPIDEMIC, 'P=? [ i<5 U[1,6] "over" ]'),
    (EPIDEMIC, 'P=? [ i<5 U "over" ]'),
    (EPIDEMIC, 'R{"sick"}=? [ F "over" ]'),
    (EPIDEMIC, 'R{"infections"}=? [ C<=3 ]'),
    (EPIDEMIC, "S=? [ r>=4 ]"),
    (POLLING, 'P=? [ F<=3 "all" ]'),
    (POLLING, 'P=? [ !"all" U[0.5,2] at=3 ]'),
    (POLLING, 'R{"waiting"}=? [ F "all" ]'),
    (POLLING, 'R{"waiting"}=? [ C<=5 ]'),
    (POLLING, 'R{"waiting"}=? [ S ]'),
    (POLLING, 'S=? [ "all" ]'),
)
QUESTIONS = (
    'P=? [ F<=1.5 "full" ]',
    'P=? [ F[0.5,2] "full" ]',
    "P=? [ x<3 U<=0.4 y>=1 ]",
    "P=? [ x<3 U[0.1,0.4] y>=1 ]",
    "P=? [ y<2 U x=3 ]",
    "P=? [ X x=0 ]",
    'R{"customers"}=? [ C<=2 ]',
    'R{"routes"}=? [ C<=2 ]',
    'R{"customers"}=? [ I=0.7 ]',
    'R{"customers"}=? [ F "full" ]',
    'R{"routes"}=? [ F "full" ]',
    "S=? [ x=3 ]",
    'R{"customers"}=? [ S ]',
    'R{"routes"}=? [ S ]',
)


def chain_of(text: str) -> CTMC:
    return load_prism_text(text).instantiate()


def storm_values(text: str, asked: str, folder: Path) -> float:
    file = folder / "m.sm"
    file.write_text(text)
    program = stormpy.parse_prism_program(str(file), prism_compatibility=True)
    written = asked.replace("S=?", "LRA=?").replace("[ S ]", "[ LRA ]")
    properties = stormpy.parse_properties(written, program)
    model = stormpy.build_model(program, properties)
    found = stormpy.model_checking(model, properties[0])
    return float(found.get_value(model.initial_states[0]))


def generator_of(chain: CTMC) -> Any:
    states = chain.states
    matrix = np.zeros((states, states))
    np.add.at(matrix, (chain.structure.transition_choice, chain.successor), chain.rate)
    return matrix - np.diag(matrix.sum(axis=1))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("asked", QUESTIONS)
def test_queue_agrees_with_storm(asked: str, tmp_path: Path) -> None:
    found = tr.solve(chain_of(QUEUE), asked)
    assert found.status == "certified" and found.bounds is not None
    low, high = found.bounds
    theirs = storm_values(QUEUE, asked, tmp_path)
    assert low - 5e-6 * abs(theirs) <= theirs <= high + 5e-6 * abs(theirs)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("text", "asked"), KNOWN)
def test_known_models_agree_with_storm(text: str, asked: str, tmp_path: Path) -> None:
    found = tr.solve(chain_of(text), asked)
    assert found.status == "certified" and found.bounds is not None
    low, high = found.bounds
    theirs = storm_values(text, asked, tmp_path)
    assert low - 5e-6 * abs(theirs) <= theirs <= high + 5e-6 * abs(theirs)


def test_rewards_of_a_moment_agree_with_matrix_exponentials() -> None:
    chain = chain_of(EPIDEMIC)
    sick = chain.structure.rewards["sick"].per_choice(chain.structure)
    for time in (0.5, 2.0):
        exact = float((expm(generator_of(chain) * time) @ sick)[0])
        bounds = tr.solve(chain, f'R{{"sick"}}=? [ I={time} ]').bounds
        assert bounds is not None and bounds[0] <= exact * (1 + 1e-11) and exact * (1 - 1e-11) <= bounds[1]


def test_slow_mixing_does_not_slow_down_shares_of_time() -> None:
    text = "ctmc module q x:[0..60]; [] x<60 -> 1:(x'=x+1); [] x>0 -> 1:(x'=x-1); endmodule"
    share = tr.solve(chain_of(text), "S=? [ x<=29 ]")
    assert share.status == "certified" and share.iterations < 100


def test_the_speed_benchmark_runs_in_small() -> None:
    path = TESTS.parent / "benchmarks" / "uniformisation_speed.py"
    spec = importlib.util.spec_from_file_location("uniformisation_speed", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text, _, asked in module.CASES:
        row = module.measure(name, text, 3, asked, 1)
        assert row["status"] == "certified" and row["lower"] - 1e-4 <= row["storm"] <= row["upper"] + 1e-4


@pytest.mark.parametrize("time", [0.25, 3.0, 40.0])
def test_bounds_contain_matrix_exponentials(time: float) -> None:
    chain = chain_of(QUEUE)
    generator = generator_of(chain)
    target = chain.structure.labels["full"]
    stopped = np.where(target[:, None], 0.0, generator)
    reach = expm(stopped * time)[:, target].sum(axis=1)
    found = tr.solve(chain, f'P=? [ F<={time} "full" ]')
    assert found.lower is not None and found.upper is not None
    assert (found.lower <= reach * (1 + 1e-11)).all() and (reach * (1 - 1e-11) <= found.upper).all()
    assert found.upper[0] - found.lower[0] <= 1e-6 * found.upper[0]
    customers = chain.earned["customers"]
    moment = expm(generator * time) @ customers
    now = tr.solve(chain, f'R{{"customers"}}=? [ I={time} ]')
    assert now.lower is not None and now.upper is not None
    assert (now.lower <= moment * (1 + 1e-11)).all() and (moment * (1 - 1e-11) <= now.upper).all()
    size = chain.states
    block = np.zeros((size + 1, size + 1))
    block[:size, :size], block[:size, size] = generator, chain.earned["routes"]
    total = expm(block * time)[:size, size]
    until = tr.solve(chain, f'R{{"routes"}}=? [ C<={time} ]')
    assert until.lower is not None and until.upper is not None
    assert (until.lower <= total * (1 + 1e-11)).all() and (total * (1 - 1e-11) <= until.upper).all()
    assert until.upper[0] - until.lower[0] <= 1e-6 * until.upper[0]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_chains_agree_with_matrix_exponentials_and_storm(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    rates = np.round(rng.exponential(2, (5, 5)) * (rng.random((5, 5)) < 0.5), 3) + 0.001
    commands = "\n".join(
        f"[] s={i} -> {' + '.join(f'{rates[i, j]:.3f}:(s{chr(39)}={j})' for j in range(5))};"
        for i in range(5)
    )
    text = f"ctmc module m s:[0..4]; {commands} endmodule rewards s>2 : 1.25; [] s=1 : 3; endrewards"
    chain = chain_of(text)
    time = float(np.round(rng.uniform(0.1, 3), 2))
    for asked in (f"P=? [ s<3 U<={time} s=4 ]", f"R=? [ C<={time} ]", "R=? [ F s=4 ]", "S=? [ s=2 ]"):
        bounds = tr.solve(chain, asked).bounds
        assert bounds is not None
        theirs = storm_values(text, asked, tmp_path)
        assert bounds[0] - 5e-6 * abs(theirs) <= theirs <= bounds[1] + 5e-6 * abs(theirs)
    generator = generator_of(chain)
    generator[3:] = 0
    exact = expm(generator * time)[0, 4]
    bounds = tr.solve(chain, f"P=? [ s<3 U<={time} s=4 ]").bounds
    assert bounds is not None and bounds[0] <= exact * (1 + 1e-11) and exact * (1 - 1e-11) <= bounds[1]


def test_small_probabilities_have_relative_bounds() -> None:
    found = tr.solve(chain_of(STIFF), 'P=? [ F<=1e-12 "bad" ]').bounds
    assert found is not None
    assert found[1] - found[0] <= 1e-6 * found[1]
    assert found[0] <= 1e-15 * (1 - 5e-10) <= found[1] * (1 + 1e-9)
    unreachable = tr.solve(chain_of(STIFF), "P=? [ s=2 U<=5 s=3 ]").bounds
    assert unreachable == (0.0, 0.0)


def test_complements_windows_and_thresholds() -> None:
    chain = chain_of(QUEUE)
    reach = tr.solve(chain, 'P=? [ F<=2 "full" ]').bounds
    safe = tr.solve(chain, 'P=? [ G<=2 !"full" ]').bounds
    assert reach is not None and safe is not None
    assert safe[0] <= 1 - reach[0] <= safe[1] + 1e-9
    assert tr.solve(chain, 'P<0.02 [ F<=2 "full" ]').truth == "true"
    assert tr.solve(chain, 'P>=0.5 [ F<=1 P>=0.1 [ F<=0.5 "full" ] ]').truth == "false"
    late = tr.solve(chain, 'P=? [ F>=0.5 "full" ]').bounds
    assert late is not None and late[0] > 1 - 1e-6
    assert tr.solve(chain, 'P=? [ F<=0 "full" ]').bounds == (0.0, 0.0)


def test_negative_rewards_are_bounded() -> None:
    text = "ctmc module m s:[0..1]; [] s=0 -> 2:(s'=1); [] s=1 -> 3:(s'=0); endmodule "
    text += "rewards s=0:-1; s=1:2; endrewards"
    chain = chain_of(text)
    generator = generator_of(chain)
    block = np.zeros((3, 3))
    block[:2, :2], block[:2, 2] = generator, [-1.0, 2.0]
    exact = expm(block * 1.5)[0, 2]
    bounds = tr.solve(chain, "R=? [ C<=1.5 ]").bounds
    assert bounds is not None and bounds[0] - 1e-12 <= exact <= bounds[1] + 1e-12
    assert bounds[1] - bounds[0] < 1e-5
    moment = expm(generator * 0.3)[0] @ [-1.0, 2.0]
    now = tr.solve(chain, "R=? [ I=0.3 ]").bounds
    assert now is not None and now[0] - 1e-12 <= moment <= now[1] + 1e-12


@pytest.mark.parametrize("mean", ["0", "1/3", "7", "123.4", "400"])
def test_poisson_weights_enclose_exact_probabilities(mean: str) -> None:
    rate = Fraction(mean)
    weights = poisson_weights(rate, 1e-9)
    terms = [Fraction(1)]
    while len(terms) <= weights.last + 400:
        terms.append(terms[-1] * rate / len(terms))
    total = sum(terms)  # e^mean, less a tail far below what is compared
    if rate <= 7:
        assert terms[3] == rate**3 / factorial(3)
    inside = terms[weights.first : weights.last + 1]
    below, above = sum(terms[: weights.first]), sum(terms[weights.last + 1 :])
    assert below / total <= weights.left and above / total <= weights.right
    assert weights.left + weights.right <= 4e-9
    excess = sum(i * term for i, term in enumerate(terms[weights.last :]))
    assert excess / total <= weights.excess
    for k in range(0, len(inside), max(1, len(inside) // 50)):
        computed = Fraction(float(weights.weight[k]))
        slack = Fraction(weights.error)
        assert computed * (1 - slack) / Fraction(weights.high_total) <= inside[k] / total
        assert inside[k] / total <= computed * (1 + slack) / Fraction(weights.low_total)


# --- parameters ----------------------------------------------------------------------------


def test_rates_with_parameters_and_rewards_of_transitions() -> None:
    model = load_prism_text(FARM, box="lam=0.1:1,mu=0.5:2")
    chain = model.instantiate(lam=Fraction(1, 4), mu=1)
    assert chain.rate.tolist() == [0.75, 0.5, 1.0, 0.25, 1.0, 1.0]
    assert chain.earned["repairs"].tolist() == [0.0, 0.25, 0.25, 0.25]
    assert isinstance(model, ParametricCTMC) and model.parameters.names == ("lam", "mu")
    with pytest.raises(InputError, match="lies outside the domain"):
        model.instantiate(lam=3, mu=1)


def test_bounds_over_a_box_contain_all_fixed_rates() -> None:
    model = load_prism_text(FARM, box="lam=0.2:0.4,mu=0.8:1.2")
    box = over_box(model, model.parameters.lower, model.parameters.upper)
    rng = np.random.default_rng(3)
    for path in (
        'P{} [ F<=6 "down" ]',
        'R{{"lost"}}{} [ C<=5 ]',
        'R{{"lost"}}{} [ F "down" ]',
        "S{} [ up>1 ]",
    ):
        low = tr.solve(box, path.format("min=?")).bounds
        high = tr.solve(box, path.format("max=?")).bounds
        assert low is not None and high is not None
        for _ in range(4):
            lam, mu = rng.uniform(0.2, 0.4), rng.uniform(0.8, 1.2)
            value = tr.solve(model.instantiate(lam=lam, mu=mu), path.format("=?")).bounds
            assert value is not None and low[0] <= value[1] and value[0] <= high[1]
        corner = tr.solve(model.instantiate(lam=0.4, mu=0.8), path.format("=?")).bounds
        other = tr.solve(model.instantiate(lam=0.2, mu=1.2), path.format("=?")).bounds
        assert corner is not None and other is not None
        # Here one end of every interval is best at all times, so the bounds are those corners.
        wide = sorted((corner[0], other[0]))
        assert abs(low[0] - wide[0]) < 2e-4 * (1 + wide[0]) and abs(high[1] - wide[1]) < 2e-4 * (1 + wide[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ctmc module m s:[0..1]; [] s=0 -> -1:(s'=1); endmodule", "the rate -1 is negative"),
        (
            "ctmc const double p; module m s:[0..1]; [] s=0 -> p-1:(s'=1); endmodule",
            "the rate p - 1 is negative at p=0",
        ),
        ("ctmc module m s:[0..1]; [] s=0 -> [1,2]:(s'=1); endmodule", "intervals of rates are not read"),
    ],
)
def test_wrong_chains_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        load_prism_text(text)
    assert message in str(raised.value)


def test_discrete_commands_refuse_continuous_models_in_words(tmp_path: Path) -> None:
    (tmp_path / "queue.sm").write_text(QUEUE)
    with pytest.raises(InputError, match="a model in continuous time"):
        read_model(ModelRequest(str(tmp_path / "queue.sm"), {}))


def test_times_inside_of_formulas_are_refused() -> None:
    chain = chain_of(QUEUE)
    for asked in ('P=? [ (F<=2 "full") & (G x<3) ]', 'P=? [ F{"customers"}<=2 "full" ]', "P=? [ F<=-1 x=1 ]"):
        with pytest.raises(InputError):
            tr.solve(chain, asked)


def test_what_counts_steps_or_single_costs_is_refused() -> None:
    chain = chain_of(QUEUE)
    for asked in ("R=? [ C>=2 ]", "CVaR{0.5}=? [ C ]", 'quantile(min k, P>0.5 [ F<=k "full" ])'):
        with pytest.raises(InputError, match="not supported in continuous time"):
            tr.solve(chain, asked)


def test_a_state_whose_commands_have_rate_0_is_a_deadlock() -> None:
    text = "ctmc module m s:[0..2]; [] s<2 -> 1-s:(s'=s+1); endmodule"
    model = load_prism_text(text)
    assert model.structure.labels["deadlock"].tolist() == [False, True]


# --- the command line ----------------------------------------------------------------------


def test_check_and_info_refers_to_continuous_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "farm.sm"
    file.write_text(FARM)

    def said(*words: str) -> Any:
        assert run([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert said("info", str(file), "--param", "lam=0.1:1,mu=0.5:2")["type"] == "parametric CTMC"
    asked = ("--prop", 'P=? [ F<=6 "down" ]')
    found = said("check", str(file), "--at", "lam=0.3,mu=1", *asked)
    assert found["status"] == "certified" and found["upper"] - found["lower"] < 1e-8
    box = ("--param", "lam=0.2:0.4,mu=0.8:1.2")
    over = said("check", str(file), *box, *asked, "--sets", "expression")
    assert over["lower"] < found["lower"] < found["upper"] < over["upper"]
    proof = str(tmp_path / "farm.cert")
    said("check", str(file), "--at", "lam=0.3,mu=1", *asked, "--certificate", proof)
    verdict = said("verify", proof, "--model", str(file), *asked, "--at", "lam=0.3,mu=1")
    assert verdict["lower"] <= found["lower"] and found["upper"] <= verdict["upper"]
    assert verdict["upper"] - verdict["lower"] < 1e-8
    threshold = ("--prop", f'P<={found["upper"] + 1e-3} [ F<=6 "down" ]', "--at", "lam=0.3,mu=1")
    assert said("verify", proof, "--model", str(file), *threshold)["answer"] == "true"
    said("check", str(file), *box, *asked, "--sets", "expression", "--certificate", proof, "--overwrite")
    verdict = said("verify", proof, "--model", str(file), *box, *asked)
    assert verdict["lower"] == pytest.approx(over["lower"], abs=1e-9)
    assert verdict["upper"] == pytest.approx(over["upper"], abs=1e-9)


def test_certificates_are_about_the_jumps_of_a_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`verify --model` derives the embedded chain from the file itself, at the point that it is given."""
    file, proof = tmp_path / "farm.sm", tmp_path / "farm.cert"
    file.write_text(FARM)
    chain = load_prism_text(FARM).instantiate(lam=0.3, mu=1)
    at = ("--at", "lam=0.3,mu=1")
    for asked in ('P=? [ "up" U "down" ]', 'R{"lost"}=? [ F "down" ]'):
        prop = ("--prop", asked.replace('"up"', "(up>0)"))
        assert run(["check", str(file), *at, *prop, "--certificate", str(proof), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        exact = tr.solve(
            tr.load(file, params={"lam": (0, 1), "mu": (0, 1)}).instantiate(lam=0.3, mu=1), prop[1]
        )
        assert (
            exact.bounds is not None
            and found["lower"] <= exact.bounds[1]
            and exact.bounds[0] <= found["upper"]
        )
        assert run(["verify", str(proof), "--model", str(file), *at, *prop, "--json"]) == 0
        verdict = json.loads(capsys.readouterr().out)
        assert verdict["valid"] and verdict["bound"]["model"] and verdict["bound"]["property"]
        assert verdict["lower"] <= found["lower"] + 1e-9
    other = ("--at", "lam=0.31,mu=1")
    assert run(["verify", str(proof), "--model", str(file), *other, *prop]) == 1
    assert "model" in capsys.readouterr().err
    timed = ("--prop", 'P=? [ F<=6 "down" ]')
    assert run(["verify", str(proof), "--model", str(file), *at, *timed]) == 2
    assert "only what does not refer to time is answered" in capsys.readouterr().err
    assert tr.verify(proof, model=chain).valid


def test_steps_in_several_calls_are_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_of(QUEUE)
    asked = ('P=? [ F<=3 "full" ]', 'R{"routes"}=? [ C<=2 ]')
    once = [tr.solve(chain, one).bounds for one in asked]
    monkeypatch.setattr("tightrope.continuous.transient._AT_ONCE", 700)
    assert [tr.solve(chain, one).bounds for one in asked] == once


def test_the_time_limit_ends_uniformisation_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "queue.sm"
    file.write_text(QUEUE)
    words = ["check", str(file), "--prop", 'P=? [ F<=1000000 "full" ]', "--time-limit", "0.001"]
    assert run(words) == 1
    assert "the time limit was reached after" in capsys.readouterr().err


def test_long_times_end_when_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_of(QUEUE)
    monkeypatch.setattr("tightrope.continuous.transient._AT_ONCE", 200_000)
    late = tr.solve(chain, 'R{"customers"}=? [ I=50000 ]').bounds
    average = tr.solve(chain, 'R{"customers"}=? [ S ]', precision=1e-9).bounds
    assert late is not None and average is not None
    assert late[0] <= average[1] and average[0] <= late[1] and late[1] - late[0] < 1e-6 * late[1]


def test_every_chain_has_its_time() -> None:
    """Expected times need no rewards in the model; rewards without a name do; the model stays the same."""
    chain = tr.build_ctmc_from_rows([(0, {1: "1"}), (1, {2: "2", 0: "1"}), (2, {2: "1"})], labels={"d": [2]})
    before = chain.instantiate().hash()
    assert tr.solve(chain.instantiate(), 'T=? [ F "d" ]').bounds == pytest.approx((2.0, 2.0), abs=1e-6)
    assert tr.solve(chain.instantiate(), "T=? [ C<=3 ]").bounds == pytest.approx((3.0, 3.0), abs=1e-6)
    assert tr.solve(chain.instantiate(), "T=? [ I=2 ]").bounds == pytest.approx((1.0, 1.0), abs=1e-6)
    with pytest.raises(InputError, match="no reward structure") as refused:
        tr.solve(chain.instantiate(), 'R=? [ F "d" ]')
    assert refused.value.hint is not None and "T=?" in refused.value.hint
    assert chain.instantiate().hash() == before and not chain.structure.rewards


@pytest.mark.parametrize(
    "text", ['R{"r"}=? [ C<=2 ]', 'R{"r"}=? [ I=0.25 ]', 'R{"r"}=? [ S ]', "S=? [ s=3 ]"]
)
def test_what_no_reachable_state_earns_is_nothing_exactly(text: str) -> None:
    """Bounds of a sum of weights round outward, but a sum of zeros is zero."""
    chain = load_prism_text(
        "ctmc module m s : [0..3]; [] s=0 -> 2 : (s'=1) + 1 : (s'=2); [] s=1 -> 3 : (s'=0); "
        "[] s=2 -> 1 : (s'=0) + 0.5 : (s'=1); endmodule rewards \"r\" s=3 : 1; endrewards"
    )
    solved = tr.solve(chain, text)
    assert solved.is_certified and solved.bounds == (0, 0)


def test_states_that_earn_nothing_any_more_do_not_slow_down_the_others() -> None:
    """s=1 and s=2 change 10,000 times per unit of time, and earn nothing."""
    chain = load_prism_text(
        "ctmc module m s : [0..2]; [] s=0 -> 1 : (s'=1); [] s=1 -> 1e4 : (s'=2); [] s=2 -> 1e4 : (s'=1); "
        'endmodule rewards "r" s=0 : 3; endrewards'
    )
    solved = tr.solve(chain, 'R{"r"}=? [ C<=2 ]')
    expected = 3 * (1 - np.exp(-2))
    assert solved.is_certified and solved.bounds == pytest.approx((expected, expected), rel=1e-6)
    assert solved.iterations < 100


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("question", ["I=1", "C<=1", "C<=1000"])
def test_rewards_near_the_largest_double_are_enclosed(question: str, sign: int) -> None:
    rows = [(0, {1: 3}), (1, {0: 2})]
    chain = tr.build_ctmc_from_rows(rows, state_rewards={"r": [sign * 0.8e308, 0]}).instantiate()  # type: ignore[union-attr]
    small = tr.build_ctmc_from_rows(rows, state_rewards={"r": [1, 0]}).instantiate()  # type: ignore[union-attr]
    low, high = tr.solve(chain, f"R=? [ {question} ]").bounds
    exact = sign * Fraction(tr.solve(small, f"R=? [ {question} ]").bounds[0]) * 8 * 10**307
    assert low <= exact <= high
