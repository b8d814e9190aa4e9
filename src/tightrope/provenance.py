"""Provenance: which data a policy, drafted or revised model, prior or plan was made from.

A confidence statement requires that the data did not choose its subject (`COSTS`, docs/learning.md).

*Digest.* The sum over rows of a hash of their names and costs times a key of the episode's name: independent
of file names, formats, line endings and order. *Sketch.* Of pieces of `PIECE` rows the `MOST` smallest keys
are kept with contents. Equal pieces beyond what chance reaches with probability `CHANCE` are an overlap;
below a share `FEW` the data sets are different; in between the result is unknown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import AnyArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import remember
from tightrope.verdict import Assumed

Marks = npt.NDArray[np.uint64]

SHIFT = 3
PIECE = 1 << SHIFT
MOST = 128
CHANCE = 1e-5
FEW = 1 / 8
ENOUGH = 32
"""Pieces of which none is equal where less than `FEW` of all are, but for one time in seventy."""

MOST_PARTS = 16
"""Data sets that were put together and are still known one by one."""

COMMENT = "// made from data:"
"""How the line of a model file begins that says from which data the model was made."""

NAMED = "// successors from data:"
"""The same of a model of which the data chose nothing but which successors have names."""

MEAN = "// mean over successors, earned in no play:"
"""How the line of a model file begins that names rewards which are means (`RewardStructure.is_mean`)."""

SUM = "// rewards of choices, those of their states included:"
"""The same of rewards which are sums (`RewardStructure.is_summed`)."""

CLOCK = "// clock, which counts no further than the model looks:"
"""The same of a variable that was the clock of a timed automaton."""

CHOSEN = "chosen without this log"
"""How the names of assumptions about artefacts end."""

_ALL = (1 << 64) - 1
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def _mix(values: Marks) -> Marks:
    """The finaliser of splitmix64."""
    mixed: Marks = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _ROUNDS:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed


def _of_text(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def _bits(numbers: AnyArray) -> Marks:
    return np.ascontiguousarray(numbers).astype(np.int64).view(np.uint64)


@remember
def state_marks(structure: Any) -> Marks:
    """A hash of the name of every state: the values of its variables, what its author calls it, its index."""
    if structure.valuations:
        total: Marks = np.zeros(structure.states, dtype=np.uint64)
        for name, column in structure.valuations.items():
            total += _mix(_bits(column) ^ _of_text(name))
        return total
    if structure.state_names is not None:
        return np.array([_of_text(repr(own)) for own in structure.state_names], dtype=np.uint64)
    return _mix(np.arange(structure.states, dtype=np.uint64))


@remember
def transition_marks(structure: Any) -> Marks:
    """A hash of the names of every transition's states and action."""
    return row_marks(structure, slice(None))


def row_marks(structure: Any, transition: IndexArray | slice) -> Marks:
    """The same of these transitions alone: a log may be shorter than its model."""
    actions = np.array([_of_text(name) for name in structure.action_names], dtype=np.uint64)
    choice, states = structure.transition_choice[transition], state_marks(structure)
    mark = states[structure.choice_state[choice]] + actions[structure.action_of_choice[choice]]
    return _mix(_mix(mark) ^ states[structure.successor[transition]])


def with_number(mark: Marks, number: FloatArray) -> Marks:
    """The marks of rows that say a number, too; it counts as far as single precision goes."""
    return _mix(mark ^ _bits((number + 0.0).astype(np.float32).view(np.int32)))


