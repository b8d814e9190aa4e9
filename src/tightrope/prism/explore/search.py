"""Reachable states of a program, in discrete or continuous time, a whole frontier at a time.

States are keys in a hash index; its newest rows are the frontier, decoded into one array per variable. Every
command runs on all of them. `_OUTCOMES` bounds the work, and so the memory, of one frame. A `Judge` sees the
partial model, with unexplored states absorbing, at every `PART_GROWTH`-fold number of states, and may end the
search. `Relevance` skips commands whose guard cannot hold in a frame, by boxes of values (`guard_ranges`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Concatenate, NoReturn, ParamSpec, TypeVar

import numpy as np

from tightrope.model import numbers as door
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC
from tightrope.model.expressions import Expressions
from tightrope.model.free import FreeCommand, split_commands
from tightrope.model.mdp import FactoredRows, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import UNLABELLED, ParametricReward, Structure, release
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import is_interpreting
from tightrope.prism.expand.program import Definitions, FreeUpdates, Program
from tightrope.prism.explore.assemble import Assembler, ModelRows, Observations, Survey, observe, without
from tightrope.prism.explore.commands import CommandGroup, TooWideError, groups
from tightrope.prism.explore.compile import StateSpace
from tightrope.prism.explore.intervals import IntervalProbabilities, TreeRows, find_factors
from tightrope.prism.explore.narrow import NARROW, NarrowSearch
from tightrope.prism.explore.nodes import Boolean, StateFrame, Untranslatable
from tightrope.prism.explore.probabilities import ZERO, KeyIndex, PolynomialProbabilities, Probabilities
from tightrope.prism.parse.syntax import Complaint, Expression, Literal, ModelType, SourceText
from tightrope.provenance import origin_in

_MANY = 24
"""With fewer commands it is not worth the while."""


class Relevance:
    """`groups(frame)`: those to run, each with the commands of it that matter."""

    def __init__(self, groups: Sequence[CommandGroup], ranges: Sequence[tuple[int, int]]):
        self._groups = groups
        commands = [command for group in groups for part in group.parts for command in part]
        self._few = len(commands) < _MANY
        if self._few:
            return
        boxes = np.array([command.ranges for command in commands], dtype=np.int64)
        self._low, self._high = boxes[:, :, 0], boxes[:, :, 1]
        counts = [sum(len(part) for part in group.parts) for group in groups]
        self._start: OffsetArray = np.cumsum([0, *counts])
        fixed = (self._low == self._high) & np.array([low != high for low, high in ranges])
        self._variable = int(fixed.sum(axis=0).argmax())
        is_fixed = fixed[:, self._variable]
        self._free: BoolArray = ~is_fixed
        self._fixed: OffsetArray = np.flatnonzero(is_fixed)
        self._fixed = self._fixed[np.argsort(self._low[self._fixed, self._variable], kind="stable")]
        self._value: OffsetArray = self._low[self._fixed, self._variable]

    def groups(self, frame: StateFrame) -> list[tuple[CommandGroup, BoolArray | None]]:
        """In order; the flags say which commands of the group matter, None means all."""
        if self._few:
            return [(group, None) for group in self._groups]
        flags = self._free.copy()
        present = np.unique(frame.column(self._variable)).astype(np.int64)
        first = np.searchsorted(self._value, present)
        length = np.searchsorted(self._value, present, side="right") - first
        within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        flags[self._fixed[np.repeat(first, length) + within]] = True
        open_commands = np.flatnonzero(flags)
        columns = [frame.column(variable) for variable in range(self._low.shape[1])]
        lowest = np.array([int(column.min()) for column in columns])
        highest = np.array([int(column.max()) for column in columns])
        touched = (self._low[open_commands] <= highest) & (self._high[open_commands] >= lowest)
        flags[open_commands] = touched.all(axis=1)
        owners = np.searchsorted(self._start, np.flatnonzero(flags), side="right") - 1
        return [
            (self._groups[number], flags[self._start[number] : self._start[number + 1]])
            for number in np.unique(owners).tolist()
        ]


Progress = Callable[[int, int], None]
"""Called now and then with the numbers of states and transitions found so far."""

Warn = Callable[[str], None]
"""Called with what the user should know though the model stands."""


@dataclass(frozen=True, eq=False)
class ModelPart:
    """A part of a model: states that wait were not looked at, and have a self-loop."""

    model: ParametricMDP
    waiting: BoolArray
    earns_nothing_negative: bool
    """Whether it is plain that no reward of the whole model is negative: all are numbers in the text."""


Judge = Callable[[ModelPart], bool]
"""Whether a part of the model is enough."""

FIRST_PART, PART_GROWTH = 2**13, 8
"""States after which a judge is asked first, and how many times as many until it is asked again."""

_ROWS = 2**14
"""States looked at together at most: their columns fit the processor's caches."""

