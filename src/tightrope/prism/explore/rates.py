"""From a program in continuous time (`ctmc`) to its chain: rates in place of probabilities.

The search is the one for all programs (`search`). What differs is what happens in a state: all enabled
commands compete, so their rates stand beside each other and rates to the same successor add up; modules that
move together multiply their rates, as in PRISM. A state in which nothing happens gets a self-loop with rate
1. What transitions earn becomes a reward per unit of time: Σ over commands of rate times reward, exact, as a
polynomial in the parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.model.continuous import ParametricCTMC
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import PolynomialArray
from tightrope.model.structure import UNLABELLED, ParametricReward, RewardStructure
from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.assemble import Assembler, Rows, without
from tightrope.prism.explore.compile import Compiler, Terms
from tightrope.prism.explore.frame import Frame
from tightrope.prism.explore.key_index import KeyIndex
from tightrope.prism.explore.observe import observe, polynomial_of_items
from tightrope.prism.explore.polynomial_index import PolynomialIndex
from tightrope.prism.explore.probabilities import ZERO, PolynomialProbabilities, check_held
from tightrope.prism.explore.search import (
    Progress,
    Warn,
    check_table,
    run_search,
    structure_of,
    warn_of,
    with_shown_names,
)
from tightrope.prism.explore.state_space import StateSpace
from tightrope.prism.explore.synchronise import groups
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.syntax import Expression, Rewards

_CHUNK = 2**14


def explore_rates(
    program: Program,
    stop: Expression | None,
    parameters: Parameters,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> tuple[ParametricCTMC, bool]:
    """The chain of a program in which states with `stop` only have a self-loop, and whether there are any."""
    try:
        return _explore(program, stop, parameters, progress, warn)
    except Complaint as complaint:
        raise program.error(complaint.message, complaint.position, complaint.hint) from None


def _explore(
    program: Program,
    stop: Expression | None,
    parameters: Parameters,
    progress: Progress | None,
    warn: Warn | None,
) -> tuple[ParametricCTMC, bool]:
    space = StateSpace(program)
    rates = PolynomialProbabilities(program.parameters, are_rates=True)
    commands, actions = groups(program, space, rates)
    states = KeyIndex(space.layout.words)
    states.insert(space.initial)
    assembler = Assembler(states, rates, is_chain=True, are_rates=True)
    condition = None if stop is None else space.compiler().truth(stop)
    if condition is not None and condition.fails:
        condition = None  # its errors belong to the property, and are reported with it
    run_search(space, commands, states, assembler, progress, condition, None)
    rows = assembler.finish()
    resolved = rates.resolve()
    rows = replace(rows, probability=resolved[rows.probability], mixed_rate=resolved[rows.mixed_rate])
    if (cancelled := rows.probability == ZERO).any():
        rows = without(rows, cancelled)
    if warn is not None:
        warn_of(replace(rows, mixed_state=rows.mixed_state[:0]), space, states, warn)
    none = replace(program, rewards=())
    seen = observe(none, space, states.keys, rows, actions, narrow=stop is not None)
    observers = [
        _RateReward(program, each, space.compiler(), rows, actions, rates) for each in program.rewards
    ]
    for begin in range(0, len(states), _CHUNK):
        part = slice(begin, min(begin + _CHUNK, len(states)))
        frame = space.frame(states.keys[part])
        for observer in observers:
            observer.observe(frame, part)
    seen = replace(seen, rewards={each.name: each.of_states() for each in observers})
    earned = {each.name: each.of_time() for each in observers}
    rows, actions = with_shown_names(program, rows, actions)
    structure = structure_of(program, seen, rows, actions)
    expressions, expression = rates.table.freeze(rows.probability)
    check_table(program, structure, expressions, expression)
    return ParametricCTMC(structure, expression, expressions, parameters, earned), bool(rows.stopped.any())


class _RateReward:
    """One reward structure: what states earn per unit of time, alone and with their transitions."""

    def __init__(
        self,
        program: Program,
        rewards: Rewards,
        compiler: Compiler,
        rows: Rows,
        actions: tuple[str, ...],
        rates: PolynomialProbabilities,
    ):
        self.name = rewards.name or ""
        self._position = rewards.position
        self._rows, self._rates = rows, rates
        self._table = PolynomialIndex(program.parameters)
        self._state: IndexArray = np.zeros(len(rows.deadlock), dtype=np.int32)
        self._time = self._state.copy()
        self._on_states = polynomial_of_items([i for i in rewards.items if not i.is_choice], compiler)
        self._on_actions: dict[int, Terms] = {}
        for number, action in enumerate(actions):
            own = [i for i in rewards.items if i.is_choice and (i.action or UNLABELLED) == action]
            if own:
                self._on_actions[number] = polynomial_of_items(own, compiler)

    def observe(self, frame: Frame, part: slice) -> None:
        total = _values(self._on_states, frame)
        check_held(total, frame, self._position)
        self._state[part] = self._table.add_array(total)
        first, last = np.searchsorted(self._rows.mixed_state, (part.start, part.stop))
        row = self._rows.mixed_state[first:last].astype(np.int64) - part.start
        action = np.where(
            (self._rows.deadlock | self._rows.stopped)[part][row], -1, self._rows.mixed_action[first:last]
        )
        rate = self._rows.mixed_rate[first:last]
        for number, terms in self._on_actions.items():
            taken = np.flatnonzero((action == number) & (rate != ZERO))
            while len(taken):  # commands of one state one after the other
                _, once = np.unique(row[taken], return_index=True)
                some = taken[once]
                inner = frame.select(row[some])
                gained = _values(terms, inner) * self._rates.table.polynomials(rate[some].astype(np.int64))
                total = _add_rows(total, row[some], gained, frame.size)
                taken = np.delete(taken, once)
        check_held(total, frame, self._position)
        self._time[part] = self._table.add_array(total)

    def of_states(self) -> RewardStructure:
        """What states earn per unit of time, transitions left out."""
        expressions, expression = self._table.freeze(self._state)
        if len(expressions.nonconstant):
            return ParametricReward(self.name, expressions, expression)
        point = (0,) * len(expressions.parameter_names)
        return RewardStructure(state=expressions.values(point)[expression])

    def of_time(self) -> ParametricReward:
        """What is earned per unit of time, transitions included."""
        expressions, expression = self._table.freeze(self._time)
        return ParametricReward(self.name, expressions, expression)


def _values(terms: Terms, frame: Frame) -> PolynomialArray:
    return PolynomialArray({m: number.array(frame) for m, number in terms.items()}, frame.size)


def _add_rows(
    total: PolynomialArray, rows: OffsetArray, gained: PolynomialArray, size: int
) -> PolynomialArray:
    """`total` with `gained` added in some rows, each of which occurs once."""
    place: OffsetArray = np.full(size, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    here = place >= 0
    spread = gained.take(np.maximum(place, 0))
    return PolynomialArray.where(here, total + spread, total)
