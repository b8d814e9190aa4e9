"""`solve_partial`: anytime bounds on both sides of the optimum over controllers that see observations only.

One side is the verified value of a concrete controller, the other the verified value of the outer model
(`graph`). The search expands the beliefs that optimal policies of the outer model visit most often, weighted
by the value of information there (`BeliefOptimum.visits`), and splits others where that is better than to cut
them. Controllers without memory and with a few nodes are improved first, then controllers on the expanded
beliefs: loops are closed and solved, or one backward sweep suffices if no observation recurs. The search is
in plain float64 and enters no bound. Work counts end it, a clock only if given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from tightrope.beliefs.graph import (
    BEFORE,
    CUT,
    EXPANDED,
    FAR,
    LEAK,
    SEARCH_LEAK,
    SUCCESS,
    BeliefGraph,
    Machines,
    Rows,
    Work,
    first_of_best,
    improve,
)
from tightrope.beliefs.question import Question, is_interval, model_at, question_of
from tightrope.errors import check_number
from tightrope.io.results import Interval
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.model.pomdp import POMDP, Controller
from tightrope.model.product import chain_of, lift_model, lift_objective
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray, offsets
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import interval_text
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import solve

MOST_BELIEFS = 60_000
WORK = 500_000
"""The transitions of the outer model, summed over rounds, until the search ends: a minute or so."""

STARTS = 4
"""So many controllers of each kind are improved, each from a random one; one where nodes are found anyway."""

LATE = "the time limit was reached; the bounds are verified but wider"
USUAL = 1e-4
FIRST_BATCH = 32
GROWTH = 0.5
"""So large a part of all beliefs is expanded in a round, at most."""

BEGIN = 1_000_000
"""The work that goes to each kind of such controllers, in transitions."""

LARGE = 20_000
"""States, times nodes, beyond which such controllers have no nodes."""

PIVOTS = 12
"""So many steps of the simplex method look for a mixture."""

REST = 1e-3
"""The part of a belief's distance that counts beside what being told is worth there."""

NEARLY_ALL = 0.95
"""A round expands beliefs that make up so much of the distance, at least `FIRST_BATCH` of them."""

MOST_NODES = 64
"""So many nodes of a look are kept beside those that are best somewhere."""

MOST_IMPROVED = 200
LOST = 1e3
"""What it costs to miss a target that must be reached, in units of the largest value."""


@dataclass(frozen=True, eq=False, repr=False)
class PartialSolution(Record):
    """Bounds on the optimum over controllers that see observations only.

    `controller` attains the bound on its side, with verified bounds `attained`. `beliefs` counts expanded
    beliefs, `outer` is the solution of the outer model, `graph` its beliefs. `simple` are the best
    controllers found without memory and with two nodes.
    """

    pomdp: POMDP
    objective: Objective
    lower: float
    upper: float
    controller: Controller
    attained: tuple[float, float]
    outer: Solution | None = field(repr=False)
    beliefs: int
    status: str
    seconds: float = field(compare=False)
    truth: str | None = None
    graph: BeliefGraph | None = field(default=None, repr=False, compare=False)
    simple: tuple[Controller, ...] = field(default=(), repr=False, compare=False)

    @property
    def interval(self) -> Interval:
        return Interval.of(self.lower, self.upper)

    @property
    def bounds(self) -> tuple[float, float]:
        return self.lower, self.upper

    @property
    def is_certified(self) -> bool:
        """Whether the bounds are as close as was asked."""
        return self.status == "certified"

    @property
    def policy(self) -> Policy:
        """The controller as a policy with a memory, of the model behind."""
        return self.controller.policy

    def _title_(self) -> str:
        return f"PartialSolution: {interval_text(self.lower, self.upper)}"

    def _facts_(self) -> Facts:
        return [
            ("controller", f"{self.controller.nodes:,} nodes, its own value {interval_text(*self.attained)}"),
            ("beliefs", f"{self.beliefs:,} expanded"),
            ("status", self.status),
        ]