_OUTCOMES = 2**18
"""Outcomes held at a time, roughly; states with very many get smaller frames."""

_PATIENCE = 32
"""Narrow frames in a row before states are explored one by one: most models are finished before. Doubled when
that has led nowhere."""

_WORTH = 256
"""States that are explored one by one at a time, or it was not worth trying."""

_PROGRESS_SECONDS = 0.1

_STATE_BYTES, _TRANSITION_BYTES = 48, 16
"""What a state and a transition take at least."""

_MOST_UNBOUNDED = 10_000_000
"""States of a program with unbounded variables, which may have infinitely many."""


P = ParamSpec("P")
T = TypeVar("T")


def complaining(explore: Callable[Concatenate[Program, P], T]) -> Callable[Concatenate[Program, P], T]:
    """The same, with complaints that point into the text of the program."""

    @wraps(explore)
    def explored(program: Program, /, *given: P.args, **named: P.kwargs) -> T:
        with SourceText(program.source, program.file).complaints():
            return explore(program, *given, **named)

    return explored


@dataclass(frozen=True, eq=False)
class Search(Survey):
    """What is explored, and the states and rows of the model so far."""

    commands: tuple[CommandGroup, ...]
    assembler: Assembler
    stop: Boolean | None
    most: int | None
    """A limit of states."""

    @property
    def is_automaton(self) -> bool:
        return self.program.type is ModelType.MA

    @staticmethod
    def of(program: Program, stop: Expression | None, probabilities: Probabilities) -> Search:
        """At the initial states of a program."""
        space, is_timed = StateSpace(program), program.type is ModelType.CTMC
        commands, actions = groups(program, space, probabilities)
        states = KeyIndex(space.layout.words)
        states.insert(space.initial)
        is_chain = is_timed or program.type is ModelType.DTMC
        condition = None if stop is None else space.compiler().truth(stop)
        if condition is not None and condition.fails:
            condition = None  # its errors belong to the property, and are reported with it
        has_unbounded = any(variable.is_unbounded for variable in program.variables)
        most = _MOST_UNBOUNDED if has_unbounded and not is_timed else None
        assembler = Assembler(states, probabilities, is_chain, is_timed)
        return Search(program, space, states, actions, commands, assembler, condition, most)

    def check_size(self, memory: float) -> None:
        """Refuse models that perhaps never end, or do not fit into memory."""
        states, transitions = len(self.states), self.assembler.transitions
        if self.most is not None and states > self.most:
            variable = next(each for each in self.space.variables if each.is_unbounded)
            raise Complaint(
                f"more than {self.most:,} states can be reached, and '{variable.name}' has no range: perhaps "
                "they never end",
                variable.position,
                f"give it a range, such as  {variable.name} : [0..1000];",
            )
        if states * _STATE_BYTES + transitions * _TRANSITION_BYTES > memory:
            raise Complaint(
                f"{states:,} states with {transitions:,} transitions have been found, and there are more "
                "than this machine's memory holds",
                None,
                "a smaller instance of the model may fit",
            )


