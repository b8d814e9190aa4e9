"""`solve_partial`: both sides of the optimum over all controllers that see observations only, anytime.

From one side the value of a concrete controller, evaluated on the model with verified bounds; from the
other the outer model's (`graph`), solved with verified bounds. In between a search decides which beliefs
are expanded: those that the outer model's optimal policy visits most often, times how far apart both sides
are there. Nothing of the search enters a bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tightrope.beliefs.graph import BEFORE, EXPANDED, BeliefGraph
from tightrope.beliefs.machines import Machines, Rows, improve
from tightrope.beliefs.question import Question, question_of
from tightrope.errors import check_number
from tightrope.io.results import Interval
from tightrope.model.graph.support import Support
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, Controller
from tightrope.model.product import lift_model, lift_objective, product_with_memory
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import interval_text
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import solve

MOST_BELIEFS = 60_000
STARTS = 12
"""So many controllers without memory but a phase are improved, each from a random one."""

PHASES = (1, 2, 4)
USUAL = 1e-4
FIRST_BATCH = 32
GROWTH = 0.5
"""So large a part of all beliefs is expanded in a round, at least `FIRST_BATCH`."""

PATIENT = 1e-3
"""How close the outer model is solved during the search, relative to the gap wanted."""


@dataclass(frozen=True, eq=False, repr=False)
class PartialSolution(Record):
    """Bounds of the best that a controller can do which sees observations only.

    `controller` attains the bound on its side: `attained` are verified bounds of its own value. `beliefs` is
    how many beliefs were expanded, `outer` the solution of the outer model, `graph` its beliefs.
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

    @property
    def interval(self) -> Interval:
        return Interval(self.lower, self.upper)

    @property
    def bounds(self) -> tuple[float, float]:
        return self.lower, self.upper

    @property
    def is_certified(self) -> bool:
        """Whether the bounds are as close as was asked."""
        return self.status == "certified"

    @property
    def policy(self) -> Any:
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
    """Verified bounds on the value of a controller in a model without parameters."""
    model = pomdp.model.instantiate(point) if isinstance(pomdp.model, ParametricMDP) else pomdp.model
    product, policy = product_with_memory(model, controller.policy, Support.of(model))
    lifted = lift_model(model, product)
    asked = lift_objective(objective, product)
    return solve(lifted, asked, policy=policy.choices, precision=precision)


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
    seconds: float = 10.0,
    beliefs: int = MOST_BELIEFS,
    seed: int = 1,
) -> PartialSolution:
    """Bounds as close as `precision` asks, or as close as `seconds` and `beliefs` allow."""
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
    search = Search(question, begin + seconds, beliefs, precision, relative, seed)
    status = search.run()
    controller = search.export()
    own = evaluate(pomdp, objective, controller, point)
    outer = search.solve_outer(precision=min(1e-9, precision))
    far = outer.upper[BEFORE] if question.maximises else outer.lower[BEFORE]
    if objective.complement:
        far = math.nextafter(1 - far, 0.0 if question.maximises else 1.0)
    own_lower, own_upper = own.bounds
    if objective.maximises:
        lower, upper = own_lower, max(float(far), own_lower)
    else:
        lower, upper = min(float(far), own_upper), own_upper
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
    )


def _close(lower: float, upper: float, precision: float, relative: bool) -> bool:
    if lower == upper:
        return True
    wide = upper - lower
    if not math.isfinite(wide):
        return False
    return wide <= precision * max(abs(lower), abs(upper)) if relative else wide <= precision


