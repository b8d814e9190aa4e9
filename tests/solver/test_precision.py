"""Precisions close to what float64 carries: reached where they can be, else the closest verified bounds."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.prism.load import load_prism_text
from tightrope.solver import Status, elimination, solve

FEW = 20_000


def walk(inner: int, off: float = 0.0) -> MDP | IntervalMDP:
    """A walk on 0..inner+1 that moves by one or stays, up and down with 1/4 each, or `off` more or less."""
    states = inner + 2
    successor = [0, *(t for s in range(1, inner + 1) for t in (s - 1, s, s + 1)), inner + 1]
    middle = np.tile([0.25, 0.5, 0.25], inner)
    structure = Structure(
        choice_start=np.arange(states + 1),
        transition_start=np.concatenate([[0, 1], 1 + 3 * np.arange(1, inner + 1), [3 * inner + 2]]),
        successor=np.array(successor, np.int32),
        rewards={"steps": RewardStructure(state=np.ones(states))},
    )
    if off == 0.0:
        return MDP(structure, np.concatenate([[1.0], middle, [1.0]]))
    ends = np.ones(1)
    return IntervalMDP(
        structure, np.concatenate([ends, middle - off, ends]), np.concatenate([ends, middle + off, ends])
    )


def to_the_top(inner: int) -> Objective:
    top = np.arange(inner + 2) == inner + 1
    return Objective(ObjectiveKind.UNTIL, Direction.MAX, Direction.MIN, target=top)


def to_either_end(inner: int, model: MDP | IntervalMDP) -> Objective:
    place = np.arange(inner + 2)
    ends = (place == 0) | (place == inner + 1)
    steps = model.structure.rewards["steps"]
    return Objective(ObjectiveKind.REACH_REWARD, Direction.MIN, Direction.MAX, target=ends, reward=steps)


@pytest.mark.parametrize("precision", [1e-11, 1e-12, 1e-13])
@pytest.mark.parametrize("relative", [True, False])
def test_precisions_that_float64_carries_are_reached(precision: float, relative: bool) -> None:
    solution = solve(walk(5), to_the_top(5), precision=precision, relative=relative, iterations=FEW)
    assert solution.is_certified and solution.gap <= precision
    for state in range(7):
        assert Fraction(solution.lower[state]) <= Fraction(state, 6) <= Fraction(solution.upper[state])


@pytest.mark.parametrize("off", [0.0, 0.0625])
def test_rewards_and_intervals_are_as_close(off: float) -> None:
    model = walk(5, off)
    steps = solve(model, to_either_end(5, model), precision=1e-12, iterations=FEW)
    assert steps.is_certified
    if off == 0.0:  # s·(6−s)/(2·¼) steps
        exact = [Fraction(2 * s * (6 - s)) for s in range(7)]
        assert all(Fraction(low) <= x for low, x in zip(steps.lower, exact, strict=True))
        assert all(x <= Fraction(high) for high, x in zip(steps.upper, exact, strict=True))
    assert solve(model, to_the_top(5), precision=1e-12, iterations=FEW).is_certified


@pytest.mark.parametrize("inner", [5, 40])
@pytest.mark.parametrize("off", [0.0, 0.0625])
def test_a_precision_beyond_float64_ends_with_the_closest_bounds(inner: int, off: float) -> None:
    """Steps are 2·10⁵ on the long walk with intervals, and as many rounding errors add up."""
    model = walk(inner, off)
    for objective in (to_the_top(inner), to_either_end(inner, model)):
        solution = solve(model, objective, precision=1e-15, iterations=FEW)
        assert solution.status is Status.PRECISION_LIMIT and solution.iterations < 500
        coarse = solve(model, objective, precision=1e-6, iterations=FEW)
        assert coarse.is_certified
        assert solution.gap <= 2e-14 * max(10.0, float(coarse.upper.max()), inner**2)
        assert np.all(solution.lower <= coarse.upper) and np.all(coarse.lower <= solution.upper)


def coin_of_runs(length: int, gives_up: bool = False) -> MDP:
    """A coin of 7/10 picks a side, on which a run of `length` heads ends the play and a tail starts it anew
    (Haddad and Monmege): 2^length rounds. With `gives_up` one may also
    end a play at once, half of the time."""
    rows: list[tuple[int, str, dict[int, float]]] = [(0, "fair", {1: 0.7, length + 1: 0.3})]
    if gives_up:
        rows.append((0, "give up", {2 * length: 0.5, 0: 0.5}))
    for side in (1, length + 1):
        rows += [(side + i, "", {side + i + 1: 0.5, 0: 0.5}) for i in range(length - 1)]
        rows.append((side + length - 1, "", {side + length - 1: 1.0}))
    labels, cost = {"won": [length], "over": [length, 2 * length]}, [1.0] * (2 * length + 1)
    made = tr.build_from_rows(rows, labels=labels, state_rewards={"steps": cost})
    return made.instantiate() if isinstance(made, tr.ParametricMDP) else made


def test_where_iteration_cannot_states_are_eliminated(tmp_path: Path) -> None:
    model = coin_of_runs(60, gives_up=True)
    solution = tr.solve(model, 'Pmax>=0.6999999999 [ F "won" ]')
    assert solution.status is Status.CERTIFIED and solution.is_eliminated and solution.truth == "true"
    low, high = solution.bounds
    assert low <= 0.7 <= high and high - low < 1e-12
    rounds = 2**60 - 2  # 2 + 4 + … + 2^59 tosses for a run of 59 heads, and one to pick the side each time
    low, high = tr.solve(coin_of_runs(60), 'R{"steps"}=? [ F "over" ]').bounds
    assert low <= rounds + 2**59 <= high and high - low < 1e-10 * high
    with pytest.raises(tr.CannotCertify, match="elimination of states"):
        tr.certify(tr.Problem(coin_of_runs(60), 'P=? [ F "won" ]'), tmp_path / "c.cert")


@pytest.mark.parametrize("seed", range(3))
def test_dense_elimination_encloses_rational_values(seed: int) -> None:
    """Chains that leave with probabilities down to 10⁻¹³, every state next to every other one."""
    rng, size = np.random.default_rng(seed), 12
    weights, leaving, earned = {}, {}, {}
    for state in range(size):
        likely = rng.integers(0, 3, size) * (np.arange(size) != state)
        ends = float(10.0 ** -rng.integers(0, 14)) if state % 3 == 0 else 0.0
        total = likely.sum() + ends
        weights[state] = {j: (float(w / total), float(w / total)) for j, w in enumerate(likely.tolist()) if w}
        leaving[state] = (ends / total, ends / total)
        earned[state] = (float(state % 4), float(state % 4))
    found = elimination._solve_densely(weights, leaving, earned)
    assert found is not None
    rows = [[Fraction(0)] * (size + 1) for _ in range(size)]
    for state in range(size):
        for other, (weight, _) in weights[state].items():
            rows[state][other] -= Fraction(weight)
        rows[state][state] = Fraction(leaving[state][0]) - sum(rows[state])
        rows[state][size] = Fraction(earned[state][0])
    for k in range(size):
        for other in range(size):
            if other != k:
                factor = rows[other][k] / rows[k][k]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[k], strict=True)]
    for state in range(size):
        low, high = found[state]
        assert Fraction(low) <= rows[state][size] / rows[state][state] <= Fraction(high)
        assert high - low <= 1e-9 * high


def test_elimination_ends_in_dense_arrays_where_states_are_left_with_many_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One dictionary update after the other took seconds for a few hundred states; both ways agree."""
    rng, size = np.random.default_rng(1), 40
    rows: list[tuple[int, str, dict[int, Fraction]]] = []
    ends = Fraction(1, 2**44)
    for state in range(size):
        others = rng.choice([s for s in range(size) if s != state], 12, replace=False)
        rows.append((state, "", {**{int(s): (1 - ends) / 12 for s in others}, size: ends}))
    rows.append((size, "", {size: Fraction(1)}))
    model = tr.build_from_rows(rows, labels={"end": [size]}, state_rewards={"r": [1.0] * size + [0.0]})
    plain, text = model.instantiate(), 'R{"r"}=? [ F "end" ]'
    dense = tr.solve(plain, text)
    monkeypatch.setattr(elimination, "MOST_DENSE", 0)
    sparse = tr.solve(plain, text)
    assert dense.is_eliminated and sparse.is_eliminated and dense.is_certified
    assert dense.bounds == pytest.approx(sparse.bounds, rel=1e-9)
    assert dense.lower[0] <= sparse.upper[0] and sparse.lower[0] <= dense.upper[0]