class RowTally:
    """Takes the rows of a data set in any order and in parts."""

    def __init__(self) -> None:
        self.rows = self._digest = self._counted = 0
        self._keys = self._contents = np.empty(0, dtype=np.uint64)
        self._limit = _ALL

    def add(
        self, mark: Marks, name: OffsetArray, place: OffsetArray | None = None, cost: FloatArray | None = None
    ) -> None:
        """Rows by the marks of their transitions, the name of their episode, how many rows of it came before
        (None: all stand here together), and their costs. A name below 0 is that of the row alone: its number
        in the file, negated."""
        if not len(mark):
            return
        self.rows += len(mark)
        if unnamed := bool(name[0] < 0):
            self._counted += int(mark.sum(dtype=np.uint64))
            mark = mark * (_bits(-2 * name % (2 * PIECE)) + np.uint64(1))
            name, place = name // PIECE, None
        begins = np.ones(len(mark), dtype=np.bool_)
        np.not_equal(name[1:], name[:-1], out=begins[1:])
        if place is None:
            rows = np.arange(len(mark))
            place = rows - np.maximum.accumulate(np.where(begins, rows, 0))
        piece = place >> SHIFT
        begins[1:] |= piece[1:] != piece[:-1]
        first = np.flatnonzero(begins)
        piece, content = piece[first], np.add.reduceat(mark, first)
        key = _mix(_bits(name[first]))
        costed = content if cost is None else np.add.reduceat(with_number(mark, cost), first)
        self._digest += int((costed * key).sum(dtype=np.uint64))
        self._counted += 0 if unnamed else int(content.sum(dtype=np.uint64))
        later = np.flatnonzero(piece)
        key[later] = _mix(key[later] + _bits(piece[later]))
        self._keep(key, content)

    def add_counts(self, mark: Marks, count: OffsetArray) -> None:
        """Transitions with how often each was seen, of which no episode is known."""
        self.rows += int(count.sum())
        self._counted += int((mark * _bits(count)).sum(dtype=np.uint64))

    def _keep(self, keys: Marks, contents: Marks) -> None:
        near = keys <= np.uint64(self._limit)
        if not near.any():
            return
        every, place = np.unique(np.concatenate([self._keys, keys[near]]), return_inverse=True)
        total: Marks = np.zeros(len(every), dtype=np.uint64)
        np.add.at(total, place, np.concatenate([self._contents, contents[near]]))
        if len(every) > MOST:
            self._limit = int(every[MOST - 1])
        self._keys, self._contents = every[:MOST], total[:MOST]

    def merge(self, other: RowTally) -> None:
        """Add what another tally took; it is the same in which order."""
        self.rows += other.rows
        self._digest += other._digest
        self._counted += other._counted
        self._limit = min(self._limit, other._limit)
        near = self._keys <= np.uint64(self._limit)
        self._keys, self._contents = self._keys[near], self._contents[near]
        self._keep(other._keys, other._contents)

    def finish(self, episodes: int | None = None) -> Provenance:
        """What the rows are."""
        contents = (self._contents >> np.uint64(32)).tolist()
        pieces = tuple(zip(self._keys.tolist(), contents, strict=True))
        digest = _hex(self._digest), _hex(self._counted)
        return Provenance(self.rows, episodes, (digest,), pieces, self._limit)


def joined(parts: Iterable[Provenance]) -> Provenance:
    """One data set of which these are parts, however it was divided."""
    several = list(parts)
    digest = _sum(part for one in several for part in one.parts)
    return Provenance(sum(one.rows for one in several), None, (digest,), *_sketch(several))


def of_counts(structure: Any, count: OffsetArray) -> Provenance:
    """The counts of all transitions of a model, of which no rows are known."""
    tally = RowTally()
    index: Marks = _mix(np.arange(len(count), dtype=np.uint64))
    tally.add_counts(index if structure is None else transition_marks(structure), count)
    return tally.finish()


class Overlap(Enum):
    """What two data sets have in common."""

    NONE = "nothing"
    PART = "a part"
    SAME = "all rows"
    UNCLEAR = "a part or nothing"


