"""A model proposed from a log, with every assumption written down (docs/how-to/own-model.md).

Every observed state and action becomes a free row that also leads elsewhere (`Structure.elsewhere`), so the
same log may be learned from. Artificial states begin and end episodes where needed. Ties that a G² test does
not refute at `LEVEL` are comments, unless a part of the episodes chooses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency

from tightrope.data import columns as log_columns
from tightrope.data.columns import word
from tightrope.data.costs import Sums
from tightrope.data.counts import Counts
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.model_index import identifier
from tightrope.data.read_options import COMPLETE, LogReadOptions
from tightrope.data.reading import Reading, read_tables
from tightrope.data.rows import parse_maps, plain_text
from tightrope.errors import InputError, Location
from tightrope.io.table.columns import ArrowColumn, distinct
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.files import open_tables
from tightrope.learning.amendments import divide
from tightrope.model.expressions import tabulate
from tightrope.model.free import MOST_COORDINATES
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ELSEWHERE, END, START, ParametricReward, Structure, Structured
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.builders import RESERVED
from tightrope.provenance import NAMED
from tightrope.statistics.intervals import unseen_mass

FEW = 20
"""Rows with fewer visits are marked, and tied to nothing."""

LEVEL = 0.1
"""Rows are tied where equality is not refuted at this level."""

MOST_STATES = 2_000
MOST_CELLS = 20_000_000
MEANT = {
    "init": "its first state",
    "deadlock": "states that nothing leaves",
    **dict.fromkeys(ELSEWHERE, "what was never seen"),
}
_TAKEN = RESERVED | {"deadlock", "free"}


@dataclass(frozen=True)
class Tie:
    """Rows that share one distribution: which outcomes are the same (`shape`), and how well that fits."""

    name: str
    rows: tuple[str, ...]
    shape: str
    visits: int
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class Draft(Record):
    """A model in the PRISM language, and what it assumes.

    `rest` are the counts of the episodes that ties were not chosen on; None where all of them were used.
    `question` is a property that can be asked of it.
    """

    text: str
    states: int
    choices: int
    free: int
    ties: tuple[Tie, ...]
    assumptions: tuple[str, ...]
    question: str
    reading: Reading = field(repr=False)
    rest: Counts | None = field(default=None, repr=False)

    @cached_property
    def model(self) -> ParametricMDP:
        """The model that the text describes; it knows the log that it was drafted from."""
        model = load_prism_text(self.text)
        assert isinstance(model, ParametricMDP)
        return model

    def _title_(self) -> str:
        return f"Draft: {self.states} states, {self.choices} choices, {self.free} unconstrained distributions"

    def _facts_(self) -> Facts:
        ties = [("tie", f"{', '.join(tie.rows)} ({tie.shape})") for tie in self.ties]
        return [*ties, *(("assumed", line) for line in self.assumptions)]


def draft(
    data: Any, *, variables: Sequence[str] = (), select_on: float | None = None, seed: int = 0, **words: Any
) -> Draft:
    """Propose a model of what a log shows.

    Parameters
    ----------
    data
        A file, several, or a table.
    variables : sequence of str, optional
        The columns that make up a state, if no column holds whole states.
    select_on, seed : float, int, optional
        The share of the episodes that ties are chosen on; the others are `Draft.rest`. Without it ties are
        comments.
    **words
        As for `read_data`.

    Returns
    -------
    Draft
        The PRISM text and its sizes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> log = {"episode": [1, 1, 2], "state": ["idle", "busy", "idle"]}
    >>> found = draft(pa.table({**log, "next_state": ["busy", "done", "done"]}))
    >>> found.states, found.free  # what was never seen leads to two states more
    (5, 3)
    >>> next(line for line in found.text.split("\\n") if "state=1 ->" in line)
    "  [] state=1 -> free : (state'=2) + free : (state'=3) + free : (state'=4);"
    """
    options = LogReadOptions.of("draft", words, ("variables", "select_on", "seed"))
    return draft_tables(open_tables(data, options.format), options, variables, select_on, seed)


def draft_tables(
    tables: Sequence[DataTable],
    options: LogReadOptions,
    variables: Sequence[str],
    select_on: float | None,
    seed: int,
) -> Draft:
    """The same of tables that are open."""
    if not tables:
        raise InputError("there is no data")
    seen = _Seen.of(tables, variables, options)
    reading = read_tables(tables, seen, options)
    drafting = _Drafting(
        seen.called(reading.counts.names), reading, options.ends == COMPLETE, select_on, seed
    )
    drafted = drafting.draft()
    if drafting.chosen is None:
        return drafted
    counts = read_tables(tables, drafted.model, replace(options, observers=())).counts
    assert counts.log is not None
    return replace(drafted, rest=counts.log().subset(~drafting.chosen).counts(drafted.model, counts.design))


@dataclass(frozen=True)
class _Seen(Structured):
    """All states and actions of a log, as a structure in which everything may follow everything."""

    names: Mapping[str, Mapping[int, str]]
    """What the log calls the values of variables that are no numbers."""
    structure: Structure

    def hash(self) -> str:
        return "drafted"

    @staticmethod
    def of(tables: Sequence[DataTable], variables: Sequence[str], options: LogReadOptions) -> _Seen:
        words, state, after, action = _find(tables[0], variables, options.columns)
        meaning = parse_maps(options.maps, words)

        def mapped(role: str, column: ArrowColumn) -> ArrowColumn:
            known = role in meaning
            return meaning[role].apply(column, np.zeros(len(column), np.int8)) if known else column

        values: list[dict[str, int]] = [{} for _ in state]
        actions: dict[str, None] = {}
        joint: set[tuple[int, ...]] = set()
        for table in tables:
            for chunk in table.chunks([*state, *after, *([action] if action else [])], lambda: None):
                for names in (state, after) if after else (state,):
                    cells = (mapped(w, chunk.columns[name]) for w, name in zip(words, names, strict=True))
                    joint |= _joint(list(cells), values)
                    if len(joint) > MOST_STATES:
                        raise _too_many(table, state)
                if action:
                    listed = distinct(mapped(log_columns.ACTION, chunk.columns[action]))[0]
                    actions |= dict.fromkeys(filter(None, map(plain_text, listed)))
        if not joint:
            raise InputError("the log has no row with a state", Location(tables[0].path))
        texts: dict[str, dict[int, str]] = {}
        meanings: list[dict[int, int]] = []
        for name, each in zip(words, values, strict=True):
            numbers = {text: _number(text) for text in each if _is_number(text)}
            _refuse_alike(tables[0], name, list(each))
            free = count(max(numbers.values(), default=-1) + 1)
            value_of = {text: numbers[text] if text in numbers else next(free) for text in each}
            meanings.append({code: value_of[text] for text, code in each.items()})
            if len(numbers) < len(each):
                texts[name] = {value: text for text, value in value_of.items()}
        states = sorted({tuple(m[c] for m, c in zip(meanings, codes, strict=True)) for codes in joint})
        return _Seen(texts, _complete(tables[0], states, words, texts, list(actions)))

    def called(self, names: Mapping[str, Mapping[str, str]]) -> _Seen:
        """The same with the texts that were mapped to values, where all are different labels."""
        mapped = {v: {int(k): text for k, text in texts.items()} for v, texts in names.items()}
        whole = {**mapped, **self.names}
        listed = [_word(text) for texts in whole.values() for text in texts.values()]
        return replace(self, names=whole) if len(set(listed)) == len(listed) else self

    def values(self, state: int) -> dict[str, int]:
        """The values of the variables."""
        return {name: int(column[state]) for name, column in self.structure.valuations.items()}

    def state_text(self, state: int) -> str:
        """A state as the log calls it."""
        parts, values = [], self.values(state)
        for variable, value in values.items():
            text = self.names.get(variable, {}).get(value, str(value))
            text = "".join(one if one.isprintable() else " " for one in text)  # it stands in comments
            parts.append(text if len(values) == 1 and variable in self.names else f"{variable}={text}")
        return ", ".join(parts)


def _find(
    table: DataTable, variables: Sequence[str], columns: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str | None]:
    """The model's variables, and the columns of states, next states and actions."""
    named = [] if columns is None else [key.rstrip("'") for key in log_columns.column_entries(columns)]
    own = [key for key in dict.fromkeys(named) if key not in log_columns.ROLES and _variable(key) == key]
    variables = [*variables, *(key for key in own if key not in map(_variable, variables))]
    given = log_columns.parse_columns(columns, [*own, *variables])
    finder = log_columns.ColumnFinder(table.path, table.names, variables, given)
    action = finder.role(log_columns.ACTION)
    if log_columns.CHOICE in table.names and log_columns.CHOICE not in given and action != log_columns.CHOICE:
        raise InputError(
            "the column 'choice' numbers the choices of a model, and there is no model yet",
            Location(table.path),
            'leave it out: `columns="choice="`'
            if action
            else 'if it names actions: `columns="action=choice"`',
        )
    if not variables and (whole := finder.role(log_columns.STATE)) is not None:
        after = finder.next_state(whole)
        word = (
            log_columns.STATE
            if log_columns.STATE in given or log_columns.NEXT_STATE in given
            else _variable(whole)
        )
        return (word,), (whole,), () if after is None else (after,), action
    found = tuple(variables) or tuple(
        name
        for name in table.names
        if any(log_columns.is_name_of_next(other, name) for other in table.names if other != name)
    )
    if not found:
        raise InputError(
            "no column of states was found",
            Location(table.path),
            'name it with `columns="state=…"`, or the columns that make it up with `variables`; the file has '
            f"the columns {', '.join(table.names)}",
        )
    words = tuple(map(_variable, found))
    keys = [word if word in given else name for word, name in zip(words, found, strict=True)]
    there: list[str] = []
    for name, key in zip(found, keys, strict=True):
        if (column := finder.variable(key)) is None:
            raise InputError(f"`variables` names '{name}', and there is no such column", Location(table.path))
        there.append(column)
    pairs = zip(words, keys, strict=True)
    nexts = [finder.next_variable(word if f"{word}'" in given else key) for word, key in pairs]
    if None in nexts and any(nexts):
        missing = found[nexts.index(None)]
        raise InputError(f"the next value of '{missing}' is missing, others are there", Location(table.path))
    return words, tuple(there), tuple(name for name in nexts if name is not None), action