def evaluate(
    pomdp: POMDP,
    objective: Objective,
    controller: Controller,
    point: Sequence[Fraction] = (),
    precision: float = 1e-9,
) -> Solution:
    """Verified bounds on the value of a controller: at a point, or over the bounds of an interval model."""
    model = model_at(pomdp.model, point) if point or not is_interval(pomdp) else pomdp.model
    chain = chain_of(model.structure, controller.policy)
    return solve(lift_model(model, chain), lift_objective(objective, chain), precision=precision)


def closeness(precision: float) -> float:
    """How close bounds over all controllers are to come: 1e-4 where nothing else than the usual is asked."""
    return USUAL if precision == SolveOptions.precision else precision


def value_of(
    pomdp: POMDP,
    objective: Objective,
    controller: Controller,
    precision: float = 1e-6,
    point: Sequence[Fraction] = (),
) -> PartialSolution:
    """The value of one controller, in place of both sides of the optimum."""
    begin = time.perf_counter()
    solved = evaluate(pomdp, objective, controller, point, precision)
    bounds = solved.bounds
    status = "certified" if solved.is_initial_certified else solved.status.value
    took = time.perf_counter() - begin
    return PartialSolution(pomdp, objective, *bounds, controller, bounds, None, 0, status, took)


def solve_partial(
    pomdp: POMDP,
    objective: Objective,
    *,
    point: Sequence[Fraction] = (),
    precision: float = USUAL,
    relative: bool = True,
    seconds: float = math.inf,
    beliefs: int = MOST_BELIEFS,
    work: float | None = None,
) -> PartialSolution:
    """Bounds as close as `precision` asks, or as limits allow; without limits `WORK`, whatever the clock."""
    check_number("precision", precision, 0, 1)
    begin = time.perf_counter()
    question = question_of(pomdp, objective, point)
    if question.first < 0:
        none = Controller.memoryless(pomdp, [0] * pomdp.observations)
        value = 1 - question.decided if objective.complement else question.decided
        took = time.perf_counter() - begin
        return PartialSolution(
            pomdp, objective, value, value, none, (value, value), None, 0, "certified", took
        )
    allowed = (WORK if math.isinf(seconds) else math.inf) if work is None else work
    search = Search(question, Work(allowed, begin + seconds), beliefs, precision, relative)
    status = search.run()
    controller = search.export()
    own = evaluate(pomdp, objective, controller, point)
    model, reward = search.graph.model()
    goal = search.graph.objective(model, reward)
    outer = solve(model, goal, precision=min(1e-9, precision), threads=1)
    far = outer.upper[BEFORE] if question.maximises else outer.lower[BEFORE]
    if objective.complement:
        far = math.nextafter(1 - far, 0.0 if question.maximises else 1.0)
    own_lower, own_upper = own.bounds
    if objective.maximises:
        lower, upper = own_lower, max(float(far), own_lower)
    else:
        lower, upper = min(float(far), own_upper), own_upper
    if lower == upper:
        status = "certified"
    if status == "certified" and not _close(lower, upper, precision, relative):
        status = "the bounds are verified but wider than was asked"
    return PartialSolution(
        pomdp,
        objective,
        float(lower),
        float(upper),
        controller,
        (own_lower, own_upper),
        outer,
        search.expanded,
        status,
        time.perf_counter() - begin,
        graph=search.graph,
        simple=tuple(controller for _, controller in search.simple),
    )


def _close(lower: float, upper: float, precision: float, relative: bool) -> bool:
    if lower == upper:
        return True
    wide = upper - lower
    if not math.isfinite(wide):
        return False
    return wide <= precision * max(abs(lower), abs(upper)) if relative else wide <= precision


