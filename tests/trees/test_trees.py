"""Small trees: the guarantee is verified over the same sets, and the search sees what single tests do not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import CannotCertify, InputError
from tightrope.rules.rule import Branch, Column, Leaf
from tightrope.rules.states import columns_of
from tightrope.trees import grow
from tightrope.trees.losses import LossModel
from tightrope.trees.search import TreeSearch, list_tests


@cache
def learned(name: str = "aircraft(6,3)") -> tr.LearningResult:
    bench = tr.benchmark(name)
    data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).generative(2000, seed=1)
    result = tr.learn(bench.problem, data, delta=0.01, sets="tied")
    assert isinstance(result, tr.LearningResult)
    return result


def test_a_tree_loses_at_most_what_is_allowed_and_is_evaluated_as_any_given_policy() -> None:
    result, rule = learned(), tree().rule
    assert rule.nodes == 1 and len(rule.sentence()) < 60
    promise = rule.promise
    assert promise.robust == result.guarantee
    assert 0.99 * result.guarantee <= promise.guarantee <= result.guarantee
    again = tr.learn(result.problem, result.counts, delta=0.01, sets="tied", policy=tree())
    assert again.value.interval.lower == pytest.approx(promise.guarantee, rel=1e-6)
    assert promise.headline.startswith("PROVED: probability >= ") and "for the tree" in promise.headline


@cache
def tree() -> tr.Policy:
    return learned().policy.tree(loss=0.01)


def test_no_loss_allows_the_robust_guarantee_only() -> None:
    exact = learned().policy.tree(loss=1e-6).rule
    assert exact.promise.guarantee >= learned().guarantee * (1 - 1e-6)
    assert (exact.nodes, learned().policy.tree(loss=0.5).rule.nodes) == (2, 0)


def test_the_policy_follows_its_rule_wherever_it_comes() -> None:
    policy = tree()
    structure = policy.structure
    follows = policy.rule.decide(structure.valuations)
    reached, todo = {structure.initial}, [structure.initial]
    while todo:
        state = todo.pop()
        choice = int(policy.choice[state])
        if np.diff(structure.choice_start)[state] > 1:
            assert structure.action_name(choice) == policy.rule.actions[follows[state]]
        for after in structure.successor[slice(*structure.transition_start[choice : choice + 2])].tolist():
            if after not in reached:
                reached.add(after)
                todo.append(after)
    assert len(reached) > 10


def test_the_certificate_of_a_tree_is_valid(tmp_path: Path) -> None:
    result = learned().with_tree(loss=0.01)
    proved = tr.certify(result, tmp_path / "tree.cert")
    verdict = tr.verify(tmp_path / "tree.cert", model=result.model, policy=result.value.policy)
    assert verdict.valid
    assert proved["given policy"].lower >= 0.98 * result.guarantee


def test_where_no_tree_is_good_enough_this_is_said() -> None:
    with pytest.raises(CannotCertify, match="no tree of at most 0 tests was found"):
        grow(learned(), 1e-3, most=0)


def test_policies_without_values_and_with_a_memory_have_no_tree() -> None:
    result = learned()
    with pytest.raises(InputError, match="the policy has no values that show the loss of a tree"):
        tr.Policy.uniform(result.model).tree()
    with pytest.raises(InputError, match="has a given policy already"):
        result.with_tree(loss=0.5).with_tree(loss=0.5)
    with pytest.raises(InputError, match="`loss`"):
        result.policy.tree(loss=-1)


def grid(reward: np.ndarray) -> TreeSearch:
    """Two actions in every cell of a grid, which is met once from a start; the better one wins."""
    height, width = reward.shape
    cells = [(x, y) for y in range(height) for x in range(width)]
    won, lost = len(cells) + 1, len(cells) + 2
    rows = [(0, "start", {1 + number: 1 / len(cells) for number in range(len(cells))})]
    for number, (x, y) in enumerate(cells, start=1):
        rows += [(number, "ab"[action], {won if reward[y, x] == action else lost: 1.0}) for action in (0, 1)]
    rows += [(won, "", {won: 1.0}), (lost, "", {lost: 1.0})]
    names = [(9, 9), *cells, (8, 8), (7, 7)]
    model = tr.build_from_rows(rows, labels={"won": [won]}, state_names=names)
    solution = tr.solve(model, 'Pmax=? [ F "won" ]')
    losses = LossModel.of(solution, solution.choice)
    _, values = columns_of(model.structure)
    within = {"x": values["state_1"][losses.rows], "y": values["state_2"][losses.rows]}
    return TreeSearch.over(losses, [Column(name="x", kind="int"), Column(name="y", kind="int")], within)


def test_tests_that_gain_nothing_alone_are_found() -> None:
    """Exclusive or of two halves: no single test improves on one action everywhere."""
    corner = np.indices((4, 4)) >= 2
    search = grid((corner[0] ^ corner[1]).astype(int))
    assert search.evaluate(search.grow(0)).loss == pytest.approx(0.5)
    best, loss = search.find(0.01, 15)
    assert best.size == 3 and loss < 1e-6


def test_a_comparison_of_two_variables_is_one_test() -> None:
    below = np.tril(np.ones((6, 6), int))
    search = grid(below)
    best, loss = search.find(0.01, 15)
    assert best.size == 1 and loss < 1e-6
    found = search.to_tree(best)
    assert isinstance(found, Branch) and isinstance(found.yes, Leaf)
    assert (found.test.left, found.test.right, found.test.sign) == ("x", "y", -1)


def test_the_loss_of_a_policy_is_that_of_its_value() -> None:
    search = grid(np.eye(4, dtype=int))
    wrong = search.losses.policy(np.full(16, search.losses.actions.index("a")))
    evaluated = search.losses.evaluate(*wrong)
    assert evaluated.loss == pytest.approx(4 / 16, abs=1e-6)
    assert evaluated.visits[search.losses.rows].tolist() == pytest.approx([1 / 16] * 16)


def test_of_many_bounds_those_are_taken_that_cut_the_rows_evenly() -> None:
    values = {"x": np.arange(1000), "flag": np.arange(1000) % 2 == 0}
    columns = [Column(name="x", kind="int"), Column(name="flag", kind="bool")]
    tests, holds = list_tests(columns, values, np.full(1000, 1e-3))
    assert len(tests) == 66 and holds.shape == (66, 1000)
    counts = np.sort(holds[:65].sum(axis=1))
    assert np.diff(counts).max() <= 17 and counts[0] <= 17
    assert tests[-1].left == "flag" and holds[-1].sum() == 500