@complaining
def explore_until(
    program: Program,
    stop: Expression | None,
    parameters: Parameters | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    judge: Judge | None = None,
) -> tuple[ParametricMDP | IntervalMDP | ParametricCTMC | MarkovAutomaton, bool]:
    """The model in which states with `stop` only have a self-loop, and whether there are any.

    It ends where the judge has enough; what was not looked at has a self-loop. Without `stop` no judge is
    asked: only questions with a boundary speak of states by their variables alone.

    In continuous time all enabled commands compete: rates to the same successor add up; modules that move
    together multiply theirs, as in PRISM. A state in which nothing happens gets a self-loop with rate 1. What
    transitions earn becomes a reward per unit of time, Σ rate · reward, exact. In a Markov automaton rates
    stand beside each other where nothing is immediate.
    """
    if program.is_interval:
        return _explore_intervals(program, stop, progress, warn)
    table = PolynomialProbabilities(program.symbols, are_rates=program.type is ModelType.CTMC)
    search = Search.of(program, stop, table)
    domain = Parameters.unit_box(program.parameters) if parameters is None else parameters
    until = None if judge is None or stop is None or table.are_rates else FIRST_PART
    while run_search(search, progress, until):
        assert judge is not None and until is not None
        rows, seen = resolved(search.assembler.so_far(), table), search.assembler.rows_done
        model = _model_of(search, table, rows, domain, is_part=True)
        assert isinstance(model, ParametricMDP)
        rewards = [item.reward for each in program.rewards for item in each.items]
        positive = all(isinstance(one, Literal) and one.value >= 0 for one in rewards)
        if judge(ModelPart(model, np.arange(model.states) >= seen, positive)):
            warn_of(rows, search, warn)
            return model, True
        until *= PART_GROWTH
        del model, rows
    rows = resolved(search.assembler.finish(), table)
    built = _model_of(search, table, rows, domain, stop is not None)
    warn_of(rows, search, warn)
    return built, bool(rows.stopped.any())


def _explore_intervals(
    program: Program, stop: Expression | None, progress: Progress | None, warn: Warn | None
) -> tuple[IntervalMDP, bool]:
    intervals = IntervalProbabilities()
    search = Search.of(program, stop, intervals)
    run_search(search, progress)
    rows = search.assembler.finish()
    trees = find_factors(search, search.commands, rows, intervals, search.assembler.is_chain)
    warn_of(rows, search, warn)
    if warn is not None and (intervals.is_outer or trees is not None):
        warn(
            "commands with interval probabilities synchronise; P and R over paths use the factors, "
            "other properties the products of their bounds"
        )
    structure = structure_of(search, observe(search, rows, (), narrow=stop is not None), rows)
    lower, upper = intervals.lower(), intervals.upper()
    factored = None if trees is None else factored_rows(structure, trees, lower, upper)
    own = lower[rows.probability], upper[rows.probability]
    return IntervalMDP(structure, *own, factored=factored), bool(rows.stopped.any())


def _model_of(
    search: Search, table: PolynomialProbabilities, rows: ModelRows, domain: Parameters, is_part: bool
) -> ParametricMDP | ParametricCTMC | MarkovAutomaton:
    program = search.program
    if program.free:
        expressions, expression, domain = _split_free(program, table, rows, domain)
    else:
        expressions, expression = table.table.freeze(rows.probability)
    seen = observe(search, rows, domain.names, is_part, table.table if table.are_rates else None)
    structure = structure_of(search, seen, rows)
    check_table(program, structure, expressions, expression)
    if table.are_rates:
        return ParametricCTMC(structure, expression, expressions, domain, seen.per_time)
    if search.is_automaton:
        exact = expressions.exact_values(())
        if np.less(exact.numerator, 0).any():
            place = int(np.argmax(np.less(exact.numerator, 0)[expression]))
            choice = structure.choice_name(int(structure.transition_choice[place]))
            raise Complaint(f"{choice}: the number {exact[int(expression[place])]} is negative", None)
        return MarkovAutomaton.of_rates(structure, exact.take(expression.astype(np.int64)), rows.waiting)
    release(expression)
    return ParametricMDP.within_probabilities(structure, expression, expressions, domain)


