"""Shields: any agent may act, and a verified bound still holds for the whole run.

A value vector v, verified for the fallback policy, prices every choice c of a state s: price(c) = max(0, v(s)
− q(c)), q(c) the worst expectation of v after c over nature's sets, rounded down. The agent pays with its
slack. After as many steps as its patience that do not lower the ranking of the solution, the fallback policy
acts until the end, and attains v from there. Proof: docs/explanation/shields.md.

Nothing in a file is trusted. `tightrope verify --shield` shows that the prices follow from a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from typing import Any

import lazy_loader
import numpy as np

from tightrope.atomic import atomic_write, path_of
from tightrope.errors import CannotCertify, InputError, Location, check_type
from tightrope.io.answers import RemovedAction, ShieldAnswer, ShieldDocument, ShieldFacts
from tightrope.io.coding import read_document, record_of, to_plain, to_text
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.product_problem import ProductLift
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy_file import FiniteMemoryChoices
from tightrope.model.states import find_choice, index_or_state, is_whole, show_action
from tightrope.model.structure import NamedStates, Structure, plain
from tightrope.numerics.arrays import AnyArray, FloatArray, IndexArray, OffsetArray, offsets, ranges
from tightrope.numerics.record import same
from tightrope.problem import Problem, require_value
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.equations.system import horizon_system
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment, Word
from tightrope_check.problem import CertifiedObjective

FORMAT, VERSION = "tightrope shield", 4
GRAPH = ("choice_start", "transition_start", "successor", "action", "initial_states")
ROWS = ("state", "memory", "choice", "following")
COLUMNS = ("ranking", "value", "price")
KINDS = {"value": "<f8", "price": "<f8", "variable": "<i8"}
"""The types of arrays in a file, truths among variables as 0 and 1; all others are "<i4"."""

DECIDED, WON = -1, -2
"""Ranks of rows in which the question is decided, so that every choice is free from there on, and in which a
temporal formula is won, but only if the fallback policy acts from there on."""

LEAST_PATIENCE = 100
MOST_PRICES = 50_000_000
"""Prices by step and choice, and pairs of memory and state, beyond which there is no shield."""


@dataclass(frozen=True, eq=False)
class ShieldTable:
    """Verified values, prices and the fallback policy, shared by all episodes.

    The memory of the policy is the step, the last one for all later ones, or the state of an automaton. There
    are a value and a rank for each of its rows, and prices for the choices of their states, row by row.
    """

    facts: ShieldFacts
    structure: Structure
    fallback: FiniteMemoryChoices
    ranking: OffsetArray
    value: FloatArray
    price: FloatArray

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together, or hold what no price or value is."""
        self.fallback.refuse_for(self.structure)
        if (pairs := self.fallback.memories * self.structure.states) > MOST_PRICES:
            raise InputError(f"{pairs:,} pairs of memory and state are too many for a shield")
        sizes, rows = [len(getattr(self, name)) for name in COLUMNS], len(self.fallback.state)
        if sizes != [rows, rows, self.first[-1]]:
            raise InputError(f"{', '.join(COLUMNS)} have {sizes} entries, which do not fit the rows")
        if np.isnan(self.value).any() or not np.all(self.price >= 0):
            raise InputError("a value is no number, or a price is not at least 0")

    @cached_property
    def first(self) -> OffsetArray:
        """Where the prices of every row begin, and the end of the last one."""
        return offsets(np.diff(self.structure.choice_start)[self.fallback.state])

    @cached_property
    def row(self) -> IndexArray:
        """The row of every memory and state; −1 where no episode meets the two."""
        rows = np.full((self.fallback.memories, self.structure.states), -1, np.int32)
        rows[self.fallback.memory, self.fallback.state] = np.arange(len(self.fallback.state))
        return rows

    def is_about(self, model: Structure) -> bool:
        """Whether the shield has the choices of a model, under the names of its states and actions."""
        parts = (*GRAPH[:3], "initial_states", "valuations", "state_names")
        both = [[getattr(one, part) for part in parts] for one in (self.structure, model)]
        names = [np.array(one.action_names)[one.action_of_choice] for one in (self.structure, model)]
        return same(*both) and same(*names)


