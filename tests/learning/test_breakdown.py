"""Misfit and breakdown: what still holds where the process is not quite the model, against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.certify.learned import certificate_of
from tightrope.learning.robustness import CLOSENESS, breakdown
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.problem import Certificate

GOAL, LOST = 3, 4


def random_model(rng: np.random.Generator) -> tr.ParametricMDP:
    """Three states with one or two choices each, two or three successors, two parameters."""
    parameters = tr.Parameters.box(p=(0, 0.5), q=(0, 0.5))
    p, q = parameters.symbols()
    rows = []
    for state in range(3):
        for choice in range(int(rng.integers(1, 3))):
            first, second, third = rng.permutation(5)[:3].tolist()
            if rng.random() < 0.5:
                rows.append((state, f"a{choice}", {first: p + q, second: 1 - p - q}))
            else:
                rows.append((state, f"a{choice}", {first: p, second: q, third: 1 - p - q}))
    rows += [(GOAL, "", {GOAL: 1}), (LOST, "", {LOST: 1})]
    return tr.build_from_rows(rows, parameters, labels={"goal": [GOAL]})


def learned(rng: np.random.Generator, **options: object) -> tr.LearningResult:
    model = random_model(rng)
    point = {"p": float(rng.uniform(0.05, 0.45)), "q": float(rng.uniform(0.05, 0.45))}
    simulator = tr.Simulator(model.instantiate(point), model_hash=model.hash())
    data = simulator.generative(int(rng.integers(20, 300)), seed=int(rng.integers(1 << 30)))
    property = str(rng.choice(['Pmax=? [ F "goal" ]', 'Pmin=? [ F "goal" ]', 'Pmax=? [ G !"goal" ]']))
    return tr.learn(model.problem(property), data, delta=0.1, **options)  # type: ignore[arg-type]


def vertices(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """All corners of lower ≤ p ≤ upper, Σp = 1: all but one entry at a bound."""
    size, found = len(lower), []
    for loose in range(size):
        others = [i for i in range(size) if i != loose]
        for ends in product((0, 1), repeat=size - 1):
            corner = np.zeros(size)
            corner[others] = [(lower, upper)[end][i] for i, end in zip(others, ends, strict=True)]
            corner[loose] = 1 - corner.sum()
            if lower[loose] - 1e-12 <= corner[loose] <= upper[loose] + 1e-12:
                found.append(corner)
    return np.array(found)


def worst_by_enumeration(result: tr.LearningResult, misfit: float) -> float:
    """The worst value of the robust policy: nature's corners at all states together, each a linear system."""
    structure, sets = result.model.structure, result.sets
    options = []
    for state in range(3):
        choice = int(result.policy.choice[state])
        at = slice(structure.transition_start[choice], structure.transition_start[choice + 1])
        ends = np.maximum(sets.lower[at] - misfit, 0), np.minimum(sets.upper[at] + misfit, 1)
        table = np.zeros((0, 5))
        for corner in vertices(*ends):
            row = np.zeros(5)
            np.add.at(row, structure.successor[at], corner)
            table = np.vstack([table, row])
        options.append(table)
    sizes = [np.arange(len(table)) for table in options]
    grid = np.stack(np.meshgrid(*sizes, indexing="ij"), axis=-1).reshape(-1, 3)
    rows = np.stack([options[s][grid[:, s]] for s in range(3)], axis=1) * (1 - 1e-13)
    reached = np.linalg.solve(np.eye(3) - rows[:, :, :3], rows[:, :, GOAL][:, :, None])[:, 0, 0]
    if result.problem.objective.complement:
        return float(1 - reached.max())
    return float(reached.min() if result.problem.maximises else reached.max())


@pytest.mark.thinned(11)
@pytest.mark.parametrize("seed", range(100))
def test_breakdown_against_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    result = learned(rng, sets=str(rng.choice(["tied", "untied", "expression"])))
    sign = 1 if result.problem.maximises else -1
    found = result.find_breakdown_point(threshold=result.guarantee - sign * float(rng.uniform(0, 0.2)))

    def kept(misfit: float) -> bool:
        return sign * worst_by_enumeration(result, misfit) >= sign * found.threshold

    if found.fails is None:
        assert kept(0.999999)
        return
    least, most = 0.0, 1.0
    for _ in range(24):
        middle = (least + most) / 2
        least, most = (middle, most) if kept(middle) else (least, middle)
    assert found.holds <= most * (1 + 1e-5) + 1e-6
    assert found.fails >= least * (1 - 1e-5) - 1e-6
    assert found.fails <= max(1.011 * CLOSENESS * found.holds, 1e-6)