class Search:
    """Expands and splits beliefs and improves controllers, in rounds."""

    def __init__(self, question: Question, work: Work, most: int, precision: float, relative: bool):
        self.question, self.work, self.most = question, work, most
        self.precision, self.relative = precision, relative
        self.sign = 1.0 if question.maximises else -1.0
        self.rows = Rows.of(question)
        self.machines = Machines.of(self.rows)
        self.graph = BeliefGraph.of(question)
        self.expanded = 1
        self._random = np.random.default_rng(1)
        self.first_node = -1
        self.attained = -math.inf * self.sign
        self._mass: list[list[FloatArray]] = [[] for _ in question.looks]
        self._row: list[int] = []
        self._next = [0] * len(question.looks)
        self._policy = np.zeros(0, np.int64)
        self._known: list[list[tuple[float, OffsetArray, FloatArray]]] = []
        self._rank = self._ranks()
        self._begin()

    def _begin(self) -> None:
        """Controllers without memory and with a few nodes, the best of each kind, whatever the clock says."""
        plain = self.rows.without_steps()
        kinds = [plain]
        large = LARGE // 10 if self._shows_time else LARGE
        if 2 * self.rows.states <= large:
            kinds += [plain.in_nodes(2), plain.in_phases(2)]
        if 4 * self.rows.states <= large:
            kinds.append(plain.in_phases(4))
        improved = []
        for rows in kinds:
            work = Work(BEGIN)
            best: tuple[float, IndexArray, FloatArray] | None = None
            for _ in range(1 if self._shows_time else STARTS):
                policy = (self._random.random(len(rows.offered)) * rows.offered).astype(np.int32)
                policy, value = improve(rows, policy, work)
                own = self.sign * float(value[self.question.first])
                if best is None or own > best[0]:
                    best = own, policy, value
                if work.is_over:
                    break
            assert best is not None
            improved.append((*best, rows))
        self.simple = [(own, self._small(rows, policy)) for own, policy, _, rows in improved]
        improved.sort(key=lambda one: -one[0])
        for _, policy, value, rows in improved:
            self.machines.add_controller(rows, policy, value)
        look = self.question.look[self.question.first]
        point = np.zeros((1, len(self.machines.members[look])))
        point[0, self.machines.place[self.question.first]] = 1.0
        at, node = self.machines.best(look, point)
        self._note(float(at[0]), int(node[0]))

    @property
    def _shows_time(self) -> bool:
        """Whether no look comes again by the model's own observations: nodes add little to these."""
        return self._rank is not None and self.question.last_step == 0

    def _small(self, rows: Rows, policy: IndexArray) -> Controller:
        """The controller of few nodes, of the model; it does not know the number of steps."""
        action, following = (
            np.zeros((rows.nodes, self.question.pomdp.observations), np.int32) for _ in range(2)
        )
        seen = [seen for seen, _ in self.question.looks]
        action[:, seen], following[:, seen] = rows.table(policy)
        return Controller(self.question.pomdp, following, action)

    def _note(self, value: float, node: int) -> None:
        if self.sign * value > self.sign * self.attained or self.first_node < 0:
            self.attained, self.first_node = value, node

    def masses(self, look: int) -> FloatArray:
        """The beliefs of a look as rows of probabilities of its states, in the order of the graph."""
        known = self._mass[look]
        for number in self.graph.by_look[look][len(known) :]:
            _, states, weights = self.graph.belief[number]
            row = np.zeros(len(self.machines.members[look]))
            total = sum(weights)
            row[self.machines.place[list(states)]] = [weight / total for weight in weights]
            known.append(row)
        return np.array(known)

    def mass(self, number: int) -> FloatArray:
        """One belief so."""
        look = self.graph.belief[number][0]
        place = self._row[number] if number < len(self._row) else -1
        if place < 0:
            for n in range(len(self._row), len(self.graph)):
                seen = self.graph.belief[n][0]
                self._row.append(self._next[seen])
                self._next[seen] += 1
            place = self._row[number]
        if place >= len(self._mass[look]):
            self.masses(look)
        return self._mass[look][place]

    def run(self) -> str:
        """Rounds until both sides are as close as was asked; what stopped it."""
        while True:
            outer = self._optimistic()
            best = self._attain()
            self._interpolate(outer)
            outer = self._optimistic()
            far = outer.value[0]
            if _close(min(far, self.attained), max(far, self.attained), self.precision * 0.5, self.relative):
                return "certified"
            if self.work.is_late:
                return LATE
            if self.work.is_over:
                return "the limit of work was reached; the bounds are verified but wider"
            if self.expanded >= self.most:
                return "the limit of beliefs was reached; the bounds are verified but wider"
            before = self.attained
            if self._expand(outer, best):
                continue
            self._attain()
            if not self.sign * (self.attained - before) > 1e-9 * max(1.0, abs(self.attained)):
                return "certified"

    def _optimistic(self) -> BeliefOptimum:
        """The outer model's optimum, in plain float64."""
        flat = Flat.of(self.graph.rounded, self.question.earns)
        self.work.add(flat.matrix.nnz)
        policy = np.zeros(len(self.graph), np.int64)
        policy[: len(self._policy)] = self._policy
        policy = np.where(policy < np.diff(flat.start), policy, 0)
        lost = self._lost(np.zeros(0)) if self.question.must_reach and self.sign < 0 else 0.0
        optimum = flat.optimum(self.sign, policy, lost)
        self._policy, self._outer = optimum.policy, optimum
        return optimum

    def _pessimistic(self) -> tuple[FloatArray, OffsetArray]:
        """What the best known node is worth in every belief, and that node."""
        best, node = np.zeros(len(self.graph)), np.zeros(len(self.graph), np.int64)
        for look, numbers in enumerate(self.graph.by_look):
            if numbers:
                best[numbers], node[numbers] = self.machines.best(look, self.masses(look))
                if len(self.machines.by_look[look]) > MOST_NODES:
                    self.machines.keep(look, set(node[numbers].tolist()))
        return best, node

    def _expand(self, outer: BeliefOptimum, best: FloatArray) -> bool:
        """Expand those beliefs in which being told is worth most, and what has one action behind them."""
        graph = self.graph
        more = [
            self.machines.best(graph.belief[n][0], self.mass(n)[None])[0]
            for n in range(len(best), len(graph))
        ]
        best = np.minimum(np.concatenate([best, *more]), FAR)
        gap = self.sign * (outer.value - best)
        visits, excess = outer.visits(self.sign, best)
        score = visits * np.minimum(np.maximum(excess, 0.0) + REST * gap, 1e6)
        open_ = [n for n in range(len(best)) if score[n] > 0 and graph.is_revealed(n)]
        order = sorted(open_, key=lambda n: -score[n])
        sums = np.cumsum(score[order])
        part = len(best) // (4 if self._shows_time else 16)
        most = min(int((sums < NEARLY_ALL * sums[-1:]).sum()), max(int(GROWTH * self.expanded), part))
        for n in order[: max(FIRST_BATCH, most)]:
            took = int(outer.policy[n]) if graph.kind[n] == CUT else 0
            graph.expand(n)
            behind = filter(graph.is_revealed, graph.moves[n][took].successor)
            forced = [b for b in behind if graph.question.actions_of(graph.belief[b][0]) == 1]
            for each in forced:
                graph.expand(each)
            self.expanded += 1 + len(forced)
            if self.work.is_late:
                break
        return bool(open_)

    def _interpolate(self, outer: BeliefOptimum) -> None:
        """Split beliefs that are worth less as a mixture of expanded ones and states."""
        graph, limit = self.graph, self.sign * outer.value
        corner = self.sign * self._corners(outer)
        for look, numbers in enumerate(graph.by_look):
            points = [n for n in numbers if graph.kind[n] == EXPANDED and len(graph.belief[n][1]) > 1]
            open_ = [n for n in numbers if graph.is_revealed(n)]
            if not points or not open_:
                continue
            mass, place = self.masses(look), {n: k for k, n in enumerate(numbers)}
            members = self.machines.members[look]
            known = corner[members]
            inside = mass[[place[n] for n in points]]
            depth = limit[points] - inside @ known
            useful = np.flatnonzero(depth < -1e-9 * np.maximum(1.0, np.abs(limit[points])))
            if not len(useful):
                continue
            worth, basis = mixtures(
                mass[[place[n] for n in open_]], inside[useful], known, limit[points][useful]
            )
            size = len(members)
            for n, value, own in zip(open_, worth, basis, strict=True):
                if value < limit[n] - 1e-9 * max(1.0, abs(limit[n])):
                    into = [points[useful[k - size]] for k in own if k >= size]
                    inner = set(own.tolist())
                    without = [m for k, m in enumerate(members.tolist()) if k not in inner]
                    with suppress(ValueError):  # by rounding it is no mixture of these: it stays as it is
                        graph.split(n, into, without)

    def _corners(self, outer: BeliefOptimum) -> FloatArray:
        """What every state is worth where it is known, in the outer model."""
        if not self._known:
            self._known = [
                [
                    (float(row.reward), *_listed(known, row.total))
                    for row, known in zip(own, mine, strict=True)
                ]
                for own, mine in zip(self.question.rows, self.graph.known, strict=True)
            ]
        flat = Flat.of(self._known, self.question.earns, len(self.graph))
        worth = self.sign * (flat.gain + flat.matrix @ outer.value)
        best: FloatArray = self.sign * np.maximum.reduceat(worth, flat.start[:-1])
        return best

    def _attain(self) -> FloatArray:
        """Better nodes; what the best one is worth in every belief."""
        if self._rank is not None:
            return self._sweep()
        self._close_loops(*self._pessimistic())
        return self._pessimistic()[0]

    def _sweep(self) -> FloatArray:
        """Where no look comes again: the best node for every belief, from the end on, and its worth."""
        graph, machines, rank = self.graph, self.machines, self._rank
        assert rank is not None
        value = np.zeros(len(graph))
        for look in sorted(range(len(rank)), key=lambda look: -rank[look]):
            numbers = graph.by_look[look]
            if numbers:
                value[numbers], node = machines.improve(look, self.masses(look))
                if numbers[0] == 0:
                    self._note(float(value[0]), int(node[0]))
                if len(machines.by_look[look]) > MOST_NODES:
                    machines.keep(look, set(node.tolist()))
        return value

    def _close_loops(self, best: FloatArray, node: OffsetArray) -> None:
        """Solve what is expanded, with the best known controller elsewhere; the policy becomes nodes."""
        graph, machines, earns = self.graph, self.machines, self.question.earns
        acts = [graph.kind[n] == EXPANDED or len(graph.belief[n][1]) == 1 for n in range(len(graph))]
        nothing = (np.zeros(0, np.int64), np.zeros(0))
        rows = [
            own if act else [(min(float(worth), FAR / 1e6), *nothing)]
            for own, act, worth in zip(graph.rounded, acts, best, strict=True)
        ]
        flat = Flat.of(rows, earns)
        if not earns:
            flat.gain[flat.start[:-1][~np.array(acts)]] = np.clip(best[~np.array(acts)], 0.0, 1.0)
        lost = self._lost(best) if self.question.must_reach else 0.0
        optimum = flat.optimum(self.sign, np.zeros(len(rows), np.int64), lost)
        # What the optimal policy does in expanded beliefs becomes nodes, the first one first.
        order = [n for n, act in enumerate(acts) if act and n < len(best)]
        place = {n: k for k, n in enumerate(order)}
        action: list[int] = []
        looks: list[int] = []
        following: list[dict[int, int]] = []
        for n in order:
            k = int(optimum.policy[n])
            links = {}
            for behind in graph.moves[n][k].successor:
                links[graph.belief[behind][0]] = -1 - place[behind] if behind in place else int(node[behind])
            action.append(k)
            looks.append(graph.belief[n][0])
            following.append(links)
        made = machines.add_nodes(action, looks, following)
        first = self.question.first
        value = machines.value[made[0]][machines.place[first]]
        self._note(float(value), made[0])

    def _lost(self, values: FloatArray) -> float:
        """What it costs to miss a target, beside these values and what is attained."""
        known = np.append(values, self.attained)
        return LOST * float(np.abs(known[np.isfinite(known)]).max(initial=1.0))

    def _ranks(self) -> list[int] | None:
        """How long a play takes to each look, at most; None where one can come again."""
        looks = len(self.question.looks)
        behind: list[set[int]] = [set() for _ in range(looks)]
        for seen, own in zip(self.question.look, self.question.rows, strict=True):
            for row in own:
                behind[seen].update(self.question.look[s] for s in row.successor)
        waiting = [0] * looks
        for look in (look for following in behind for look in following):
            waiting[look] += 1
        rank, ready = [0] * looks, [look for look in range(looks) if not waiting[look]]
        for look in ready:
            for after in behind[look]:
                rank[after] = max(rank[after], rank[look] + 1)
                waiting[after] -= 1
                if not waiting[after]:
                    ready.append(after)
        return rank if len(ready) == looks else None

    def export(self) -> Controller:
        """The best node found, with all that follow it, as a controller; a simple one where it is as good."""
        machines, question = self.machines, self.question
        best = self.sign * self.attained
        for own, controller in self.simple:
            if own >= best - 1e-9 * abs(best):
                return controller
        pomdp, looks = question.pomdp, question.looks
        first = self.first_node
        # A node of the controller is one here, and 0 is the moment before the first observation.
        order = [first]
        place = {first: 1}
        following, action = [], []
        begin = np.zeros((2, pomdp.observations), np.int32)
        first_seen = looks[machines.look[first]][0]
        begin[0, first_seen], begin[1, first_seen] = 1, machines.action[first]
        following.append(begin[0])
        action.append(begin[1])
        for node in order:
            links, acts = (
                np.full(pomdp.observations, place[node], np.int32),
                np.zeros(pomdp.observations, np.int32),
            )
            for look in sorted(machines.step(machines.look[node], machines.action[node])[1]):
                seen = looks[look][0]
                behind = machines.next_node(node, look)
                if behind not in place:
                    place[behind] = len(order) + 1
                    order.append(behind)
                links[seen], acts[seen] = place[behind], machines.action[behind]
            following.append(links)
            action.append(acts)
        return Controller(pomdp, np.array(following), np.array(action))