def table_of(solution: Solution, problem: Problem | None = None, **known: Any) -> ShieldTable:
    """Prices of all choices under the verified values of a solution; `known` are facts of a learned one."""
    objective, kernel, last = solution.objective, solution.kernel, None
    structure, maximises = kernel.structure, objective.agent is Direction.MAX
    if objective.agent is objective.nature and kernel.lower is not kernel.upper:
        words = "a shield needs a bound against every nature, and here nature helps the agent"
        raise InputError(words, hint="ask for the worst nature, such as Pmaxmin or Rminmax")
    steps = objective.lower_steps if objective.upper_steps is None else objective.upper_steps
    steps = 1 if objective.kind is ObjectiveKind.NEXT else steps
    system = horizon_system(objective, structure, np.ones(structure.choices, np.bool_))
    if objective.discount is not None:
        system = replace(system, discount=np.full(structure.choices, objective.discount))
    if not objective.is_bounded:
        endless = replace(objective, lower_steps=0)
        solved = solve(kernel, endless, precision=solution.precision) if steps else solution
        last = solved.fixpoint_lower if maximises else solved.fixpoint_upper, solved.choice
    after = partial(kernel.safe_choices, system, upward=not maximises)
    if isinstance(kernel, BellmanOperator):  # one pass, also where sums of bounds are nearly 1
        after.keywords["workspace"] = replace(kernel.open_workspace(), care=True)
    given = {"question": "" if problem is None else problem.text, **solution.verdict.facts, **known}
    start, ranking = structure.choice_start, solution.ranking
    facts, choice, columns = price_choices(objective, start, steps, last, after, ranking, given)
    if problem is not None and problem.lift is not None:
        return _lift(problem, facts, choice, columns)
    return ShieldTable(facts, structure, by_step(choice, steps), *columns)


def price_choices(
    objective: Objective | CertifiedObjective,
    choice_start: OffsetArray,
    steps: int,
    last: tuple[FloatArray, OffsetArray] | None,
    after: Callable[[FloatArray], FloatArray],
    ranking: OffsetArray,
    known: dict[str, Any],
    margin: float = 0.0,
) -> tuple[ShieldFacts, OffsetArray, list[AnyArray]]:
    """The fallback policy, ranks, values and prices of all steps, backwards from the `last` one (None: all is
    decided then). `after` bounds what choices lead to. Prices are larger by a `margin` of 1 + |v|."""
    if steps and (steps + 1) * choice_start[-1] > MOST_PRICES:
        words = f"{steps:,} steps of {choice_start[-1]:,} choices need more than {MOST_PRICES:,} prices"
        raise InputError(words, hint="ask without a step bound, or with a smaller one")
    kind, agent = (getattr(one, "name", one) for one in (objective.kind, objective.agent))
    first, counts, maximises = choice_start[:-1], np.diff(choice_start), agent == "MAX"
    target, rows = objective.target if kind in ("UNTIL", "REACH_REWARD") else None, []
    given = objective.terminal if objective.target is None else objective.target
    end = np.zeros(len(first)) if given is None else given.astype(np.float64)
    value, fallback = last or (end, first)
    for step in range(steps, -1, -1):
        reached, open_yet = after(value), target is None or step < objective.lower_steps
        won = np.zeros(len(first), np.bool_) if open_yet or target is None else target
        decided = won if objective.allowed is None else won | ~objective.allowed
        if step < steps:
            value = (np.maximum if maximises else np.minimum).reduceat(reached, first)
            attains = np.flatnonzero(reached == np.repeat(value, counts))
            fallback = attains[np.searchsorted(attains, first)]
            value[decided] = won[decided]
        elif last is None:
            decided = np.ones(len(first), np.bool_)
        price = np.repeat(value, counts)
        with np.errstate(invalid="ignore"):
            least = margin * (1.0 + np.abs(price)) if margin else 0.0
            price = (price - reached if maximises else reached - price) + least
        price[~(price > 0)] = 0.0  # ∞ − ∞ is no loss
        np.nextafter(price, np.inf, out=price, where=price > 0)
        price[fallback] = 0.0  # it attains the value, which is verified
        rows.append((fallback, np.where(decided, DECIDED, ranking), value, price))
    choice, *columns = map(np.concatenate, zip(*reversed(rows), strict=True)) if steps else rows[0]
    may_wait = last is None or kind == "DISCOUNTED" or (kind == "UNTIL" and not maximises)  # avoiding may
    own = {"maximises": maximises, "complement": objective.complement, "range": objective.range}
    return ShieldFacts(**(known | own | {"needs_patience": not may_wait})), choice, columns