def chain_of_rewards(reward: str, again: str = "0") -> MDP:
    """Three steps to the end, one of which may be repeated."""
    text = f"""dtmc
      module m
        x : [0..3];
        [a] x<2 -> (x'=x+1);
        [a] x=2 -> {again} : true + 1-{again} : (x'=3);
        [b] x=3 -> true;
      endmodule
      rewards "r" x<3 : {reward}; endrewards
      label "end" = x=3;"""
    model = load_prism_text(text)
    assert isinstance(model, tr.ParametricMDP)
    return model.instantiate()


@pytest.mark.parametrize("again", ["0", "1/2"])
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("question", ['F "end"', "C", "C<=3", "C<=2000000", "C>=1"])
def test_sums_beyond_all_doubles_are_enclosed(question: str, sign: str, again: str) -> None:
    model = chain_of_rewards(f"{sign}0.7e308", again)
    solution = tr.solve(model, f"R=? [ {question} ]")
    bounds = solution.bounds
    assert bounds is not None
    low, high = bounds
    steps = (2 if question == "C>=1" else 3) + (again != "0" and question != "C<=3")
    if again != "0" and question == "C<=2000000":
        steps -= Fraction(1, 2**200)  # less than nothing is left of it
    value = steps * 7 * 10**307 * (1 if sign == "" else -1)
    assert low <= value <= high
    assert solution.is_certified == (abs(value) < sys.float_info.max)