@dataclass(frozen=True)
class Provenance:
    """The rows of one data set, or of several: `parts` are the digests of each, by rows and by counts.

    `pieces` are keys and contents of the sketch, `limit` the key up to which it has all pieces.

    >>> tally = RowTally()
    >>> tally.add(np.arange(6, dtype=np.uint64), np.array([0, 0, 1, 1, 1, 2]))
    >>> one = tally.finish(episodes=3)
    >>> one.rows, Provenance.parse(one.text()) == one, one.overlap(one).value
    (6, True, 'all rows')
    """

    rows: int
    episodes: int | None
    parts: tuple[tuple[str, str], ...]
    pieces: tuple[tuple[int, int], ...] = ()
    limit: int = _ALL

    def overlap(self, other: Provenance) -> Overlap:
        """What part of the other data set this one has."""
        if not self.rows or not other.rows:
            return Overlap.NONE
        if sorted(self.parts) == sorted(other.parts):
            return Overlap.SAME
        none = _hex(0)  # in place of the digest of rows, where counts alone are known
        alike = [a == c or none in (a, c) for a, b in self.parts for c, d in other.parts if b == d]
        if any(alike):
            return Overlap.SAME if self.rows == other.rows else Overlap.PART
        limit = min(self.limit, other.limit)
        mine, theirs = ({key for key, _ in one.pieces if key <= limit} for one in (self, other))
        both = mine & theirs
        equal = len(both & {key for key, _ in {*self.pieces} & {*other.pieces}})
        if _tail(len(both), equal, max(_by_chance(self.pieces), _by_chance(other.pieces))) <= CHANCE:
            return Overlap.PART
        is_known = not alike and self.pieces and len(theirs) >= (ENOUGH if limit < other.limit else 1)
        return Overlap.NONE if is_known and equal < FEW * len(theirs) else Overlap.UNCLEAR

    def __or__(self, other: Provenance) -> Provenance:
        """Both data sets together; rows of one that the other has, too, count once where all are the same."""
        if not other.rows or set(other.parts) <= set(self.parts):
            return self
        if not self.rows or set(self.parts) <= set(other.parts):
            return other
        known = None not in (self.episodes, other.episodes)
        episodes = (self.episodes or 0) + (other.episodes or 0) if known else None
        parts = tuple(sorted({*self.parts, *other.parts}))
        parts = parts if len(parts) <= MOST_PARTS else (_sum(parts),)
        return Provenance(self.rows + other.rows, episodes, parts, *_sketch([self, other]))

    @property
    def is_telling(self) -> bool:
        """Whether independent data hardly have the same digest."""
        return _tail(len(self.pieces), len(self.pieces), _by_chance(self.pieces)) <= CHANCE

    def text(self) -> str:
        """One line, without spaces at its ends."""
        sketch = b"".join(key.to_bytes(8) + content.to_bytes(4) for key, content in self.pieces)
        digests = ",".join(f"{rows}:{counts}" for rows, counts in self.parts)
        episodes = "-" if self.episodes is None else self.episodes
        packed = base64.b64encode(sketch).decode()
        return f"rows={self.rows} episodes={episodes} digest={digests} limit={self.limit:x} sketch={packed}"

    @staticmethod
    def parse(text: str, file: str | None = None) -> Provenance:
        """Read what `text` wrote, from a file; anything else is an `InputError`."""
        try:
            fields = dict(field.split("=", 1) for field in text.split())
            sketch = base64.b64decode(fields["sketch"], validate=True)
            if len(sketch) % 12 or len(sketch) > 24 * MOST:
                raise ValueError
            entries = (sketch[i : i + 12] for i in range(0, len(sketch), 12))
            pieces = tuple((int.from_bytes(one[:8]), int.from_bytes(one[8:])) for one in entries)
            parts = tuple(_sum([part.split(":")]) for part in fields["digest"].split(",")[:MOST_PARTS])
            episodes = None if fields["episodes"] == "-" else int(fields["episodes"])
            return Provenance(int(fields["rows"]), episodes, parts, pieces, int(fields["limit"], 16))
        except (KeyError, ValueError, binascii.Error):
            raise InputError(
                f"this line does not name the data of a model: {text.strip()[:60]!r}",
                None if file is None else Location(file),
                hint="the line is written by tightrope: leave it as it was, or remove it",
            ) from None

    def comment(self, comment: str = COMMENT) -> str:
        """The same as a line of a PRISM file."""
        return f"{comment} {self.text()}"

    @staticmethod
    def in_comments(text: str, file: str | None = None, comment: str = COMMENT) -> Provenance | None:
        """What the lines of a model file say that begin with a comment; None where none does."""
        if comment not in text:
            return None
        lines = (line.strip().removeprefix("#").lstrip() for line in text.splitlines())
        texts = (line[len(comment) :] for line in lines if line.startswith(comment))
        return union(Provenance.parse(line, file) for line in texts)


def origin_in(text: str, file: str | None = None) -> dict[str, Any]:
    """What the comments of a model file say of its data and rewards, as a structure takes it."""
    marks = {"made_from": COMMENT, "named_from": NAMED}
    known = {name: Provenance.in_comments(text, file, mark) for name, mark in marks.items()}
    return {**known, "means": names_in(text, MEAN), "sums": names_in(text, SUM)}