def _listed(
    known: tuple[tuple[int, ...], tuple[int, ...], int], total: int
) -> tuple[OffsetArray, FloatArray]:
    numbers, masses, success = known
    towards = [BEFORE + n for n in numbers] + ([SUCCESS] if success else [])
    weights = [*masses, success] if success else masses
    return np.array(towards, np.int64), np.array([weight / total for weight in weights])


def mixtures(
    beliefs: FloatArray, points: FloatArray, corner: FloatArray, worth: FloatArray
) -> tuple[FloatArray, OffsetArray]:
    """What every belief is worth as the cheapest mixture of states and points, and its basis (simplex)."""
    count, size = beliefs.shape
    column, price = np.concatenate([np.eye(size), points]), np.concatenate([corner, worth])
    outside = (beliefs == 0).astype(np.float64) @ (column > 0).T > 0
    basis, share = np.tile(np.arange(size), (count, 1)), beliefs.copy()
    inverse, own = np.tile(np.eye(size), (count, 1, 1)), np.arange(count)
    for _ in range(PIVOTS):
        cost = price - np.einsum("ij,ijk->ik", price[basis[own]], inverse[own]) @ column.T
        cost[outside[own]] = 0.0
        enter = np.argmin(cost, axis=1)
        better = cost[np.arange(len(own)), enter] < -1e-10
        own, enter, each = own[better], enter[better], np.arange(better.sum())
        if not len(own):
            break
        step = np.einsum("ijk,ik->ij", inverse[own], column[enter])
        ratio = np.where(step > 1e-12, share[own] / np.maximum(step, 1e-12), np.inf)
        leave = np.argmin(ratio, axis=1)
        row = inverse[own, leave] / step[each, leave][:, None]
        step[each, leave] -= 1.0
        inverse[own] -= step[:, :, None] * row[:, None, :]
        share[own] = np.maximum(share[own] - step * ratio[each, leave][:, None], 0.0)
        basis[own, leave] = enter
    return (share * price[basis]).sum(axis=1), basis