def test_discounted_sums_beyond_all_doubles_are_enclosed() -> None:
    for sign in (1, -1):
        model = chain_of_rewards(f"{sign}*0.7e308", "1/2")
        solution = tr.solve(model, "R=? [ Cdiscount=0.99 ]")
        assert solution.bounds is not None
        low, high = solution.bounds
        rest = Fraction(99, 100)
        value = 7 * 10**307 * sign * (1 + rest + rest**2 / (1 - rest / 2))
        assert low <= value <= high and not solution.is_certified


def test_rewards_of_a_state_and_its_choice_are_together_a_double() -> None:
    with pytest.raises(tr.InputError, match="'r' has a state reward not finite or too large"):
        tr.build_from_rows([(0, "", {0: 1})], state_rewards={"r": [1.7e308]})


def test_intervals_of_rewards_beyond_all_doubles_are_enclosed() -> None:
    text = """mdp
      module m
        x : [0..3];
        [a] x<3 -> [0.1,0.6] : (x'=x+1) + [0.3,0.9] : true;
        [b] x=3 -> true;
      endmodule
      rewards "r" x<3 : SIGN0.7e308; endrewards
      label "end" = x=3;"""
    for sign in ("", "-"):
        model = load_prism_text(text.replace("SIGN", sign))
        for directions in ("maxmin", "minmax"):
            least = 30 if (sign == "-") == (directions == "maxmin") else 5
            solution = tr.solve(model, f'R{directions}=? [ F "end" ]')
            value = least * 7 * 10**307 * (1 if sign == "" else -1)
            assert solution.bounds is not None
            assert solution.bounds[0] <= value <= solution.bounds[1]
            assert not solution.is_certified


def test_filters_of_rewards_beyond_all_doubles_are_enclosed() -> None:
    for sign in ("", "-"):
        answer = tr.solve(chain_of_rewards(f"{sign}0.8e308"), "filter(sum, R=? [ C<=2 ])")
        value = 5 * 8 * 10**307 * (1 if sign == "" else -1)
        assert answer.bounds is not None
        assert answer.bounds[0] <= value <= answer.bounds[1]
