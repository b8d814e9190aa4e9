"""Draws of a generative model: the best shares against brute force, and the table for `sample --draws`."""

import itertools
import json

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run as run_command
from tightrope.data.collection import PlannedDraws, read_draws
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.design.design import (
    DrawDesign,
    Experiments,
    design_draws,
    elfving,
    whole_draws,
)
from tightrope.design.directions import Directions, Information
from tightrope.numerics.linear_program import least_norms


def simplex_grid(parts, steps):
    for cut in itertools.combinations(range(steps + parts - 1), parts - 1):
        edges = (-1, *cut, steps + parts - 1)
        yield np.array([b - a - 1 for a, b in itertools.pairwise(edges)]) / steps


def experiments_of(*factors, price=None):
    made = tuple(np.atleast_2d(np.array(factor, dtype=float)) for factor in factors)
    cost = np.ones(len(made)) if price is None else np.array(price, dtype=float)
    return Experiments(np.arange(len(made)), made, cost)


def both(*direction):
    return Directions.merged(np.array([direction]), np.ones(1))


def test_two_coins_get_draws_in_proportion_to_their_spread():
    """For c = (1, 1) and independent coins the best shares are ∝ √(p(1−p)): Neyman's allocation."""
    p, q = 0.5, 0.1
    coins = experiments_of([[1 / np.sqrt(p * (1 - p)), 0]], [[0, 1 / np.sqrt(q * (1 - q))]])
    share, distance = elfving(coins, np.array([1.0, 1.0]))
    assert share == pytest.approx(np.array([0.5, 0.3]) / 0.8)
    assert distance < 1e-9


def test_prices_enter_by_their_roots():
    coins = experiments_of([[2.0, 0.0]], [[0.0, 2.0]], price=[1.0, 4.0])
    money, distance = elfving(coins, np.array([1.0, 1.0]))
    assert money == pytest.approx([1 / 3, 2 / 3])
    assert distance < 1e-9
    design = design_draws(coins, both(1.0, 1.0), np.zeros((2, 2)), 1.0)
    assert design.best == pytest.approx([2 / 3, 1 / 3])
    assert design.share == pytest.approx([0.9 * 2 / 3 + 0.05, 0.9 / 3 + 0.05])


@pytest.mark.parametrize("rows", [1, 2], ids=["linear", "cones"])
def test_elfving_is_as_good_as_the_best_point_of_a_grid(rows):
    random = np.random.default_rng(rows)
    made = experiments_of(*(random.normal(size=(rows, 2)) for _ in range(4)), price=[1.0, 2.0, 0.5, 1.0])
    direction = np.array([1.0, -0.3])
    money, distance = elfving(made, direction)
    assert distance < 1e-6

    def length(share):
        matrix = np.einsum("i,iab->ab", share / made.price, made.information)
        return np.sqrt(direction @ np.linalg.pinv(matrix, rcond=1e-10) @ direction)

    grid = min(length(share) for share in simplex_grid(4, 25) if np.count_nonzero(share) >= 2)
    assert length(money) <= grid * (1 + 1e-6)
    assert length(money) >= grid * 0.97


def test_several_directions_with_a_past_are_as_good_as_the_best_point_of_a_grid():
    random = np.random.default_rng(5)
    made = experiments_of(*(random.normal(size=(2, 3)) for _ in range(4)))
    criterion = Directions.merged(random.normal(size=(3, 3)), np.array([1.0, 0.5, 0.25]))
    design = design_draws(made, criterion, 0.5 * np.eye(3), 30.0)
    assert isinstance(design, DrawDesign) and design.optimality <= 0.01

    def value(share):
        return criterion.value(0.5 * np.eye(3) + 30.0 * np.einsum("i,iab->ab", share, made.information))

    grid = min(map(value, simplex_grid(4, 25)))
    assert value(design.best) <= grid * 1.006
    assert value(design.best) * (1 - design.optimality) <= grid * (1 + 1e-12)


def test_a_direction_that_no_draw_sees_has_no_shares():
    coins = experiments_of([[1.0, 0.0]], [[2.0, 0.0]])
    assert elfving(coins, np.array([0.0, 1.0])) is None
    with pytest.raises(tr.InputError, match="draws give no information"):
        design_draws(coins, both(0.0, 1.0), np.zeros((2, 2)), 1.0)