def _split_free(
    program: Program, plain: PolynomialProbabilities, rows: ModelRows, parameters: Parameters
) -> tuple[Expressions, IndexArray, Parameters]:
    """Free commands written out: every choice has a distribution of its own, or that of a name."""
    commands, first = [], len(program.parameters)

    def refusing(updates: FreeUpdates) -> Callable[[str, str], NoReturn]:
        def refuse(message: str, hint: str) -> NoReturn:
            raise Complaint(message, updates.position, hint)

        return refuse

    for each in program.free:
        commands.append(FreeCommand(first, len(each.names) + 1, each.shared, refusing(each)))
        first += len(each.names)
    used, number = np.unique(rows.probability, return_inverse=True)
    functions = plain.table.functions(used.astype(np.int64))
    return split_commands(
        functions, number.astype(np.int32).reshape(-1), rows.transition_start, parameters, commands
    )


def resolved(rows: ModelRows, probabilities: PolynomialProbabilities) -> ModelRows:
    """The rows with entries of the table, less those whose terms cancel."""
    entry = probabilities.resolve()
    rows = replace(rows, probability=entry[rows.probability], mixed_rate=entry[rows.mixed_rate])
    cancelled = rows.probability == ZERO
    return without(rows, cancelled) if cancelled.any() else rows


def check_table(
    program: Program, structure: Structure, expressions: Expressions, expression: IndexArray
) -> None:
    """Complain about what commands make together where no double may stand for it, at one of them."""
    if (term := door.first_not_held(expressions.coefficient)) is None:
        return
    choice = int(structure.transition_choice[np.argmax(expression == expressions.row_of_term[term])])
    action = structure.action_names[structure.action_of_choice[choice]]
    commands = [command for module in program.modules for command in module.commands]
    named = [command for command in commands if (command.action or UNLABELLED) == action]
    raise Complaint(
        f"{structure.choice_name(choice)}, what commands do together: "
        f"{door.why_not(expressions.coefficient[term])}",
        (named or commands)[0].position,
    )


def with_shown_names(survey: Survey, rows: ModelRows) -> tuple[ModelRows, tuple[str, ...]]:
    """Actions as users see them: several that rewards tell apart may have one name."""
    shown = {one.action or UNLABELLED: one.name or UNLABELLED for one in survey.program.synchronisations}
    names = [shown.get(action, action) for action in survey.actions]
    if names == list(survey.actions):
        return rows, survey.actions
    distinct = list(dict.fromkeys([UNLABELLED, *names]))
    number = np.array([distinct.index(name) for name in names], dtype=np.int32)
    return replace(rows, action=number[rows.action]), tuple(distinct)


def structure_of(survey: Survey, seen: Observations, rows: ModelRows) -> Structure:
    program, (rows, actions) = survey.program, with_shown_names(survey, rows)
    release(rows.choice_start, rows.transition_start, rows.successor, rows.action)
    release(*seen.labels.values(), *seen.valuations.values())
    numbers = [reward for reward in seen.rewards.values() if not isinstance(reward, ParametricReward)]
    release(*(part for reward in numbers for part in (reward.state, reward.choice)))
    return Structure(
        rows.choice_start,
        rows.transition_start,
        rows.successor,
        tuple(range(len(program.initial_values))),
        rows.action,
        actions,
        seen.labels,
        seen.rewards,
        seen.valuations,
        declared_mdp=program.type in (ModelType.MDP, ModelType.POMDP, ModelType.MA),
        definitions=Definitions.of(program),
        **origin_in(program.source, program.file),
    )


