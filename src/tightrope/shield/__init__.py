"""Shields: any agent may act, and a verified bound still holds for the whole run.

A value vector v that was verified for the fallback policy prices every choice c of a state s:
price(c) = max(0, v(s) − q(c)), where q(c) is the worst expectation of v after c over nature's sets, rounded
down. The agent starts with some slack, may take any choice whose price is at most the slack that is left, and
pays it. Then v(state) − slack is a submartingale for every agent and every nature, so the bound at the start
decreases by at most the initial slack. For minimising agents the signs turn; rewards that were earned count
beside v.

Where a play must still reach something, an agent could wait for ever at price 0. So a shield has a patience:
the number of steps in an episode that do not lower the ranking of the solution. Once it is used up, the
fallback policy acts until the end, and attains v from there. Proof: docs/explanation/shields.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from tightrope.atomic import path_of
from tightrope.errors import InputError
from tightrope.model.states import find_choice, index_or_state, show_action
from tightrope.problem import Problem
from tightrope.shield.document import load_document, save_document, to_document, to_table
from tightrope.shield.table import ShieldTable, lift_table, table_of
from tightrope.solver.solution import Solution
from tightrope.verdict import Assessment

LEAST_PATIENCE = 100


@dataclass
class Shield:
    """Restrict any agent so that a verified bound still holds over the whole run.

    One object guards one running episode: `start` begins it, `allowed` lists the choices with their prices,
    `take` pays for one. Copies are cheap and independent (`copy.copy`).

    >>> import tightrope as tr
    >>> from tightrope.shield import Shield
    >>> rows = [(0, "safe", {1: 0.9, 2: 0.1}), (0, "fast", {1: 0.8, 2: 0.2})]
    >>> rows += [(1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"crash": [2]})
    >>> shield = Shield.of(tr.solve(model, 'Pmin=? [ F "crash" ]'), slack=0.15)
    >>> shield.start().allowed(0)
    {'safe': 0.0, 'fast': 0.1}
    >>> shield.take(0, "fast")
    >>> round(shield.slack, 6), shield.promise
    (0.05, 0.25)
    """

    table: ShieldTable = field(repr=False)
    initial_slack: float
    patience_of_episode: int | None
    slack: float = 0.0
    patience: int | None = None
    step: int = 0
    is_committed: bool = False
    _here: int = -1
    """The state in which the agent is to act; −1 where nobody has said so yet."""
    _from: int = -1
    """The state before it, and `_by`: the choice taken there."""
    _by: int = -1
    _offered: dict[str | int, tuple[int, float]] = field(default_factory=dict, repr=False)
    _memory: int = -1
    """What the controller remembers, once it acts."""
    _decided: float | None = None
    """The value of a question that has been decided."""

    @staticmethod
    def of(solution: Solution, *, slack: float, patience: int | None = None, question: str = "") -> Shield:
        """The shield of a solution over a model without data, with nature's sets as they were solved."""
        return Shield(table_of(solution, question), slack, patience).start()

    @staticmethod
    def of_problem(
        problem: Problem,
        solution: Solution,
        verdict: Assessment,
        confidence: float,
        *,
        slack: float,
        patience: int | None = None,
    ) -> Shield:
        """The shield of a learned solution of a problem, whose bound holds with this confidence."""
        if problem.is_of_controller:
            raise InputError(
                "a shield needs to see the state, and this answer is about a controller that sees "
                "observations only"
            )
        table = table_of(solution, problem.text, verdict, confidence)
        return Shield(lift_table(table, problem), slack, patience).start()

    def __post_init__(self) -> None:
        if not 0 <= self.initial_slack < math.inf:
            raise InputError(f"the slack is {self.initial_slack}, not a number of at least 0")
        if self.patience_of_episode is not None and self.patience_of_episode < 0:
            raise InputError(f"the patience is {self.patience_of_episode}, not a number of steps")
        if not self.table.needs_patience:
            self.patience_of_episode = None
        elif self.patience_of_episode is None:
            self.patience_of_episode = max(4 * (int(self.table.ranking.max(initial=0)) + 1), LEAST_PATIENCE)

    @staticmethod
    def load(path: str | PathLike[str]) -> Shield:
        """The shield in a file that `save` or `tightrope shield` wrote."""
        document = load_document(path_of(path))
        return Shield(to_table(document), document.slack, document.patience).start()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the shield to a JSON file, which needs no model to be used."""
        promise, patience = self.fresh().promise, self.patience_of_episode
        save_document(to_document(self.table, promise, self.initial_slack, patience), path_of(path))

    def fresh(self) -> Shield:
        """The same shield at the beginning of another episode."""
        return replace(self).start()

    def start(self) -> Shield:
        """Begin an episode: slack and patience are whole again."""
        self.slack, self.patience = float(self.initial_slack), self.patience_of_episode
        self.step, self.is_committed, self._decided = 0, False, None
        self._here = self._from = self._by = self._memory = -1
        return self

    def allowed(self, state: object) -> dict[str | int, float]:
        """The choices that may be taken in a state, each with its price."""
        here = self._arrive(state)
        if not self.is_committed:
            slack = self.slack
            prices = {name: price for name, (_, price) in self._offered.items() if price <= slack}
            if prices:
                return prices
        return {self._name(self._fallback(here)): 0.0}

    def take(self, state: object, action: Any) -> None:
        """Record that the agent takes an action in a state, and pay its price.

        Raises
        ------
        InputError
            If the shield does not allow the action; nothing changes then.
        """
        here, table = self._arrive(state), self.table
        choice, price = self._offered.get(action) or self._find(here, action)
        if self.is_committed or price > self.slack:
            if choice != self._fallback(here):
                raise self._forbidden(here, action, price)
            self._commit(here)
        elif price > 0:
            self.slack = max(math.nextafter(self.slack - price, -math.inf), 0.0)
        if self.is_committed and table.controller is not None:
            row = table.controller_rows[self._base_state(here), self._memory]
            self._memory = int(table.controller.following[row])
        self._from, self._by, self._here = here, choice, -1
        self.step += 1

    def fallback(self, state: object) -> str | int:
        """The action of the fallback policy, which is always allowed."""
        return self._name(self._fallback(self._arrive(state)))

    @property
    def promise(self) -> float:
        """The verified bound that holds now, given the state and the slack that is left."""
        table = self.table
        if self._decided is not None:
            return self._bound(self._decided, 0.0)
        slack = 0.0 if self.is_committed else self.slack
        if self._here < 0 <= self._from:  # between a choice and its outcome: what held before it
            return self._bound(float(table.value[table.row(self.step - 1), self._from]), slack)
        here = table.structure.initial if self._here < 0 else self._here
        return self._bound(float(table.value[table.row(self.step), here]), slack)

    # --- where the episode is --------------------------------------------------------------

    def _bound(self, value: float, slack: float) -> float:
        """The value with the slack taken off, rounded to the safe side, as the question reports it."""
        least, most = self.table.quantity_range
        away = -math.inf if self.table.maximises else math.inf
        bound = value if slack == 0 else math.nextafter(value + math.copysign(slack, away), away)
        bound = min(max(bound, least), most)
        if self.table.complement and 0 < bound < 1:
            return math.nextafter(1.0 - bound, -away)
        return 1.0 - bound if self.table.complement else bound

    def _arrive(self, state: object) -> int:
        """The state of the structure that the agent is in now."""
        table = self.table
        base = self._known(state)
        if self._here >= 0:
            if self._base_state(self._here) != base:
                raise InputError(
                    f"the agent is in state {table.base.state_name(self._base_state(self._here))} and has "
                    f"taken no action there, but is asked about state {table.base.state_name(base)}",
                    hint="call `take` after each action, and `start` when an episode begins",
                )
            return self._here
        self._here = self._follow(base)
        self._settle()
        self._offered = table.offered(self._here, self.step, self._decided is not None)
        return self._here

    def _known(self, state: object) -> int:
        try:
            return index_or_state(self.table.base, state)
        except InputError as error:
            last = (
                "" if self._from < 0 else f"; the fallback in the last known state is {self._last_fallback()}"
            )
            raise InputError(f"the shield does not know the state: {error.message}{last}") from None

    def _last_fallback(self) -> str:
        row = self.table.row(self.step - 1)
        return repr(show_action(self.table.structure, int(self.table.fallback[row, self._from])))

    def _follow(self, base: int) -> int:
        """The state of the structure after the last choice, or the first of an episode."""
        table, structure = self.table, self.table.structure
        if self._from < 0:
            if table.state is None:
                return base
            starts = [s for s in structure.initial_states if int(table.state[s]) == base]
            if not starts:
                raise InputError(
                    f"an episode begins in state {table.base.state_name(base)}, which is no initial state: "
                    "the shield of a temporal formula follows episodes from their beginning"
                )
            return starts[0]
        first, last = structure.transition_start[self._by : self._by + 2].tolist()
        for after in structure.successor[first:last].tolist():
            if self._base_state(after) == base:
                return int(after)
        before = table.base.state_name(self._base_state(self._from))
        raise InputError(
            f"the model has no transition from state {before} by '{structure.action_name(self._by)}' to "
            f"state {table.base.state_name(base)}, so the guaranteed bound no longer holds; the fallback "
            f"in the state before is {self._last_fallback()}",
            hint="`tightrope watch` tests whether the model still fits",
        )

    def _settle(self) -> None:
        """What arriving in a state changes: a question that is decided, patience that is used up."""
        table, here = self.table, self._here
        if self._decided is not None:
            return
        row = table.row(self.step)
        if table.settled[row, here]:
            self._decided = float(table.value[row, here])
        elif table.won[here]:
            self._commit(here)
        elif self.patience is not None and self._from >= 0 and not self.is_committed:
            if table.ranking[here] >= table.ranking[self._from]:
                self.patience -= 1
            if self.patience < 0:
                self._commit(here)

    def _commit(self, here: int) -> None:
        """From here on the fallback policy acts until the end of the episode."""
        if not self.is_committed and self.table.memory is not None:
            self._memory = int(self.table.memory[here])
        self.is_committed = True

    def _fallback(self, here: int) -> int:
        """The choice of the fallback policy, in the structure."""
        table = self.table
        if self.is_committed and table.controller is not None:
            row = table.controller_rows[self._base_state(here), self._memory]
            wanted = int(table.controller.choice[row])
            return next(choice for choice in table.choices(here) if table.base_choice(choice) == wanted)
        return int(table.fallback[table.row(self.step), here])

    def _base_state(self, here: int) -> int:
        return here if self.table.state is None else int(self.table.state[here])

    def _name(self, choice: int) -> str | int:
        """A choice of the present state by its action, or by its number."""
        return next(name for name, (number, _) in self._offered.items() if number == choice)

    def _find(self, here: int, action: Any) -> tuple[int, float]:
        """A choice and its price by another name of it."""
        table, state = self.table, self._base_state(here)
        wanted = find_choice(table.base, state, action, "the shield")
        return next(entry for entry in self._offered.values() if table.base_choice(entry[0]) == wanted)

    def _forbidden(self, here: int, action: Any, price: float) -> InputError:
        state = self.table.base.state_name(self._base_state(here))
        why = (
            "only the fallback policy acts until the end of the episode"
            if self.is_committed
            else f"its price is {price:.5g}, the slack left is {self.slack:.5g}"
        )
        fallback = self._name(self._fallback(here))
        return InputError(
            f"the shield does not allow {action!r} in state {state}: {why}",
            hint=f"the fallback is {fallback!r}",
        )