def by_step(choice: OffsetArray, steps: int) -> FiniteMemoryChoices:
    """The choices of all states at every step, the last ones also at all later steps."""
    memory, state = np.divmod(np.arange(len(choice)), len(choice) // (steps + 1))
    return FiniteMemoryChoices(state, memory, choice, np.minimum(memory + 1, steps))


def _lift(problem: Problem, facts: ShieldFacts, choice: OffsetArray, columns: list[AnyArray]) -> ShieldTable:
    """The same prices for the model behind a product with an automaton. A formula about infinite runs, once
    it is won, is satisfied only by the fallback policy, with its memory: these are further rows."""
    lift, (ranking, value, price) = problem.lift, columns
    if not isinstance(lift, ProductLift) or lift.reach is None or lift.letters is None:
        raise InputError(f"{problem.text} of a controller that sees observations only has no shield")
    structure, won = lift.base.structure, lift.reach.won if lift.needs_support else []
    rows = finite_memory_choices(lift.product, lift.reach.automaton, lift.letters, choice, won)
    is_won = (ranking == DECIDED) & (value > 0) & lift.needs_support
    inside = rows.state[len(choice) :]
    ranking = np.append(np.where(is_won, WON, ranking), np.full(len(inside), WON))
    price = np.append(price, np.zeros(np.diff(structure.choice_start)[inside].sum()))
    return ShieldTable(facts, structure, rows, ranking, np.append(value, np.ones(len(inside))), price)


class Shield:
    """Restrict any agent so that a verified bound still holds over the whole run.

    One object guards one episode: `start` begins it, `allowed` lists choices with prices, `take` pays for
    one. Copies are cheap and independent (`copy.copy`).

    >>> import tightrope as tr
    >>> rows = [(0, "safe", {1: 0.9, 2: 0.1}), (0, "fast", {1: 0.8, 2: 0.2})]
    >>> rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"crash": [2]})
    >>> shield = tr.Shield.of(tr.solve(model, 'Pmin=? [ F "crash" ]'), slack=0.15)
    >>> {action: round(price, 6) for action, price in shield.start().allowed(0).items()}
    {'safe': 0.0, 'fast': 0.1}
    >>> shield.take(0, "fast")
    >>> round(shield.slack, 6), round(shield.promise, 6)
    (0.05, 0.25)
    """

    def __init__(self, table: ShieldTable, slack: float, patience: int | None = None) -> None:
        """Begin an episode under the prices of a table; `Shield.of` makes one."""
        check_type("slack", slack, Real, "a number")
        if not 0 <= slack < math.inf:
            raise InputError(f"the slack is {slack}, not a number of at least 0")
        if patience is not None and not (is_whole(patience) and patience >= 0):
            raise InputError(f"the patience is {patience}, not a number of steps")
        usual = max(LEAST_PATIENCE, 4 * (int(table.ranking.max(initial=0)) + 1))
        steps = usual if patience is None else int(patience)
        self.table, self.initial_slack = table, float(slack)
        self.patience_of_episode = steps if table.facts.needs_patience else None
        self.verdict: Assessment = table.facts.judged
        self.start()

    @staticmethod
    def of(
        solution: Solution,
        problem: Problem | None = None,
        *,
        slack: float,
        patience: int | None = None,
        **known: Any,
    ) -> Shield:
        """Return a shield of `solution` (of `problem`, which temporal formulas need) with nature's sets as
        solved; `slack`, `patience` as in `LearningResult.shield`. `known`: verdict, confidence and data."""
        lifted, hint = problem is not None and problem.lift is not None, "take `result.shield`"
        if not isinstance(solution, Solution) or (solution.objective.is_temporal and not lifted):
            words = "averages and other questions have no shields, and a temporal formula needs its problem"
            raise InputError(f"a shield needs the values of one P or R: {words}", hint=hint)
        if solution.weight is not None:
            raise InputError("a shield needs the policy that a solve found, not a given one")
        if problem is not None:
            require_value(problem)
        if known.get("verdict") is Word.CONTRADICTED:
            raise CannotCertify(f"a shield needs a model that the data do not contradict: {known['why']}")
        return Shield(table_of(solution, problem, **known), slack, patience)

    @staticmethod
    def load(path: str | PathLike[str]) -> Shield:
        """Return the shield in the file `path`, which `save` or `tightrope shield` wrote."""
        place, hint = path_of(path), "write one with 'tightrope shield'"
        document = read_document(place, ShieldDocument, FORMAT, VERSION, hint)
        try:
            return Shield(_table_in(document), document.slack, document.patience)
        except (InputError, KeyError, ValueError) as error:
            why = getattr(error, "message", f"an array is missing or damaged, {error}")
            raise InputError(f"this is no shield: {why}", Location(str(place))) from error

    def save(self, path: str | PathLike[str]) -> None:
        """Write the shield to `path` as JSON. Using the file needs no model."""
        table, structure = self.table, self.table.structure
        names = None if structure.state_names is None else list(structure.state_names)
        parts = [part for name in names or () for part in (name if isinstance(name, tuple) else (name,))]
        if odd := [part for part in parts if not isinstance(part, str | int)]:
            raise InputError(f"states in files are texts, whole numbers or tuples of these, not {odd[0]!r}")
        arrays = {
            name: np.asarray(getattr(one, name), KINDS.get(name, "<i4")).tobytes()
            for one, names in ((table.fallback, ROWS), (table, COLUMNS), (structure, GRAPH))
            for name in names
        }
        for name, column in structure.valuations.items():
            arrays[f"variable/{name}"] = column.astype("<i8").tobytes()
        named = {"state_names": names, "arrays": arrays}
        document = record_of(ShieldDocument, self.fresh(), table.facts, structure, **named)
        with atomic_write(path_of(path)) as file:
            file.write(to_text({"format": FORMAT, **to_plain(document)}))

    def describe(self) -> ShieldAnswer:
        """Return the bound at the beginning of an episode, and how often the shield interferes."""
        table, structure = self.table, self.table.structure
        state, rows = np.unique(table.fallback.state, return_index=True)  # where states are met first
        (price, owner), choice = ranges(table.first, rows), ranges(structure.choice_start, state)[0]
        affordable, is_open = table.price[price] <= self.initial_slack, table.ranking[rows] >= 0
        offered = np.bincount(owner[affordable], minlength=len(rows))
        removed = np.bincount(structure.action_of_choice[choice][~affordable & is_open[owner]])
        order = np.argsort(-removed, kind="stable")
        return record_of(
            ShieldAnswer,
            self.fresh(),
            table.facts,
            states=structure.states,
            free_states=int(np.count_nonzero((offered > 1) & is_open)),
            removed=[RemovedAction(structure.action_names[k], int(removed[k])) for k in order if removed[k]],
        )

    def fresh(self) -> Shield:
        """Return the same shield at the beginning of another episode."""
        return Shield(self.table, self.initial_slack, self.patience_of_episode)

    def start(self) -> Shield:
        """Begin an episode with full slack and patience. Return this shield."""
        self.slack, self.patience = self.initial_slack, self.patience_of_episode
        self.is_committed = self.is_decided = False
        self._here = self._by = self._state = -1  # the row, the choice taken there (−1: none), its state
        values = self.table.value[self.table.row[0, list(self.table.structure.initial_states)]]
        self._held = float(values.min() if self.table.facts.maximises else values.max()), self.slack
        return self

    def allowed(self, state: object) -> dict[str | int, float]:
        """Return the allowed choices of `state` (as for `Policy.act`), each with its price."""
        self._arrive(state)
        return {name: price for name, price in self._prices.items() if price <= self.slack}

    def take(self, state: object, action: Any) -> None:
        """Record that the agent takes `action` in `state`, and pay its price.

        Raises
        ------
        InputError
            If the shield does not allow the action. Nothing changes then.
        """
        self._arrive(state)
        structure, names, action = self.table.structure, list(self._prices), plain(action)
        first = structure.choice_start.item(self._state)
        if action not in names:
            action = names[find_choice(structure, self._state, action, "the shield") - first]
        if (price := self._prices[action]) > self.slack:
            why = f"its price is {price:.5g}, the slack left is {self.slack:.5g}"
            if self.is_committed:
                why = "only the fallback policy acts until the end of the episode"
            raise InputError(
                f"the shield does not allow {action!r} in state {structure.state_name(self._state)}: {why}",
                hint=f"the fallback is {self._fallback!r}",
            )
        if price > 0:
            self.slack = max(math.nextafter(self.slack - price, -math.inf), 0.0)
        self._by = first + names.index(action)

    def fallback(self, state: object) -> str | int:
        """Return the fallback policy's action in `state`, which is always allowed."""
        self._arrive(state)
        return self._fallback

    @property
    def choices(self) -> dict[int, str | int]:
        """What `allowed` calls the choices of the model in the last state."""
        return dict(enumerate(self._prices, self.table.structure.choice_start.item(self._state)))

    def __repr__(self) -> str:
        return f"Shield(promise={self.promise:.6g}, slack={self.slack:.6g}, patience={self.patience})"

    @property
    def promise(self) -> float:
        """The verified bound that holds now, given the state and the slack that is left."""
        facts, (bound, slack) = self.table.facts, self._held
        away = -math.inf if facts.maximises else math.inf
        if slack:
            bound = math.nextafter(bound + math.copysign(slack, away), away)
        bound = min(max(bound, facts.range[0]), facts.range[1])
        if facts.complement:
            return math.nextafter(1.0 - bound, -away) if 0 < bound < 1 else 1.0 - bound
        return bound

    def _arrive(self, state: object) -> None:
        """Find the row of the state that the agent is in now, after what was done before."""
        table, structure, here, by = self.table, self.table.structure, self._here, self._by
        try:
            number = index_or_state(structure, state)
        except InputError as error:
            words = f"the shield does not know the state: {error.message}"
            raise InputError(words, hint=self._advice) from None
        if here >= 0 > by and number == self._state:
            return
        row, near = table.row.item(0 if here < 0 else table.fallback.following.item(here), number), [number]
        if here >= 0:
            first, last = structure.transition_start[by : by + 2].tolist() if by >= 0 else (0, 0)
            near = structure.successor[first:last].tolist()
        if row < 0 or number not in near:
            where = f"after '{structure.action_name(by)}'" if by >= 0 else "before an action is taken"
            words = f"the agent cannot be in state {structure.state_name(number)} {where}"
            raise InputError(f"{words}, so the guaranteed bound no longer holds", hint=self._advice)
        self._settle(row, number)

    @property
    def _advice(self) -> str:
        if self._here < 0:
            return "call `start` for each episode; those of temporal formulas begin in an initial state"
        last = self.table.structure.state_name(self._state)
        return f"call `take` for each action; in state {last} the fallback is {self._fallback!r}"

    def _settle(self, here: int, state: int) -> None:
        """Arrive in a row, of this state: is it decided, is the patience used up, what is offered?"""
        table, structure, rank = self.table, self.table.structure, self.table.ranking.item(here)
        if not self.is_decided:
            self.is_decided, self.is_committed = rank == DECIDED, self.is_committed or rank == WON
            if self.patience is not None and self._here >= 0 and not (self.is_decided or self.is_committed):
                self.patience -= rank >= table.ranking.item(self._here)
                self.is_committed = self.patience < 0
            is_free = self.is_decided or self.is_committed
            self._held = table.value.item(here), 0.0 if is_free else self.slack
        first, last = structure.choice_start[state : state + 2].tolist()
        names = [show_action(structure, choice) for choice in range(first, last)]
        if len(set(names)) < len(names):  # an action may itself be called by a number: places for all
            names = list(range(len(names)))
        begin, fallback = table.first.item(here), table.fallback.choice.item(here) - first
        prices = table.price[begin : begin + len(names)].tolist()
        if self.is_decided or self.is_committed:
            prices = [math.inf if self.is_committed else 0.0] * len(names)
        prices[fallback] = 0.0
        self._prices: dict[str | int, float] = dict(zip(names, prices, strict=True))
        self._fallback: str | int = names[fallback]
        self._here, self._state, self._by = here, state, -1


def _table_in(document: ShieldDocument) -> ShieldTable:
    """The tables of a file, validated."""
    kinds = [(name, KINDS.get(name.partition("/")[0], "<i4")) for name in document.arrays]
    arrays: dict[str, Any] = {name: np.frombuffer(document.arrays[name], kind) for name, kind in kinds}
    names = document.state_names and NamedStates([plain(name) for name in document.state_names])
    structure = Structure(
        **{name: arrays[name] for name in GRAPH},
        action_names=tuple(document.action_names),
        valuations={name[9:]: one for name, one in arrays.items() if name.startswith("variable/")},
        state_names=names or None,
    )
    policy, facts = FiniteMemoryChoices(*(arrays[name] for name in ROWS)), record_of(ShieldFacts, document)
    return ShieldTable(facts, structure, policy, *(arrays[name] for name in COLUMNS))


__getattr__ = lazy_loader.attach(__name__, ["gym"])[0]  # which needs Gymnasium