class Search:
    """Expands beliefs and improves controllers, in rounds."""

    def __init__(
        self, question: Question, deadline: float, most: int, precision: float, relative: bool, seed: int
    ):
        self.question, self.deadline, self.most = question, deadline, most
        self.precision, self.relative = precision, relative
        self.sign = 1.0 if question.maximises else -1.0
        self.rows = Rows.of(question)
        self.machines = Machines.of(self.rows)
        self.graph = BeliefGraph.of(question)
        self.expanded = 1
        self._random = np.random.default_rng(seed)
        self._start: FloatArray | None = None
        self.first_node = -1
        self.attained = -math.inf * self.sign
        self._begin()

    def _begin(self) -> None:
        offered = np.array([self.question.actions_of(look) for look in range(len(self.question.looks))])
        seen = set()
        for start in range(STARTS):
            phases = PHASES[start % len(PHASES)]
            phased = self.rows.in_phases(phases)
            many = np.tile(offered, phases)
            policy = (self._random.random(len(many)) * many).astype(np.int32)
            policy, value = improve(phased, policy)
            if tuple(policy) not in seen:
                seen.add(tuple(policy))
                self.machines.add_phased(policy, value, phases)
            if time.perf_counter() > self.deadline:
                break
        look = self.question.look[self.question.first]
        self._note(*self.machines.best(look, [self.question.first], np.ones(1)))

    def _note(self, value: float, node: int) -> None:
        if self.sign * value > self.sign * self.attained or self.first_node < 0:
            self.attained, self.first_node = value, node

    def solve_outer(self, precision: float) -> Solution:
        model, reward = self.graph.model()
        start = None
        if self._start is not None:
            start = np.zeros(model.states)
            start[: len(self._start)] = self._start
        solved = solve(
            model,
            self.graph.objective(model, reward, outer=True),
            precision=precision,
            start=start,
            threads=1,
        )
        self._start = solved.upper if np.isfinite(solved.upper).all() else None
        return solved

    def run(self) -> str:
        """Rounds until both sides are as close as was asked; what stopped it."""
        while True:
            outer = self.solve_outer(PATIENT * 0.1)
            limit = outer.upper if self.question.maximises else outer.lower
            self._attain()
            far = float(limit[BEFORE])
            if _close(min(far, self.attained), max(far, self.attained), self.precision * 0.5, self.relative):
                return "certified"
            if time.perf_counter() > self.deadline:
                return "the time limit was reached; the bounds are verified but wider"
            if self.expanded >= self.most:
                return "the limit of beliefs was reached; the bounds are verified but wider"
            before = self.attained
            if self._expand(outer, limit):
                continue
            self._attain()  # nodes that the last round has found may be worth more where beliefs are cut
            if not self.sign * (self.attained - before) > 1e-9 * max(1.0, abs(self.attained)):
                return "certified"

    def _expand(self, outer: Solution, limit: FloatArray) -> bool:
        graph = self.graph
        visits = _visits(outer)
        open_ = [n for n, kind in enumerate(graph.kind) if kind != EXPANDED and visits[BEFORE + n] > 0]
        if not open_:
            return False
        scores = []
        for n in open_:
            look, states, weights = graph.belief[n]
            mass = np.array([w / sum(weights) for w in weights])
            worth, _ = self.machines.best(look, states, mass)
            gap = self.sign * (limit[BEFORE + n] - worth)
            scores.append(visits[BEFORE + n] * (gap if math.isfinite(gap) else 1e6))
        order = np.argsort(-np.array(scores), kind="stable")
        batch = max(FIRST_BATCH, int(GROWTH * self.expanded))
        useful = [open_[i] for i in order[:batch] if scores[i] > 0]
        for n in useful:
            graph.expand(n)
            self.expanded += 1
            if self.expanded % 64 == 0 and time.perf_counter() > self.deadline:
                break
        return bool(useful)

    def _attain(self) -> None:
        """Solve what is expanded, with the best known controller elsewhere; the policy becomes nodes."""
        graph, machines = self.graph, self.machines
        leave, node = {}, {}
        reach = self._reached()
        for n in range(len(graph)):
            if graph.kind[n] == EXPANDED and n in reach:
                continue
            if n not in reach:
                leave[n] = 0.0
                continue
            look, states, weights = graph.belief[n]
            worth, node[n] = machines.best(look, states, np.array([w / sum(weights) for w in weights]))
            leave[n] = worth if self.question.earns else min(max(worth, 0.0), 1.0)
        model, reward = graph.model(leave)
        solved = solve(model, graph.objective(model, reward, outer=False), precision=PATIENT * 0.1, threads=1)
        chosen = solved.choice - model.structure.choice_start[:-1]
        # What the optimal policy reaches from the first belief becomes nodes.
        order, place = [0], {0: 0}
        for n in order:
            for behind in graph.moves[n][int(chosen[BEFORE + n])].successor:
                if graph.kind[behind] == EXPANDED and behind not in place:
                    place[behind] = len(order)
                    order.append(behind)
        action: list[int] = []
        looks: list[int] = []
        following: list[dict[int, int]] = []
        for n in order:
            k = int(chosen[BEFORE + n])
            links = {}
            for behind in graph.moves[n][k].successor:
                links[graph.belief[behind][0]] = -1 - place[behind] if behind in place else node[behind]
            action.append(k)
            looks.append(graph.belief[n][0])
            following.append(links)
        made = machines.add_nodes(action, looks, following)
        first = self.question.first
        value = machines.value[made[0]][machines.place[first]]
        self._note(float(value), made[0])

    def _reached(self) -> set[int]:
        """Beliefs that expanded ones lead to from the first."""
        order, seen = [0], {0}
        for n in order:
            if self.graph.kind[n] != EXPANDED:
                continue
            for move in self.graph.moves[n]:
                for behind in move.successor:
                    if behind not in seen:
                        seen.add(behind)
                        order.append(behind)
        return seen

    def export(self) -> Controller:
        """The best node found, with all that follow it, as a controller of the model."""
        machines, question = self.machines, self.question
        pomdp, looks = question.pomdp, question.looks
        number = {pair: look for look, pair in enumerate(looks)}
        last = question.last_step
        first = self.first_node
        # A node of the controller is one here, and 0 is the moment before the first observation.
        order = [first]
        place = {first: 1}
        step = {first: looks[machines.look[first]][1]}
        following, action = [], []
        begin = np.zeros((2, pomdp.observations), np.int32)
        first_seen = looks[machines.look[first]][0]
        begin[0, first_seen], begin[1, first_seen] = 1, machines.action[first]
        following.append(begin[0])
        action.append(begin[1])
        for node in order:
            after = min(step[node] + 1, last)
            links, acts = np.zeros(pomdp.observations, np.int32), np.zeros(pomdp.observations, np.int32)
            for seen in range(pomdp.observations):
                look = number.get((seen, after))
                if look is None:
                    links[seen] = place[node]
                    continue
                behind = machines.next_node(node, look)
                if behind not in place:
                    place[behind] = len(order) + 1
                    order.append(behind)
                    step[behind] = after
                links[seen], acts[seen] = place[behind], machines.action[behind]
            following.append(links)
            action.append(acts)
        return Controller(pomdp, np.array(following), np.array(action))


def _visits(outer: Solution) -> FloatArray:
    """About how often the optimal policy of the outer model is in each state."""
    structure = outer.kernel.structure
    start = structure.transition_start
    chosen = outer.choice
    probability = outer.kernel.lower
    size = np.diff(start)[chosen]
    row = np.repeat(np.arange(structure.states), size)
    within = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    at = np.repeat(start[chosen], size) + within
    move = csr_array((probability[at], (structure.successor[at], row)), shape=(structure.states,) * 2)
    visits = np.zeros(structure.states)
    now = np.zeros(structure.states)
    now[BEFORE] = 1.0
    now[:2] = 0
    for _ in range(200):
        visits += now
        now = move @ now
        now[:BEFORE] = 0.0
        if now.sum() < 1e-6:
            break
    return visits
