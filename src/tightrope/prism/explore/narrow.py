"""Deep and narrow state spaces, explored state by state in one compiled loop.

Counters and clocks give ten thousand levels with a few states each, too few for NumPy. Guards and updates are
`instructions`; one kernel decodes a state, finds its choices, numbers their successors and writes the rows,
in the same order as whole frames. At a new probability, product or sum, a value out of range, or anything
else unusual it stops; the next frame is explored as usual and computes what was missing or reports the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tightrope.numerics.arrays import IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.prism.explore.assemble import Assembler
from tightrope.prism.explore.commands import CommandGroup, CompiledCommand
from tightrope.prism.explore.compile import StateSpace
from tightrope.prism.explore.nodes import Boolean, Instructions, Untranslatable, run
from tightrope.prism.explore.probabilities import (
    ONE,
    ZERO,
    Deferred,
    KeyIndex,
    KeyTable,
    Operation,
    PolynomialProbabilities,
    number_key,
)

NARROW = 1024
"""So many waiting states, at most, are explored one by one."""

_MANY_COMMANDS = 200
"""Programs with more commands are left to frames, which pick the relevant ones first."""

_MANY_COMBINATIONS = 2**20
"""Combinations of variables that the probabilities of all commands may depend on."""

_OUTPUT = 2**15
"""Transitions that the kernel writes before they are moved to the model."""


_REFERENCES = {
    "program": ("group", "group", "variable", "variable", "instruction", "instruction"),
    "variable": (),
    "group": ("part", "part"),
    "part": ("command", "command"),
    "command": ("instruction", "instruction", "update", "update", "factor", "factor"),
    "factor": (),
    "update": ("instruction", "instruction", "assignment", "assignment"),
    "assignment": (),
    "instruction": (),
}
"""The kinds of rows of a program, in order, and what their first columns refer to."""


class NarrowSearch:
    """Explores one state after the other, for as long as there is nothing to learn."""

    def __init__(
        self,
        space: StateSpace,
        groups: Sequence[CommandGroup],
        states: KeyIndex,
        assembler: Assembler,
        stop: Boolean | None,
        most: int | None,
    ):
        """Raises `Untranslatable` for programs that only whole frames can run. `most`: a limit of states."""
        self._most = most
        self._states = states
        self._assembler = assembler
        if not isinstance(assembler.probabilities, PolynomialProbabilities):
            raise Untranslatable
        self._deferred = assembler.probabilities.deferred
        listing = _Listing(space)
        self._program = listing.program(groups, stop)
        self._commands = listing.commands
        self._work = NarrowWorkspace(
            listing.instructions.registers,
            np.zeros((4, len(self._program)), dtype=np.int64),
            np.zeros((3, MOST, space.layout.words + 1), dtype=np.int64),
        )
        self._output = Output(*(np.empty((_OUTPUT, 2), dtype=np.int32) for _ in range(3)))
        self._known = KnownResults(np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
        self._met = self._combined = -1

    def run(self) -> int:
        """Explore until something is to be learned or many states wait; the number of states explored."""
        begin = self._assembler.rows_done
        self._learn()
        while True:
            position = np.array([self._assembler.rows_done, len(self._states), *(0,) * 5], dtype=np.int64)
            reason = walk(
                self._program,
                self._known,
                self._states.table,
                self._work,
                self._output,
                position,
                self._assembler.is_chain,
                4 * NARROW,
            )
            self._states.adopt(int(position[COUNT]))
            self._move(int(position[STATES]), int(position[CHOICES]), int(position[TRANSITIONS]))
            if reason == FULL:
                self._states.grow()
            elif reason != WRITTEN or (self._most is not None and len(self._states) > self._most):
                return self._assembler.rows_done - begin

    def _move(self, states: int, choices: int, transitions: int) -> None:
        """What the kernel has written, to the model."""
        out = self._output
        mark = out.states[:states, 1]
        self._assembler.append(
            choice_start=out.states[:states, 0],
            transition_start=out.choices[:choices, 0],
            successor=out.transitions[:transitions, 0],
            probability=out.transitions[:transitions, 1],
            action=out.choices[:choices, 1],
            deadlock=mark == DEAD,
            stopped=mark == STOPPED,
        )
        self._assembler.rows_done += states

    def _learn(self) -> None:
        """Take over what frames have found out since the last time."""
        met = sum(len(command.memory.known) for command in self._commands)
        if met != self._met:
            self._met = met
            self._known = self._known._replace(probabilities=self._probabilities())
        sums, products = (self._deferred.pairs(each)[0] for each in (Operation.SUM, Operation.PRODUCT))
        if len(sums) + len(products) != self._combined:
            self._combined = len(sums) + len(products)
            self._known = self._known._replace(pairs=_pairs(self._deferred))

    def _probabilities(self) -> OffsetArray:
        """The probabilities of all commands as `KnownResults` holds them."""
        sizes = [command.memory.layout.size for command in self._commands]
        first, length = 0, sum(sizes)
        lookup: OffsetArray = np.full(length, -1, dtype=np.int64)
        rows = [lookup]
        for command, size in zip(self._commands, sizes, strict=True):
            numbers = command.memory.known
            place = length + np.arange(len(numbers)) * numbers.shape[1]
            lookup[first + command.memory.keys_known[:, 0]] = place
            rows.append(numbers.reshape(-1).astype(np.int64))
            first += size
            length += numbers.size
        return np.concatenate(rows)


def _pairs(deferred: Deferred) -> OffsetArray:
    """The combined pairs as `KnownResults` holds them."""
    keys, results = [], []
    for operation in (Operation.SUM, Operation.PRODUCT):
        index, numbers = deferred.pairs(operation)
        left, right = index.keys[:, 0] >> 32, index.keys[:, 0] & 0xFFFFFFFF
        keys.append(pair_keys(operation is Operation.SUM, left, right))
        results.append(numbers.astype(np.int64))
    return index_pairs(np.concatenate(keys), np.concatenate(results))


class _Listing:
    """Writes groups of commands down as the table of a program."""

    def __init__(self, space: StateSpace):
        layout = space.layout
        self.instructions = Instructions(len(space.variables))
        self.commands: list[CompiledCommand] = []
        self._rows: dict[str, list[Sequence[int]]] = {name: [] for name in _REFERENCES}
        self._rows["variable"] = np.stack(
            [layout.word, layout.stride, layout.radix, layout.low], axis=1
        ).tolist()
        self._combinations = 0

    def program(self, groups: Sequence[CommandGroup], stop: Boolean | None) -> OffsetArray:
        rows = self._rows
        for group in groups:
            first_part = len(rows["part"])
            for part in group.parts:
                first = len(self.commands)
                for command in part:
                    if not command.never:
                        self._add_command(command)
                rows["part"].append((first, len(self.commands)))
            rows["group"].append((first_part, len(rows["part"]), group.action))
        stopping = (-1, -1) if stop is None else self.instructions.condition(stop)
        rows["program"].append((0, len(groups), 0, len(rows["variable"]), *stopping))
        rows["instruction"] = self.instructions.code.tolist()
        return self._join()

    def _add_command(self, command: CompiledCommand) -> None:
        self.commands.append(command)
        layout, rows = command.memory.layout, self._rows
        self._combinations += layout.size
        if layout.words > 1 or self._combinations > _MANY_COMBINATIONS or len(self.commands) > _MANY_COMMANDS:
            raise Untranslatable
        guard = self.instructions.condition(command.guard)
        updates, factors = len(rows["update"]), len(rows["factor"])
        for assignments in command.updates:
            first = len(rows["assignment"])
            checked = [each.checked for each in assignments if each.checked is not None]
            begin, end, result = self.instructions.values([*(each.change for each in assignments), *checked])
            rest = iter(result[len(assignments) :])
            for register, each in zip(result[: len(assignments)], assignments, strict=True):
                to_check = -1 if each.checked is None else next(rest)
                rows["assignment"].append((register, each.word, to_check, *each.bounds))
            rows["update"].append((begin, end, first, len(rows["assignment"])))
        for variable, low, stride in zip(command.memory.variables, layout.low, layout.stride, strict=True):
            rows["factor"].append((variable, int(low), int(stride)))
        own = (updates, len(rows["update"]), factors, len(rows["factor"]))
        rows["command"].append((*guard, *own, self._combinations - layout.size, layout.size))

    def _join(self) -> OffsetArray:
        """All rows in one table, with references to rows of it."""
        base = dict(zip(self._rows, accumulate(map(len, self._rows.values()), initial=0), strict=False))
        table: OffsetArray = np.zeros((sum(map(len, self._rows.values())), WIDTH), dtype=np.int64)
        for name, rows in self._rows.items():
            for number, row in enumerate(rows, base[name]):
                table[number, : len(row)] = row
            for column, target in enumerate(_REFERENCES[name]):
                own = table[base[name] : base[name] + len(rows), column]
                own[own >= 0] += base[target]
        return table


# The compiled loop: from a state's key to its rows.
#
# Steps of keys add, numbers of probabilities multiply and those of equal successors add, by looking the pair
# up; what cannot be looked up ends the loop before that state. States found on the way keep their numbers.
#
# The program is one table of int64, so that the loop handles few arrays. Its rows, each of which refers to
# others by their numbers:
#
# program      groups from, to; variables from, to; condition to stop at from, to
# variable     word, stride and radix of its digit in the key, lowest value
# group        parts from, to; action
# part         commands from, to
# command      guard from, to; updates from, to; factors from, to; first entry of its probabilities, how many
# factor       register, lowest value and stride of a variable that the probabilities depend on
# update       instructions from, to; assignments from, to
# assignment   register of the step, word; register to be checked or −1, lowest and highest value
# instruction  see `tightrope.prism.explore.nodes`

WIDTH = 8
"""Columns of the program's table."""

