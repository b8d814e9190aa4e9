"""The registry of case studies: names, arguments, domains and true points, before any model is built."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction
from itertools import product

import pytest

from tightrope.benchmarks.families import FAMILIES, rover_tries
from tightrope.benchmarks.instance import Instance, decimal_text
from tightrope.benchmarks.suite import list_instances, parse_bench
from tightrope.errors import InputError

LISTED = list_instances()


def test_six_families_of_four_instances() -> None:
    assert list(FAMILIES) == ["aircraft", "betting", "engagement", "rover", "glider", "parallel"]
    assert len(LISTED) == 24
    assert {i.family for i in LISTED} == set(FAMILIES)


def test_every_listed_instance_is_found_by_its_name() -> None:
    for instance in LISTED:
        assert parse_bench(f"bench:{instance.name}") == instance
        assert parse_bench(instance.name) == instance


def test_instances_can_be_keys_and_travel_to_other_processes() -> None:
    assert len(set(LISTED)) == 24
    assert pickle.loads(pickle.dumps(LISTED)) == LISTED


def test_spaces_do_not_matter() -> None:
    assert parse_bench("bench: rover ( 125 , 125 ) ") == parse_bench("bench:rover(125,125)")


@pytest.mark.parametrize("instance", LISTED, ids=lambda i: i.name)
def test_true_point_is_inside_the_domain_with_room_around_it(instance: Instance) -> None:
    parameters = instance.parameters()
    assert parameters.names == instance.parameter_names
    assert parameters.contains(instance.truth)
    for low, value, high in zip(parameters.lower, instance.truth, parameters.upper, strict=True):
        room = min(value - low, high - value) / (high - low)
        assert room > Fraction(1, 20)
    assert all(constraint.excess(instance.truth) < 0 for constraint in parameters.constraints)


def test_true_points() -> None:
    def truth(name: str) -> str:
        return parse_bench(name).truth_text

    assert truth("aircraft(50,10)") == "theta1=0.4,theta2=0.3,theta3=0.2"
    assert truth("betting(50)") == "p=0.55,q=0.0004"
    assert truth("engagement(50)") == "theta1=0.3,theta2=0.25,theta3=0.2,theta4=0.15"
    assert truth("rover(10,10)") == "theta1=0.12,theta2=0.18,theta3=0.14,theta4=0.2,theta5=0.16,theta6=0.2"
    assert truth("glider(11,9)") == "theta_h=0.6,theta_v=0.4"
    assert truth("parallel(10)") == "p1=0.55,p2=0.53,q=0.001"
    assert truth("parallel(20)") == "p1=0.55,p2=0.53,q=0.0004"


def test_episode_caps_and_the_terminal_reward() -> None:
    caps = {family.name: family.episode_cap for family in FAMILIES.values()}
    assert caps == {
        "aircraft": 1000,
        "betting": 1000,
        "engagement": 10_000,
        "rover": 1000,
        "glider": 100,
        "parallel": 1000,
    }
    assert {f.name: f.terminal_reward for f in FAMILIES.values() if f.terminal_reward} == {
        "engagement": "penalty"
    }


def test_names_in_the_paper() -> None:
    assert {i.name: i.paper_name for i in LISTED if i.paper_name} == {
        "betting(135)": "betting(150)",
        "glider(71,67)": "glider(106,99)",
    }


@pytest.mark.parametrize(
    ("width", "tries"),
    [(2, 6), (10, 6), (49, 6), (50, 9), (74, 9), (75, 12), (124, 12), (125, 14), (300, 14)],
)
def test_rover_tries_follow_the_width(width: int, tries: int) -> None:
    assert rover_tries(width) == tries
    assert parse_bench(f"rover({width},7)").constants == {"width": width, "height": 7, "M": tries}


def test_unlisted_arguments_are_fine_and_their_sizes_unknown() -> None:
    instance = parse_bench("bench:betting(37)")
    assert instance.constants == {"n": 37}
    assert instance.sizes is None and instance.optimum is None
    with pytest.raises(ValueError, match=r"betting\(37\)"):
        _ = instance.optimum_tolerance


@pytest.mark.parametrize("rounds", [1, 5, 25, 50, 100, 135, 146])
def test_betting_stays_a_probability_in_the_corners_of_its_box(rounds: int) -> None:
    parameters = parse_bench(f"betting({rounds})").parameters()
    (p_low, q_low), (p_high, q_high) = parameters.lower, parameters.upper
    for p, q, money in product((p_low, p_high), (q_low, q_high), (0, 10 * rounds)):
        for win in (p, p + Fraction("0.0002") * money, p + Fraction("0.0003") * money, p / 2 + q * money):
            assert 0 < win < 1
    assert p_low < Fraction("0.55") < p_high and q_low < Fraction("0.0004") < q_high


@pytest.mark.parametrize("rounds", [1, 5, 6, 10, 11, 20, 146])
def test_parallel_stays_a_probability_in_the_corners_of_its_box(rounds: int) -> None:
    instance = parse_bench(f"parallel({rounds})")
    parameters = instance.parameters()
    short = instance.constants["version"] == 1
    assert short == (rounds <= 10)
    for corner in product(*zip(parameters.lower, parameters.upper, strict=True)):
        p1, p2, q = corner
        for money in (0, 10 * rounds):
            wins = (
                (p1 + Fraction("0.003") * money, p2 + Fraction("0.004") * money)
                if short
                else (p1 + Fraction("0.0003") * money, p2 + Fraction("0.0003") * money)
            )
            large = (p1 / 2 + (4 if short else 1) * q * money, p2 / 2 + (5 if short else 1) * q * money)
            assert all(0 < win < 1 for win in (*wins, *large))
    assert parameters.contains(instance.truth)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("bench:maze(3)", "there is no benchmark family 'maze'", "aircraft(N,M), betting(n)"),
        ("bench:roover(3,3)", "there is no benchmark family 'roover'", "did you mean rover(X,Y)?"),
        ("bench:rover(3)", "has 1 argument, rover takes 2", "bench:rover(10,10)"),
        ("bench:betting", "has 0 arguments, betting takes 1", "bench:betting(25)"),
        ("bench:betting()", "has 0 arguments, betting takes 1", "bench:betting(25)"),
        ("bench:betting(1,2)", "has 2 arguments, betting takes 1", "bench:betting(n)"),
        ("bench:rover(3,b)", "Y must be an integer, got 'b'", "bench:rover(X,Y)"),
        ("bench:rover(3,4.5)", "Y must be an integer, got '4.5'", "bench:rover(X,Y)"),
        ("bench:rover(3,4", "does not name a benchmark", "bench:NAME(ARGS)"),
        ("bench:", "does not name a benchmark", "bench:NAME(ARGS)"),
        ("bench:glider(1,9)", "X must be at least 2, got 1", ""),
        ("bench:engagement(-5)", "L must be at least 2, got -5", ""),
        (
            "bench:betting(150)",
            "n must be at most 146, got 150",
            "the paper calls betting(150) is bench:betting(135)",
        ),
        ("bench:parallel(200)", "n must be at most 146, got 200", "above 0.99"),
    ],
)
def test_a_wrong_name_is_explained(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_bench(text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_decimals_are_exact_or_stay_quotients() -> None:
    assert decimal_text(Fraction(13, 25000)) == "0.00052"
    assert decimal_text(Fraction(1, 7)) == "1/7"
    assert decimal_text(Fraction(0)) == "0"


def test_the_registry_is_cheap_to_import() -> None:
    code = (
        "import sys, tightrope.benchmarks.suite, tightrope_campaigns.published\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pyarrow', 'matplotlib', 'lark'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
