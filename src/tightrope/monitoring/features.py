"""What the outcome of a row could depend on although the model excludes it: features.

A feature has one value per row, known before the outcome, from 0 on, or −1 for none. Names are stable:
`prev`, `prev2`, `action`, `revisit`, `seen:STATE`, `since-entry`, `since-start`, `last`, `recent`,
`column:NAME`, `unit:NAME`, `drift`, `tie`. Unless `LogColumn.is_known` states that a column was written
before outcomes, one that changes within episodes counts from the row before, and its evidence refutes nothing
alone. A column that (almost) equals the outcome is excluded, which only lowers evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import dyadic
from tightrope.data.free_columns import LogColumn, by_appearance
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.urns import first_rows
from tightrope.numerics.arrays import AnyArray, BoolArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel

PREFIX = 256
"""Rows by which numbers are divided into bins."""

RECENT = 16
"""Visits of a choice that `recent` looks back."""

FEW = 12
"""Different numbers that are taken as they are, and words that are values rather than units."""

MOST_SEEN = 16
"""States whose having been seen before is looked at: those that come first in the log."""

GLANCE = 20_000
"""Rows by which it is judged whether a column tells the outcome."""

MEMORY = {
    "prev": (0.3, "the state before"),
    "revisit": (0.1, "whether the state was visited before in the episode"),
    "since-start": (0.1, "the number of steps since the episode began"),
    "since-entry": (0.1, "the number of steps since the state was entered"),
    "action": (0.1, "the action before"),
    "prev2": (0.05, "the two states before"),
}
SEEN = 0.25
"""How the share of memory is divided; that of `seen` among states by their rank."""

SERIAL = {
    "last": "how it came out the last time, also in other episodes",
    "recent": "how it came out the last 16 times, also in other episodes",
}
TIE = "the choice, though the model says that several have one distribution"

EPISODE = "episode"

AS_LABELS = 0.75
"""The part of a column's weight that is for its values as they are; the rest is for bins of numbers."""


@dataclass(frozen=True)
class Feature:
    """A name, what kind of departure it shows, in words, and its part of the share of that kind; whether it
    is known that its value comes before the outcome."""

    name: str
    kind: str
    words: str
    weight: float = 1.0
    is_stated: bool = True


def list_features(model: ParametricMDP, log: EpisodeLog) -> tuple[Feature, ...]:
    """The features of a log; what parts they have follows from the model and the names of columns alone."""
    structure, columns = model.structure, log.columns
    result = [
        Feature(name, "memory", words, part)
        for name, (part, words) in MEMORY.items()
        if name != "action" or structure.has_choices
    ]
    whole = sum(1.0 / (rank + 1) for rank in range(min(MOST_SEEN, model.states)))
    for rank, state in enumerate(first_states(model, log)):
        name, part = structure.state_name(state), SEEN / (rank + 1) / whole
        result.append(
            Feature(f"seen:{name}", "memory", f"whether {name} was seen before in the episode", part)
        )

    def add(kind: str, name: str, words: str, weight: float) -> None:
        column = columns.get(name)
        is_known = column is None or column.is_known
        result.append(Feature(f"{kind}:{name}", kind, words, weight if is_known else 0.5 * weight, is_known))

    for name, column in columns.items():
        part = 1.0 - AS_LABELS if has_bins(column) else AS_LABELS
        add("column", name, f"column '{name}'", part / len(columns))
    words = [name for name, one in columns.items() if one.values is None and len(one.labels) > FEW]
    for name in [*([EPISODE] if log.episodes > 1 else []), *words]:
        add("unit", name, f"the unit: {name}s differ", 1.0 / (1 + len(columns)))
    seen = np.bincount(log.transition, minlength=structure.transitions)
    visits = np.bincount(structure.transition_choice, seen)[structure.transition_choice]
    surprise = -xlogy(seen, seen / np.maximum(visits, 1.0)).sum() / max(len(log), 1)
    is_drawn = log.time is not None or is_varied(log.transition, float(surprise))
    serial = [Feature(name, "serial", words, 0.5) for name, words in SERIAL.items() if is_drawn]
    return (*result, *serial, Feature("tie", "tie", TIE))