DONE, LEARN, FULL, WRITTEN, WIDE = range(5)
"""Why the loop ended: no state is left, the next one needs a frame, the index of states or the output is
full, or too many states wait."""

STATE, COUNT, CHOICES, TRANSITIONS, STATES, OUTCOMES, SIDE = range(7)
"""Entries of a position: the next state, the states known, what has been written of each kind, the outcomes
of the choice at hand and where in the workspace they are."""

DEAD, STOPPED = 1, 2
"""Marks of states."""

_ENABLED, _FIRST, _LAST, _CHOSEN = range(4)

MOST = 128
"""Outcomes of a choice; choices with more are left to frames."""


class KnownResults(NamedTuple):
    """Probabilities by a command's factors (−1: not met), and (key, number) of combined pairs, hashed."""

    probabilities: OffsetArray
    pairs: OffsetArray


class NarrowWorkspace(NamedTuple):
    """Registers; enabled and chosen commands; outcomes (step, number) of a choice and of a command."""

    registers: OffsetArray
    commands: OffsetArray
    outcomes: OffsetArray


class Output(NamedTuple):
    """Rows in the order of states: choices and mark, width and action, successor and probability."""

    states: IndexArray
    choices: IndexArray
    transitions: IndexArray


@kernel
def pair_keys(is_sum: bool, left: OffsetArray, right: OffsetArray) -> OffsetArray:
    """Pairs of numbers, of which the left one is not larger, as one."""
    return (np.int64(is_sum) << 62) | (left << 31) | right