def test_total_variation_is_within_what_holds() -> None:
    """Processes at the boundary of the ball, drawn at random, keep the threshold."""
    rng = np.random.default_rng(5)
    result = learned(rng, sets="tied")
    found = result.find_breakdown_point()
    structure, sign = result.model.structure, 1 if result.problem.maximises else -1
    for _ in range(200):
        matrix = np.eye(5)
        for state in range(3):
            choice = int(result.policy.choice[state])
            at = slice(structure.transition_start[choice], structure.transition_start[choice + 1])
            base = rng.choice(vertices(result.sets.lower[at], result.sets.upper[at]))
            donor, taker = rng.permutation(len(base))[:2]
            moved = min(found.holds, base[donor])
            base[donor] -= moved
            base[taker] += moved
            matrix[state] = 0
            np.add.at(matrix[state], structure.successor[at], base)
        inner = np.eye(3) - (1 - 1e-13) * matrix[:3, :3]
        value = np.linalg.solve(inner, matrix[:3, GOAL])[0]
        value = 1 - value if result.problem.objective.complement else value
        assert sign * value >= sign * found.threshold - 1e-9


def _walk(property: str = 'Pmax=? [ F "goal" ]') -> tuple[tr.Problem, object]:
    parameters = tr.Parameters.box(p=(0.05, 0.5), q=(0.1, 0.4))
    p, q = parameters.symbols()
    rows = [
        (0, "a", {0: p, 1: q, 2: 1 - p - q}),
        (0, "b", {1: q * p, 2: 1 - q * p}),
        (1, "", {0: 1 - q, 3: q}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [3]})
    simulator = tr.Simulator(model.instantiate({"p": 0.3, "q": 0.3}), model_hash=model.hash())
    return model.problem(property), simulator.episodes(2000, seed=1)


def test_breakdown_of_one_assumption_is_later() -> None:
    problem, data = _walk()
    result = tr.learn(problem, data, delta=0.01)
    whole, of_p = (
        result.find_breakdown_point(threshold=0.1),
        result.find_breakdown_point(threshold=0.1, rows="p"),
    )
    assert whole.holds < of_p.holds < 1
    assert result.find_breakdown_point(threshold=0.1, rows="a").holds == of_p.holds
    assert of_p.text.startswith("holds for any model error up to ") and "in choices with p" in of_p.text
    with pytest.raises(tr.InputError, match="neither a parameter nor an action"):
        result.find_breakdown_point(rows="x")


def test_what_breakdowns_say() -> None:
    problem, data = _walk()
    result = tr.learn(problem, data, delta=0.01)
    assert breakdown(result, threshold=0.5).holds == -1
    always = breakdown(result, threshold=0.0)
    assert always.fails is None and "any model error" in always.text
    half = breakdown(result)
    assert 0 < half.threshold < result.guarantee and "half" in half.text
    with pytest.raises(tr.InputError, match="`threshold` is"):
        breakdown(result, threshold=float("nan"))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("sets", ["untied", "tied", "expression", "rectangular", "coupled"])
def test_learning_with_a_model_error_meets_the_breakdown(sets: str) -> None:
    """At what holds, `learn` guarantees the threshold; its policy may even be better."""
    problem, data = _walk()
    found = tr.learn(problem, data, delta=0.01, sets=sets).find_breakdown_point(threshold=0.09)
    again = tr.learn(problem, data, delta=0.01, sets=sets, misfit=found.holds)
    assert again.guarantee >= 0.09
    assert again.kind.value == {"rectangular": "expression", "coupled": "expression"}.get(sets, sets)
    assert "misfit" in [one.name for one in again.assumptions]