def is_varied(kind: AnyArray, surprise: float) -> bool:
    """Whether no long sequence recurs, so that this was drawn, not written by a rule; `surprise` is the mean
    of −log p of each."""
    size = len(kind)
    length = int(3.0 * math.log(max(size, 1)) / max(surprise, 1e-3)) + 1
    if size < 2 * length:
        return False
    factor = np.cumprod(np.full(size, 1_000_003, np.uint64))  # modulo 2^64
    total = np.cumsum((kind.astype(np.uint64) + np.uint64(1)) * factor)
    total = (total[length - 1 :] - np.r_[np.uint64(0), total[:-length]]) * factor[::-1][length - 1 :]
    return 2 * len(np.unique(total)) > len(total)


def has_bins(column: LogColumn) -> bool:
    """Whether a column of numbers has many of them, as far as its beginning says."""
    return column.values is not None and len(np.unique(column.code[:PREFIX])) > FEW


def is_key(feature: str, log: EpisodeLog) -> bool:
    """Whether a feature is a column that is constant within episodes, whose values may stand in order."""
    name = feature.partition(":")[2]
    return name in log.columns and np.array_equal(log.columns[name].code, log.by_unit(name)[log.episode])


def codes(feature: str, model: ParametricMDP, log: EpisodeLog) -> IndexArray:
    """The value of a feature at every row, −1 where it has none."""
    name, _, rest = feature.partition(":")
    if name in ("column", "unit") and rest in log.columns:
        column = log.columns[rest]
        code = _binned(column) if name == "column" and has_bins(column) else column.code
        begins = log.previous < 0
        if column.is_known or np.all(begins | (column.code[log.previous] == column.code)):
            return code
        return _before(log, code)
    if name == "unit" and rest == EPISODE:
        return log.episode
    if name == "tie":
        return log.choice(model.structure).astype(np.int32)
    if name in ("last", "recent"):
        return _earlier_outcomes(model, log, name == "recent")
    state = log.state(model.structure).astype(np.int32)
    before = _before(log, state)
    if name == "prev":
        return before
    if name == "prev2":
        older = _before(log, before).astype(np.int64)
        pair = np.where(before >= 0, (older + 1) * model.states + before, -1)
        return by_appearance(pair)[1]
    if name == "action":
        return _before(log, model.structure.action_of_choice[log.choice(model.structure)])
    if name in ("since-start", "since-entry", "revisit"):
        steps, entry = _durations(read_only(log.previous), state)
        if name == "revisit":
            visit = log.episode * np.int64(model.states) + state
            if log.episodes * model.states > 8 * len(log) + 64:
                visit = np.unique(visit, return_inverse=True)[1]
            earlier: BoolArray = first_rows(visit, int(visit.max(initial=0)) + 1)[visit] < entry
            return earlier.astype(np.int32)
        return dyadic(steps if name == "since-start" else steps - steps[entry]).astype(np.int32)
    if name == "seen":
        names = {model.structure.state_name(one): one for one in first_states(model, log)}
        if rest in names:
            episode = np.where(state == names[rest], log.episode, log.episodes)
            seen_at = first_rows(episode, log.episodes + 1)[log.episode]
            return (seen_at < np.arange(len(log))).astype(np.int32)
    raise InputError(f"a log has no feature '{feature}'", hint="prev, seen:STATE, column:NAME, unit:NAME, …")


def _before(log: EpisodeLog, code: IndexArray) -> IndexArray:
    """What the row before has, −1 where none is."""
    return np.where(log.previous >= 0, code[log.previous], -1).astype(np.int32)