def _joint(columns: Sequence[ArrowColumn], values: Sequence[dict[str, int]]) -> set[tuple[int, ...]]:
    """The combinations of values in some columns, whose texts are numbered as they come."""
    codes = []
    for column, number in zip(columns, values, strict=True):
        listed, code = distinct(column)
        places = [number.setdefault(text, len(number)) if (text := plain_text(v)) else -1 for v in listed]
        codes.append(np.array([*places, -1])[code])
    rows = np.unique(np.stack(codes, axis=1), axis=0) if len(codes[0]) else np.empty((0, len(codes)))
    return {tuple(row) for row in rows.astype(int).tolist() if min(row) >= 0}


def _is_number(text: str) -> bool:
    """Whether readers of logs take a text for a whole number."""
    if text.lower() in ("true", "false"):
        return True
    return (
        re.fullmatch(r"[-+]?[0-9]+(\.0*)?([eE][-+]?[0-9]{1,2})?", text) is not None
        and Fraction(text) % 1 == 0
    )


def _number(text: str) -> int:
    return int(text.lower() == "true") if text.lower() in ("true", "false") else int(Fraction(text))


def _word(text: str) -> str:
    """The label or action that stands for a text."""
    return identifier(text) + ("_" if identifier(text) in _TAKEN else "")