@dataclass(frozen=True, eq=False)
class BeliefOptimum:
    """Values of all beliefs, and a choice of each that attains them, in plain float64."""

    flat: Flat
    policy: OffsetArray
    value: FloatArray

    def visits(self, sign: float, best: FloatArray) -> tuple[FloatArray, FloatArray]:
        """About how often each belief is met, where all choices that are as good as the best are taken; and
        how much more it is worth to go on there as the outer model does, with `best` behind, than `best` is.
        One times the other, summed over all beliefs, is the distance of both sides at the first."""
        flat = self.flat
        worth = sign * (flat.gain + flat.matrix @ self.value)
        most = np.maximum.reduceat(worth, flat.start[:-1])
        owner = np.repeat(np.arange(len(most)), np.diff(flat.start))
        near = worth >= most[owner] - 1e-7 * np.maximum(1.0, np.abs(most[owner]))
        share = near / np.bincount(owner, near, len(most))[owner]
        mixed = csr_array((share, (owner, np.arange(len(owner)))), shape=(len(most), len(owner)))
        system = splu((eye_array(len(most)) - (1 - SEARCH_LEAK) * (mixed @ flat.matrix)).tocsc())
        begin = np.zeros(len(most))
        begin[0] = 1.0
        visits: FloatArray = np.maximum(system.solve(begin, trans="T"), 0.0)
        return visits, sign * (mixed @ (flat.gain + flat.matrix @ best) - best)


