"""From the alternatives of each frame to the rows of the finished model, and what is said of its states.

Choices come in order of state; equal successors of a choice are merged, probabilities of 0 dropped. A state
without enabled commands gets a self-loop. A Markov chain takes each of several enabled commands with the same
probability, as PRISM does; in continuous time their rates add up. Rates of Markovian commands count only if
no immediate choice is enabled (maximal progress).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.model import numbers as door
from tightrope.model.polynomial import PolynomialArray
from tightrope.model.structure import UNLABELLED, ParametricReward, RewardStructure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray, offsets
from tightrope.numerics.jit import kernel
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.commands import AlternativeArrays, Alternatives
from tightrope.prism.explore.compile import Compiler, StateSpace, Terms, polynomials
from tightrope.prism.explore.nodes import StateFrame
from tightrope.prism.explore.probabilities import (
    ONE,
    ZERO,
    Growing,
    KeyIndex,
    PolynomialIndex,
    Probabilities,
    check_held,
)
from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import Complaint


@dataclass(frozen=True, eq=False)
class ModelRows:
    """The finished rows of all states, as `Structure` wants them, and what is worth a warning.

    `stopped` are states whose commands were not looked at. `mixed_state` and `mixed_action` list the
    commands of states in which a Markov chain had to draw among several; in continuous time they list all
    commands, with their rates in `mixed_rate`. `waiting` are the states of Markov automata whose one choice
    has rates.
    """

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    probability: IndexArray
    action: IndexArray
    deadlock: BoolArray
    stopped: BoolArray
    waiting: BoolArray
    mixed_state: IndexArray
    mixed_action: IndexArray
    mixed_rate: IndexArray


def without(rows: ModelRows, dropped: BoolArray) -> ModelRows:
    """The rows less some transitions."""
    remaining: OffsetArray = np.zeros(len(dropped) + 1, dtype=np.int64)
    np.cumsum(~dropped, out=remaining[1:])
    return replace(
        rows,
        transition_start=remaining[rows.transition_start],
        successor=rows.successor[~dropped],
        probability=rows.probability[~dropped],
    )


class Assembler:
    """Collects the rows of a model in the order of its states."""

    def __init__(
        self, states: KeyIndex, probabilities: Probabilities, is_chain: bool, are_rates: bool = False
    ):
        self._states = states
        self.probabilities = probabilities
        self.is_chain = is_chain
        self.are_rates = are_rates
        flags = ("deadlock", "stopped", "waiting")
        self._pieces = {
            each.name: Growing(np.bool_ if each.name in flags else np.int32) for each in fields(ModelRows)
        }
        self.rows_done = 0

    @property
    def transitions(self) -> int:
        return len(self._pieces["successor"])

    def add(
        self,
        keys: OffsetArray,
        parts: list[Alternatives],
        actions: list[int],
        stopped: BoolArray | None = None,
        rated: Sequence[bool] | None = None,
    ) -> int:
        """Append the states with these keys; the number of outcomes that were looked at.

        States in which nothing is enabled get a self-loop; they are deadlocks unless `stopped`. `rated` says
        of a Markov automaton which parts are Markovian commands."""
        size = len(keys)
        waiting: BoolArray = np.ones(size, dtype=np.bool_)
        if rated is not None:
            parts = _with_maximal_progress(parts, rated, waiting)
        action = np.repeat(np.array(actions, dtype=np.int32), [len(part) for part in parts])
        rows = np.concatenate([part.rows for part in parts]) if parts else np.zeros(0, dtype=np.int64)
        if self.are_rates and parts:
            parts = [Alternatives.concatenate(parts)]
            happens = np.add.reduceat(parts[0].probability != ZERO, parts[0].start[:-1]) > 0
            count = np.bincount(rows[happens], minlength=size)
        else:
            count = np.bincount(rows, minlength=size)
        dead = count == 0
        if stopped is None:
            stopped = np.zeros(size, dtype=np.bool_)
        deadlock = dead & ~stopped
        if dead.any():
            stuck = np.flatnonzero(dead)
            loops = np.arange(len(stuck) + 1), np.zeros((len(stuck), keys.shape[1]), np.int64)
            parts = [*parts, Alternatives(stuck, *loops, np.full(len(stuck), ONE, np.int32))]
            action = np.concatenate([action, np.zeros(len(stuck), np.int32)])
            rows = np.concatenate([rows, parts[-1].rows])
        if dead.any() or self.are_rates:
            count = np.bincount(rows, minlength=size)
        everything, order = Alternatives.concatenate(parts), np.argsort(rows, kind="stable")
        start, successor_keys, number = possible_outcomes(order, everything.arrays, keys)
        action = action[order]
        if rated is not None:
            start, action = _race(count, start, action, waiting)
            count = np.where(waiting, 1, count)
            self.append(waiting=waiting)
        elif self.are_rates or (self.is_chain and len(order) > size):
            join = self._gather if self.are_rates else self._mix
            start, action = join(count, start, number, action)
            count = np.ones(size, dtype=np.int64)
        successor = self._states.insert(successor_keys)
        width, written = self._merge(start, successor, number)
        self.append(
            choice_start=count.astype(np.int32),
            transition_start=width,
            successor=successor[:written],
            probability=number[:written],
            action=action,
            deadlock=deadlock,
            stopped=stopped,
        )
        self.rows_done += size
        return len(number)

    def append(self, **columns: AnyArray) -> None:
        """Append to columns of `ModelRows`; those of starts are given as widths."""
        for name, column in columns.items():
            self._pieces[name].append(column)

    def _mix(
        self, count: OffsetArray, start: OffsetArray, number: IndexArray, action: IndexArray
    ) -> tuple[OffsetArray, IndexArray]:
        """One choice per state: the uniform mixture of those it has; `number` is changed in place."""
        first = np.cumsum(count) - count
        mixed_choice = np.repeat(count > 1, count)
        state = self.rows_done + np.repeat(np.arange(len(count)), count)
        self.append(mixed_state=state[mixed_choice].astype(np.int32), mixed_action=action[mixed_choice])
        share = np.repeat(np.repeat(count, count), np.diff(start)).astype(np.int32)
        divided = np.flatnonzero(share > 1)
        number[divided] = self.probabilities.share(number[divided], share[divided])
        own_action = np.where(count > 1, 0, action[first]).astype(np.int32)
        return np.append(start[first], start[-1]), own_action

    def _gather(
        self, count: OffsetArray, start: OffsetArray, number: IndexArray, action: IndexArray
    ) -> tuple[OffsetArray, IndexArray]:
        """One choice per state, with the rates of all its commands; what each command adds is recorded."""
        first = np.cumsum(count) - count
        state = self.rows_done + np.repeat(np.arange(len(count)), count)
        width = np.diff(start)
        total: IndexArray = np.full(len(width), ZERO, dtype=np.int32)
        some = np.flatnonzero(width > 0)
        total[some] = number[start[some]]
        for place in range(1, int(width.max(initial=0))):
            some = np.flatnonzero(width > place)
            total[some] = self.probabilities.sum(total[some], number[start[some] + place])
        self.append(mixed_state=state.astype(np.int32), mixed_action=action, mixed_rate=total)
        own_action = np.where(count > 1, 0, action[first]).astype(np.int32)
        return np.append(start[first], start[-1]), own_action

    def _merge(self, start: OffsetArray, successor: IndexArray, number: IndexArray) -> tuple[IndexArray, int]:
        """Make equal successors of a choice one, in place; the widths of the choices and their sum."""
        into: IndexArray = np.empty(len(number), dtype=np.int32)
        added: IndexArray = np.empty(len(number), dtype=np.int32)
        width: IndexArray = np.empty(len(start) - 1, dtype=np.int32)
        written, merged = merge_successors(start, Merging(successor, number, into, added), width)
        if merged:
            self._add_merged(number[:written], into[:merged], added[:merged])
        return width, written

    def _add_merged(self, number: IndexArray, into: IndexArray, added: IndexArray) -> None:
        """number[into] += added, where an entry may receive several."""
        while len(into):
            target, first = np.unique(into, return_index=True)
            number[target] = self.probabilities.sum(number[target], added[first])
            rest = np.ones(len(into), dtype=np.bool_)
            rest[first] = False
            into, added = into[rest], added[rest]

    def so_far(self) -> ModelRows:
        """The rows as they are; states that wait have a self-loop and count as stopped."""
        part = copy(self)
        part._pieces = {name: copy(pieces) for name, pieces in self._pieces.items()}
        waiting = self._states.keys[self.rows_done :].copy()
        part.add(waiting, [], [], np.ones(len(waiting), dtype=np.bool_))
        return part.finish()

    def finish(self) -> ModelRows:
        starts = ("choice_start", "transition_start")
        whole: dict[str, AnyArray] = {
            n: offsets(p.values) if n in starts else p.values.copy() for n, p in self._pieces.items()
        }
        return ModelRows(**whole)


def _with_maximal_progress(
    parts: list[Alternatives], rated: Sequence[bool], waiting: BoolArray
) -> list[Alternatives]:
    """The parts less rates of 0 and rates where something is immediate (not `waiting`)."""
    for part, has_rates in zip(parts, rated, strict=True):
        if not has_rates:
            waiting[part.rows] = False
    possible = []
    for part, has_rates in zip(parts, rated, strict=True):
        if has_rates:
            happens = np.add.reduceat(part.probability != ZERO, part.start[:-1]) > 0
            part = part.take(np.flatnonzero(waiting[part.rows] & happens))
        possible.append(part)
    return possible


def _race(
    count: OffsetArray, start: OffsetArray, action: IndexArray, waiting: BoolArray
) -> tuple[OffsetArray, IndexArray]:
    """One choice for every waiting state: the rates of all its commands."""
    first = np.cumsum(count) - count
    opens = ~np.repeat(waiting, count)
    opens[first] = True
    several = np.flatnonzero(~opens & (action != np.repeat(action[first], count)))
    if len(several):
        raise Complaint(
            "Markovian edges with different rewards are possible in one state", None, "let them earn the same"
        )
    return np.append(start[:-1][opens], start[-1]), action[opens]


# Compiled passes over the outcomes of a frame: put them in order, and merge equal successors.


class Merging(NamedTuple):
    """Outcomes of choices, and what is still to be done: number[into[i]] += added[i]."""

    successor: IndexArray
    number: IndexArray
    into: IndexArray
    added: IndexArray


_FEW = 24
"""Choices with so many outcomes are merged by comparing all pairs, larger ones by hashing."""


@kernel
def possible_outcomes(
    order: OffsetArray, alternatives: AlternativeArrays, keys: OffsetArray
) -> tuple[OffsetArray, OffsetArray, IndexArray]:
    """The possible outcomes of all choices, in order, with the keys of their successors."""
    rows, start, step, probability = alternatives
    words = keys.shape[1]
    total = 0
    for outcome in range(len(probability)):
        if probability[outcome] != ZERO:
            total += 1
    new_start = np.zeros(len(order) + 1, dtype=np.int64)
    successor = np.empty((total, words), dtype=np.int64)
    number = np.empty(total, dtype=np.int32)
    write = 0
    for position in range(len(order)):
        entry = order[position]
        row = rows[entry]
        for outcome in range(start[entry], start[entry + 1]):
            if probability[outcome] != ZERO:
                for word in range(words):
                    successor[write, word] = keys[row, word] + step[outcome, word]
                number[write] = probability[outcome]
                write += 1
        new_start[position + 1] = write
    return new_start, successor, number


@kernel
def _merge_many(first: int, last: int, write: int, merged: int, outcomes: Merging) -> tuple[int, int]:
    """The same for one choice with many outcomes."""
    successor, number, into, added = outcomes
    size = 1
    while size < 2 * (last - first):
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    for read in range(first, last):
        target = successor[read]
        slot = (np.int64(target) * 0x9E3779B1) & (size - 1)
        while table[slot] >= 0 and successor[table[slot]] != target:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = write
            successor[write] = target
            number[write] = number[read]
            write += 1
        else:
            into[merged] = table[slot]
            added[merged] = number[read]
            merged += 1
    return write, merged


@kernel
def merge_successors(start: OffsetArray, outcomes: Merging, width: IndexArray) -> tuple[int, int]:
    """Keep the first of equal successors of each choice, in place; list what is to be added to it."""
    successor, number, into, added = outcomes
    write, merged = 0, 0
    for choice in range(len(start) - 1):
        begin, first, last = write, start[choice], start[choice + 1]
        if last - first > _FEW:
            write, merged = _merge_many(first, last, write, merged, outcomes)
        else:
            for read in range(first, last):
                target = successor[read]
                result = -1
                for earlier in range(begin, write):
                    if successor[earlier] == target:
                        result = earlier
                        break
                if result < 0:
                    successor[write] = target
                    number[write] = number[read]
                    write += 1
                else:
                    into[merged] = result
                    added[merged] = number[read]
                    merged += 1
        width[choice] = write - begin
    return write, merged


# Labels, rewards and valuations of the reached states.
#
# A state earns all items whose guard holds; a choice sums the items of its action. Sums are exact, and only
# the result is rounded to the nearest float64. A deadlock's self-loop earns nothing by itself. Rewards with
# parameters are one polynomial per choice, that of its state included.


@dataclass(frozen=True, eq=False)
class Survey:
    """A program, the states that it has so far, and the names of its actions."""

    program: Program
    space: StateSpace
    states: KeyIndex
    actions: tuple[str, ...]


class RewardObserver:
    """One reward structure, filled frame by frame: what states earn, and what choices earn beside that.

    Where a state has several commands that are one choice, it earns their average, or Σ rate · reward where
    `rates` are the entries of their rates.
    """

    def __init__(
        self,
        survey: Survey,
        rewards: syntax.Rewards,
        rows: ModelRows,
        compiler: Compiler,
        names: Sequence[str],
        rates: PolynomialIndex | None,
    ):
        self.name, self._rows, self._rates = rewards.name or "", rows, rates
        items, parameters = rewards.items, set(survey.program.parameters)
        self._position = items[0].position if items else rewards.position
        self._is_mean = any(item.is_mean for item in items)
        self._without = rows.deadlock | rows.stopped
        self._has_parameters = any(
            name.name in parameters for one in items for name in syntax.names(one.reward)
        )
        on_states = [item for item in items if not item.is_choice]
        on_actions: dict[int, list[syntax.RewardItem]] = {}
        for item in items:
            if item.is_choice and (name := item.action or UNLABELLED) in survey.actions:
                on_actions.setdefault(survey.actions.index(name), []).append(item)
        self._of_state = polynomial_of_items(on_states, compiler)
        self._of_action = {number: polynomial_of_items(own, compiler) for number, own in on_actions.items()}
        self._has = bool(on_states), len(on_states) < len(items)
        self._table = PolynomialIndex(names)
        self._are_numbers = rates is None and not self._has_parameters
        dtype = np.float64 if self._are_numbers else np.int32
        self._held: AnyArray = np.zeros(len(rows.deadlock), dtype=dtype)
        self._earned: AnyArray = np.zeros(len(rows.action), dtype=dtype)

    def observe(self, frame: StateFrame, part: slice) -> None:
        """The states of a frame, which are a part of all."""
        rows, keep = self._rows, _doubles if self._are_numbers else self._table.add_array
        self._held[part] = self._kept(self._of_state, frame, keep)
        start = rows.choice_start[part.start : part.stop + 1]
        row, choices = (
            np.repeat(np.arange(len(start) - 1), np.diff(start)),
            slice(int(start[0]), int(start[-1])),
        )
        for at, entries in self._of_actions(rows.action[choices], row, frame, part, keep):
            self._earned[choices][at] = entries
        if self._are_numbers and all(self._has):
            self._check_totals(frame, part, row, choices)
        first, last = np.searchsorted(rows.mixed_state, (part.start, part.stop))
        if first == last or not self._of_action:
            return
        state = rows.mixed_state[first:last].astype(np.int64) - part.start
        each: IndexArray = np.zeros(len(state), dtype=np.int32)
        for at, entries in self._of_actions(
            rows.mixed_action[first:last], state, frame, part, self._table.add_array
        ):
            each[at] = entries
        mixed, begin, several = np.unique(state, return_index=True, return_counts=True)
        self._is_mean |= bool(np.any(each != each[np.repeat(begin, several)]))
        gained = self._table.polynomials(each.astype(np.int64))
        if self._rates is None:
            gained = gained.divide(RationalArray.from_integers(np.repeat(several, several)))
        else:
            gained = gained * self._rates.polynomials(rows.mixed_rate[first:last].astype(np.int64))
        total = gained.take(begin)
        for place in range(1, int(several.max())):
            more = gained.take(np.minimum(begin + place, len(each) - 1))
            total = PolynomialArray.where(several > place, total + more, total)
        check_held(total, frame.select(mixed), self._position)
        self._earned[part.start + mixed] = keep(total)

    def _of_actions(
        self, action: IndexArray, row: OffsetArray, frame: StateFrame, part: slice, keep: Keep
    ) -> Iterator[tuple[OffsetArray, AnyArray]]:
        """What actions earn in rows of the frame, action by action, but in states that are not left."""
        left = ~self._without[part][row]
        for number, terms in self._of_action.items():
            selected = np.flatnonzero((action == number) & left)
            if len(selected):
                yield selected, self._kept(terms, frame.select(row[selected]), keep)

    def _kept(self, terms: Terms, frame: StateFrame, keep: Keep) -> AnyArray:
        """The values of a polynomial, computed once where they are the same in all rows."""
        is_one = not any(number.variables for number in terms.values())
        inner = frame.select(np.zeros(1, dtype=np.int64)) if is_one else frame
        earned = polynomials(terms, inner)
        check_held(earned, inner, self._position)
        return np.repeat(keep(earned), frame.size) if is_one else keep(earned)

    def _check_totals(self, frame: StateFrame, part: slice, row: OffsetArray, choices: slice) -> None:
        """What states and choices earn together, by the rule of the model's door."""
        action = self._rows.action[choices]

        def exact(index: int) -> list[Fraction]:
            inner = frame.select(row[index : index + 1])
            terms = [self._of_state, self._of_action.get(int(action[index]), {})]
            return [polynomials(each, inner).polynomial(0).constant_term for each in terms]

        try:
            door.check_totals(self._held[part][row], self._earned[choices], exact)
        except door.NotHeldError as error:
            frame.fail(error.message, self._position, np.arange(frame.size) == row[error.index])

    def finish(self) -> RewardStructure:
        """Numbers of states and choices, or polynomials of choices, those of their states included; where
        there are rates, what states earn per unit of time alone."""
        if self._are_numbers:
            state, choice = self._has
            return RewardStructure(
                self._held if state else None, self._earned if choice else None, self._is_mean
            )
        if self._rates is None:
            return self.total()
        if self._has_parameters:
            return self._tabulated(self._held)
        return RewardStructure(_doubles(self._table.polynomials(np.arange(len(self._table))))[self._held])

    def total(self) -> ParametricReward:
        """What choices earn with their states; where there are rates, per unit of time."""
        owner = np.repeat(np.arange(len(self._held)), np.diff(self._rows.choice_start))
        both = (self._held[owner].astype(np.int64) << 32) | self._earned
        pairs, which = np.unique(both, return_inverse=True)
        total = self._table.polynomials(pairs >> 32) + self._table.polynomials(pairs & 0xFFFFFFFF)
        return self._tabulated(self._table.add_array(total)[which.reshape(-1)])

    def _tabulated(self, entries: IndexArray) -> ParametricReward:
        expressions, expression = self._table.freeze(entries)
        return ParametricReward(self.name, expressions, expression, is_mean=self._is_mean)