def _variable(column: str) -> str:
    name = word(column)
    return _word(name) if name != column else _word(column)


def _too_many(table: DataTable, state: tuple[str, ...]) -> InputError:
    return InputError(
        f"the log has more than {MOST_STATES:,} different states in {', '.join(state)}",
        Location(table.path),
        "a drafted model has a row for each: name a coarser column, or fewer `variables`",
    )


def _complete(
    table: DataTable,
    states: Sequence[tuple[int, ...]],
    variables: Sequence[str],
    texts: Mapping[str, Mapping[int, str]],
    actions: Sequence[str],
) -> Structure:
    """Every action in every state may lead to every state, at an unknown cost."""
    size, choices = len(states), max(len(actions), 1) * len(states)
    if size * choices > MOST_CELLS:
        raise _too_many(table, tuple(variables))
    columns = dict(zip(variables, np.array(states, dtype=np.int64).T, strict=True))
    labels: dict[str, BoolArray] = {}
    for variable, names in texts.items():
        for value, text in names.items():
            _refuse_same(table, text, _word(text), labels)
            labels[_word(text)] = columns[variable] == value
    words: dict[str, str] = {}
    for action in actions:
        _refuse_same(table, action, _word(action), words)
        words[_word(action)] = action
    unknown, _ = tabulate(["cost"], Parameters.box(cost=(0, 1)).symbols())
    return Structure(
        np.arange(size + 1) * (choices // size),
        np.arange(choices + 1) * size,
        np.tile(np.arange(size), choices),
        action=np.tile(np.arange(choices // size), size),
        action_names=tuple(words) or ("",),
        labels=labels,
        rewards={"cost": ParametricReward("cost", unknown, np.zeros(choices, np.int32))},
        valuations=columns,
        declared_mdp=bool(actions),
    )


def _refuse_alike(table: DataTable, variable: str, texts: Sequence[str]) -> None:
    """Refuse two texts for one number, and names that already mean something to who reads logs."""
    numbers: dict[int, str] = {}
    for text in texts:
        others = ", ".join(f"{one}={one}" for one in texts if one != text)
        hint = f"call it otherwise, and map all values: `maps='{variable}: {text}=s_{len(texts)}, {others}'`"
        if _is_number(text):
            if (other := numbers.setdefault(_number(text), text)) != text:
                raise InputError(
                    f"'{other}' and '{text}' are one number, and may be two states",
                    Location(table.path),
                    "write states as names (s01), or each number in one way",
                )
            continue
        meant = MEANT.get(text.lower())
        if meant or re.search("[A-Za-z0-9]", text) is None:
            why = f"which is what every model calls {meant}" if meant else "without letters a to z and digits"
            raise InputError(f"a state is called '{text}', {why}", Location(table.path), hint)


def _refuse_same(table: DataTable, text: str, name: str, others: Iterable[str]) -> None:
    if name in others:
        raise InputError(
            f"'{text}' and another name of the log become the same identifier '{name}'",
            Location(table.path),
            "write them apart in the log",
        )


@dataclass(frozen=True)
class _Row:
    """One state and action that was seen: its successors, and how often each came."""

    choice: int
    state: int
    action: str
    successors: tuple[int, ...]
    seen: tuple[int, ...]

    @property
    def visits(self) -> int:
        return sum(self.seen)

    @property
    def unseen(self) -> float:
        """What all others have together at most, with confidence 0.95."""
        return unseen_mass(self.visits, len(self.seen), 0.05)


def _equal(rows: Sequence[OffsetArray]) -> float:
    """The p-value of a G² test that rows of counts come from one distribution."""
    table = np.array(rows)
    test = chi2_contingency(table[:, table.any(axis=0)], correction=False, lambda_="log-likelihood")
    return float(test.pvalue)


def _guard(values: Mapping[str, int]) -> str:
    return " & ".join(f"{name}={value}" for name, value in values.items())


STEPS, TARGETS, STAYING, SIZES = SHAPES = (
    "the same steps",
    "the same successors",
    "stay or go",
    "two outcomes, the more frequent first",
)
Ties = list[tuple[Tie, dict[int, tuple[int, ...]]]]
Active = Mapping[int, tuple[str, tuple[int, ...]]]
"""Ties with the numbers of their rows, and the order of the successors of each."""


class _Drafting:
    """Writes the model of one log."""

    def __init__(self, seen: _Seen, reading: Reading, complete: bool, select_on: float | None, seed: int):
        self.seen, self.reading, self.structure, self.complete = seen, reading, seen.structure, complete
        self.log: EpisodeLog | None = None if reading.counts.log is None else reading.counts.log()
        self.rows = self._rows(reading.counts.transition)
        if not self.rows:
            raise InputError("the log has no step from a state to the next")
        self.left = {row.state for row in self.rows}
        self.closed = [s for s in range(self.structure.states) if s not in self.left]
        self.starts = self._begin()
        self.ends, self.open_ones = self._end()
        size = sum(len(row.successors) + 2 for row in self.rows) + len(self.starts)
        self.covers = size + 2 * self.structure.states < MOST_COORDINATES
        self.added = self._added()
        self.chosen: BoolArray | None = None
        if select_on is not None:
            if self.log is None:
                raise InputError("a table of counts has no episodes to choose ties on")
            if self.log.rows_left_out or self.log.episodes < 2:
                raise InputError(
                    f"`select_on` divides the episodes of a log, and there are {self.log.episodes:,}"
                    + (f" and {self.log.rows_left_out:,} rows more" if self.log.rows_left_out else ""),
                    hint="leave `select_on` out, or give a part of the log",
                )
            self.chosen, _ = divide(self.log.episodes, select_on, seed, "episodes")

    def _rows(self, counts: OffsetArray) -> list[_Row]:
        structure, rows = self.structure, list[_Row]()
        for choice in np.unique(structure.transition_choice[counts > 0]).tolist():
            first, last = structure.transition_start[choice], structure.transition_start[choice + 1]
            places = first + np.flatnonzero(counts[first:last])
            state = int(structure.choice_state[choice])
            reached = tuple(structure.successor[places].tolist())
            rows.append(
                _Row(choice, state, structure.action_name(choice), reached, tuple(counts[places].tolist()))
            )
        return rows

    def _begin(self) -> dict[int, int]:
        """How often episodes begin in each state."""
        if self.log is None or not len(self.log):
            return {}
        state, number = np.unique(self.log.state(self.structure)[self.log.begins], return_counts=True)
        return dict(zip(state.tolist(), number.tolist(), strict=True))

    def _end(self) -> tuple[dict[int, int], int]:
        """How often episodes are over in each state, and how many stop where others go on, and are not."""
        if self.log is None or not len(self.log):
            return {}, 0
        episode, last = np.unique(self.log.episode[::-1], return_index=True)
        final = self.structure.successor[self.log.transition[len(self.log) - 1 - last]]
        left = np.isin(final, list(self.left))
        over = self.log.over[episode] | self.complete
        if self.structure.declared_mdp:  # what was done last is not known, and so has no outcome
            over &= ~left
        state, number = np.unique(final[over], return_counts=True)
        return dict(zip(state.tolist(), number.tolist(), strict=True)), int((left & ~over).sum())

    def _added(self) -> dict[str, dict[str, int]]:
        """The artificial states by what they are: values beyond the range of the first variable."""
        is_there = {
            START: len(self.starts) > 1,
            END: bool(self.ends),
            **dict.fromkeys(ELSEWHERE, self.covers),
        }
        columns = self.structure.valuations
        lowest = {name: int(column.min()) for name, column in columns.items()}
        first = next(iter(columns))
        names, beyond = [name for name, used in is_there.items() if used], int(columns[first].max()) + 1
        return {name: {**lowest, first: beyond + number} for number, name in enumerate(names)}

    # --- ties ------------------------------------------------------------------------------

    def ties(self) -> Ties:
        """Ties with the numbers of their rows, and the order of the successors of each."""
        counts = self.reading.counts.transition
        if self.chosen is not None and self.log is not None:
            counts = np.bincount(self.log.subset(self.chosen).transition, minlength=len(counts))
        result: Ties = []
        done: set[int] = set()
        for text in SHAPES:
            groups: dict[object, list[tuple[int, tuple[int, ...]]]] = {}
            for number, row in enumerate(self.rows):
                places = row.choice * self.structure.states + np.array(row.successors)
                is_few = counts[places].sum() < FEW
                if number in done or len(row.successors) < 2 or row.state in self.ends or is_few:
                    continue
                ordered = self._shape(text, row, counts[places])
                if ordered is not None:
                    groups.setdefault(ordered[0], []).append((number, ordered[1]))
            for group in groups.values():
                for members, p_value in self._clusters(group, counts):
                    rows = [self.rows[number] for number in members]
                    name, visits = f"tie{len(result) + 1}", sum(row.visits for row in rows)
                    texts = tuple(self._row_text(row) for row in rows)
                    result.append((Tie(name, texts, text, visits, p_value), members))
                    done |= set(members)
        return result

    def _clusters(
        self, group: Sequence[tuple[int, tuple[int, ...]]], counts: OffsetArray
    ) -> list[tuple[dict[int, tuple[int, ...]], float]]:
        """Rows that are not refuted to be equal: each joins where it fits best, the most visited first."""
        size = self.structure.states
        table = {n: counts[self.rows[n].choice * size + np.array(order)] for n, order in group}
        clusters: list[list[int]] = []
        for number in sorted(table, key=lambda n: -int(table[n].sum())):
            fits = [_equal([table[other] for other in (*cluster, number)]) for cluster in clusters]
            best = max(range(len(fits)), key=fits.__getitem__, default=None)
            if best is None or fits[best] < LEVEL:
                clusters.append([number])
            else:
                clusters[best].append(number)
        orders = dict(group)
        return [
            ({n: orders[n] for n in sorted(cluster)}, _equal([table[n] for n in cluster]))
            for cluster in clusters
            if len(cluster) > 1
        ]

    def _shape(self, shape: str, row: _Row, seen: OffsetArray) -> tuple[object, tuple[int, ...]] | None:
        """What rows of one shape have in common, and the order of this one's successors; None: it has not."""
        successors, two = row.successors, len(row.successors) == 2
        if shape == STEPS and not self.seen.names:
            columns = np.stack(list(self.structure.valuations.values()), axis=1)
            steps = {s: tuple((columns[s] - columns[row.state]).tolist()) for s in successors}
            return (row.action, *sorted(steps.values())), tuple(sorted(steps, key=steps.__getitem__))
        if shape == TARGETS:
            return successors, successors
        if shape == STAYING and two and row.state in successors:
            return row.action, tuple(sorted(successors, key=lambda s: s != row.state))
        if shape == SIZES and two:
            return row.action, successors if seen[0] >= seen[1] else successors[::-1]
        return None

    # --- text ------------------------------------------------------------------------------

    def draft(self) -> Draft:
        """All of it."""
        ties = self.ties()
        used = [] if self.chosen is None else ties
        active: Active = {n: (tie.name, order) for tie, members in used for n, order in members.items()}
        assumptions = self._assumptions(ties)
        outcomes = [len(row.successors) + (row.state in self.ends) for row in self.rows] + [1] * len(
            self.closed
        )
        free = sum(number + 2 * self.covers > 1 for number in outcomes) + (START in self.added)
        choices, states = len(outcomes) + len(self.added), self.structure.states + len(self.added)
        text = "\n".join(self._lines(ties, active, assumptions))
        found = tuple(tie for tie, _ in ties)
        last = self.seen.values(self.closed[0] if self.closed else self.rows[-1].state)
        names = self.seen.names.get(next(iter(last)), {}) if len(last) == 1 else {}
        target = f'"{_word(names[next(iter(last.values()))])}"' if names else _guard(last)
        question = f"P{'max' if self.structure.declared_mdp else ''}=? [ F {target} ]"
        return Draft(text, states, choices, free, found, tuple(assumptions), question, self.reading)

    def _assumptions(self, ties: Ties) -> list[str]:
        least = max(self.rows, key=lambda row: row.unseen)
        mass = f"at most {least.unseen:.2g} at {self._row_text(least)} ({least.visits:,} visits)"
        lines = [
            f"unseen outcomes are possible, with probability {mass}, confidence 0.95 each"
            if self.covers
            else f"unseen outcomes are impossible (their probability is {mass}, confidence 0.95 each): "
            "the model is too large for an additional outcome in each row",
            "the next state depends on state and action alone, not on history, unit or time "
            "('tightrope doctor' tests it)",
        ]
        unused = () if self.log is None else tuple(self.log.columns)
        if unused:
            several = len(unused) > 1
            verb = "do" if several else "does"
            lines.append(f"the column{'s' * several} {', '.join(unused)} {verb} not matter")
        if self.reading.counts.costs is not None:
            lines.append(
                "the mean cost of a step depends on state and action alone, no cost is certain: the means "
                "are parameters, for 'learn --cost-range LOW,HIGH --param mean_cost_0=LOW:HIGH,…', once the "
                "outcomes to elsewhere are deleted"
            )
        few = [row for row in self.rows if row.visits < FEW]
        if few:
            lines.append(f"{len(few)} of {len(self.rows)} rows have fewer than {FEW} visits, marked FEW")
        if self.closed:
            more = "; …" if len(self.closed) > 8 else ""
            names = "; ".join(map(self.seen.state_text, self.closed[:8])) + more
            unknown = "the next state is unknown" if self.covers else "the process stays there"
            lines.append(f"no row leaves {names}: if an episode continues, {unknown}")
        if self.structure.declared_mdp:
            lines.append("unseen actions are not in the model")
        if len(self.starts) == 1:
            lines.append(f"the answer is about episodes that begin in {self.seen.state_text(self._first)}")
        if not self.starts:
            lines.append("a table of counts does not show initial states: the first state is a guess")
        elif len(self.starts) > 1:
            lines.append(f"episodes begin in one of {len(self.starts)} states, drawn from one distribution")
        if self.ends:
            number = sum(self.ends.values())
            lines.append(f"{number:,} episodes are over at their last row and go to an end state")
        design = self.reading.counts.design
        if self.log is not None and (short := (design.episodes or 0) - self.log.episodes) > 0:
            lines.append(f"{short:,} episodes with a single row are excluded")
        if self.open_ones:
            lines.append(
                f"{self.open_ones:,} episodes stop in states that other episodes leave, for unknown reasons "
                "(--ends complete states that they are over)"
            )
        if not design.order.holds:
            lines.append(f"{design.order.name}: {design.order.why}")
        if not ties:
            return lines
        if self.chosen is not None:
            return [
                *lines,
                f"ties were chosen on {self.chosen.sum():,} episodes: learn from the others alone",
            ]
        why = "ties are comments: the same data cannot choose and certify them"
        return [*lines, f"{why}; --select-on 0.5 chooses them on half of the episodes and keeps the rest"]

    def _lines(self, ties: Ties, active: Active, assumptions: Sequence[str]) -> Iterator[str]:
        reading, structure = self.reading, self.structure
        episodes = reading.counts.design.episodes
        number = "" if episodes is None else f" of {episodes:,} episodes"
        yield f"// Drafted by tightrope from {', '.join(reading.files[:3])}: {reading.rows:,} rows{number}."
        for line in reading.read_as:
            yield f"// read as: {line}"
        for line in assumptions:
            yield f"// ASSUMED: {line}"
        yield "mdp" if structure.declared_mdp else "dtmc"
        yield ""
        yield "module drafted"
        added, more = self.added, len(self.added)
        initial = added.get(START) or self.seen.values(self._first)
        for variable, column in structure.valuations.items():
            yield f"  {variable} : [{column.min()}..{int(column.max()) + more}] init {initial[variable]};"
            more = 0  # artificial states differ in the first variable
        if START in added:
            shown = ", ".join(f"{self.seen.state_text(s)} {n:,}" for s, n in self.starts.items())
            yield f"  // where episodes begin: {shown}"
            yield f"  [{START}] {_guard(added[START])} -> {self._free(self.starts)};"
        for place, row in enumerate(self.rows):
            yield from self._row_lines(place, row, active)
        for state in self.closed:
            over = f", {self.ends[state]:,} episodes were over there" if state in self.ends else ""
            yield f"  // {self.seen.state_text(state)}: nothing was seen to leave it{over}"
            there = [END] if over else [state]
            yield f"  [] {_guard(self.seen.values(state))} -> {self._free(there)};"
        missed, reached = ELSEWHERE
        where = "elsewhere, where a property's target is"
        notes = {END: "the end of episodes", missed: f"{where} missed", reached: f"{where} reached"}
        for name in filter(notes.get, added):
            yield f"  [] {_guard(added[name])} -> true; // {notes[name]}"
        yield "endmodule"
        yield ""
        if (costs := reading.counts.costs) is not None:
            yield from self._cost_lines(costs.of)
        for variable, names in self.seen.names.items():
            for value, text in names.items():
                yield f'label "{_word(text)}" = {variable}={value};'
        for name, values in added.items():
            yield f'label "{self._label(name)}" = {_guard(values)};'
        for tie, members in ties:
            yield f"// TIE {tie.name}, {tie.shape}, p-value {tie.p_value:.2g}: {'; '.join(tie.rows)}"
            if self.chosen is None:
                for place, order in members.items():
                    yield f"//   {self._command(self.rows[place], order, tie.name)}"
        yield reading.counts.provenance.comment(NAMED)
        if active and self.chosen is not None and self.log is not None:
            yield self.log.subset(self.chosen).provenance(structure).comment()
        yield ""

    def _row_lines(self, place: int, row: _Row, active: Active) -> Iterator[str]:
        listed = sorted(zip(row.seen, row.successors, strict=True), reverse=True)
        shown = ", ".join(f"{self.seen.state_text(s)} {n:,}" for n, s in listed)
        if ends := self.ends.get(row.state):
            shown += f", the episode was over {ends:,} times"
        few = "FEW: " if row.visits < FEW else ""
        other = f"; all others at most {row.unseen:.2g}"
        yield f"  // {few}{self._row_text(row)}: {row.visits:,} visits: {shown}{other}"
        name, order = active.get(place, ("", row.successors))
        yield f"  {self._command(row, order, name)}"

    def _cost_lines(self, costs: Mapping[int, Sums]) -> Iterator[str]:
        """The mean cost of every row as a parameter, with the observed ones as comments."""
        yield from (f"const double mean_cost_{place};" for place in range(len(self.rows)))
        yield 'rewards "cost"'
        for place, row in enumerate(self.rows):
            seen = (costs[row.choice * self.structure.states + after] for after in row.successors)
            number, total, square = (sum(part) for part in zip(*seen, strict=True))
            mean, variance = total / number, square / number - (total / number) ** 2
            shown = f"mean {float(mean):.4g}, standard deviation {float(variance) ** 0.5:.2g}"
            shown = shown if variance else f"{float(mean):.6g} at every visit"
            guard = _guard(self.seen.values(row.state))
            yield f"  [{row.action}] {guard} : mean_cost_{place}; // {self._row_text(row)}: {shown}"
        yield "endrewards"
        yield ""

    def _command(self, row: _Row, order: Sequence[int], name: str) -> str:
        there: list[int | str] = [*order]
        there += [END] if row.state in self.ends else []
        return f"[{row.action}] {_guard(self.seen.values(row.state))} -> {self._free(there, name)};"

    def _free(self, there: Iterable[int | str], name: str = "") -> str:
        """The outcomes of a row, artificial ones by name, and those elsewhere."""
        every = [*there, *(one for one in ELSEWHERE if one in self.added)]
        values = [self.added[one] if isinstance(one, str) else self.seen.values(one) for one in every]
        updates = ["&".join(f"({n}'={v})" for n, v in each.items()) for each in values]
        word = f'free("{name}")' if name else "free"
        return updates[0] if len(updates) == 1 else " + ".join(f"{word} : {update}" for update in updates)

    def _row_text(self, row: _Row) -> str:
        return self.seen.state_text(row.state) + (f" / {row.action}" if row.action else "")

    @property
    def _first(self) -> int:
        """The state that is initial where there is one."""
        return next(iter(self.starts), self.rows[0].state)

    def _label(self, name: str) -> str:
        labels = {_word(text) for names in self.seen.names.values() for text in names.values()}
        while name in labels:
            name += "_"
        return name