def test_the_bound_holds_whatever_the_multipliers():
    """Weak duality: no feasible z has a smaller sum of norms than the bound."""
    random = np.random.default_rng(7)
    factors = [random.normal(size=(2, 2)) for _ in range(3)]
    found = least_norms(factors, np.ones(3), np.array([1.0, 2.0]))
    for _ in range(200):
        z = random.normal(size=(3, 2))
        z[0] += np.linalg.solve(
            factors[0].T, np.array([1.0, 2.0]) - sum(f.T @ row for f, row in zip(factors, z, strict=True))
        )
        assert np.linalg.norm(z, axis=1).sum() >= found.bound * (1 - 1e-12)
    assert found.norm.sum() == pytest.approx(found.bound, rel=1e-6)


def test_whole_draws_sum_to_the_total():
    assert whole_draws(np.array([0.5, 0.25, 0.25]), 7).tolist() == [3, 2, 2]
    assert whole_draws(np.array([1.0, 1.0, 1.0]), 10).sum() == 10


@pytest.fixture(scope="module")
def bench():
    return tr.benchmark("rover(10,10)")


@pytest.fixture(scope="module")
def table(bench):
    model = bench.model
    made = Experiments.of(Information.at(model, np.full(6, 0.3)))
    draws = np.zeros(len(model.signatures), dtype=np.int64)
    draws[made.signature] = whole_draws(np.ones(len(made)), 1003)
    return PlannedDraws(model, draws, "ab12")


def test_draws_are_spread_over_the_choices_of_a_signature(table):
    each, of_choice = table.per_choice, table.model.signatures.of_choice
    assert np.bincount(of_choice, weights=each).astype(int).tolist() == table.draws.tolist()
    for number in np.flatnonzero(table.draws):
        mine = each[of_choice == number]
        assert mine.max() - mine.min() <= 1


def test_a_table_is_read_back_and_sampled_as_planned(table, tmp_path, capsys):
    def run(*arguments):
        assert run_command(list(arguments)) == 0
        return json.loads(capsys.readouterr().out)

    path, data = tmp_path / "draws.json", tmp_path / "data.parquet"
    path.write_text(table.to_text())
    assert read_draws(path, table.model).draws.tolist() == table.draws.tolist()
    command = ["sample", "bench:rover(10,10)", "--draws", str(path), "--seed", "3", "-o", str(data), "--json"]
    assert run(*command)["steps"] == 1003
    counts = tr.read_data(data, table.model).counts
    assert counts.visits.tolist() == table.per_choice.tolist()
    assert counts.design.kind is SamplingKind.GENERATIVE_FIXED and counts.design.planned_from == "ab12"
    learned = run("learn", "bench:rover(10,10)", "--data", str(data), "--sets", "tied", "--json")
    assert 0.0 <= learned["robust_policy"]["lower"] <= learned["robust_policy"]["upper"]


def test_draws_planned_from_data_are_adaptive_together_with_them():
    planned = SamplingDesign(SamplingKind.GENERATIVE_FIXED, steps=10, planned_from="ab12")
    pilot = SamplingDesign(SamplingKind.GENERATIVE_FIXED, steps=5)
    assert pilot.merged(planned).kind is SamplingKind.ADAPTIVE
    assert planned.merged(pilot).kind is SamplingKind.ADAPTIVE
    assert pilot.merged(pilot).kind is SamplingKind.GENERATIVE_FIXED
    assert SamplingDesign.from_json(planned.to_json()) == planned


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "0" * 64}, "planned for another model"),
        ({"draws": [{"signature": ["nothing"], "draws": 3}]}, "no choice of the model has the signature"),
        ({"draws": []}, "the table is empty"),
        ({"draws": [{"signature": ["nothing"]}]}, "missing: 'draws'"),
        ({"format": "tightrope policy"}, "not a 'tightrope draws'"),
    ],
)
def test_wrong_tables_are_refused(table, tmp_path, change, words):
    path = tmp_path / "draws.json"
    path.write_text(json.dumps({**json.loads(table.to_text()), **change}))
    with pytest.raises(tr.InputError) as refused:
        read_draws(path, table.model)
    assert words in str(refused.value)