def factored_rows(
    structure: Structure, trees: TreeRows, lower: FloatArray, upper: FloatArray
) -> FactoredRows:
    """The game of the trees; states in the middle of a step have one choice each."""
    more = len(trees.transition_start) - 1 - structure.choices
    game = Structure(
        np.append(structure.choice_start, structure.choices + np.arange(1, more + 1)),
        trees.transition_start,
        trees.successor,
        structure.initial_states,
    )
    number = trees.probability
    return FactoredRows(game, lower[number], upper[number], trees.layer_start)


def run_search(search: Search, progress: Progress | None, until: int | None = None) -> bool:
    """Look at states until none is new, or about `until` are known and some wait: whether that is so."""
    space, states, assembler, stop = search.space, search.states, search.assembler, search.stop
    relevance = Relevance(search.commands, space.ranges)
    deep = _Deep(search)
    limit = _ROWS
    memory = door.most_bytes()
    reported = time.monotonic()
    while assembler.rows_done < len(states):
        if not (
            assembler.are_rates or search.is_automaton
        ):  # there several commands compete in nearly every state
            deep.explore(len(states) - assembler.rows_done)
        search.check_size(memory)
        begin = assembler.rows_done
        if begin == len(states):
            break
        if until is not None and len(states) >= until:
            return True
        keys = states.keys[begin : begin + limit]
        frame = space.frame(keys)
        stopped = None if stop is None else frame.mask(stop.value(frame))
        going_on = None
        if stopped is not None and stopped.any():
            going_on = np.flatnonzero(~stopped)
            frame = frame.select(going_on)
        parts, actions, rated = [], [], []
        try:
            for group, relevant in relevance.groups(frame) if frame.size else ():
                result = group.alternatives(frame, relevant)
                if result is not None:
                    parts.append(result if going_on is None else replace(result, rows=going_on[result.rows]))
                    actions.append(group.action)
                    rated.append(group.has_rates)
        except TooWideError:
            limit = max(1, len(keys) // 2)
            continue
        outcomes = assembler.add(keys, parts, actions, stopped, rated if search.is_automaton else None)
        limit = max(1, min(_ROWS, _OUTCOMES * len(keys) // outcomes))
        if progress is not None and time.monotonic() - reported > _PROGRESS_SECONDS:
            progress(len(states), assembler.transitions)
            reported = time.monotonic()
    if progress is not None:
        progress(len(states), assembler.transitions)
    return False


class _Deep:
    """Lets narrow frames be explored state by state once there have been many in a row."""

    def __init__(self, search: Search):
        self._search = search
        self._one_by_one: NarrowSearch | None = None
        self._narrow = 0
        self._patience = _PATIENCE

    def explore(self, waiting: int) -> None:
        """Called before each frame with the number of states that wait."""
        self._narrow = self._narrow + 1 if waiting <= NARROW else 0
        if self._narrow <= self._patience or is_interpreting():
            return
        if self._one_by_one is None:
            with suppress(Untranslatable):
                search = self._search
                self._one_by_one = NarrowSearch(
                    search.space, search.commands, search.states, search.assembler, search.stop, search.most
                )
        if self._one_by_one is None or self._one_by_one.run() < _WORTH:
            self._narrow = 0
            self._patience *= 2


def warn_of(rows: ModelRows, search: Search, warn: Warn | None) -> None:
    for wrong, one, many in (
        (
            rows.deadlock.nonzero()[0],
            "state {} is a deadlock and was given a self-loop",
            "{} states are deadlocks, such as {}; each was given a self-loop",
        ),
        (
            [] if search.assembler.are_rates else sorted(set(rows.mixed_state.tolist())),
            "in state {} several commands of the Markov chain are enabled; each is taken equally likely",
            "in {} states, such as {}, several commands of the Markov chain are enabled; "
            "each is taken equally likely",
        ),
    ):
        if len(wrong) and warn is not None:
            key = search.states.keys[int(wrong[0])].reshape(1, -1)
            name = search.space.describe(search.space.layout.decode(key)[:, 0])
            warn(one.format(name) if len(wrong) == 1 else many.format(len(wrong), name))