def test_a_model_error_keeps_averages_and_temporal_formulas_sound() -> None:
    """The domain shows that no transition vanishes; with a misfit it does not."""
    parameters = tr.Parameters.box(p=(0.1, 0.5))
    (p,) = parameters.symbols()
    rows = [(0, "a", {0: 1 - p, 1: p}), (1, "", {0: 1 - p, 1: p})]
    model = tr.build_from_rows(rows, parameters, labels={"up": [1]})
    data = [[(0, "a", 1), (1, "", 0), (0, "a", 0), (0, "a", 0)]] * 50
    narrow = tr.learn(model.problem('S=? [ "up" ]'), data, delta=0.1)
    wide = tr.learn(model.problem('S=? [ "up" ]'), data, delta=0.1, misfit=0.05)
    assert wide.interval.lower < narrow.interval.lower
    with pytest.raises(tr.CannotCertify, match="positive"):
        tr.learn(model.problem('S=? [ "up" ]'), data, delta=0.1, misfit=0.3)


def test_over_a_domain() -> None:
    problem, _ = _walk()
    model = problem.model
    plain = tr.solve(model, problem.text, sets="expression")
    wide = tr.solve(model, problem.text, sets="coupled", misfit=0.02)
    assert wide.guarantee < plain.guarantee and wide.kind.value == "expression"


def test_what_is_refused() -> None:
    problem, data = _walk()
    with pytest.raises(tr.InputError, match="`misfit` is 1"):
        tr.learn(problem, data, misfit=1)
    with pytest.raises(tr.InputError, match="`misfit` allows processes"):
        tr.learn(problem, data, misfit=0.1, assume_support=0.01)


# --- certificates ------------------------------------------------------------------------------


@pytest.mark.thinned(4)
@pytest.mark.parametrize("sets", ["untied", "tied", "expression", "rectangular"])
@pytest.mark.parametrize("region", [None, "likelihood"])
def test_certificates_of_a_model_error(sets: str, region: str | None, tmp_path: Path) -> None:
    if region is not None and sets in ("untied", "tied"):
        return
    problem, data = _walk()
    result = tr.learn(problem, data, delta=0.01, sets=sets, region=region, misfit=0.02)
    file = tmp_path / "walk.cert"
    tr.certify(result, file)
    verdict = tr.verify(file, model=problem.model, property=problem.text, data=data, misfit=0.02)
    assert verdict.word == "proved"
    assert any("total variation 0.02" in words for words in verdict.assumes)
    assert verdict.values["robust policy"][0] == pytest.approx(result.guarantee, rel=1e-5)
    assert tr.verify(file, exact=True).word == "proved"
    with pytest.raises(tr.CannotCertify, match="nearer to the model"):
        tr.verify(file, model=problem.model, misfit=0.03)


def test_without_a_model_error_files_are_as_before(tmp_path: Path) -> None:
    problem, data = _walk()
    certificate = certificate_of(tr.learn(problem, data, delta=0.01, sets="tied"))
    assert certificate.problem.misfit is None
    file = tmp_path / "plain.cert"
    tr.certify(tr.learn(problem, data, delta=0.01, sets="tied"), file)
    assert "misfit" not in str(load(file).certificate.about) and load(file).certificate.problem.misfit is None


def test_forged_model_errors() -> None:
    """Raised after the fact, dropped at a choice, two numbers, beside bases: the checker sees through."""
    problem, data = _walk()
    honest = certificate_of(tr.learn(problem, data, delta=0.01, sets="tied", misfit=0.02))
    size = honest.problem.graph.choices

    def forged(misfit: np.ndarray | None) -> Certificate:
        return replace(honest, problem=replace(honest.problem, misfit=misfit))

    assert check(honest).word == "proved"
    assert not check(forged(np.full(size, 0.03))).valid
    lowered = check(forged(np.full(size, 0.01)))  # a weaker statement, and it says so
    assert lowered.valid and any("0.01" in words for words in lowered.assumes)
    partly = np.where(np.arange(size) == 0, 0.0, 0.02)
    assert any(f"at {size - 1} of {size} choices" in words for words in check(forged(partly)).assumes)
    dropped = check(forged(None))
    assert dropped.valid and not any("variation" in words for words in dropped.assumes)
    for bad in (np.full(size, 1.0), np.zeros(size), np.linspace(0.01, 0.02, size), np.full(size, -0.1)):
        with pytest.raises(tr.InputError):
            check(forged(bad))
    joint = certificate_of(tr.learn(problem, data, delta=0.01, sets="rectangular"))
    with pytest.raises(tr.InputError, match="single probabilities"):
        check(replace(joint, problem=replace(joint.problem, misfit=np.full(size, 0.02))))
    assumed = replace(honest.problem, assumed_support=0.001)
    with pytest.raises(tr.InputError, match="misfit"):
        check(replace(honest, problem=assumed))