Keep = Callable[[PolynomialArray], AnyArray]
"""In what form values are kept: as entries of a table, or as doubles."""


def _doubles(values: PolynomialArray) -> FloatArray:
    """The doubles nearest to polynomials that are numbers."""
    zero = RationalArray.constant(0, len(values))
    return values.terms.get((), zero).to_float()


def polynomial_of_items(items: Sequence[syntax.RewardItem], compiler: Compiler) -> Terms:
    """Σ reward over the items whose guard holds, as a polynomial."""
    zero = syntax.Literal(0, syntax.Type.INT)
    total: syntax.Expression = zero
    for item in items:
        total = syntax.Binary("+", total, syntax.Conditional(item.guard, item.reward, zero), item.position)
    return compiler.terms(total)


_CHUNK = 2**16


@dataclass(frozen=True, eq=False)
class Observations:
    """Named columns over the states, and reward structures; where there are rates, what is earned in time."""

    labels: Mapping[str, BoolArray]
    rewards: Mapping[str, RewardStructure]
    valuations: Mapping[str, AnyArray]
    per_time: Mapping[str, ParametricReward]


def observe(
    survey: Survey,
    rows: ModelRows,
    names: Sequence[str],
    narrow: bool = False,
    rates: PolynomialIndex | None = None,
) -> Observations:
    """All that is said of the states; rewards have parameters of these `names`, and `narrow` gives columns
    their smallest type."""
    program, space, keys = survey.program, survey.space, survey.states.keys
    compiler, states = space.compiler(), len(keys)
    numbers = len(program.labels) * states + 8 * len(program.rewards) * (states + len(rows.action))
    door.check_room(numbers, f"{len(program.labels):,} labels and {len(program.rewards):,} reward structures")
    labels = [(label.name, compiler.truth(label.expression)) for label in program.labels]
    members = {name: np.empty(states, dtype=np.bool_) for name, _ in labels}
    rewards = [RewardObserver(survey, each, rows, compiler, names, rates) for each in program.rewards]
    columns: list[AnyArray] = [
        np.empty(states, dtype=np.bool_ if is_boolean else _smallest(*bounds) if narrow else np.int32)
        for is_boolean, bounds in zip(space.is_boolean, space.ranges, strict=True)
    ]
    for begin in range(0, states, _CHUNK):
        part = slice(begin, min(begin + _CHUNK, states))
        frame = space.frame(keys[part])
        for variable, column in enumerate(columns):
            column[part] = frame.column(variable)
        for name, condition in labels:
            members[name][part] = condition.value(frame)
        for reward in rewards:
            reward.observe(frame, part)
    members.setdefault("init", np.arange(states) < len(program.initial_values))
    members.setdefault("deadlock", rows.deadlock)
    return Observations(
        members,
        {reward.name: reward.finish() for reward in rewards},
        {variable.name: column for variable, column in zip(space.variables, columns, strict=True)},
        {} if rates is None else {reward.name: reward.total() for reward in rewards},
    )


def _smallest(low: int, high: int) -> npt.DTypeLike:
    for dtype in (np.int8, np.int16):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return np.int32