def named_lines(mark: str, names: Iterable[str]) -> list[str]:
    """Comments with a mark and a name each."""
    return [f"{mark} {json.dumps(name)}" for name in sorted(names)]


def names_in(text: str, mark: str) -> frozenset[str]:
    """The same names, of the comments of a model file."""
    return frozenset(json.loads(name) for name in re.findall(f'^[# ]*{mark} (".*")$', text, re.M))


def origin_lines(of: Any) -> list[str]:
    """The same as comments: of a structure, or those in a text."""
    if isinstance(of, str):
        marks = COMMENT, NAMED, MEAN, SUM, CLOCK
        return [line.strip() for line in of.splitlines() if line.strip().startswith(marks)]
    known = (of.made_from, COMMENT), (of.named_from, NAMED)
    means = (name for name, reward in of.rewards.items() if reward.is_mean)
    sums = (name for name, reward in of.rewards.items() if reward.is_summed)
    lines = named_lines(MEAN, means) + named_lines(SUM, sums)
    lines += named_lines(CLOCK, getattr(of.definitions, "clocks", ()))
    return [one.comment(mark) for one, mark in known if one is not None] + lines


def union(several: Iterable[Provenance | None]) -> Provenance | None:
    """All data sets together; None where there is none."""
    known = [one for one in several if one is not None]
    return reduce(or_, known) if known else None


def _sum(parts: Iterable[Sequence[str]]) -> tuple[str, str]:
    rows, counts = zip(("0", "0"), *parts, strict=True)
    return _hex(sum(int(one, 16) for one in rows)), _hex(sum(int(one, 16) for one in counts))


def _hex(number: int) -> str:
    return f"{number & _ALL:016x}"


def _sketch(several: Sequence[Provenance]) -> tuple[tuple[tuple[int, int], ...], int]:
    """The pieces of all, and the key up to which these are all."""
    limit = min((one.limit for one in several), default=_ALL)
    pieces = sorted({piece for one in several for piece in one.pieces if piece[0] <= limit})
    if len(pieces) > MOST:
        limit = pieces[MOST - 1][0]
    return tuple(piece for piece in pieces if piece[0] <= limit), limit


def _by_chance(pieces: tuple[tuple[int, int], ...]) -> float:
    """How likely two different pieces of a log are equal: at most, but for one time in twenty."""
    pairs = math.comb(len(pieces), 2)
    equal = sum(math.comb(number, 2) for number in Counter(content for _, content in pieces).values())
    return min(1.0, (1.5 * equal + 3.0) / pairs) if pairs else 1.0


def _tail(number: int, equal: int, chance: float) -> float:
    """The probability of so many equal pieces, or more, of a number of them."""
    several = range(equal, number + 1)
    terms = (math.comb(number, k) * chance**k * (1 - chance) ** (number - k) for k in several)
    return min(1.0, math.fsum(terms))


# --- what it costs ---------------------------------------------------------------------------


class Artefact(StrEnum):
    """What is made from data and used again."""

    POLICY = "policy"
    MODEL = "model"
    PRIOR = "prior"


REFUSED = "the artefact is refused"
COSTS = {
    Artefact.POLICY: ("the bound holds", "the method is left out"),
    Artefact.MODEL: ("the confidence is nominal", "the confidence is nominal"),
    Artefact.PRIOR: (REFUSED, REFUSED),
}
"""What seeing the data costs bounds for all policies at once, and bets, importance weights and returns of one
policy. Plans and shields enter no bound: a plan fixes what is sampled later, a shield holds where the region
does."""


def chosen_without(
    what: Artefact, made_from: Sequence[Provenance | None], data: Callable[[], Provenance]
) -> Assumed:
    """Whether artefacts were chosen without these data, as an assumption of what is proved about them."""
    name = f"{what} {CHOSEN}"
    common = {None if known is None else known.overlap(data()) for known in made_from}
    for seen, which in ((Overlap.SAME, "these very rows"), (Overlap.PART, "some of these rows")):
        if seen in common:
            return Assumed.violated(name, f"the {what} was made from {which}")
    if Overlap.UNCLEAR in common:
        why = f"the rows do not tell whether the {what} was made from some of them"
        return Assumed.stated(name, why)
    if None in common:
        return Assumed.stated(name, f"the {what} does not say from which data it was made")
    return Assumed.derived(name, f"the {what} was made from other data")
