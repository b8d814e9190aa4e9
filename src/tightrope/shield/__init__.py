"""Shields: any agent may act, and a verified bound still holds for the whole run.

A value vector v, verified for the fallback policy, prices every choice c of a state s: price(c) = max(0, v(s)
− q(c)), q(c) the worst expectation of v after c over nature's sets, rounded down. The agent starts with some
slack, and pays for choices whose price is at most the rest. Then v(state) − slack is a submartingale for
every agent and nature, so the bound decreases by at most the initial slack. For minimising agents the signs
turn; earned rewards count beside v.

An agent that must reach something could wait for ever at price 0. The patience is the number of steps per
episode that do not lower the ranking of the solution; then the fallback policy acts until the end, and
attains v from there. Proof: docs/explanation/shields.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import Any

from msgspec import structs

from tightrope.atomic import path_of
from tightrope.errors import CannotCertify, InputError
from tightrope.io.answers import RemovedAction, ShieldAnswer
from tightrope.model.states import find_choice, index_or_state, show_action
from tightrope.problem import Problem
from tightrope.shield.table import ShieldTable, load_document, save_document, table_of
from tightrope.solver.solution import Solution
from tightrope.verdict import Assessment, Word

LEAST_PATIENCE = 100


@dataclass
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

    table: ShieldTable = field(repr=False)
    initial_slack: float
    patience_of_episode: int | None
    slack: float = 0.0
    patience: int | None = None
    step: int = 0
    is_committed: bool = False
    is_decided: bool = False
    _here: int = -1  # the state in which the agent is to act; −1 where it has not arrived
    _name: object = None  # the same as the agent calls it
    _from: int = -1  # the state before it, and the choice taken there
    _by: int = -1
    _held: tuple[float, float] = (0.0, 0.0)  # the value of the last state, and the slack there
    _offered: dict[str | int, tuple[int, float]] = field(default_factory=dict, repr=False)
    _memory: int = -1  # of the controller, once it acts

    @staticmethod
    def of(
        solution: Solution,
        problem: Problem | None = None,
        *,
        slack: float,
        patience: int | None = None,
        **known: Any,
    ) -> Shield:
        """Return a shield of `solution` (of `problem`) with nature's sets as solved; `slack`, `patience` as
        in `LearningResult.shield`. `known` are facts of a learned solution: verdict, confidence and data.
        """
        if problem is not None and problem.is_of_controller:
            raise InputError(
                "a shield needs to see the state, and this answer is about a controller that sees "
                "observations only"
            )
        if known.get("verdict") is Word.CONTRADICTED:
            raise CannotCertify(f"a shield needs a model that the data do not contradict: {known['why']}")
        return Shield(table_of(solution, problem, **known), slack, patience).start()

    def __post_init__(self) -> None:
        if not 0 <= self.initial_slack < math.inf:
            raise InputError(f"the slack is {self.initial_slack}, not a number of at least 0")
        if self.patience_of_episode is not None and self.patience_of_episode < 0:
            raise InputError(f"the patience is {self.patience_of_episode}, not a number of steps")
        if not self.table.facts.needs_patience:
            self.patience_of_episode = None
        elif self.patience_of_episode is None:
            self.patience_of_episode = max(4 * (int(self.table.ranking.max(initial=0)) + 1), LEAST_PATIENCE)

    @staticmethod
    def load(path: str | PathLike[str]) -> Shield:
        """Return the shield in the file `path`, which `save` or `tightrope shield` wrote."""
        document, table = load_document(path_of(path))
        return Shield(table, document.slack, document.patience).start()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the shield to `path` as JSON. Using the file needs no model."""
        save_document(self.describe(), self.table, path_of(path))

    def describe(self) -> ShieldAnswer:
        """Return the bound at the beginning of an episode, and how often the shield interferes."""
        table, slack = self.table, self.initial_slack
        return ShieldAnswer(
            **structs.asdict(table.facts),
            promise=self.fresh().promise,
            slack=slack,
            patience=self.patience_of_episode,
            states=table.base.states,
            free_states=table.free_states(slack),
            removed=[RemovedAction(*each) for each in table.removed(slack)],
        )

    def fresh(self) -> Shield:
        """Return the same shield at the beginning of another episode."""
        return replace(self).start()

    def start(self) -> Shield:
        """Begin an episode with full slack and patience. Return this shield."""
        self.slack, self.patience = float(self.initial_slack), self.patience_of_episode
        self.step, self.is_committed, self.is_decided = 0, False, False
        self._here = self._from = self._by = self._memory = -1
        values = self.table.value[0, list(self.table.structure.initial_states)]
        self._held = float(values.min() if self.table.facts.maximises else values.max()), self.slack
        return self

    def allowed(self, state: object) -> dict[str | int, float]:
        """Return the allowed choices of `state` (as for `Policy.act`), each with its price."""
        self._arrive(state)
        slack = self.slack
        prices = {name: price for name, (_, price) in self._offered.items() if price <= slack}
        return prices if prices and not self.is_committed else {self.fallback(state): 0.0}

    def take(self, state: object, action: Any) -> None:
        """Record that the agent takes `action` in `state`, and pay its price.

        Raises
        ------
        InputError
            If the shield does not allow the action. Nothing changes then.
        """
        here, table = self._arrive(state), self.table
        if not isinstance(action, str | int) or action not in self._offered:
            action = self.name_of(find_choice(table.base, int(table.state[here]), action, "the shield"))
        choice, price = self._offered[action]
        if self.is_committed or price > self.slack:
            if action != (fallback := self.fallback(state)):
                why = f"its price is {price:.5g}, the slack left is {self.slack:.5g}"
                if self.is_committed:
                    why = "only the fallback policy acts until the end of the episode"
                raise InputError(
                    f"the shield does not allow {action!r} in state {table.show(here)}: {why}",
                    hint=f"the fallback is {fallback!r}",
                )
            self._commit(here)
        elif price > 0:
            self.slack = max(math.nextafter(self.slack - price, -math.inf), 0.0)
        if self.is_committed and table.controller is not None:
            row = table.controller.find(int(table.state[here]), self._memory)
            self._memory = int(table.controller.following[row])
        self._from, self._by, self._here = here, choice, -1
        self.step += 1

    def fallback(self, state: object) -> str | int:
        """Return the fallback policy's action in `state`, which is always allowed."""
        here, table = self._arrive(state), self.table
        if self.is_committed and table.controller is not None:
            row = table.controller.find(int(table.state[here]), self._memory)
            return self.name_of(int(table.controller.choice[row]))
        return self.name_of(int(table.choice[table.fallback[table.row(self.step), here]]))

    @property
    def verdict(self) -> Assessment:
        """The verdict of the result, with its assumptions."""
        return self.table.facts.judged

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

    # --- where the episode is --------------------------------------------------------------

    def _arrive(self, state: object) -> int:
        """The state of the structure that the agent is in now."""
        table = self.table
        if self._here >= 0 and state is self._name:
            return self._here
        try:
            base = index_or_state(table.base, state)
        except InputError as error:
            raise InputError(f"the shield does not know the state: {error.message}{self._advice}") from None
        if self._here < 0:
            self._here, self._name = self._follow(base), state
            self._settle(self._here, table.row(self.step))
            self._offered = table.offered(self._here, self.step, self.is_decided)
        elif table.state[self._here] != base:
            raise InputError(
                f"the agent is in state {table.show(self._here)} and has taken no action there, but is asked "
                f"about state {table.base.state_name(base)}",
                hint="call `take` after each action, and `start` when an episode begins",
            )
        return self._here

    @property
    def _advice(self) -> str:
        """The end of an error about a state that the shield cannot follow."""
        if self._from < 0:
            return ""
        last = int(self.table.fallback[self.table.row(self.step - 1), self._from])
        return f"; the fallback in the last known state is {show_action(self.table.structure, last)!r}"

    def _follow(self, base: int) -> int:
        """The state of the structure after the last choice, or the first of an episode."""
        table, structure = self.table, self.table.structure
        begins = self._from < 0
        if begins and table.base is structure:
            return base
        following = structure.initial_states
        if not begins:
            first, last = structure.transition_start[self._by : self._by + 2].tolist()
            following = tuple(structure.successor[first:last].tolist())
        for after in following:
            if table.state[after] == base:
                return after
        here = table.base.state_name(base)
        if begins:
            raise InputError(
                f"an episode begins in state {here}, which is no initial state: the shield of a temporal "
                "formula follows episodes from their beginning"
            )
        raise InputError(
            f"the model has no transition from state {table.show(self._from)} by "
            f"'{structure.action_name(self._by)}' to state {here}, so the guaranteed bound no longer "
            f"holds{self._advice}",
            hint="`tightrope watch` tests whether the model still fits",
        )

    def _settle(self, here: int, row: int) -> None:
        """What arriving in a state changes: a question that is decided, patience that is used up."""
        table = self.table
        if self.is_decided:
            return
        if table.settled.item(row, here):
            self.is_decided = True
        elif table.won.item(here):
            self._commit(here)
        elif self.patience is not None and self._from >= 0 and not self.is_committed:
            self.patience -= table.ranking.item(here) >= table.ranking.item(self._from)
            if self.patience < 0:
                self._commit(here)
        is_free = self.is_decided or self.is_committed
        self._held = table.value.item(row, here), 0.0 if is_free else self.slack

    def _commit(self, here: int) -> None:
        """From here on the fallback policy acts until the end of the episode."""
        if not self.is_committed and self.table.memory is not None:
            self._memory = int(self.table.memory[here])
        self.is_committed, self._held = True, (self._held[0], 0.0)

    def name_of(self, choice: int) -> str | int:
        """Return what `allowed` calls `choice`, the index of a choice of the model, in this state."""
        return next(name for name, (own, _) in self._offered.items() if self.table.choice[own] == choice)


def __getattr__(name: str) -> ModuleType:
    """`gym`, which needs Gymnasium, at its first use."""
    if name != "gym":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return import_module("tightrope.shield.gym")