def value_name(
    feature: str,
    model: ParametricMDP,
    value: int,
    log: EpisodeLog | None = None,
    code: IndexArray | None = None,
) -> str:
    """A value of a feature in words: by `log` and its codes where these are at hand."""
    name, _, rest = feature.partition(":")
    structure = model.structure
    if value < 0:
        return "beginning of an episode" if name in ("prev", "prev2", "action") else "nothing there"
    if name == "tie":
        return "as others"
    if name in ("prev", "last"):
        return f"after {structure.state_name(value)}{' the last time' if name == 'last' else ''}"
    if name == "prev2" and log is not None and code is not None:
        first = int(log.previous[int(np.argmax(code == value))])
        older = int(log.previous[first])
        state = log.state(structure)
        begin = "the beginning" if older < 0 else structure.state_name(int(state[older]))
        return f"after {begin}, {structure.state_name(int(state[first]))}"
    if name == "action":
        return f"after action '{structure.action_names[value]}'"
    if name in ("revisit", "seen"):
        what = "it" if name == "revisit" else rest
        return f"{what} {'was' if value else 'was not'} seen before"
    if name in ("since-start", "since-entry", "recent"):
        span = "0" if value == 0 else f"{2**value - 1} to {2 ** (value + 1) - 2}"
        if name == "recent":
            return f"{span} of the last {RECENT} differ from the first"
        return f"step {span}" if value == 0 else f"steps {span}"
    if log is None or code is None:
        return f"at one {rest}"
    if rest in log.columns:
        column = log.columns[rest]
        if column.values is not None and name == "column" and has_bins(column):
            inside = column.values[code == value]
            return f"{rest} from {inside.min():g} to {inside.max():g}"
        return f"{rest} = {column.labels[value]}"
    return f"{rest} {value + 1}"


def first_states(model: ParametricMDP, log: EpisodeLog) -> list[int]:
    """States that rows leave, in the order in which they appear, some of them."""
    first = first_rows(log.state(model.structure), model.states)
    order = np.argsort(first, kind="stable")[:MOST_SEEN]
    return [int(one) for one in order if first[one] < len(log)]


def tells_outcome(context: OffsetArray, outcome: OffsetArray, code: IndexArray) -> bool:
    """Whether a value (almost) says how a row comes out: then it was written afterwards."""
    context, outcome, code = context[:GLANCE], outcome[:GLANCE], code[:GLANCE]
    cell = context.astype(np.int64) * (int(code.max(initial=0)) + 2) + code + 1
    names, place, number = np.unique(cell, return_inverse=True, return_counts=True)
    width = int(outcome.max(initial=0)) + 1
    pair, count = np.unique(place * np.int64(width) + outcome, return_counts=True)
    largest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(largest, pair // width, count)
    several = number > 1
    rows = int(number[several].sum())
    pooled, total = np.unique(context.astype(np.int64) * width + outcome, return_counts=True)
    modal = np.zeros(int(context.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(modal, pooled // width, total)
    sure = largest[several].sum() >= 0.98 * rows and modal.sum() <= 0.9 * len(context)
    return bool(rows >= 32 and sure)


def _binned(column: LogColumn) -> IndexArray:
    """Quarters by the first rows, which have none themselves: their values may depend on their outcomes."""
    assert column.values is not None
    values = column.values
    known = values[:PREFIX][np.isfinite(values[:PREFIX])]
    edges = np.unique(np.quantile(known, (0.25, 0.5, 0.75))) if len(known) else np.empty(0)
    code = np.where(np.isfinite(values), np.searchsorted(edges, values, side="left"), -1)
    code[:PREFIX] = -1
    return code.astype(np.int32)


def _earlier_outcomes(model: ParametricMDP, log: EpisodeLog, several: bool) -> IndexArray:
    """What followed the last visit of a choice, or how often what followed its first one did not follow the
    last `RECENT`, in powers of 2; −1 where there are fewer."""
    choice, after = log.choice(model.structure), model.structure.successor[log.transition]
    order = np.argsort(choice, kind="stable")
    begin = np.searchsorted(choice[order], choice[order])
    visit, after = np.arange(len(order)) - begin, after[order]
    number = np.r_[0, np.cumsum(after != after[begin])]
    first = np.maximum(np.arange(len(order)) - RECENT, 0)
    value = dyadic(number[:-1] - number[first]) if several else np.roll(after, 1)
    code = np.empty(len(order), np.int32)
    code[order] = np.where(visit >= (RECENT if several else 1), value, -1)
    return code


@kernel
def _durations(previous: IndexArray, state: IndexArray) -> tuple[OffsetArray, OffsetArray]:
    """Steps since the episode began, and the row in which the state was entered."""
    steps, entry = np.zeros(len(state), dtype=np.int64), np.arange(len(state))
    for row in range(len(state)):
        before = previous[row]
        if before >= 0:
            steps[row] = steps[before] + 1
            if state[before] == state[row]:
                entry[row] = entry[before]
    return steps, entry