@kernel
def index_pairs(keys: OffsetArray, numbers: OffsetArray) -> OffsetArray:
    """The `pairs` of `KnownResults`, at most a quarter full."""
    size = 16
    while size < 4 * len(keys):
        size *= 2
    table = np.full((size, 2), -1, dtype=np.int64)
    for entry in range(len(keys)):
        slot = _pair_slot(keys[entry], size)
        while table[slot, 0] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot, 0], table[slot, 1] = keys[entry], numbers[entry]
    return table


@kernel
def _pair_slot(key: np.int64, size: int) -> np.int64:
    """Where the search for a pair begins; `size` is a power of two."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(32)) & (size - 1)


@kernel
def walk(
    program: OffsetArray,
    known: KnownResults,
    states: KeyTable,
    work: NarrowWorkspace,
    out: Output,
    position: OffsetArray,
    is_chain: bool,
    widest: int,
) -> int:
    """Explore from `position` on, which is moved; why the loop ended."""
    stored, registers, out_states = states.stored, work.registers, out.states
    stop_begin, stop_end = program[0, 4], program[0, 5]
    while position[STATE] < position[COUNT]:
        if position[COUNT] - position[STATE] > widest:
            return WIDE
        state, written = position[STATE], position[STATES]
        if written == len(out_states):
            return WRITTEN
        choices, transitions = position[CHOICES], position[TRANSITIONS]
        for row in range(program[0, 2], program[0, 3]):
            digit = (stored[state, program[row, 0]] // program[row, 1]) % program[row, 2]
            registers[row - program[0, 2]] = digit + program[row, 3]
        mark, reason = 0, DONE
        if stop_begin >= 0 and run(program, stop_begin, stop_end, registers):
            mark = STOPPED
        else:
            reason = _add_choices(program, known, states, work, out, position)
        if reason == DONE and position[CHOICES] == choices:
            reason = _add_loop(out.choices, out.transitions, position)
            mark = max(mark, DEAD)
        if reason == DONE and is_chain and position[CHOICES] - choices > 1:
            reason = LEARN
        if reason != DONE:
            position[CHOICES], position[TRANSITIONS] = choices, transitions
            return LEARN if reason == WRITTEN and written == 0 else reason
        out_states[written, 0], out_states[written, 1] = position[CHOICES] - choices, mark
        position[STATES] += 1
        position[STATE] += 1
    return DONE


@kernel
def _add_loop(out_choices: IndexArray, out_transitions: IndexArray, position: OffsetArray) -> int:
    """A choice without an action that leads back for sure."""
    choice, transition = position[CHOICES], position[TRANSITIONS]
    if choice == len(out_choices) or transition == len(out_transitions):
        return WRITTEN
    out_choices[choice, 0], out_choices[choice, 1] = 1, 0
    out_transitions[transition, 0], out_transitions[transition, 1] = position[STATE], ONE
    position[CHOICES] += 1
    position[TRANSITIONS] += 1
    return DONE


@kernel
def _add_choices(
    program: OffsetArray,
    known: KnownResults,
    states: KeyTable,
    work: NarrowWorkspace,
    out: Output,
    position: OffsetArray,
) -> int:
    """All choices of the state in the registers."""
    registers, commands, outcomes = work.registers, work.commands, work.outcomes
    probabilities, pairs = known.probabilities, known.pairs
    for group in range(program[0, 0], program[0, 1]):
        parts = _enable(program, group, registers, commands)
        while parts:
            count = _update(program, commands[_ENABLED, commands[_CHOSEN, 0]], probabilities, work, 0)
            for part in range(1, parts):
                command = commands[_ENABLED, commands[_CHOSEN, part]]
                updates = _update(program, command, probabilities, work, 2)
                count = _multiply(outcomes, (part - 1) % 2, count, updates, pairs)
            if count == 0:
                return LEARN
            position[OUTCOMES], position[SIDE] = count, (parts - 1) % 2
            reason = _add_choice(states, outcomes, pairs, out, position)
            if reason != DONE:
                return reason
            out.choices[position[CHOICES] - 1, 1] = program[group, 2]
            parts = _next_combination(commands, parts)
    return DONE


@kernel
def _enable(program: OffsetArray, group: int, registers: OffsetArray, commands: OffsetArray) -> int:
    """Find the enabled commands of a group, part by part; how many parts it has, 0 where one cannot move."""
    begin, end = program[group, 0], program[group, 1]
    result = 0
    for part in range(begin, end):
        first = result
        for command in range(program[part, 0], program[part, 1]):
            if run(program, program[command, 0], program[command, 1], registers):
                commands[_ENABLED, result] = command
                result += 1
        if result == first:
            return 0
        commands[_FIRST, part - begin] = first
        commands[_LAST, part - begin] = result
        commands[_CHOSEN, part - begin] = first
    return int(end - begin)


@kernel
def _next_combination(commands: OffsetArray, parts: int) -> int:
    """Choose the next combination of enabled commands, the last part fastest; 0 after the last one."""
    for part in range(parts - 1, -1, -1):
        commands[_CHOSEN, part] += 1
        if commands[_CHOSEN, part] < commands[_LAST, part]:
            return parts
        commands[_CHOSEN, part] = commands[_FIRST, part]
    return 0


@kernel
def _update(program: OffsetArray, command: int, known: OffsetArray, work: NarrowWorkspace, side: int) -> int:
    """The possible updates of a command; how many, 0 where something is unknown or out of range."""
    registers, result = work.registers, work.outcomes
    at = program[command, 6]
    for factor in range(program[command, 4], program[command, 5]):
        at += (registers[program[factor, 0]] - program[factor, 1]) * program[factor, 2]
    place = known[at]
    begin, end = program[command, 2], program[command, 3]
    if place < 0 or end - begin > MOST:
        return 0
    count, words = 0, result.shape[2] - 1
    for update in range(begin, end):
        number = known[place + update - begin]
        if number == ZERO:
            continue
        for word in range(words):
            result[side, count, word] = 0
        result[side, count, words] = number
        run(program, program[update, 0], program[update, 1], registers)
        for assignment in range(program[update, 2], program[update, 3]):
            checked = program[assignment, 2]
            if checked >= 0:
                value = registers[checked]
                if value < program[assignment, 3] or value > program[assignment, 4]:
                    return 0
            result[side, count, program[assignment, 1]] += registers[program[assignment, 0]]
        count += 1
    return count


@kernel
def _multiply(outcomes: OffsetArray, side: int, left: int, right: int, pairs: OffsetArray) -> int:
    """All pairs of outcomes, to the other side; how many, 0 where a probability is unknown or too many."""
    if left * right > MOST:
        return 0
    last, count = outcomes.shape[2] - 1, 0
    for a in range(left):
        for b in range(right):
            for word in range(last):
                outcomes[1 - side, count, word] = outcomes[side, a, word] + outcomes[2, b, word]
            first, second = outcomes[side, a, last], outcomes[2, b, last]
            low, high = min(first, second), max(first, second)
            number = high if low == ONE else _combine(pairs, False, low, high)
            if number < 0:
                return 0
            outcomes[1 - side, count, last] = number
            count += 1
    return count


@kernel
def _combine(pairs: OffsetArray, is_sum: bool, low: int, high: int) -> int:
    """The number of a sum or product; −1 where it has not been met."""
    key = (np.int64(is_sum) << 62) | (low << 31) | high
    slot = _pair_slot(key, len(pairs))
    while pairs[slot, 0] != key:
        if pairs[slot, 0] < 0:
            return -1
        slot = (slot + 1) & (len(pairs) - 1)
    return int(pairs[slot, 1])


@kernel
def _add_choice(
    states: KeyTable, outcomes: OffsetArray, pairs: OffsetArray, out: Output, position: OffsetArray
) -> int:
    """Write the outcomes of a choice; equal successors become one."""
    transitions, stored = out.transitions, states.stored
    side, count = position[SIDE], position[OUTCOMES]
    words, begin = outcomes.shape[2] - 1, position[TRANSITIONS]
    if position[CHOICES] == len(out.choices) or begin + count > len(transitions):
        return WRITTEN
    write = begin
    for row in range(count):
        for word in range(words):
            outcomes[side, row, word] += stored[position[STATE], word]
        target = number_key(states, position[COUNT], outcomes, side, row)
        if target < 0:
            return FULL
        if target == position[COUNT]:
            position[COUNT] += 1
        earlier = begin
        while earlier < write and transitions[earlier, 0] != target:
            earlier += 1
        number = outcomes[side, row, words]
        if earlier == write:
            transitions[write, 0] = target
            write += 1
        else:
            before = np.int64(transitions[earlier, 1])
            number = _combine(pairs, True, min(before, number), max(before, number))
            if number < 0:
                return LEARN
        transitions[earlier, 1] = number
    out.choices[position[CHOICES], 0] = write - begin
    position[CHOICES] += 1
    position[TRANSITIONS] = write
    return DONE