@dataclass(frozen=True, eq=False)
class Flat:
    """The choices of all beliefs behind each other: what each earns at once, and where it leads."""

    start: OffsetArray
    gain: FloatArray
    matrix: csr_array

    @staticmethod
    def of(
        rows: Sequence[Sequence[tuple[float, OffsetArray, FloatArray]]], earns: bool, size: int | None = None
    ) -> Flat:
        flat = [row for own in rows for row in own]
        start = offsets([len(own) for own in rows])
        ends = offsets([len(row[1]) for row in flat])
        index = np.concatenate([row[1] for row in flat])
        data = np.concatenate([row[2] for row in flat])
        owner = np.repeat(np.arange(len(flat)), np.diff(ends))
        inner = index >= BEFORE
        count = len(rows) if size is None else size
        matrix = csr_array((data[inner], (owner[inner], index[inner] - BEFORE)), shape=(len(flat), count))
        won = index == SUCCESS
        gain = (
            np.array([row[0] for row in flat], np.float64)
            if earns
            else np.bincount(owner[won], data[won], len(flat)).astype(np.float64)
        )
        return Flat(start, gain, matrix)

    def optimum(self, sign: float, policy: OffsetArray, lost: float = 0.0) -> BeliefOptimum:
        """By policy iteration; a play stops at every step with a small probability, worth `lost`."""
        first = self.start[:-1]
        gain = self.gain + LEAK * lost
        for _ in range(MOST_IMPROVED):
            chosen = first + policy
            system = splu((eye_array(len(policy)) - (1 - LEAK) * self.matrix[chosen]).tocsc())
            value = system.solve(gain[chosen])
            worth = sign * (gain + (1 - LEAK) * (self.matrix @ value))
            best = first_of_best(worth, self.start)
            better = worth[best] > worth[chosen] + 1e-10 * np.maximum(1.0, np.abs(worth[chosen]))
            if not better.any():
                break
            policy = np.where(better, best - first, policy)
        return BeliefOptimum(self, policy, value)
