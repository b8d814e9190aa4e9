"""The search for a small decision tree that loses little.

Costs are prices weighted by visits. A tree grows greedily with a look-ahead of two tests: for every pair of
tests the best actions in the four parts are known from one matrix product, so that tests that gain nothing
alone are seen. Then every node is exchanged: for each test the loss is known to first order from the visits
and losses of the tree itself, and the best few are evaluated. Visits of all trees so far are joined with
those of the robust policy, and the next tree grows. In the end nodes are left out while the loss allows it,
and trees of up to three tests, which the look-ahead fits optimally, are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.rules.rule import Branch, Column, Columns, DecisionRule, Leaf, RuleTest, Tree
from tightrope.trees.losses import Evaluated, LossModel

MOST_TESTS = 600
MOST_CELLS = 8_000_000
"""Tests times rows."""
MOST_BOUNDS = 64
"""Bounds that one column, or one sum or difference, is compared with."""
LOOKED_AHEAD = 220
"""Tests of which pairs are tried at a node."""
LOOKED_AT = 2_000
"""Rows that a test is chosen by."""
ROUNDS = 6
EXCHANGES = 4
"""Passes over all nodes."""
TRIED = 3
"""Tests that are evaluated at a node, the most promising ones."""
UNVISITED = 1e-6
"""The weight of states that no policy has visited so far."""
OTHERS = 1e-3
"""The weight of visits of other policies beside those of the tree itself."""
GAIN = 1e-9


@dataclass(eq=False)
class TreeNode:
    """A node of a tree that is being searched: a leaf where `test` is −1."""

    action: int = -1
    test: int = -1
    yes: TreeNode | None = None
    no: TreeNode | None = None

    @property
    def sides(self) -> tuple[TreeNode, TreeNode]:
        assert self.yes is not None and self.no is not None
        return self.yes, self.no

    def copy(self) -> TreeNode:
        if self.test < 0:
            return TreeNode(self.action)
        yes, no = self.sides
        return TreeNode(-1, self.test, yes.copy(), no.copy())

    def walk(self) -> Iterator[TreeNode]:
        yield self
        if self.test >= 0:
            for side in self.sides:
                yield from side.walk()

    @property
    def size(self) -> int:
        """The number of tests."""
        return sum(node.test >= 0 for node in self.walk())


@dataclass(frozen=True)
class LeafSplit:
    """The costs of a leaf, after the best test alone, and after the best one with two more below it."""

    cost: float
    test: int
    after: float
    first_of_three: int
    after_three: float

    def best(self) -> tuple[float, int]:
        """What a test gains, and which."""
        alone, ahead = self.cost - self.after, (self.cost - self.after_three) / 2.5
        return (alone, self.test) if alone >= ahead else (ahead, self.first_of_three)


@dataclass(eq=False)
class TreeSearch:
    """Trees over the rows of a loss model; `holds[t, i]` says whether test t holds in row i."""

    losses: LossModel
    columns: list[Column]
    tests: list[RuleTest]
    holds: FloatArray
    weight: FloatArray = field(init=False)
    """Visits of all policies so far, with a little of every row."""

    @staticmethod
    def over(losses: LossModel, columns: list[Column], values: Columns) -> TreeSearch:
        """All tests of the columns (values by row) that tell rows apart, each once, the simplest first."""
        visits = losses.evaluate(losses.robust).visits[losses.rows]
        share = visits / max(float(visits.sum()), 1e-300) + 0.2 / max(len(visits), 1)
        tests, holds = list_tests(columns, values, share)
        search = TreeSearch(losses, columns, tests, holds)
        search.weight = visits + UNVISITED
        return search

    @property
    def _all(self) -> OffsetArray:
        return np.arange(len(self.losses.rows))

    def find(self, allowed: float, most: int) -> tuple[TreeNode, float]:
        """The smallest tree found that loses at most `allowed`; the best of `most` tests where none does."""
        allowed += 1e-12 + self.losses.evaluate(self.losses.robust).loss  # of its steps
        best: tuple[float, TreeNode] | None = None
        for size in dict.fromkeys((min(15, most), most)):
            for _ in range(ROUNDS):
                tree = self._simplify(self.grow(size), self._all)
                before = self.evaluate(tree).visits
                chosen = self.exchange(tree)
                if best is None or chosen.loss < best[0]:
                    best = chosen.loss, tree
                if best[0] <= allowed / 2:
                    break
                self.weight = self.weight + before[self.losses.rows] + chosen.visits[self.losses.rows]
            if best is not None and best[0] <= allowed:
                break
        assert best is not None
        loss, tree = best
        if loss > allowed:
            return self._simplify(tree, self._all), loss
        return self._smallest(*self._prune(tree, loss, allowed), allowed)

    # --- what a tree does --------------------------------------------------------------------

    def decide(self, node: TreeNode, rows: OffsetArray, action: OffsetArray) -> OffsetArray:
        """Put the actions of the tree in these rows."""
        if node.test < 0:
            action[rows] = node.action
            return action
        holds = self.holds[node.test, rows] > 0
        yes, no = node.sides
        self.decide(yes, rows[holds], action)
        return self.decide(no, rows[~holds], action)

    def actions(self, tree: TreeNode) -> OffsetArray:
        return self.decide(tree, self._all, np.zeros(len(self.losses.rows), np.int64))

    def evaluate(self, tree: TreeNode) -> Evaluated:
        return self.losses.evaluate(*self.losses.policy(self.actions(tree)))

    def rule(self, tree: TreeNode) -> DecisionRule:
        return DecisionRule(columns=self.columns, actions=list(self.losses.actions), tree=self.to_tree(tree))

    def to_tree(self, node: TreeNode) -> Tree:
        if node.test < 0:
            return Leaf(self.losses.actions[node.action])
        yes, no = node.sides
        return Branch(self.tests[node.test], self.to_tree(yes), self.to_tree(no))

    # --- growing -----------------------------------------------------------------------------

    def grow(self, size: int) -> TreeNode:
        """A tree of at most so many tests, the most useful first."""
        cost = self.weight[:, None] * self.losses.costs
        root = TreeNode(int(cost.sum(axis=0).argmin()))
        leaves = [(root, self._all, self._split(cost, self._all))]
        for _ in range(size):
            gains = [(-1.0, -1) if split is None else split.best() for _, _, split in leaves]
            place = int(np.argmax([gain for gain, _ in gains]))
            gain, test = gains[place]
            if gain <= 1e-12 * self.losses.scale:
                break
            node, rows, _ = leaves.pop(place)
            node.test, node.yes, node.no = test, TreeNode(), TreeNode()
            holds = self.holds[test, rows] > 0
            for side, part in zip(node.sides, (rows[holds], rows[~holds]), strict=True):
                side.action = int(cost[part].sum(axis=0).argmin())
                leaves.append((side, part, self._split(cost, part)))
        return root

    def _split(self, cost: FloatArray, rows: OffsetArray) -> LeafSplit | None:
        """The best test of a leaf, alone and with the best test on either side."""
        if len(rows) > LOOKED_AT:  # those that cost most if the worst is done there
            rows = rows[np.sort(np.argsort(-cost[rows].max(axis=1), kind="stable")[:LOOKED_AT])]
        part, total = cost[rows], cost[rows].sum(axis=0)
        tests = self._telling(part, rows)
        if not len(tests) or total.min() <= 0:
            return None
        inside = self.holds[np.ix_(tests, rows)]
        yes = inside @ part
        no = total - yes
        alone = yes.min(axis=1) + no.min(axis=1)
        least: list[FloatArray] = []
        for action in range(part.shape[1]):
            both = (inside * part[:, action]) @ inside.T
            one, other = yes[:, action, None], yes[None, :, action]
            quarters = (both, one - both, other - both, total[action] - one - other + both)
            least = [np.minimum(*pair) for pair in zip(least or quarters, quarters, strict=True)]
        ahead = np.minimum((least[0] + least[1]).min(axis=1), yes.min(axis=1))
        ahead += np.minimum((least[2] + least[3]).min(axis=1), no.min(axis=1))
        first, best = int(np.argmin(ahead + 1e-6 * alone)), int(np.argmin(alone))
        return LeafSplit(
            float(total.min()), int(tests[best]), float(alone[best]), int(tests[first]), float(ahead[first])
        )

    def _telling(self, part: FloatArray, rows: OffsetArray) -> OffsetArray:
        """Tests that tell these rows apart: where there are too many, the best alone and some of all."""
        inside = self.holds[:, rows]
        holding = inside.sum(axis=1)
        tests = np.flatnonzero((holding > 0) & (holding < len(rows)))
        if len(tests) <= LOOKED_AHEAD:
            return tests
        yes = inside[tests] @ part
        alone = yes.min(axis=1) + (part.sum(axis=0) - yes).min(axis=1)
        best = tests[np.argsort(alone, kind="stable")[: LOOKED_AHEAD // 2]]
        spread = tests[np.linspace(0, len(tests) - 1, LOOKED_AHEAD // 2).astype(np.int64)]
        return np.union1d(best, spread)

    # --- exchanging --------------------------------------------------------------------------

    def exchange(self, tree: TreeNode, passes: int = EXCHANGES) -> Evaluated:
        """Change tests and actions, one node after the other, while the loss falls; the last evaluation."""
        now = self.evaluate(tree)
        for _ in range(passes):
            before = now.loss
            for node in list(tree.walk()):
                now = self._exchange_at(tree, node, now)
            if before - now.loss < 1e-5:
                break
        return now

    def _exchange_at(self, tree: TreeNode, node: TreeNode, now: Evaluated) -> Evaluated:
        rows = self._rows_at(tree, node, self._all)
        assert rows is not None
        old, best = (node.test, node.action), None
        for test, action in self._promising(node, rows, now):
            node.test, node.action = test, action
            tried = self.evaluate(tree)
            if tried.loss < now.loss - GAIN and (best is None or tried.loss < best[0].loss):
                best = tried, (test, action)
        node.test, node.action = old if best is None else best[1]
        return now if best is None else best[0]

    def _promising(self, node: TreeNode, rows: OffsetArray, now: Evaluated) -> Iterator[tuple[int, int]]:
        """Other tests, or actions of a leaf, with the least loss to first order."""
        after = self.losses.after(now.to_go)[rows]
        visits = now.visits[self.losses.rows][rows] + OTHERS * (self.weight / self.weight.sum())[rows]
        if node.test < 0:
            order = np.argsort(visits @ after, kind="stable")[:2]
            yield from ((-1, int(action)) for action in order if action != node.action)
            return
        yes, no = (self.decide(side, rows, np.zeros(len(self._all), np.int64))[rows] for side in node.sides)
        here = np.arange(len(rows))
        score = self.holds[:, rows] @ (visits * (after[here, yes] - after[here, no]))
        for test in np.argsort(score, kind="stable")[:TRIED].tolist():
            if test != node.test and score[test] <= score[node.test]:
                yield test, -1

    def _rows_at(self, node: TreeNode, wanted: TreeNode, rows: OffsetArray) -> OffsetArray | None:
        """The rows that come to a node; None where it is no node of the tree."""
        if node is wanted:
            return rows
        if node.test < 0:
            return None
        holds = self.holds[node.test, rows] > 0
        yes, no = node.sides
        inside = self._rows_at(yes, wanted, rows[holds])
        return self._rows_at(no, wanted, rows[~holds]) if inside is None else inside

    # --- making it smaller -------------------------------------------------------------------

    def _simplify(self, node: TreeNode, rows: OffsetArray) -> TreeNode:
        """The same without tests that every row answers alike, or that do not matter."""
        if node.test < 0:
            return node
        holds = self.holds[node.test, rows] > 0
        yes, no = node.sides
        if holds.all() or not holds.any():
            return self._simplify(yes if holds.all() else no, rows)
        yes, no = self._simplify(yes, rows[holds]), self._simplify(no, rows[~holds])
        if yes.test < 0 and no.test < 0 and yes.action == no.action:
            return yes
        return TreeNode(-1, node.test, yes, no)

    def _prune(self, tree: TreeNode, loss: float, allowed: float) -> tuple[TreeNode, float]:
        """Leave out the test that matters least, while the loss allows it."""
        tree = self._simplify(tree, self._all)
        while tree.size:
            inner = [place for place, node in enumerate(tree.walk()) if node.test >= 0]
            smaller = [self._without(tree, place, side) for place in inner for side in (0, 1)]
            each = [self.evaluate(one).loss for one in smaller]
            tried, least = smaller[int(np.argmin(each))], min(each)
            if least > allowed:
                least = self.exchange(tried, passes=2).loss
            if least > allowed:
                break
            tree, loss = self._simplify(tried, self._all), least
        return tree, loss

    def _smallest(self, tree: TreeNode, loss: float, allowed: float) -> tuple[TreeNode, float]:
        """The same, or a tree of at most three tests that is fitted as one."""
        for size in range(min(tree.size, 4)):
            tried = self._simplify(self.grow(size), self._all)
            least = self.exchange(tried).loss
            if least <= allowed and tried.size < tree.size:
                return tried, least
        return tree, loss

    @staticmethod
    def _without(tree: TreeNode, place: int, side: int) -> TreeNode:
        """A copy in which one side takes the place of a node."""
        result = tree.copy()
        node = list(result.walk())[place]
        vars(node).update(vars(node.sides[side]))
        return result


def list_tests(
    columns: list[Column], values: Columns, share: FloatArray
) -> tuple[list[RuleTest], FloatArray]:
    """Tests on columns, differences and sums, with the rows in which they hold; bounds cut rows evenly."""
    most = max(min(MOST_TESTS, MOST_CELLS // max(len(share), 1)), 16)
    whole = [one for one in columns if one.kind != "text"]
    listed: list[RuleTest] = []
    for one in columns:
        is_text, known = one.kind == "text", values[one.name]
        bounds = np.unique(known).tolist() if is_text else _bounds(known, share, MOST_BOUNDS)
        listed += [RuleTest(left=one.name, bound=bound, equal=is_text) for bound in bounds]
    listed = listed[:most]
    pairs = [
        (one.name, other.name, sign)
        for one, other in combinations(whole, 2)
        if min(len(np.unique(values[each.name])) for each in (one, other)) > 2
        for sign in (-1, 1)
    ]
    each = min(MOST_BOUNDS, (most - len(listed)) // max(len(pairs), 1))
    for left, right, sign in pairs:
        total = values[left].astype(np.int64) + sign * values[right].astype(np.int64)
        listed += [
            RuleTest(left=left, bound=bound, right=right, sign=sign) for bound in _bounds(total, share, each)
        ]
    distinct: dict[bytes, tuple[RuleTest, BoolArray]] = {}
    for test in listed:
        inside = test.holds(values)
        if not inside.all() and inside.any():
            distinct.setdefault(np.packbits(inside == inside[:1]).tobytes(), (test, inside))
    holds = np.array([inside for _, inside in distinct.values()], np.float64)
    return [test for test, _ in distinct.values()], holds.reshape(len(distinct), len(share))


def _bounds(total: npt.NDArray[np.generic], share: FloatArray, most: int) -> list[int]:
    """Bounds between the values, at most so many."""
    known, place = np.unique(np.asarray(total).astype(np.int64), return_inverse=True)
    bounds: list[int] = known[:-1].tolist()
    if len(bounds) <= most or most <= 0:
        return bounds[: max(most, 0)]
    below = np.cumsum(np.bincount(place, share))[:-1] / share.sum()
    at = np.unique(np.searchsorted(below, (np.arange(most) + 0.5) / most).clip(0, len(bounds) - 1))
    zero = np.flatnonzero(np.isin(known[:-1], (-1, 0)))  # comparisons of two columns
    return [bounds[i] for i in np.union1d(at, zero).tolist()]
