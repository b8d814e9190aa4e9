#!/usr/bin/env python3
"""A second checker for certificates, written from docs/reference/certificate-format.md and nothing else.

    python verify_standalone.py CERTIFICATE…

It shares no code with tightrope, needs no package, and calculates in exact rationals, logarithms being
enclosed by rational series: for small models. It reads certificates of values, over a whole domain, of chains
in continuous time, and learned ones by intervals of events, transitions or rates, L1 balls, a likelihood, a
slab, or intervals with either of the last two, with tied, expression or rectangular sets. Exit code 0 means
that every claim of every file is proved, 1 that one is not, or is nominal, or that the data contradict the
model, 2 that a file is no certificate, 3 that it is one which this checker does not read: coupled proofs,
slabs of differences or of temporal formulas, ellipsoids, quotients, costs or returns that were seen, or more
work than it does. It compares nothing with a model or data: what it proves is about the problem written in
the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import sys
import zlib
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import (
    ceil,
    comb,
    exp,
    factorial,
    floor,
    frexp,
    inf,
    isfinite,
    isnan,
    isqrt,
    ldexp,
    log,
    log2,
    nextafter,
    prod,
    sqrt,
)
from typing import Any

KINDS = ("UNTIL", "NEXT", "REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED", "AVERAGE", "TEMPORAL")
TYPES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float64": "d", "bool": "B"}
MOST_WHOLE = 2**62 - 1
MOST_BYTES = 2**25
UNIT = Fraction(1, 2**52)
OF_INTERVALS = ("clopper-pearson", "hoeffding", "beta-binomial")
SLABS = ("slab", "slab of few data", "value slab", "value slab of few data")
OF_THE_BEST = ("slab of the best", "value slab of the best")
OF_DIFFERENCES = ("slab of the difference", "value slab of the difference")
JOINT = tuple(f"{a}+{b}" for a in OF_INTERVALS for b in ("likelihood", *SLABS, *OF_THE_BEST))
ONE_BY_ONE = ("weissman", "likelihood", *SLABS, *OF_DIFFERENCES, "ellipsoid", "gamma-poisson", "unseen mass")
METHODS = (*OF_INTERVALS, *ONE_BY_ONE, *JOINT)
MOST_WORK = 8 * 10**7
NOT_READ = 3
CONTRADICTION = "the data contradict the model: no instantiation of the domain agrees with all that was seen"
NO_DOMAIN = "the domain contradicts the model: it has no instantiation"
CROSSED = "a lower bound above an upper one"

Number = Fraction | float
"""A rational, or +∞."""


class Refused(Exception):
    """Why a file is no certificate, or does not prove what it claims; `code` is the exit code."""

    def __init__(self, words: str, code: int = 2):
        super().__init__(words)
        self.code = code


def require(holds: bool, words: str, code: int = 2) -> None:
    if not holds:
        raise Refused(words, code)


class Work:
    """What is left of the work that one file may cause: operations on rationals, long ones counting more."""

    left = MOST_WORK

    @staticmethod
    def spend(operations: int, *numbers: Fraction) -> None:
        longest = max((bits_of(number) for number in numbers), default=0)
        Work.left -= operations * (1 + longest // 256)
        require(Work.left >= 0, "this is more work than this checker does", NOT_READ)


def bits_of(number: Fraction) -> int:
    return number.numerator.bit_length() + number.denominator.bit_length()


# The file: members, digest, header, arrays.


def read_members(path: str) -> dict[str, bytes]:
    """The members, one behind the other from the first byte on; what follows is the directory of these."""
    require(os.path.isfile(path) and os.path.getsize(path) < 2**31, "no file, or too large a one")
    with open(path, "rb") as file:
        content = file.read()
    members: dict[str, bytes] = {}
    place, left, directory = 0, MOST_BYTES, b""
    while content[place : place + 4] == b"PK\3\4":
        version, flags, method, hour, day, crc, packed, size, length, extra = struct.unpack(
            "<5H3L2H", content[place + 4 : place + 30]
        )
        fixed = (version, flags, hour, day, extra) == (20, 0, 0, 33, 0)
        require(fixed and method in (0, 8), "a member that is not as it should be")
        begin, left = place + 30 + length, left - size
        require(left >= 0, "too large for this checker", NOT_READ)
        name, data = content[place + 30 : begin].decode("ascii"), content[begin : begin + packed]
        require(name not in members and len(members) < 1000, "too many members, or two of one name")
        if method == 8:
            unpacker = zlib.decompressobj(-15)
            data = unpacker.decompress(data, size + 1)
            require(unpacker.eof and not unpacker.unused_data, "a member of another length")
        require(len(data) == size and zlib.crc32(data) == crc, "a member of another length")
        members[name] = data
        directory += struct.pack("<4s6H3L", b"PK\1\2", 788, 20, 0, method, 0, 33, crc, packed, size)
        directory += struct.pack("<5H2L", length, 0, 0, 0, 0, 0o600 << 16, place) + name.encode("ascii")
        place = begin + packed
    count = len(members)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), place, 0)
    require(content[place:] == directory + end, "bytes that belong to no member")
    return members


def read_certificate(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the certificate's object in the header, arrays by name)."""
    try:
        members = read_members(path)
        digest = members.pop("digest", b"").decode("ascii")
        hashed = hashlib.sha256()
        for name, content in sorted(members.items()):
            hashed.update(f"{name}\n{len(content)}\n".encode() + content)
        require(digest == hashed.hexdigest(), "the contents do not match the digest")
        text = members.pop("header.json", b"")
        require(len(text) <= 2**20, "the header is too long")
        head = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
        require(
            isinstance(head, dict) and head.keys() == {"format", "arrays", "certificate"}, "another header"
        )
        require(type(head["format"]) is int and head["format"] == 6, "another format")
        described = head["arrays"]
        require(isinstance(described, dict) and described.keys() == members.keys(), "other members")
        return head["certificate"], {name: read_array(described[name], members[name]) for name in members}
    except Refused:
        raise
    except (OSError, EOFError, ValueError, RuntimeError, LookupError, struct.error) as error:
        raise Refused(f"this is not a certificate: {error}") from error
    except (zlib.error, RecursionError) as error:
        raise Refused("this is not a certificate, or it is damaged") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len({name for name, _ in pairs}) == len(pairs), "a name is there twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise Refused(f"{name} is no number")


def read_array(recipe: Any, content: bytes) -> tuple[str, tuple[int, ...], list[Any]]:
    """(type, shape, entries). Integers of all widths are "int"; "text" holds lines."""
    require(isinstance(recipe, list) and len(recipe) == 3, "an array is not described")
    kind, coding, shape = recipe
    require(
        type(kind) is str and type(coding) is str and isinstance(shape, list), "an array is not described"
    )
    require(all(type(n) is int and 0 <= n < 2**40 for n in shape) and 1 <= len(shape) <= 3, "no shape")
    count = 1
    for length in shape:
        count *= length
    if kind == "text":
        *lines, rest = content.decode("ascii").split("\n")
        require(coding == "plain" and shape == [len(lines)] and rest == "", "no list of lines")
        return kind, tuple(shape), lines
    require(kind in TYPES and coding in ("plain", "difference"), "an array of another type")
    require(count * struct.calcsize(TYPES[kind]) == len(content), "an array of another length")
    entries = list(struct.unpack(f"<{count}{TYPES[kind]}", content))
    if coding == "difference":
        require(kind in ("int8", "int16", "int32") and len(shape) == 1, "no differences")
        total = 0
        for i, step in enumerate(entries):
            entries[i] = total = total + step
    if kind == "bool":
        require(all(entry in (0, 1) for entry in entries), "neither true nor false")
        entries = [bool(entry) for entry in entries]
    return ("int" if kind.startswith("int") else kind), tuple(shape), entries


# Fields: exactly those declared, each of its type and within its range.


class Node:
    """One object of the header with the arrays below its path."""

    def __init__(self, node: Any, path: str, arrays: dict[str, Any], names: str):
        require(isinstance(node, dict) and node.keys() == set(names.split()), f"'{path}' has other fields")
        self.node, self.path, self.arrays = node, path, arrays

    def word(self, name: str, *words: str) -> str:
        value = self.node[name]
        require(type(value) is str and value in words, f"'{self.path}{name}' is none of its words")
        return str(value)

    def truth(self, name: str) -> bool:
        require(type(self.node[name]) is bool, f"'{self.path}{name}' is not true or false")
        return bool(self.node[name])

    def whole(self, name: str, most: int = MOST_WHOLE) -> int:
        value = self.node[name]
        require(type(value) is int and 0 <= value <= most, f"'{self.path}{name}' is no whole number in range")
        return int(value)

    def real(self, name: str, least: float, most: float, infinite: bool = False) -> float:
        value = self.node[name]
        if infinite and value == "inf":
            return inf
        require(type(value) is float and least <= value <= most, f"'{self.path}{name}' is no number in range")
        return float(value)

    def array(self, name: str, kind: str, length: int | None = None) -> list[Any] | None:
        """An array of one dimension; None where it is not there."""
        found = self.arrays.pop(f"{self.path}{name}", None)
        if found is None:
            return None
        require(found[0] == kind and len(found[1]) == 1, f"'{self.path}{name}' is another array")
        require(length is None or len(found[2]) == length, f"'{self.path}{name}' has another length")
        return list(found[2])

    def table(self, name: str, kind: str, dimensions: int) -> tuple[tuple[int, ...], list[Any]]:
        """(shape, nested lists) of an array of several dimensions."""
        found = given(self.arrays.pop(f"{self.path}{name}", None), f"'{self.path}{name}' is missing")
        require(found[0] == kind and len(found[1]) == dimensions, f"'{self.path}{name}' is another array")
        entries = found[2]
        for length in reversed(found[1][1:]):
            entries = [entries[i : i + length] for i in range(0, len(entries), length)] if length else []
        return found[1], entries

    def integers(
        self, name: str, length: int | None = None, least: int = 0, most: int = MOST_WHOLE
    ) -> list[int] | None:
        values = self.array(name, "int", length)
        require(
            values is None or all(least <= v <= most for v in values), f"'{self.path}{name}' is out of range"
        )
        return values

    def reals(
        self,
        name: str,
        length: int | None = None,
        least: float = -inf,
        most: float = inf,
        infinite: bool = False,
    ) -> list[float] | None:
        values = self.array(name, "float64", length)
        for v in values or ():
            require(
                isfinite(v) or (infinite and v == inf), f"'{self.path}{name}' has an entry that is no number"
            )
            require(least <= v <= most, f"'{self.path}{name}' is out of range")
        return values


def offsets(start: list[int] | None, total: int, rising: bool = True) -> bool:
    if not start or start[0] != 0 or start[-1] != total:
        return False
    return all(a < b if rising else a <= b for a, b in pairwise(start))


def given(value: Any, words: str) -> Any:
    require(value is not None, words)
    return value


class Problem:
    """Graph, objective, and rows (successor, lower, upper) of every choice in rationals."""

    def __init__(self, node: Any, arrays: dict[str, Any]):
        own = Node(node, "problem.", arrays, "graph objective domain data assumed_support automaton")
        self.is_domain, self.is_timed = node["domain"] is not None, "problem.time" in arrays
        self.time, self.chain = list[Fraction](), None
        self._graph(Node(node["graph"], "problem.graph.", arrays, "initial"))
        self._objective(
            Node(
                node["objective"],
                "problem.objective.",
                arrays,
                "kind agent nature complement lower_steps upper_steps discount",
            )
        )
        self.data: Data | None = None
        self.learned: Learned | None = None
        self._rows(own, node, arrays)
        self._passing(own)
        unseen = own.array("unseen", "bool", self.states)
        require(unseen is None, "outcomes that were never seen are not read by this checker", NOT_READ)
        temporal = self.kind == "TEMPORAL"
        require(temporal == (node["automaton"] is not None), "an automaton is for temporal questions")
        known = self.earned is None or self.is_timed
        require(self.kind != "AVERAGE" or known, "averages are of rewards that are known")
        self.is_chain = self.choices == self.states
        self.wants_vectors = self.steps is None and (
            len(self.time) < 2 and (not self.time or self.is_probability)
        )
        if self.data is not None and self.data.seen is not None:
            plain = self.kind in ("UNTIL", "NEXT", "TEMPORAL") and self.misfit is None
            require(plain, "episodes are counted for a probability of the process itself")
        self.free_only, self.followed = temporal, list[Fraction]()
        self.automaton = Automaton(node["automaton"], arrays, self.states) if temporal else None

    def _passing(self, own: Node) -> None:
        """States in the middle of a step: one choice, nothing happens there, and the play passes on."""
        marks = own.array("passing", "bool", self.states)
        self.passing = [s for s, inside in enumerate(marks or []) if inside]
        if marks is None:
            return
        counted = self.steps is not None or self.lower_steps > 0
        require(self.interval and self.assumed is None and counted, "no steps of intervals are counted")
        require(self.initial not in self.passing, "the initial state is in the middle of a step")
        layers, first = 0, 0
        for place, s in enumerate(self.passing):
            require(len(self.of_state[s]) == 1, "several choices in the middle of a step")
            c = self.of_state[s][0]
            targeted = self.target is not None and self.target[s]
            barred = self.allowed is not None and not self.allowed[s]
            bare = self.rewards[0][c] == 0 and not targeted and not barred
            require(bare, "something happens in the middle of a step")
            leads = [t for t in self.successor[slice(*self.transition_start[c : c + 2])] if marks[t]]
            require(all(t < s for t in leads), "the middle of a step leads to a later one")
            if place == 0 or any(t >= first for t in leads):
                layers, first = layers + 1, s
        steps = (self.lower_steps + (self.upper_steps or 0)) * (1 + layers)
        require(steps * max(len(self.successor), 20_000) <= 10**9, "more steps than this format allows")

    def follow(self, claim: Any, arrays: dict[str, Any]) -> None:
        """Take the given policy of a claim about a temporal formula: one of the model, without memory."""
        own = Node(claim, "claims.0.", arrays, "name policy lower upper")
        policy = own.word("policy", "fixed", "randomised")
        picked, weight = own.integers("choice", self.states), own.reals("weight", self.choices, 0.0, 1.0)
        require((picked is not None) == (policy == "fixed"), "the policy does not fit")
        require((weight is not None) == (policy == "randomised"), "the weights do not fit")
        if picked is not None:
            fits = all(c in span for c, span in zip(picked, self.of_state, strict=True))
            require(fits, "a choice that its state does not have")
            taken = set(picked)
            weight = [float(c in taken) for c in range(self.choices)]
        for span in self.of_state:
            share = [Fraction(given(weight, "")[c]) for c in span]
            require(abs(float(sum(share)) - 1) <= 2.0**-40, "the weights are no distribution")
            self.followed += [one / sum(share) for one in share]

    def peek(self, claims: list[Any], arrays: dict[str, Any]) -> None:
        """The weights of the given policy's choices, as the file has them: bets are placed on its value."""
        self.given_weights: list[float] | None = None
        for number, claim in enumerate(claims):
            if isinstance(claim, dict) and claim.get("name") == "given policy":
                own = Node(claim, f"claims.{number}.", dict(arrays), "name policy lower upper")
                picked = own.integers("choice", self.states, most=self.choices - 1)
                weight = own.reals("weight", self.choices, 0.0, 1.0)
                if picked is not None:
                    weight = [float(picked.count(c)) for c in range(self.choices)]
                self.given_weights = weight

    def derive(self, hints: Any, arrays: dict[str, Any]) -> None:
        """The sets of a model over a domain, and the product of a temporal question."""
        require((hints is not None) == self.is_domain, "hints about parameters do not fit the model")
        if self.is_timed:
            self.chain = TimedChain(self, hints, arrays)
            return
        if self.is_domain:
            self.learned = Learned(self, hints, arrays)
            ends = self.learned.transitions
            for a, b in pairwise(self.transition_start):
                row = [(t, *end) for t, end in zip(self.successor[a:b], ends[a:b], strict=True)]
                least, most = sum(low for _, low, _ in row), sum(high for _, _, high in row)
                fits = all(low <= high for _, low, high in row) and least <= 1 <= most
                require(fits, self.learned.words, 1)
                by = Fraction(self.misfit[len(self.rows)]) if self.misfit is not None and b - a > 1 else 0
                self.rows.append([(t, max(low - by, 0), min(high + by, 1)) for t, low, high in row])
                self.law.append(self.expression[a:b])
            if self.learned.rewards is not None:
                self.rewards = [[ends[side] for ends in self.learned.rewards] for side in (0, 1)]
        if self.automaton is not None:
            self._become(self.automaton)

    def _graph(self, graph: Node) -> None:
        self.choice_start = given(graph.integers("choice_start"), "no graph")
        self.transition_start = given(graph.integers("transition_start"), "no graph")
        self.successor = given(graph.integers("successor"), "no graph")
        self.states, self.choices = len(self.choice_start) - 1, len(self.transition_start) - 1
        self.initial = graph.whole("initial")
        require(self.states >= 1 and offsets(self.choice_start, self.choices), "choices of states do not fit")
        require(offsets(self.transition_start, len(self.successor)), "transitions of choices do not fit")
        require(max(self.successor) < self.states and self.initial < self.states, "no such state")
        self.of_state = [range(a, b) for a, b in pairwise(self.choice_start)]

    def _objective(self, own: Node) -> None:
        self.kind = own.word("kind", *KINDS)
        self.agent, self.nature = own.word("agent", "MAX", "MIN"), own.word("nature", "MAX", "MIN", "ANY")
        self.complement, self.lower_steps = own.truth("complement"), own.whole("lower_steps", 10**6)
        self.upper_steps = None if own.node["upper_steps"] is None else own.whole("upper_steps", 10**6)
        self.discount = None if own.node["discount"] is None else Fraction(own.real("discount", 0.0, 1.0))
        reward, self.earned = own.reals("reward", self.choices), own.integers("earned", self.choices)
        fits = (self.is_domain or self.is_timed) and reward is None
        require(self.earned is None or fits, "rewards do not fit")
        self.target = own.array("target", "bool", self.states)
        self.allowed = own.array("allowed", "bool", self.states)
        terminal = own.reals("terminal", self.states)
        event, until = self.kind in ("UNTIL", "NEXT", "TEMPORAL"), self.kind == "UNTIL"
        self.is_probability = event
        require((self.discount is not None) == (self.kind == "DISCOUNTED"), "the discount does not fit")
        require(self.discount is None or 0 < self.discount < 1, "the discount does not fit")
        require(self.upper_steps is None or self.kind in ("UNTIL", "CUMULATIVE"), "steps do not fit")
        require(self.upper_steps is not None or self.kind != "CUMULATIVE", "steps do not fit")
        require(self.lower_steps == 0 or until, "steps do not fit")
        require(self.upper_steps is None or self.lower_steps <= self.upper_steps, "steps do not fit")
        aimed = self.kind in ("UNTIL", "NEXT", "REACH_REWARD")
        require((self.target is not None) == aimed, "the target does not fit")
        require((reward is None and self.earned is None) == event, "rewards do not fit")
        require(self.allowed is None or until, "allowed states do not fit")
        require(terminal is None or self.kind == "REACH_REWARD", "terminal values do not fit")
        require(not self.complement or event, "only a probability has a complement")
        earned = [Fraction(0)] * self.choices if reward is None else [Fraction(r) for r in reward]
        self.rewards = [earned, earned]
        self.terminal = [Fraction(0)] * self.states if terminal is None else [Fraction(t) for t in terminal]
        self.steps = 1 if self.kind == "NEXT" else self.upper_steps
        work = (self.lower_steps + (self.upper_steps or 0)) * max(len(self.successor), 20_000)
        require(work <= 10**9, "more steps than this format allows")

    def _rows(self, own: Node, node: Any, arrays: dict[str, Any]) -> None:
        count = len(self.successor)
        plain = own.reals("probability", count, 0.0, 1.0)
        low, high = own.reals("lower", count, 0.0, 1.0), own.reals("upper", count, 0.0, 1.0)
        expression = own.integers("expression", count)
        theta, polynomials = own.array("theta", "text"), own.array("polynomial", "text")
        self.time = [rational(text) for text in own.array("time", "text") or []]
        quotients = own.array("denominator", "text") is not None
        require(not quotients or self.is_domain, "denominators do not fit the model")
        require(not quotients, "quotients of parameters are not read by this checker", NOT_READ)
        ways = [
            plain is not None,
            low is not None and high is not None,
            expression is not None and theta is not None and polynomials is not None,
            expression is not None and self.is_domain and polynomials is not None,
        ]
        parts = [plain, low, high, expression, theta, polynomials]
        require(
            sum(ways) == 1 and sum(p is not None for p in parts) == (1, 2, 3, 2)[ways.index(True)],
            "not one model",
        )
        require(self.is_domain == ways[3] and (ways[3] or node["data"] is None), "not one model")
        self.misfit = own.reals("misfit", self.choices, 0.0, 1.0)
        if self.misfit is not None:
            alone = self.is_domain and node["assumed_support"] is None and max(self.misfit) < 1
            require(alone and len({e for e in self.misfit if e > 0}) == 1, "a misfit that does not fit")
        self.interval = ways[1]
        require(self.interval == (self.nature != "ANY"), "nature's direction does not fit")
        assumed = None if node["assumed_support"] is None else own.real("assumed_support", 0.0, 1.0)
        fits = (self.interval or self.is_domain) and 0 < (assumed or 0) < 1
        require(assumed is None or fits, "an assumption that does not fit")
        self.single, self.assumed = [not self.interval] * self.choices, assumed
        self.rows: list[list[tuple[int, Fraction, Fraction]]] = []
        self.law: list[list[int]] = []
        if polynomials is not None:
            largest = max([*(expression or [0]), *(self.earned or [0])])
            require(largest < len(polynomials), "no such expression")
        if self.is_domain:
            self.domain, self.expression = Domain(node["domain"], arrays), expression or []
            self.polynomials = [terms_of(line, len(self.domain.lower)) for line in polynomials or []]
            if node["data"] is not None:
                self.data = Data(node["data"], arrays, count, self.states)
                waits = self.data.waited is not None
                require(waits == self.is_timed, "exposures are of chains in continuous time")
            return
        if self.is_timed:
            require(polynomials is not None and theta is not None, "a chain in continuous time has rates")
            self.expression, self.law = expression or [], []
            self.at_point = values_at(polynomials or [], [rational(text) for text in theta or []])
            return
        if polynomials is not None:
            values = values_at(polynomials, [rational(text) for text in theta or []])
            lower = upper = [values[e] for e in expression or []]
        elif self.interval:
            raised = [
                min(assumed, b) if assumed is not None and a == 0 else a
                for a, b in zip(low or [], high or [], strict=True)
            ]
            lower, upper = [Fraction(a) for a in raised], [Fraction(b) for b in high or []]
        else:
            lower, upper = [], []
            for a, b in pairwise(self.transition_start):
                margin = (b - a + 2) * UNIT
                lower += [Fraction(p) * (1 - margin) for p in (plain or [])[a:b]]
                upper += [min(Fraction(p) * (1 + margin), Fraction(1)) for p in (plain or [])[a:b]]
        for c, (a, b) in enumerate(pairwise(self.transition_start)):
            self.rows.append(
                self._row(c, list(zip(self.successor[a:b], lower[a:b], upper[a:b], strict=True)))
            )

    def _row(self, c: int, row: list[tuple[int, Fraction, Fraction]]) -> list[tuple[int, Fraction, Fraction]]:
        """A set of distributions; where the bounds of an interval as a whole miss 1 by rounding, one."""
        require(all(0 <= low <= high <= 1 for _, low, high in row), "no probabilities", 1)
        least = sum((low for _, low, _ in row), Fraction(0))
        most = sum((high for _, _, high in row), Fraction(0))
        if self.interval:
            for end, missed in ((1, least), (2, most)):
                if (missed > 1 if end == 1 else missed < 1) and abs(missed - 1) <= (len(row) + 2) * UNIT:
                    self.single[c] = True
                    return [(entry[0], entry[end] / missed, entry[end] / missed) for entry in row]
        require(least <= 1 <= most, f"there is no distribution at choice {c}", 1)
        return row

    def _become(self, automaton: Automaton) -> None:
        """The product with an automaton, from what can be reached, and reaching what is won there."""
        memories = len(automaton.successor)
        if self.followed:  # what the given policy takes is all there is
            self.of_state = [[c for c in span if self.followed[c] > 0] for span in self.of_state]
        weights = list[Fraction]()
        seen, front = {(self.initial, 0)}, [(self.initial, 0)]
        for s, q in front:
            following = automaton.successor[q][automaton.letter[s]]
            behind = {(t, following) for c in self.of_state[s] for t, _, _ in self.rows[c]}
            front += sorted(behind - seen)
            seen |= behind
        pairs = sorted(seen, key=lambda pair: pair[0] * memories + pair[1])
        number = {pair: i for i, pair in enumerate(pairs)}
        rows: list[list[tuple[int, Fraction, Fraction]]] = []
        single, of_state, law = [], [], list[list[int]]()
        for s, q in pairs:
            following = automaton.successor[q][automaton.letter[s]]
            of_state.append(range(len(rows), len(rows) + len(self.of_state[s])))
            for c in self.of_state[s]:
                rows.append([(number[t, following], low, high) for t, low, high in self.rows[c]])
                single.append(self.single[c])
                weights += self.followed[c : c + 1]
                law += [self.law[c]] if self.law else []
        self.initial = number[self.initial, 0]
        self.rows, self.single, self.of_state, self.law, self.followed = rows, single, of_state, law, weights
        self.states, self.choices, self.kind = len(pairs), len(rows), "UNTIL"
        self.rewards, self.terminal = [[Fraction(0)] * len(rows)] * 2, [Fraction(0)] * len(pairs)
        settled = automaton.settled()
        won = {i for i, (_, q) in enumerate(pairs) if q in settled}
        if not automaton.only_settles(settled):
            lone = self.agent == "MAX" or bool(weights)
            require(lone, "a minimum of what such an automaton accepts", 1)
            cut = any(low == 0 and high > 0 for row in rows for _, low, high in row)
            require(not cut, "a transition of the product can vanish", 1)
            for avoided, marks in automaton.pairs:
                read = [(q, automaton.letter[s]) for s, q in pairs]
                inside = {i for i, (q, a) in enumerate(read) if not avoided[q][a]}
                seen_at = [{i for i, (q, a) in enumerate(read) if mark[q][a]} for mark in marks]
                won |= self._kept(inside, seen_at)
        self.target = [i in won for i in range(len(pairs))]

    def _kept(self, inside: set[int], marks: list[set[int]]) -> set[int]:
        """The largest part of `inside` where one can stay and always reach each of the marks again."""
        while True:
            ways = {}
            for i in inside:
                ends = [{t for t, _, p in self.rows[c] if p > 0} for c in self.of_state[i]]
                ends = [set().union(*ends)] if self.followed else ends  # all of them are taken
                ways[i] = [targets for targets in ends if targets <= inside]
            kept = {i for i in inside if ways[i]}
            for mark in marks:
                found, size = kept & mark, -1
                while size != len(found):
                    size = len(found)
                    found |= {i for i in kept if any(targets & found for targets in ways[i])}
                kept &= found
            if kept == inside:
                return inside
            inside = kept


class Automaton:
    """Reads letters of states; accepts by pairs (what is avoided, sets that are repeated)."""

    def __init__(self, node: Any, arrays: dict[str, Any], states: int):
        own = Node(node, "problem.automaton.", arrays, "believed")
        own.truth("believed")
        atoms, letters = own.table("atom", "bool", 2), own.table("successor", "int", 2)
        avoided, repeated = own.table("avoided", "bool", 3), own.table("repeated", "bool", 3)
        pair = given(own.integers("pair"), "no pairs")
        atom, self.successor = atoms[1], letters[1]
        memories, width = letters[0]
        require(atoms[0][1] == states and atoms[0][0] <= 30, "atoms do not fit")
        require(memories >= 1 and width >= 1, "an automaton without states")
        require(avoided[0][1:] == repeated[0][1:] == (memories, width), "marks do not fit")
        count, marks = avoided[0][0], repeated[0][0]
        large = max(memories * (count + marks), 10 * memories) > 200_000 or states * memories > 2**28
        require(len(pair) == marks and not large, "marks do not fit, or there are too many")
        Work.spend(memories * width * (count + marks + 1) * 4)
        require(all(p < count for p in pair), "a mark of no pair")
        require(all(0 <= q < memories for row in self.successor for q in row), "it leads nowhere")
        codes = [sum(row[s] << i for i, row in enumerate(atom)) for s in range(states)]
        known = {code: i for i, code in enumerate(sorted(set(codes)))}
        require(len(known) == width, "it does not read the letters that occur")
        self.letter = [known[code] for code in codes]
        self.pairs = [
            (table, [repeated[1][j] for j in range(marks) if pair[j] == k])
            for k, table in enumerate(avoided[1])
        ]

    def settled(self) -> set[int]:
        """Memories from which every word is accepted."""
        result: set[int] = set()
        for avoided, marks in self.pairs:
            good = {
                q for q, row in enumerate(avoided) if not any(row) and all(all(mark[q]) for mark in marks)
            }
            size = -1
            while size != len(good):
                size = len(good)
                good = {q for q in good if set(self.successor[q]) <= good}
            result |= good
        return result

    def only_settles(self, settled: set[int]) -> bool:
        return all(
            any(not any(any(row) for q, row in enumerate(mark) if q not in settled) for mark in marks)
            for _, marks in self.pairs
        )


TERM = r"-?[0-9]{1,4000}(/[0-9]{1,4000})?(\*[0-9]{1,5}\^[0-9]{1,4})*"


def terms_of(line: str, parameters: int) -> dict[tuple[tuple[int, int], ...], Fraction]:
    """The polynomial of a line."""
    require(not line or re.match(rf"{TERM}( {TERM})*\Z", line) is not None, "no polynomial")
    result: dict[tuple[tuple[int, int], ...], Fraction] = {}
    for text, *factors in (part.split("*") for part in line.split(" ") if part):
        monomial = tuple((int(i), int(e)) for i, e in (factor.split("^") for factor in factors))
        require(all(i < j for (i, _), (j, _) in pairwise(monomial)), "parameters do not rise")
        require(all(i < parameters and e >= 1 for i, e in monomial), "no such parameter or exponent")
        require(sum(e for _, e in monomial) <= 4096 and monomial not in result, "twice, or too large")
        result[monomial] = rational(text)
        require(result[monomial] != 0, "a coefficient is 0")
    return result


def values_at(polynomials: list[str], theta: list[Fraction]) -> list[Fraction]:
    """Every polynomial at the point."""
    read = [terms_of(line, len(theta)) for line in polynomials]
    monomials = {monomial for polynomial in read for monomial in polynomial}
    require(sum(e * bits_of(theta[i]) for m in monomials for i, e in m) <= 10**7, "too large to be evaluated")
    known = {m: prod((theta[i] ** e for i, e in m), start=Fraction(1)) for m in monomials}
    return [sum((c * known[m] for m, c in terms.items()), Fraction(0)) for terms in read]


def rational(text: str) -> Fraction:
    fits = re.match(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?\Z", text) and not re.search(r"/0+\Z", text)
    require(bool(fits), "no rational")
    return Fraction(text)


class Claim:
    """What is claimed, and the hints: vectors, rankings and a witness."""

    def __init__(self, number: int, claim: Any, hints: Any, problem: Problem, arrays: dict[str, Any]):
        own = Node(claim, f"claims.{number}.", arrays, "name policy lower upper")
        helps = Node(hints, f"values.{number}.", arrays, "")
        self.name = own.word("name", "value", "robust policy", "given policy")
        policy = own.word("policy", "free", "fixed", "randomised")
        self.is_given = self.name == "given policy" and policy != "free"
        self.lower = own.real("lower", -1.7e308, 1.7e308, infinite=True)
        self.upper = own.real("upper", -1.7e308, 1.7e308, infinite=True)
        require(self.lower <= self.upper, "a lower bound above the upper one")
        states, choices = problem.states, problem.choices
        self.choice, weight = own.integers("choice", states), own.reals("weight", choices, 0.0, 1.0)
        if not problem.followed:
            require((self.choice is not None) == (policy == "fixed"), "the policy does not fit")
            require((weight is not None) == (policy == "randomised"), "the weights do not fit")
        self.vectors = [helps.reals(side, states, infinite=True) for side in ("lower", "upper")]
        self.biases = [helps.reals(f"{side}_bias", states) for side in ("lower", "upper")]
        average = problem.kind == "AVERAGE"
        require(all((b is not None) == average for b in self.biases), "a bias does not fit")
        remembers = problem.learned is not None and (self.name, policy) == ("robust policy", "fixed")
        remembers = remembers or bool(problem.followed)
        require(policy == "free" or not problem.free_only or remembers, "a policy without memory")
        self.bases = [helps.integers(f"{side}_basis", choices, -1) for side in ("lower", "upper")]
        joint = self.bases != [None, None]
        require(not joint or problem.learned is not None, "bases without a region")
        require(not joint or problem.misfit is None, "a misfit goes with bounds of single probabilities")
        require(policy != "randomised" or not average, "the average of a randomised policy")
        require(not average or inf not in (self.vectors[1] or ()), "an average is infinite")
        low_rank, high_rank = helps.integers("lower_ranking", states), helps.integers("upper_ranking", states)
        self.rankings = [low_rank, low_rank if high_rank is None else high_rank]
        self.witness = helps.integers("witness", states)
        for picked in (self.choice, self.witness):
            fits = picked is None or all(c in span for c, span in zip(picked, problem.of_state, strict=True))
            require(fits, "a choice that its state does not have")
        require(self.witness is None or policy == "free", "a witness beside a policy that is given")
        self.earlier: list[list[int]] = []
        if f"claims.{number}.earlier" in arrays:
            shape, self.earlier = own.table("earlier", "int", 2)
            require(policy == "fixed" and shape[1] == 3, "choices of earlier steps do not fit")
        last, since = problem.steps or problem.lower_steps, dict[int, int]()
        for before, (step, state, picked_then) in zip([[last], *self.earlier], self.earlier, strict=False):
            fits = 0 <= step < since.get(state, last) and step <= before[0] and 0 <= state < states
            require(fits and picked_then in problem.of_state[state], "choices of earlier steps do not fit")
            since[state] = step
        require(all((v is not None) == problem.wants_vectors for v in self.vectors), "vectors do not fit")
        endless = problem.kind in ("REACH_REWARD", "TOTAL")
        require(endless or inf not in (self.vectors[0] or ()), "a lower bound is infinite, the value is not")
        by_step = problem.steps is not None or problem.lower_steps > 0
        named = policy == "free" if self.name == "value" else policy != "free"
        require(named or (self.name == "robust policy" and by_step), f"a {self.name} that is {policy}")
        self.weight = problem.followed or None
        require(not problem.followed or not self.earlier, "choices of earlier steps do not fit")
        if weight is not None:
            share = [Fraction(w) for w in weight]
            for span in problem.of_state:
                total = sum(weight[c] for c in span)
                require(abs(total - 1) <= 2.0**-40, "the weights are no distribution")
                exact = sum(share[c] for c in span)
                for c in span:
                    share[c] /= exact
            self.weight = share


# Enclosures: a number lies between the two ends, which are rationals.

PLACES = 192
Ends = tuple[Fraction, Fraction]


def combined(*terms: tuple[Fraction | int, Ends]) -> Ends:
    """Ends of a sum of multiples."""
    ends = [(f * low, f * high) if f >= 0 else (f * high, f * low) for f, (low, high) in terms]
    return sum((low for low, _ in ends), Fraction(0)), sum((high for _, high in ends), Fraction(0))


def near(value: Fraction) -> Ends:
    """Ends with few digits."""
    whole = (value.numerator << PLACES) // value.denominator
    return Fraction(whole, 1 << PLACES), Fraction(whole + 1, 1 << PLACES)


def upward(value: Fraction) -> Fraction:
    """The least double that is not below."""
    nearest = float(value)
    return Fraction(nearest if Fraction(nearest) >= value else nextafter(nearest, inf))


def downward(value: Fraction) -> Fraction:
    return -upward(-value)


@lru_cache(maxsize=1 << 16)
def log_of(value: Fraction) -> Ends:
    """value = m·2^k with ½ < m < 2, and log m = 2·(z + z³/3 + z⁵/5 + …), z = (m − 1)/(m + 1), |z| < ⅓.

    In units of 2^-PLACES each of at most 100 terms is off by at most 4, and what is left by 2.
    """
    require(value > 0, "the logarithm of what is not positive", 1)
    k = value.numerator.bit_length() - value.denominator.bit_length()
    Work.spend(400, value)
    part = _log_near_one(value / Fraction(2) ** k)
    whole = part + k * _log_near_one(Fraction(2)) if k else part
    error = 1024 * (abs(k) + 1)
    return Fraction(whole - error, 1 << PLACES), Fraction(whole + error, 1 << PLACES)


@lru_cache(maxsize=1 << 10)
def _log_near_one(m: Fraction) -> int:
    above, below = m.numerator - m.denominator, m.numerator + m.denominator
    z = (abs(above) << PLACES) // below
    square, power, total, odd = z * z >> PLACES, z, 0, 1
    while power:
        total += power // odd
        power, odd = power * square >> PLACES, odd + 2
    return 2 * total if above >= 0 else -2 * total


@lru_cache(maxsize=1)
def pi() -> Ends:
    """16·arctan(1/5) − 4·arctan(1/239); each of at most 100 terms of a series is off by at most 2 units."""
    total = 0
    for factor, x in ((16, 5), (-4, 239)):
        power, odd, sign = (1 << PLACES) // x, 1, 1
        while power:
            total += factor * sign * (power // odd)
            power, odd, sign = power // (x * x), odd + 2, -sign
    return Fraction(total - 8000, 1 << PLACES), Fraction(total + 8000, 1 << PLACES)


STIRLING = [Fraction(*c) for c in ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360))]


@lru_cache(maxsize=1 << 12)
def log_factorial(n: int) -> Ends:
    """Stirling's series, whose error is below the first term that is left out, 1/(156·n¹³)."""
    if n < 256:
        return log_of(Fraction(factorial(n)))
    series = sum((c / Fraction(n) ** (2 * i + 1) for i, c in enumerate(STIRLING)), Fraction(0))
    rest, half = near(Fraction(1, 156 * n**13))[1], Fraction(1, 2)
    log_pi = log_of(pi()[0])[0], log_of(pi()[1])[1]
    roots = (half, log_of(Fraction(2))), (half, log_pi), (n + half, log_of(Fraction(n)))
    return combined(*roots, (1, near(series)), (-n, (Fraction(1), Fraction(1))), (1, (-rest, rest)))


# Polynomials of the parameters: {((parameter, exponent), …): coefficient}.

Monomial = tuple[tuple[int, int], ...]
Terms = dict[Monomial, Fraction]
ONE: Terms = {(): Fraction(1)}


def plus(left: Terms, right: Terms, factor: Fraction | int = 1) -> Terms:
    result = dict(left)
    for monomial, c in right.items():
        result[monomial] = result.get(monomial, Fraction(0)) + factor * c
    return {monomial: c for monomial, c in result.items() if c}


def times(left: Terms, right: Terms) -> Terms:
    Work.spend(len(left) * len(right), *left.values(), *right.values())
    result: Terms = {}
    for first, a in left.items():
        for second, b in right.items():
            exponents = dict(first)
            for i, e in second:
                exponents[i] = exponents.get(i, 0) + e
            monomial = tuple(sorted(exponents.items()))
            result[monomial] = result.get(monomial, Fraction(0)) + a * b
    return {monomial: c for monomial, c in result.items() if c}


def degree_of(monomial: Monomial) -> int:
    return sum(e for _, e in monomial)


def is_number(polynomial: Terms) -> bool:
    return all(not monomial for monomial in polynomial)


def range_over(polynomial: Terms, lower: list[Fraction], upper: list[Fraction]) -> Ends | None:
    """The least and the largest Bernstein coefficient over a box; None where there are more than 4096."""
    if all(degree_of(monomial) <= 1 for monomial in polynomial):
        low = high = polynomial.get((), Fraction(0))
        for monomial, c in polynomial.items():
            for i, _ in monomial:
                low += min(c * lower[i], c * upper[i])
                high += max(c * lower[i], c * upper[i])
        return low, high
    degrees: dict[int, int] = {}
    for i, e in (factor for monomial in polynomial for factor in monomial):
        degrees[i] = max(e, degrees.get(i, 0))
    controls = prod(degree + 1 for degree in degrees.values())
    if controls > 4096:
        return None
    parts = [polynomial]
    for i, degree in degrees.items():
        table = bernstein(degree, lower[i], upper[i])
        parts = [_put(part, i, powers) for part in parts for powers in table]
    values = [part.get((), Fraction(0)) for part in parts]
    return min(values), max(values)


def bernstein(degree: int, low: Fraction, high: Fraction) -> list[list[Fraction]]:
    """[k][e]: the k-th coefficient of x^e, the mean of all products of e among k times `high` and degree − k
    times `low`."""
    Work.spend(degree**3, *(x**degree if degree < 100 else x for x in (low, high)))
    lows, highs = [low**e for e in range(degree + 1)], [high**e for e in range(degree + 1)]
    return [
        [
            sum(
                (comb(k, j) * comb(degree - k, e - j) * highs[j] * lows[e - j] for j in range(min(k, e) + 1)),
                Fraction(0),
            )
            / comb(degree, e)
            for e in range(degree + 1)
        ]
        for k in range(degree + 1)
    ]


def _put(polynomial: Terms, i: int, powers: list[Fraction]) -> Terms:
    """The polynomial with powers[e] in place of i^e."""
    Work.spend(len(polynomial), *powers)
    result: Terms = {}
    for monomial, c in polynomial.items():
        rest = tuple(factor for factor in monomial if factor[0] != i)
        result[rest] = result.get(rest, Fraction(0)) + c * powers[dict(monomial).get(i, 0)]
    return result


# What is known of the parameters, and the coordinates in which every expression is affine.

Row = tuple[list[Fraction], Fraction]
Box = tuple[list[Fraction], list[Fraction]]


class Domain:
    """lower ≤ θ ≤ upper, and constraints (coefficients, bound, whether it is an equality)."""

    def __init__(self, node: Any, arrays: dict[str, Any]):
        own = Node(node, "problem.domain.", arrays, "")
        self.lower, self.upper, coefficients, bounds = (
            [rational(text) for text in given(own.array(name, "text"), "no domain")]
            for name in ("lower", "upper", "coefficient", "bound")
        )
        equal, size = given(own.array("is_equality", "bool"), "no domain"), len(self.lower)
        fits = size == len(self.upper) and len(coefficients) == size * len(bounds)
        require(fits and len(equal) == len(bounds), "the domain's constraints do not fit")
        rows = [coefficients[r * size : (r + 1) * size] for r in range(len(bounds))]
        self.constraints = list(zip(rows, bounds, equal, strict=True))


class Coordinates:
    """The free parameters, and products of them."""

    def __init__(self, domain: Domain, polynomials: list[Terms]):
        self.domain = domain
        self._solve()
        self._known: dict[Monomial, Terms] = {}
        degrees = [degree_of(monomial) for p in polynomials for monomial in p]
        require(max(degrees, default=0) <= 400, "an expression of too high a degree", NOT_READ)
        chain: set[Monomial] = set()
        for monomial in {term for p in polynomials for term in self.in_free(p)}:
            while degree_of(monomial) >= 2:
                chain.add(monomial)
                monomial = _split(monomial)[0]
        self.monomials: list[Monomial] = [((i, 1),) for i in range(len(self.free))]
        self.monomials += sorted(chain, key=lambda m: (degree_of(m), m))
        self.number = {monomial: j for j, monomial in enumerate(self.monomials)}
        lifted = self.monomials[len(self.free) :]
        self.products = [(self.number[a], self.number[b]) for a, b in map(_split, lifted)]
        self.size = len(self.monomials)
        require(self.size <= 400, "too many coordinates", NOT_READ)
        self.rows = self._rows()

    def _solve(self) -> None:
        """The equalities, then the parameters that are fixed, one after the other, each for the last
        parameter that is left in it; one stays free."""
        domain, size = self.domain, len(self.domain.lower)
        equalities = [[*row, bound] for row, bound, equal in domain.constraints if equal]
        for i, (low, high) in enumerate(zip(domain.lower, domain.upper, strict=True)):
            if low == high:
                equalities.append([Fraction(int(i == j)) for j in range(size)] + [low])
        solved: dict[int, list[Fraction]] = {}
        for row in equalities:
            for pivot, other in solved.items():
                row = _eliminated(row, other, pivot)
            left = [j for j in range(size) if row[j]]
            if left and len(solved) < size - 1:
                row = [a / row[left[-1]] for a in row]
                solved = {pivot: _eliminated(other, row, left[-1]) for pivot, other in solved.items()}
                solved[left[-1]] = row
        self.free = [i for i in range(size) if i not in solved]
        self.meaning: list[Terms] = []
        for i in range(size):
            terms: Terms = {((self.free.index(i), 1),): Fraction(1)} if i not in solved else {}
            if i in solved:
                terms = {((p, 1),): -solved[i][j] for p, j in enumerate(self.free)}
                terms[()] = solved[i][size]
            self.meaning.append({monomial: c for monomial, c in terms.items() if c})

    def in_free(self, polynomial: Terms) -> Terms:
        """The polynomial of the free parameters, by their positions."""
        total: Terms = {}
        for monomial, c in polynomial.items():
            if monomial not in self._known:
                term = ONE
                for i, exponent in monomial:
                    for _ in range(exponent):
                        term = times(term, self.meaning[i])
                self._known[monomial] = term
            total = plus(total, self._known[monomial], c)
        return total

    def affine(self, polynomial: Terms) -> Row:
        """(linear, constant) in coordinates."""
        linear, terms = [Fraction(0)] * self.size, self.in_free(polynomial)
        constant = terms.pop((), Fraction(0))
        for monomial, c in terms.items():
            require(monomial in self.number, "a polynomial that is not affine in the coordinates", 1)
            linear[self.number[monomial]] = c
        return linear, constant

    def bounded(self, polynomial: Terms, end: Fraction, below: bool) -> Row:
        """The row which says that a polynomial is at most, or at least, something."""
        linear, constant = self.affine(polynomial)
        return ([-a for a in linear], constant - end) if below else (linear, end - constant)

    def _rows(self) -> list[Row | None]:
        """By 2·number + part: parameters (upper, lower), then constraints (≤, and ≥ of an equality)."""
        rows: list[Row | None] = []
        for i, (low, high) in enumerate(zip(self.domain.lower, self.domain.upper, strict=True)):
            own: Terms = {((i, 1),): Fraction(1)}
            rows += [self.bounded(own, high, False), self.bounded(own, low, True)]
        for coefficients, bound, equal in self.domain.constraints:
            form: Terms = {((i, 1),): c for i, c in enumerate(coefficients) if c}
            rows += [self.bounded(form, bound, False), self.bounded(form, bound, True) if equal else None]
        return rows

    def start_box(self) -> Box:
        return self.with_products(
            [self.domain.lower[i] for i in self.free], [self.domain.upper[i] for i in self.free]
        )

    def with_products(self, lower: list[Fraction], upper: list[Fraction]) -> Box:
        """A box of the free coordinates, or of all, met with what it says of the products."""
        lower, upper = list(lower), list(upper)
        for number, (x, y) in enumerate(self.products, start=len(self.free)):
            corners = [a * b for a in (lower[x], upper[x]) for b in (lower[y], upper[y])]
            low = Fraction(0) if x == y and lower[x] <= 0 <= upper[x] else min(corners)
            if number < len(lower):
                lower[number], upper[number] = max(lower[number], low), min(upper[number], max(corners))
            else:
                lower.append(low)
                upper.append(max(corners))
        return lower, upper

    def lifted(self, free: list[Fraction]) -> list[Fraction]:
        values = list(free)
        for x, y in self.products:
            values.append(values[x] * values[y])
        return values

    def envelope(self, index: int, part: int, box: Box) -> Row:
        """A product z = x·y within a box: ±(x − s)(y − t) ≥ 0."""
        require(index < len(self.products) and part <= 4, "no such product", 1)
        x, y = self.products[index]
        require(part < 4 or x == y, "a tangent in the middle is for squares", 1)
        (a, b), (c, d) = (box[0][x], box[1][x]), (box[0][y], box[1][y])
        middle = (a + b) / 2
        s, t, sign = [(a, c, -1), (b, d, -1), (b, c, 1), (a, d, 1), (middle, middle, -1)][part]
        linear = [Fraction(0)] * self.size
        linear[len(self.free) + index] += sign
        linear[x] -= sign * t
        linear[y] -= sign * s
        return linear, -sign * s * t


def _split(monomial: Monomial) -> tuple[Monomial, Monomial]:
    """Without one factor of its last parameter, and that parameter."""
    *head, (i, exponent) = monomial
    return (*head, (i, exponent - 1)) if exponent > 1 else tuple(head), ((i, 1),)


def _eliminated(row: list[Fraction], other: list[Fraction], pivot: int) -> list[Fraction]:
    factor = row[pivot]
    if not factor:
        return row
    Work.spend(len(row), *row, *other)
    return [a - factor * b for a, b in zip(row, other, strict=True)]


def dot(a: list[Fraction], x: list[Fraction]) -> Fraction:
    return sum((c * v for c, v in zip(a, x, strict=True) if c and v), Fraction(0))


class Polytope:
    """{ x : a·x ≤ b for all rows }; rows 2j and 2j + 1 are x_j ≤ upper_j and −x_j ≤ −lower_j."""

    def __init__(self, box: Box, rows: list[Row]):
        self.box, self.size = box, len(box[0])
        unit = [[Fraction(int(i == j)) for i in range(self.size)] for j in range(self.size)]
        self.rows: list[Row] = []
        for j, (low, high) in enumerate(zip(*box, strict=True)):
            self.rows += [(unit[j], high), ([-a for a in unit[j]], -low)]
        self.rows += rows
        self._solved: dict[tuple[int, ...], list[tuple[int, list[Fraction]]]] = {}

    def most(self, direction: list[Fraction], basis: list[int]) -> Fraction:
        """direction·x is at most y·b + the maximum of (direction − y·A)·x over the box, for all y ≥ 0; y is
        what solves y·A = direction, entries below 0 being cut."""
        require(all(0 <= i < len(self.rows) for i in basis), "a basis of rows that are not there", 1)
        solved = self._solve(tuple(basis))
        multipliers = [Fraction(0)] * len(basis)
        for column, combination in solved:
            if direction[column]:
                multipliers = [
                    y + direction[column] * c for y, c in zip(multipliers, combination, strict=True)
                ]
        rest, total = list(direction), Fraction(0)
        Work.spend(2 * self.size * self.size, *direction, *multipliers)
        for y, i in zip(multipliers, basis, strict=True):
            if y > 0:
                row, bound = self.rows[i]
                total += y * bound
                rest = [r - y * a for r, a in zip(rest, row, strict=True)]
        ends = zip(rest, *self.box, strict=True)
        return total + sum((max(r * low, r * high) for r, low, high in ends if r), Fraction(0))

    def _solve(self, basis: tuple[int, ...]) -> list[tuple[int, list[Fraction]]]:
        """For each column with a pivot: the combination of the basis' rows that is 1 there, 0 at others."""
        if basis in self._solved:
            return self._solved[basis]
        found: list[tuple[int, list[Fraction], list[Fraction]]] = []
        for place, i in enumerate(basis):
            row = list(self.rows[i][0])
            combination = [Fraction(int(j == place)) for j in range(len(basis))]
            for column, other, how in found:
                factor = row[column]
                if factor:
                    row = [a - factor * b for a, b in zip(row, other, strict=True)]
                    combination = [a - factor * b for a, b in zip(combination, how, strict=True)]
            column = next((j for j, a in enumerate(row) if a), -1)
            if column < 0:
                continue
            Work.spend(self.size * self.size, *row, *combination)
            scale = row[column]
            row, combination = [a / scale for a in row], [a / scale for a in combination]
            found = [
                (
                    c,
                    [a - other[column] * b for a, b in zip(other, row, strict=True)],
                    [a - other[column] * b for a, b in zip(how, combination, strict=True)],
                )
                for c, other, how in found
            ]
            found.append((column, row, combination))
        self._solved[basis] = [(column, combination) for column, _, combination in found]
        return self._solved[basis]

    def has_a_point(self, more: list[Row]) -> bool:
        """Whether there is one, by pivots of the least index: a row that asks for less than nothing swaps
        with a variable that can help, until none asks or nothing helps."""
        lower = self.box[0]
        table = [[*row, bound - dot(row, lower)] for row, bound in self.rows[::2][: self.size]]
        table += [[*row, bound - dot(row, lower)] for row, bound in [*self.rows[2 * self.size :], *more]]
        basic, others = list(range(self.size, self.size + len(table))), list(range(self.size))
        while True:
            short = [i for i, row in enumerate(table) if row[-1] < 0]
            if not short:
                return True
            r = min(short, key=lambda i: basic[i])
            helping = [c for c in range(self.size) if table[r][c] < 0]
            if not helping:
                return False
            c = min(helping, key=lambda j: others[j])
            Work.spend(len(table) * self.size, *table[r])
            pivot = table[r][c]
            row = [a / pivot for a in table[r]]
            row[c] = 1 / pivot
            for i, old in enumerate(table):
                factor = old[c]
                if i != r and factor:
                    table[i] = [a - factor * b for a, b in zip(old, row, strict=True)]
                    table[i][c] = -factor * row[c]
            table[r] = row
            basic[r], others[c] = others[c], basic[r]


# Statistics: what holds of the true parameters with probability at least 1 − δ.


STATED = (
    "episodes were followed to their end (stated)",
    "it is unknown how episodes ended",
    "episodes were not followed to their end",
    "rows are in the order of time (stated)",
    "the order of rows in time is unknown",
    "rows are not in the order of time",
)


class Data:
    """Batches of counts in the order of time, how they were sampled, and what statement is made of them."""

    def __init__(self, node: Any, arrays: dict[str, Any], transitions: int, states: int):
        names = "delta method shared_by design repeats censored anytime episodes planned costs"
        own = Node(node, "problem.data.", arrays, names)
        self.delta = Fraction(own.real("delta", 5e-324, 1 - 2.0**-53))
        self.method = own.word("method", *METHODS)
        self.shared_by = own.word("shared_by", "events", "outcomes", "transitions")
        self.design = own.word("design", "generative-fixed", "trajectories", "adaptive")
        self.repeats, self.censored, self.anytime = map(own.truth, ("repeats", "censored", "anytime"))
        self.episodes, self.planned = (
            None if own.node[name] is None else own.whole(name) for name in ("episodes", "planned")
        )
        require(node["costs"] is None, "costs that were seen are not read by this checker", NOT_READ)
        start = given(own.integers("batch_start"), "no batches")
        seen = given(own.integers("batch_transition", most=transitions - 1), "no batches")
        count = given(own.integers("batch_count", len(seen), 1, 2**50), "no batches")
        require(offsets(start, len(seen), rising=False) and sum(count) <= 2**50, "the batches do not fit")
        self.batches = [list(zip(seen[a:b], count[a:b], strict=True)) for a, b in pairwise(start)]
        rising = all(a[0] < b[0] for batch in self.batches for a, b in pairwise(batch))
        require(rising, "the transitions of a batch do not rise")
        self.first, _, self.second = self.method.partition("+")
        self.intervals, self.likely = self.first in OF_INTERVALS, self.method.endswith("likelihood")
        require(
            not self.second or self.shared_by != "transitions", "two statements, and ties for one only", 1
        )
        require(self.intervals or self.shared_by == "events", f"{self.method} shares δ in one way only")
        self.stated = own.integers("stated", most=len(STATED) - 1) or []
        require(all(a < b for a, b in pairwise(self.stated)), "what is stated of the data does not rise")
        self.waited = own.reals("waited", states, 0.0)
        timed = self.method == "gamma-poisson"
        require((self.waited is not None) == timed, "exposures are for intervals of rates")
        self._read_episodes(own)
        self._read_prior(own)
        self.bets = "slab" in self.method
        unread = self.first in ("ellipsoid", "unseen mass", *OF_DIFFERENCES)
        require(
            not unread, f"certificates by the method {self.method} are not read by this checker", NOT_READ
        )

    def _read_prior(self, own: Node) -> None:
        """[(a parameter, how often it counts as seen to happen, and not to)], in the order of parameters."""
        shape, rows = own.table("prior", "float64", 2) if f"{own.path}prior" in own.arrays else ((0, 3), [])
        flat = [value for row in rows for value in row]
        require(shape[1] == 3 and all(0 <= value <= 1e9 for value in flat), "no prior")
        self.prior = [(int(row[0]), row[1], row[2]) for row in rows]
        rising = all(a[0] < b[0] for a, b in pairwise(self.prior))
        whole = rising and all(value == int(value) for value in flat[::3])
        require(whole and (self.method == "likelihood" or not flat), "a prior that is none")

    def _read_episodes(self, own: Node) -> None:
        """What episodes came to: (method, number, successes, failures), at a part of δ of their own."""
        seen, share = own.integers("seen", most=2**50), own.reals("seen_delta")
        require((seen is None) == (share is None), "episodes and their part of δ go together")
        self.seen: tuple[str, int, int, int] | None = None
        self.share = Fraction(0)
        if seen is None or share is None:
            return
        require(len(seen) == 4 and seen[0] <= 3, "no episodes")
        require(seen[0] <= 1, "returns of episodes are not read by this checker", NOT_READ)
        require(len(share) == 1 and own.reals("returns") is None, "no episodes")
        method, number, successes, failures = seen
        self.share = Fraction(share[0])
        require(self.share > 0 and self.share + self.delta < 1, "parts of δ that are none")
        possible = successes + failures <= number and (self.episodes is None or number <= self.episodes)
        require(possible, "more episodes than there are")
        reached = self.planned is not None and self.planned == self.episodes
        planned = (self.design == "trajectories" or reached) and not self.anytime
        require(method == 1 or planned, "a number of episodes that was not fixed in advance")
        self.seen = ("beta-binomial" if method else "clopper-pearson", number, successes, failures)

    def met(self, claim: Any, low: Number, high: Number, complement: bool) -> tuple[Number, Number] | None:
        """What the model proves, met with what is claimed and episodes prove; None where both exclude each
        other."""
        if self.seen is None:
            return low, high
        method, number, successes, failures = self.seen
        if complement:
            successes, failures = failures, successes

        def beyond(count: int, end: Any) -> bool:
            """Whether what was seen so often has a larger probability."""
            inside = 0 < end < 1 and end_follows(method, count, number, Fraction(end), self.share)
            return inside or (end == 0 and count > 0)

        def above(end: Any) -> bool:
            return beyond(successes, end)

        def below(end: Any) -> bool:
            return beyond(failures, 1 - end)

        if above(high) or below(low):
            return None
        low = Fraction(claim.lower) if claim.lower > low and above(claim.lower) else low
        return low, Fraction(claim.upper) if claim.upper < high and below(claim.upper) else high

    def counts(self, transitions: int) -> list[int]:
        result = [0] * transitions
        for t, count in (entry for batch in self.batches for entry in batch):
            result[t] += count
        return result

    def assumes(self, planned: bool, given_policy: bool) -> list[str]:
        if self.first in ("clopper-pearson", "hoeffding", "weissman"):
            words = "the visits of every event were fixed in advance, independently of outcomes"
            once = self.design == "trajectories" and not self.repeats and self.shared_by == "transitions"
            holds = not self.anytime and (self.design == "generative-fixed" or once)
        else:
            words = "any policy, any stopping rule"
            holds = not planned or (self.design != "adaptive" and not self.anytime)
            if planned:
                words = "the amount of data was fixed in advance"
        lines = [f"{words} (recorded design: {self.design})"]
        if self.likely or self.bets:
            lines.append("batches do not depend on outcomes")
            if self.design == "adaptive" and self.planned is not None:
                lines.append(f"{self.planned:,} episodes were planned in advance")
            if self.prior:
                lines.append("the prior does not depend on these data")
            if self.bets and given_policy and not self.method.endswith("best"):
                lines.append("the given policy was chosen without these data")
        doubts = [STATED[i] for i in self.stated if i % 3]
        if self.censored or not holds:
            doubts.insert(0, "the data were not collected as the method needs")
        require(not doubts, f"NOMINAL: nothing is guaranteed: {'; '.join(doubts)}", code=1)
        return [STATED[i] for i in self.stated] + lines


def interval_follows(method: str, k: int, n: int, low: Fraction, high: Fraction, level: Fraction) -> bool:
    """Is [low, high] an interval of the method for k successes in n trials, or a wider one?"""
    if not (k <= n and 0 <= low <= high <= 1):
        return False
    below = low == 0 or end_follows(method, k, n, low, level)
    return below and (high == 1 or end_follows(method, n - k, n, 1 - high, level))


@lru_cache(maxsize=1 << 14)
def end_follows(method: str, k: int, n: int, p: Fraction, level: Fraction) -> bool:
    """Of a lower end p > 0; an upper one is a lower one of the failures."""
    if k <= n * p:
        return False
    if method == "hoeffding":
        return 2 * (k - n * p) ** 2 >= n * log_of(2 / level)[1]
    choose = combined((1, log_factorial(n)), (-1, log_factorial(k)), (-1, log_factorial(n - k)))
    point = combined((1, choose), (k, log_of(p)), (n - k, log_of(1 - p)))
    if method == "clopper-pearson":
        factor = tail_over_first(k, n, p / (1 - p))
        return factor is not None and point[1] + log_of(factor)[1] <= log_of(level / 2)[0]
    mixture: Ends = (Fraction(0), Fraction(0))
    for part in (k, n - k):
        halves = (-2 * part, log_of(Fraction(2)))
        mixture = combined((1, mixture), (1, log_factorial(2 * part)), (-2, log_factorial(part)), halves)
    return combined((1, mixture), (-1, point))[0] >= -log_of(level)[0]


def tail_over_first(k: int, n: int, odds: Fraction) -> Fraction | None:
    """Not below P(Bin ≥ k)/P(Bin = k): the ratios of one probability to the one before fall, so what is left
    is below a geometric series."""
    one = 1 << PLACES
    term = total = one
    for at in range(k, k + 100_000):
        above, below = (n - at) * odds.numerator, (at + 1) * odds.denominator
        if above >= below:
            return None
        rest = -(-term * above // (below - above))
        if rest * 10**13 <= total:
            return Fraction(total + rest, one)
        term = -(-term * above // below)
        total += term
        Work.left -= 1
    return None


class Events:
    """Polynomials that are probabilities of outcomes, in the order of (expression, multiplicity); where they
    are paired, g and 1 − g are one event."""

    def __init__(self, about: Learned, paired: bool):
        number: dict[Any, tuple[int, bool]] = {}
        self.polynomials: list[Terms] = []
        place: dict[tuple[int, int], tuple[int, bool]] = {}
        for e, m in sorted({entry for outcomes in about.outcomes for entry in outcomes}):
            if is_number(about.polynomials[e]):
                continue
            polynomial = plus({}, about.polynomials[e], m)
            name = frozenset(polynomial.items())
            if name not in number:
                if paired:
                    number[frozenset(plus(ONE, polynomial, -1).items())] = len(self.polynomials), True
                number[name] = len(self.polynomials), False
                self.polynomials.append(polynomial)
            place[e, m] = number[name]
        self.place = place
        self.successes, self.trials = [0] * len(self.polynomials), [0] * len(self.polynomials)
        for outcomes in about.outcomes:
            visits, taken = sum(outcomes.values()), dict[int, tuple[bool, int, int]]()
            for (e, m), seen in outcomes.items():
                if (e, m) in place:
                    event, opposite = place[e, m]
                    found = opposite, e, visits - seen if opposite else seen
                    taken[event] = min(taken.get(event, found), found)
            for event, (_, _, successes) in taken.items():
                self.trials[event] += visits
                self.successes[event] += successes

    def ends(self, lower: list[Fraction], upper: list[Fraction]) -> dict[tuple[int, int], Fraction]:
        """What the intervals say of expressions: f = g/m, or f = (1 − g)/m."""
        result: dict[tuple[int, int], Fraction] = {}
        for (e, m), (event, opposite) in self.place.items():
            low, high = lower[event], upper[event]
            low, high = ((1 - high) / m, (1 - low) / m) if opposite else (low / m, high / m)
            result[e, 0] = max(result.get((e, 0), low), low)
            result[e, 1] = min(result.get((e, 1), high), high)
        return result


class Balls:
    """Weissman's: with k outcomes P(A) − seen(A) ≤ ε/2 for all sets A, where ε² = 2·log((2ᵏ − 2)/γ)/N."""

    def __init__(self, about: Learned, delta: Fraction):
        self.about = about
        self.pools: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for outcomes in about.outcomes:
            pool = self.pools.setdefault(tuple(outcomes), [0] * len(outcomes))
            for i, seen in enumerate(outcomes.values()):
                pool[i] += seen
        unknown = [name for name in self.pools if self._unknown(name)]
        self.level = delta / max(len(unknown), 1)

    def _unknown(self, name: tuple[tuple[int, int], ...]) -> bool:
        return not all(is_number(self.about.polynomials[e]) for e, _ in name)

    def row(self, choice: int, members: int) -> Row:
        about = self.about
        require(choice < len(about.outcomes), "no such ball", 1)
        name = tuple(about.outcomes[choice])
        pool, total = self.pools[name], Terms()
        fits = 0 < members < 2 ** len(name) - 1 and sum(pool) > 0 and self._unknown(name)
        require(fits, "no such set of outcomes", 1)
        square = 2 * log_of((2 ** len(name) - 2) / self.level)[1] / sum(pool)
        root = Fraction(isqrt((square.numerator << 2 * PLACES) // square.denominator) + 1, 1 << PLACES)
        inside = [i for i in range(len(name)) if members >> i & 1]
        for i in inside:
            total = plus(total, about.polynomials[name[i][0]], name[i][1])
        share = Fraction(sum(pool[i] for i in inside), sum(pool))
        return about.space.bounded(total, share + root / 2, False)


class Likelihood:
    """Σ K_f·log f(θ) ≥ T at the true parameters: batches after a pilot, each predicted by those before."""

    def __init__(self, about: Learned, data: Data, delta: Fraction):
        self.about, space = about, about.space
        self.unknown = [e for e in about.used if not is_number(about.polynomials[e])]
        self.forms = {e: space.affine(about.polynomials[e]) for e in self.unknown}
        pilot, number = pilot_of(data)
        self.planned = number is None and data.design != "adaptive"
        chosen = about.pilot_share
        require(chosen is None or number is not None, "shares of pilots where a plan decides", 1)
        threshold: Fraction | None = log_of(delta)[0]
        shares = {pilot: 1}
        if number is not None:
            # Mixed with weights 1/((j+1)(j+2)), in whole shares; everything is multiplied by their sum.
            mixed = {number: 1} if chosen is None else {j: n for j, n in enumerate(chosen) if n}
            shares, total = {10 * j: n for j, n in mixed.items()}, sum(mixed.values())
            prices = [n * log_of(Fraction(n * (j + 1) * (j + 2), total))[1] for j, n in mixed.items()]
            threshold = total * log_of(delta)[0] - sum(prices)
        search = Search(space, [self.forms[e] for e in self.unknown], data.prior)
        so_far, self.weight = dict.fromkeys(self.unknown, 0), dict.fromkeys(self.unknown, 0)
        for place, batch in enumerate(data.batches):
            seen = dict.fromkeys(self.unknown, 0)
            for t, count in batch:
                if about.expression[t] in seen:
                    seen[about.expression[t]] += count
            times = sum(n for batches, n in shares.items() if batches <= place)
            if times and any(seen.values()):
                score = self._score(search.estimate([so_far[e] for e in self.unknown]), seen)
                threshold = None if threshold is None or score is None else threshold + times * score
                self.weight = {e: self.weight[e] + times * seen[e] for e in seen}
            so_far = {e: so_far[e] + seen[e] for e in seen}
        self.threshold = threshold

    def _score(self, point: list[float], seen: dict[int, int]) -> Fraction | None:
        """Not above the batch's log-likelihood at the point; None where the point says nothing."""
        x = self.about.space.lifted([Fraction(value) for value in point])
        if not all(row is None or dot(row[0], x) <= row[1] for row in self.about.space.rows):
            return None
        value = {e: dot(linear, x) + constant for e, (linear, constant) in self.forms.items()}
        if any(v < 0 for v in value.values()) or any(value[e] == 0 for e, k in seen.items() if k):
            return None
        return sum((k * log_of(near(value[e])[0] or value[e])[0] for e, k in seen.items() if k), Fraction(0))

    def row(self, point: list[float]) -> Row:
        """Σ t·f(x) ≥ T − Σ K·log(K/t) + Σ K for any t > 0, of which K/f(point) are best at the point."""
        threshold = self.threshold
        require(threshold is not None, "there is nothing to cut", 1)
        x, bound = [Fraction(value) for value in point], -given(threshold, "")
        linear = [Fraction(0)] * len(x)
        for e, k in self.weight.items():
            if k:
                form, constant = self.forms[e]
                there = dot(form, x) + constant
                require(there > 0, "a cut where something seen has no probability", 1)
                t = Fraction(float(k / there))
                bound += k * log_of(k / t)[1] - k + t * constant
                linear = [a - t * b for a, b in zip(linear, form, strict=True)]
        return linear, near(bound)[1]


def pilot_of(data: Data) -> tuple[int, int | None]:
    """(batches of the pilot, j): with a plan those within its first tenth; else 10·j batches, for a price."""
    sizes = [sum(count for _, count in batch) for batch in data.batches]
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    if data.design == "generative-fixed" and not data.prior:
        return first_tenth(ends), None
    if data.episodes is not None and not data.anytime and not data.prior:
        planned = planned_ends(data.episodes)
        if data.design == "trajectories" and len(planned) == len(sizes):
            return first_tenth(planned), None
        if data.planned is not None and len(planned) == len(sizes):
            return min(first_tenth(planned_ends(data.planned)), len(sizes)), None
    number = first_tenth(ends) // 10
    return 10 * number, number


def first_tenth(ends: list[int]) -> int:
    return sum(10 * end <= ends[-1] for end in ends)


def planned_ends(episodes: int) -> list[int]:
    """Each end is 5/4 of the one before, at least one more."""
    ends = [0]
    while ends[-1] < episodes:
        ends.append(min(episodes, max(ends[-1] + 1, ends[-1] * 5 // 4)))
    return ends[1:]


class Search:
    """Estimates that predict a batch: the maximum of Σ K·log f + ½·Σ log(room to each face of the domain),
    looked for in doubles. Whatever is found is a function of earlier batches: that is all that matters."""

    def __init__(self, space: Coordinates, forms: list[Row], prior: list[tuple[int, float, float]]):
        size = len(space.free)
        self.products, self.strength = space.products, list[float]()
        for parameter, happened, did_not in prior:
            require(parameter < len(space.domain.lower), "a prior of no parameter", 1)
            linear, constant = space.affine({((parameter, 1),): Fraction(1)})
            forms = [*forms, (linear, constant), ([-a for a in linear], 1 - constant)]
            self.strength += [happened, did_not]
        self.forms = [([float(a) for a in linear], float(constant)) for linear, constant in forms]
        rows = [row for row in space.rows if row is not None and any(row[0][:size])]
        self.faces = [([float(a) for a in linear[:size]], float(bound)) for linear, bound in rows]
        lower, upper = space.start_box()
        middle = [float(a + b) / 2 for a, b in zip(lower[:size], upper[:size], strict=True)]
        self.centre = self._inside(middle)
        self.centre = climb(self.centre, self.products, self.forms, [0.0] * len(forms), self.faces)

    def estimate(self, weight: list[int]) -> list[float]:
        counts = [*map(float, weight), *self.strength]
        return climb(self.centre, self.products, self.forms, counts, self.faces)

    def _inside(self, middle: list[float]) -> list[float]:
        """A point off all faces: a slack that all of them are given is pushed down."""
        scales = [max([abs(a) for a in face] + [1e-300]) for face, _ in self.faces]
        over = [
            (fdot(face, middle) - bound) / scale
            for (face, bound), scale in zip(self.faces, scales, strict=True)
        ]
        slack = max([*over, -1.0])
        if slack < 0:
            return middle
        faces = [([*face, -scale], bound) for (face, bound), scale in zip(self.faces, scales, strict=True)]
        push = [([0.0] * len(middle) + [-1.0], 2 * slack + 3)]
        return climb([*middle, 1.01 * slack + 1], [], push, [1e6 * len(scales)], faces)[:-1]


def fdot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def climb(
    start: list[float],
    products: list[tuple[int, int]],
    forms: list[tuple[list[float], float]],
    weight: list[float],
    faces: list[tuple[list[float], float]],
) -> list[float]:
    """Damped Newton steps from a point inside; from any other point that point itself."""
    used = [(linear, constant, k) for (linear, constant), k in zip(forms, weight, strict=True) if k > 0]
    size = len(start)

    def lifted(t: list[float]) -> tuple[list[float], list[list[float]]]:
        values, slopes = list(t), [[float(i == j) for i in range(size)] for j in range(size)]
        for x, y in products:
            slopes.append([a * values[y] + b * values[x] for a, b in zip(slopes[x], slopes[y], strict=True)])
            values.append(values[x] * values[y])
        return values, slopes

    def height(t: list[float]) -> float:
        x = lifted(t)[0]
        rooms = [(bound - fdot(face, t), bound) for face, bound in faces]
        chances = [(fdot(linear, x) + constant, k) for linear, constant, k in used]
        if any(room <= 1e-13 * (1 + abs(bound)) for room, bound in rooms) or any(p <= 0 for p, _ in chances):
            return -inf
        return sum(k * log(p) for p, k in chances) + 0.5 * sum(log(room) for room, _ in rooms)

    t = list(start)
    try:
        value = height(t)
        for _ in range(60 if value > -inf else 0):
            x, slopes = lifted(t)
            gradient, bend = [0.0] * size, [[0.0] * size for _ in range(size)]
            pulls = []
            for linear, constant, k in used:
                p = fdot(linear, x) + constant
                slope = [sum(a * s[i] for a, s in zip(linear, slopes, strict=True) if a) for i in range(size)]
                pulls.append((slope, k / p, k / p**2))
            for face, bound in faces:
                room = bound - fdot(face, t)
                pulls.append((face, -0.5 / room, 0.5 / room**2))
            for slope, first, second in pulls:
                for i, a in enumerate(slope):
                    if a:
                        gradient[i] += first * a
                        for j, b in enumerate(slope):
                            bend[i][j] += second * a * b
            step = solved(bend, gradient)
            gain, length = fdot(gradient, step), 1.0
            while length > 1e-12:
                trial = [a + length * b for a, b in zip(t, step, strict=True)]
                reached = height(trial)
                if reached >= value + 0.1 * length * gain or (gain <= 1e-8 and reached > -inf):
                    break
                length /= 2
            else:
                break
            t, value = trial, reached
            if not gain > 1e-8:
                break
    except (ArithmeticError, ValueError):
        pass
    return t


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        best = max(range(i, size), key=lambda j: abs(rows[j][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    result = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * result[j] for j in range(i + 1, size))
        result[i] = (rows[i][size] - known) / rows[i][i]
    return result


# Bets against parameters. Whatever they are, they are functions of earlier batches, and fair in integers.

GRID = 2.0**-50
NEVER = 1e150
Moves = list[tuple[int, int, int, float]]
"""(state, transition, successor, weight of its choice)."""


def shortened(vector: list[float], bits: int) -> list[float]:
    """Every component rounded to so many significant bits."""
    parts = [frexp(value) for value in vector]
    return [ldexp(round(ldexp(mantissa, bits)), exponent - bits) for mantissa, exponent in parts]


def sparse_solved(rows: list[dict[int, float]], right: list[float]) -> list[float] | None:
    """x of rows·x = right by elimination along the diagonal; None where that is 0."""
    rows, right = [dict(row) for row in rows], list(right)
    below: list[set[int]] = [set() for _ in rows]
    for i, row in enumerate(rows):
        for j in row:
            below[j].add(i)
    for i, row in enumerate(rows):
        pivot = row.get(i, 0.0)
        if pivot == 0.0 or not isfinite(pivot):
            return None
        for k in [k for k in below[i] if k > i]:
            factor = rows[k].pop(i) / pivot
            Work.spend(len(row))
            right[k] -= factor * right[i]
            for j, value in row.items():
                if j > i:
                    rows[k][j] = rows[k].get(j, 0.0) - factor * value
                    below[j].add(k)
    result = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        known = sum(value * result[j] for j, value in rows[i].items() if j > i)
        result[i] = (right[i] - known) / rows[i][i]
    return result


class Question:
    """How the value of a policy changes with the probabilities of transitions, in doubles."""

    def __init__(self, problem: Problem):
        self.problem, states = problem, range(problem.states)
        self.rate = 1.0 if problem.discount is None else float(problem.discount)
        self.earned = [float(r) for r in problem.rewards[0]]
        target, allowed = problem.target, problem.allowed
        self.fixed, self.value = [False] * len(states), [0.0] * len(states)
        if target is not None and problem.kind == "UNTIL":
            self.fixed = [target[s] or (allowed is not None and not allowed[s]) for s in states]
            self.value = [float(target[s]) for s in states]
        elif target is not None and problem.kind == "REACH_REWARD":
            self.fixed = list(target)
            self.value = [float(problem.terminal[s]) if target[s] else 0.0 for s in states]
        self.sign = 1.0 if problem.agent == "MAX" else -1.0
        earning = {s for s in states for c in problem.of_state[s] if self.earned[c] > 0}
        self.decided = self.known(self.moves([1.0] * problem.choices), earning)
        self.order = self._layers()

    def moves(self, weight: list[float]) -> Moves:
        problem, result = self.problem, Moves()
        for s, span in enumerate(problem.of_state):
            for c in span:
                if weight[c] > 0:
                    span_of = range(problem.transition_start[c], problem.transition_start[c + 1])
                    result += [(s, t, problem.successor[t], weight[c]) for t in span_of]
        return result

    @property
    def ends(self) -> list[int]:
        until = self.problem.kind == "UNTIL"
        return [s for s, held in enumerate(self.fixed) if held and (not until or self.value[s] > 0)]

    def known(self, moves: Moves, earning: set[int]) -> tuple[list[bool], list[float]]:
        """States whose value follows from the graph, with these values."""
        kind = self.problem.kind
        if kind == "DISCOUNTED":
            return self.fixed, self.value
        before: dict[int, list[int]] = {}
        for s, _, after, _ in moves:
            if not self.fixed[s]:
                before.setdefault(after, []).append(s)
        front = sorted(earning) if kind == "TOTAL" else self.ends
        back = set(front)
        for s in front:
            for earlier in before.get(s, ()):
                if earlier not in back:
                    back.add(earlier)
                    front.append(earlier)
        held = [fixed or s not in back for s, fixed in enumerate(self.fixed)]
        if kind != "REACH_REWARD":
            return held, self.value
        return held, [v if s in back or self.fixed[s] else NEVER for s, v in enumerate(self.value)]

    def _layers(self) -> list[int] | None:
        """States that are not decided, each behind all that it leads to; None where there are cycles."""
        held, moves = self.decided[0], self.moves([1.0] * self.problem.choices)
        left, before = [0] * self.problem.states, dict[int, list[int]]()
        for s, _, after, _ in moves:
            if not held[s]:
                left[s] += 1
                before.setdefault(after, []).append(s)
        front = [s for s, number in enumerate(left) if number == 0]
        for s in front:
            for earlier in before.get(s, ()):
                left[earlier] -= 1
                if left[earlier] == 0:
                    front.append(earlier)
        return [s for s in front if not held[s]] if len(front) == self.problem.states else None

    def gain(self, c: int, chance: list[float], values: list[float]) -> float:
        problem = self.problem
        span = range(problem.transition_start[c], problem.transition_start[c + 1])
        Work.spend(len(span))
        mean = sum((chance[t] * values[problem.successor[t]] for t in span), 0.0)
        return self.earned[c] + self.rate * mean

    def best(self, s: int, chance: list[float], values: list[float]) -> tuple[float, int]:
        """The best gain, and the first choice that has it or nearly so."""
        gains = [self.sign * self.gain(c, chance, values) for c in self.problem.of_state[s]]
        best = max(gains)
        first = next(i for i, g in enumerate(gains) if g >= best - 1e-9 * (1.0 + abs(best)))
        return best, self.problem.of_state[s][first]

    def best_policy(self, chance: list[float], begin: list[int] | None) -> list[int] | None:
        problem, (held, value) = self.problem, self.decided
        policy = [span[0] for span in problem.of_state]
        if self.order is not None:
            values = [v if h else 0.0 for h, v in zip(held, value, strict=True)]
            for s in self.order:
                best, policy[s] = self.best(s, chance, values)
                values[s] = self.sign * best
            return policy
        policy = self._ending(policy) if begin is None else begin
        for _ in range(200):
            taken = set(policy)
            weight = [float(c in taken) for c in range(problem.choices)]
            chain = Chain(self, weight, chance, range(problem.states))
            if chain.values is None:
                return None
            better = False
            for s in range(problem.states):
                best, first = self.best(s, chance, chain.values)
                if not held[s] and best > self.sign * chain.values[s] + 1e-9 * (1.0 + abs(best)):
                    policy, better = [*policy[:s], first, *policy[s + 1 :]], True
            if not better:
                break
        return policy

    def met(self, policy: Any) -> Any:
        """The same for policies that differ in states only that are never met."""
        if isinstance(policy[0], list):
            return tuple(map(tuple, policy))
        problem, front = self.problem, [self.problem.initial]
        met, taken, held = set(front), list[int](), self.decided[0]
        for s in front:
            taken += [c for c in problem.of_state[s] if policy[c]]
            after = {problem.successor[t] for c in problem.of_state[s] if policy[c] for t in self._span(c)}
            if not held[s] or problem.lower_steps:
                front += sorted(after - met)
                met |= after
        return tuple(taken)

    def _ending(self, policy: list[int]) -> list[int]:
        """From every state a choice on a shortest way to where values are decided."""
        held = self.decided[0]
        if not any(held):
            return policy
        moves = [move for move in self.moves([1.0] * self.problem.choices) if not held[move[0]]]
        before: dict[int, set[int]] = {}
        for s, _, after, _ in moves:
            before.setdefault(after, set()).add(s)
        total = self.problem.kind == "TOTAL"
        front = [s for s, h in enumerate(held) if h] if total else self.ends
        towards = dict.fromkeys(front, -1)
        for s in front:
            for earlier in sorted(before.get(s, ())):
                if earlier not in towards:
                    towards[earlier] = s
                    front.append(earlier)
        choice_of = {t: c for s in self.problem.of_state for c in s for t in self._span(c)}
        policy = list(policy)
        for s, t, after, _ in reversed(moves):
            if towards.get(s) == after:
                policy[s] = choice_of[t]
        return policy

    def _span(self, c: int) -> range:
        return range(self.problem.transition_start[c], self.problem.transition_start[c + 1])

    def phases(self) -> list[tuple[int, list[bool], list[float]]]:
        """(backups, where the value is then set, to what)."""
        problem, size = self.problem, self.problem.states
        nowhere, zero = [False] * size, [0.0] * size
        if problem.kind == "CUMULATIVE" or problem.kind == "NEXT":
            return [(problem.steps or 0, nowhere, zero)]
        result = []
        if problem.kind == "UNTIL" and problem.target is not None:
            barred = nowhere if problem.allowed is None else [not a for a in problem.allowed]
            if problem.upper_steps is not None:
                ended = [a or b for a, b in zip(barred, problem.target, strict=True)]
                reached = [float(a) for a in problem.target]
                result.append((problem.upper_steps - problem.lower_steps, ended, reached))
            if problem.lower_steps:
                result.append((problem.lower_steps, barred, zero))
        return result

    def first_values(self) -> list[float] | None:
        """What a bounded number of steps begins with; None where an equation says that."""
        if self.problem.kind == "CUMULATIVE":
            return [0.0] * self.problem.states
        if self.problem.target is None or self.problem.steps is None:
            return None
        return [float(a) for a in self.problem.target]

    def best_steps(self, chance: list[float]) -> list[list[int]] | None:
        """A choice for every state and step, the last step first."""
        values, choices = self.first_values(), list[list[int]]()
        if values is None:
            return None
        for steps, held, value in self.phases():
            for _ in range(steps):
                found = [self.best(s, chance, values) for s in range(self.problem.states)]
                values = [
                    v if h else self.sign * best for h, v, (best, _) in zip(held, value, found, strict=True)
                ]
                choices.append([first for _, first in found])
        return choices

    def step_slopes(self, choices: list[list[int]], chance: list[float]) -> list[float] | None:
        """The slopes of a policy that has a choice for every state and step."""
        values: list[list[float]] = [given(self.first_values(), "no steps")]
        problem = self.problem
        held = [(fixed, value) for steps, fixed, value in self.phases() for _ in range(steps)]
        for choice, (fixed, value) in zip(choices, held, strict=True):
            gains = [self.gain(c, chance, values[-1]) for c in choice]
            values.append([v if h else g for h, v, g in zip(fixed, value, gains, strict=True)])
        visits, slope = [0.0] * problem.states, [0.0] * len(problem.successor)
        visits[problem.initial] = 1.0
        for step in reversed(range(len(choices))):
            onward = [0.0] * problem.states
            for s, weight in enumerate(visits):
                if weight > 0 and not held[step][0][s]:
                    for t in self._span(choices[step][s]):
                        slope[t] += weight * self.rate * values[step][problem.successor[t]]
                        onward[problem.successor[t]] += weight * self.rate * chance[t]
            visits = onward
        slope = [-a for a in slope] if problem.complement else slope
        return slope if all(map(isfinite, slope)) else None

    def slopes(self, weight: list[float], chance: list[float]) -> list[float] | None:
        """∂value/∂probability by transition, of the policy that takes choices with these weights."""
        problem, moves = self.problem, self.moves(weight)
        chain = Chain(self, weight, chance, None)
        if chain.values is None:
            return None
        phases, first = self.phases(), self.first_values()
        values = [chain.values if first is None else first]
        for steps, held, value in phases:
            for _ in range(steps):
                backed = chain.backup(values[-1])
                values.append([v if h else b for h, v, b in zip(held, value, backed, strict=True)])
        visits, slope = [0.0] * problem.states, [0.0] * len(problem.successor)
        visits[problem.initial], step = 1.0, len(values) - 1
        pairs: list[tuple[list[float], list[float]]] = []
        for steps, held, _ in reversed(phases):
            for _ in range(steps):
                step -= 1
                visits = [0.0 if h else v for h, v in zip(held, visits, strict=True)]
                pairs.append((visits, values[step]))
                visits = chain.onward(visits)
        if first is None:
            pairs.append((chain.visits(visits), values[0]))
        for s, t, after, share in moves:
            if chain.met[s] and chain.met[after]:
                slope[t] = share * self.rate * sum(seen[s] * bound[after] for seen, bound in pairs)
        slope = [-a for a in slope] if problem.complement else slope
        return slope if all(map(isfinite, slope)) else None


class Chain:
    """A policy's chain on what it meets, or on all states: values without a bound on steps, None where the
    equations have no solution or a value is infinite."""

    def __init__(
        self, question: Question, weight: list[float], chance: list[float], everywhere: range | None
    ):
        problem, self.question, self.chance = question.problem, question, chance
        self.moves, size = question.moves(weight), problem.states
        self.reward = [sum(weight[c] * question.earned[c] for c in span) for span in problem.of_state]
        self.values: list[float] | None = [0.0] * size
        self.fixed, known = [False] * size, [0.0] * size
        bounded = problem.steps is not None
        if not bounded:
            earning = {s for s, r in enumerate(self.reward) if r > 0}
            self.fixed, known = question.known(self.moves, earning)
        front = list(everywhere or [problem.initial])
        self.met = [s in set(front) for s in range(size)]
        after_of: dict[int, list[int]] = {}
        for s, _, after, _ in self.moves:
            after_of.setdefault(s, []).append(after)
        for s in front:
            for after in after_of.get(s, ()) if not self.fixed[s] or problem.lower_steps else ():
                if not self.met[after]:
                    self.met[after] = True
                    front.append(after)
        if everywhere is None and any(m and v >= NEVER for m, v in zip(self.met, known, strict=True)):
            self.values = None
            return
        self.free = [s for s in range(size) if self.met[s] and not self.fixed[s]]
        self.place = {s: i for i, s in enumerate(self.free)}
        if bounded:
            return
        self.rows: list[dict[int, float]] = [{i: 1.0} for i in range(len(self.free))]
        right = [self.reward[s] for s in self.free]
        for s, t, after, share in self.moves:
            if s in self.place and self.met[after]:
                entry, i = share * question.rate * chance[t], self.place[s]
                if after in self.place:
                    j = self.place[after]
                    self.rows[i][j] = self.rows[i].get(j, 0.0) - entry
                else:
                    right[i] += entry * known[after]
        solution = sparse_solved(self.rows, right)
        if solution is None:
            self.values = None
            return
        values = [v if f else 0.0 for v, f in zip(known, self.fixed, strict=True)]
        for s, value in zip(self.free, solution, strict=True):
            values[s] = value
        self.values = values

    def backup(self, values: list[float]) -> list[float]:
        result = list(self.reward)
        Work.spend(len(self.moves))
        for s, t, after, share in self.moves:
            if self.met[s] and self.met[after]:
                result[s] += share * self.question.rate * self.chance[t] * values[after]
        return result

    def onward(self, visits: list[float]) -> list[float]:
        result = [0.0] * len(visits)
        for s, t, after, share in self.moves:
            if self.met[s] and self.met[after]:
                result[after] += share * self.question.rate * self.chance[t] * visits[s]
        return result

    def visits(self, begin: list[float]) -> list[float]:
        """Expected visits where the rows are begun from with these weights; fixed ones end."""
        turned: list[dict[int, float]] = [{} for _ in self.free]
        for i, row in enumerate(self.rows):
            for j, value in row.items():
                turned[j][i] = value
        result = [0.0] * len(begin)
        found = sparse_solved(turned, [begin[s] for s in self.free])
        for s, value in zip(self.free, found or [0.0] * len(self.free), strict=True):
            result[s] = value
        return result


class Schedule:
    """When bets are placed, and for which amounts of data."""

    def __init__(self, data: Data):
        sizes = [sum(count for _, count in batch) for batch in data.batches]
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        plan, pilot, middle = None, 10, None
        self.planned: float | None = None
        if data.episodes is not None and len(own := planned_ends(data.episodes)) == len(sizes):
            plan = data.episodes if data.planned is None and data.design == "trajectories" else data.planned
            ends = ends if plan is None else own
        if plan is not None and data.anytime:
            middle = float(plan)
        elif plan is not None:
            stated = planned_ends(plan)
            pilot = max(sum(end <= 0.03 * plan for end in stated), 5)
            left = max(float(plan - stated[min(pilot, len(stated)) - 1]), 1.0) if stated else 1.0
            self.planned = left
        self.placed: list[int] = []
        for batch in range(pilot, len(sizes)):
            before = ends[batch - 1]
            if before > 0 and (not self.placed or before >= 1.5 * ends[self.placed[-1] - 1]):
                self.placed.append(batch)
        self.so_far = [float(ends[batch - 1]) for batch in self.placed]
        amounts = [(4096.0, j) for j in range(-4, 8)]
        if middle is not None:
            amounts = [(middle, j) for j in range(-7, 3)]
        self.scales = [
            (base * 4.0**j, Fraction(1, 4 * abs(j) * (abs(j) + 1)) if j else Fraction(1, 2))
            for base, j in amounts
        ]
        if self.planned is not None:
            self.scales = [(self.planned, Fraction(1))]


class Bets:
    """Stakes by side, scale and time on outcomes of groups of choices, and what was seen while they stood."""

    def __init__(self, about: Learned, data: Data, weights: list[float] | None, delta: Fraction):
        problem, space = about.problem, about.space
        plain = problem.kind not in ("TEMPORAL", "AVERAGE") and problem.earned is None
        require(plain, "bets on such a question are not read by this checker", NOT_READ)
        best = (weights is None and data.intervals) or data.method.endswith("best")
        maximises = problem.agent == "MAX"
        self.sides = [int(maximises == problem.complement)] if weights is None else [0, 1]
        few, left = data.method.endswith("few data"), Schedule(data).planned
        planned_few = left is not None and left < 120 * len(space.free)
        require(not few or (len(self.sides) == 2 and planned_few), "bets of few data where there are many", 1)
        if best or len(self.sides) == 2:
            self.guard = delta / 4 if best else delta * 3 / 10 if few else delta / 10
            self.level = (delta - self.guard) / len(self.sides)
        else:
            percent = max(round(100 * exp((1 - 1.025**2) * (1.8 * len(space.free) - log(delta)))), 60)
            self.guard, self.level = delta * percent / 100, delta * (100 - percent) / 100
        self.about, self.forms = about, {e: space.affine(about.polynomials[e]) for e in about.used}
        self.doubles = {e: ([float(a) for a in form], float(c)) for e, (form, c) in self.forms.items()}
        self.groups = sorted({tuple(outcomes) for outcomes in about.outcomes})
        self.schedule, self.question = Schedule(data), Question(problem)
        unknown = [e for e in about.used if not is_number(about.polynomials[e])]
        search = Search(space, [self.forms[e] for e in unknown], [])
        self.former = "value slab" not in data.method  # as bets of files from before were placed
        self.held: list[Any] = [] if best or weights is None else [weights]
        self.frozen = bool(self.held)
        self.several = not (self.held or self.former or planned_few or left is None)
        t, price, smooth = search.centre, -log(self.level), 1.0 if self.former or planned_few else 2.0**-6
        placed: list[list[list[list[dict[tuple[Any, int], float]]]]] = []
        self.seen: list[dict[tuple[Any, int], int]] = []
        group_of = [tuple(outcomes) for outcomes in about.outcomes]
        choice_of = [c for c, (a, b) in enumerate(pairwise(problem.transition_start)) for _ in range(b - a)]
        for number, batch in enumerate(self.schedule.placed):
            so_far, end = dict.fromkeys(unknown, 0), [*self.schedule.placed, len(data.batches)][number + 1]
            for entry, count in (one for earlier in data.batches[:batch] for one in earlier):
                if about.expression[entry] in so_far:
                    so_far[about.expression[entry]] += count
            t = self._estimate(search, t, [float(so_far[e]) for e in unknown])
            x, slopes = lifted_at(t, search.products)
            chances = {e: fdot(form, x) + c for e, (form, c) in self.doubles.items()}
            chance = [min(max(chances[e], 0.0), 1.0) for e in about.expression]
            share = None
            if self.schedule.planned is not None:
                share = self.schedule.so_far[number] / (self.schedule.planned + self.schedule.so_far[0])
            nearby = None
            if self.several and not self.frozen:
                seen = self._information(search, t, chances, so_far, slopes, 1.0, 1.0)
                nearby = Nearby(self, search, t, slopes, seen)
            informations = [
                self._information(
                    search, t, chances, so_far, slopes, amount / self.schedule.so_far[number], smooth
                )
                for amount, _ in self.schedule.scales
            ]
            found = [self._along(slope, slopes) for slope in self._slopes(chance, share, nearby) or []]
            placed.append(
                [
                    [
                        self._place(search, t, wanted, information, price, chances, slopes)
                        for along in found
                        for wanted in [[-a for a in along] if side else along]
                        for information in informations
                    ]
                    for side in self.sides
                ]
            )
            met: dict[tuple[Any, int], int] = {}
            for entry, count in (one for later in data.batches[batch:end] for one in later):
                name = group_of[choice_of[entry]], about.expression[entry]
                met[name] = met.get(name, 0) + count
            self.seen.append(met)
        bettors = len(self.held) or 1
        self.weights = [weight / bettors for _ in range(bettors) for _, weight in self.schedule.scales]
        self.stakes: list[list[list[dict[tuple[Any, int], float]]]] = [
            [[each[place][i] if each[place] else {} for each in placed] for i in range(len(self.weights))]
            for place in range(len(self.sides))
        ]

    def _estimate(self, search: Search, begin: list[float], weight: list[float]) -> list[float]:
        found = begin
        for _ in range(2):
            found = climb(found, search.products, search.forms, weight, search.faces)
        short = shortened(found, 28)
        inside = all(
            bound - fdot(face, short) > 0.5 * (bound - fdot(face, found)) for face, bound in search.faces
        )
        return short if inside else found

    def _slopes(
        self, chance: list[float], share: float | None, nearby: Nearby | None
    ) -> list[list[float]] | None:
        """The slopes of the values that are bet on: the given policy's, or the best one's and those of others
        that may be, which stay from a quarter of the plan on."""
        held, ended = self.held, share is not None and share >= 1.0
        if not held or not (self.frozen or (ended and len(held) > 1)):
            best = self._best(chance, held[0] if held else None)
            if best is None:
                return None
            held = [best]
            if nearby is not None and not ended:
                held = self._likely(best, chance, nearby)
            if not ended:
                self.held, self.frozen = held, share is not None and share >= 0.25
        found = [self._slopes_of(policy, chance) for policy in held]
        return None if None in found else [slope for slope in found if slope is not None]

    def _best(self, chance: list[float], start: Any) -> Any:
        """Weights of choices, or choices by steps where these are bounded."""
        if self.about.problem.upper_steps is not None:
            return self.question.best_steps(chance)
        begin = None if start is None else [c for c, w in enumerate(start) if w]
        policy = self.question.best_policy(chance, begin)
        taken = set(policy or ())
        return None if policy is None else [float(c in taken) for c in range(self.about.problem.choices)]

    def _slopes_of(self, policy: Any, chance: list[float]) -> list[float] | None:
        by_steps = isinstance(policy[0], list)
        return (self.question.step_slopes if by_steps else self.question.slopes)(policy, chance)

    def _likely(self, best: Any, chance: list[float], nearby: Nearby) -> list[Any]:
        """The best policy and those that are best at most of the points, three at most, or as many as before:
        then those that are still among them stay. Such with nearly parallel gradients are one."""
        problem, groups, count = self.about.problem, list[tuple[Any, list[float]]](), list[int]()
        steps = 1 + (problem.upper_steps or 0)
        points = min(POINTS, 2**20 // (steps * max(len(problem.successor), 1)))

        known: dict[Any, list[float] | None] = {}

        def group_of(policy: Any, opens: bool) -> int | None:
            name = self.question.met(policy)
            if name not in known:
                slope = self._slopes_of(policy, chance)
                along = None if slope is None else self._along(slope, nearby.slopes)
                known[name] = None if along is None else nearby.direction(along)
            seen = known[name]
            if seen is None:
                return None
            for number, (_, other) in enumerate(groups):
                if fdot(seen, other) > 0.999:
                    return number
            if not opens:
                return None
            groups.append((policy, seen))
            count.append(0)
            return len(groups) - 1

        for policy in (best, *(self._best(nearby.chance(i), best) for i in range(points))):
            group = None if policy is None else group_of(policy, True)
            if group is not None:
                count[group] += 1
        first = group_of(best, False)
        order = sorted(range(len(groups)), key=lambda group: (group != first, -count[group]))
        if not groups:
            return self.held or [best]
        if not self.held:
            return [groups[group][0] for group in order[:3]]
        order = order[: len(self.held)]
        own = [group_of(policy, False) for policy in self.held]
        free = [group for group in order if group not in own]
        for place, group in enumerate(own):
            if group not in order or group in own[:place]:
                own[place] = free.pop(0) if free else order[0]
        return [groups[given(group, "no group")][0] for group in own]

    def _along(self, slope: list[float], slopes: list[list[float]]) -> list[float]:
        """The gradient in free parameters."""
        total = [0.0] * self.about.space.size
        for e, value in zip(self.about.expression, slope, strict=True):
            if value:
                total = [a + value * b for a, b in zip(total, self.doubles[e][0], strict=True)]
        return in_free(total, slopes)

    def _information(
        self,
        search: Search,
        t: list[float],
        chances: dict[int, float],
        so_far: dict[int, int],
        slopes: list[list[float]],
        growth: float,
        smooth: float,
    ) -> list[list[float]]:
        size = len(t)
        total = [[0.0] * size for _ in range(size)]
        pulls = [
            (in_free(self.doubles[e][0], slopes), growth * k / max(chances[e], 1e-300) ** 2)
            for e, k in so_far.items()
            if k > 0
        ]
        pulls += [
            (face, smooth * 0.5 / max(bound - fdot(face, t), 1e-150) ** 2) for face, bound in search.faces
        ]
        for slope, weight in pulls:
            for i, a in enumerate(slope):
                if a:
                    total[i] = [old + weight * a * b for old, b in zip(total[i], slope, strict=True)]
        return total

    def _place(
        self,
        search: Search,
        t: list[float],
        wanted: list[float],
        information: list[list[float]],
        price: float,
        chances: dict[int, float],
        slopes: list[list[float]],
    ) -> dict[tuple[Any, int], float]:
        size, faces = len(t), [face for face, _ in search.faces]
        room = [max(bound - fdot(face, t), 1e-300) for face, bound in search.faces]
        unit = [[float(i == j) for i in range(size)] for j in range(size)]
        inverse = [solved(information, one) for one in unit]
        normal = helped(wanted, inverse, faces, room, price)
        step = [fdot(row, normal) for row in inverse]
        length, alone = fdot(normal, step), fdot(wanted, [fdot(row, wanted) for row in inverse])
        if not 1e-6 * alone < length < inf:
            return {}
        h = shortened([a * sqrt(2.0 * price / length) for a in step], 12)
        moved = [fdot(row, h) for row in slopes]
        result: dict[tuple[Any, int], float] = {}
        for group in self.groups:
            slope = [fdot(self.doubles[e][0], moved) for e, _ in group]
            chance = [max(chances[e], 0.0) for e, _ in group]
            most = max(
                (-4.0 * a / p if p else inf for a, p in zip(slope, chance, strict=True) if a < 0), default=0.0
            )
            if most > 2.0**30 or sum(m for _, m in group) > 4096:
                continue
            factor = 2.0 ** -ceil(log2(max(most, 1.0)))
            units = [floor(factor * a / GRID) for a in slope]
            over = max(sum(m * n for (_, m), n in zip(group, units, strict=True)), 0)
            units[0] -= -(-over // group[0][1])
            require(sum(m * n for (_, m), n in zip(group, units, strict=True)) <= 0, "a bet that wins", 1)
            result.update({(group, e): n * GRID for (e, _), n in zip(group, units, strict=True) if n})
        return result

    def rows(self, bounds: dict[int, Ends], stage: SlabStage, guard: Likelihood) -> list[Row]:
        """The rows of a stage, where expressions are within these bounds."""
        side, times, sides = stage.side, stage.times, len(self.sides)
        side = list(range(sides)) if side is None else side
        times = [0.0] * len(side) if times is None else times
        shares, scales = stage.shares, len(self.weights)
        fits = len(stage.points) == len(shares) == len(side) == len(times) <= 64
        fits = fits and all(j < sides for j in side)
        fits = fits and all(len(share) == scales and sum(share) > 0 for share in shares)
        require(fits, "the points or shares of a slab do not fit its bets", 1)
        doubles = {e: (float(low), float(max(low, high))) for e, (low, high) in bounds.items()}
        each = zip(side, stage.points, shares, times, strict=True)
        return [self._row(self.stakes[j], *one, doubles, guard) for j, *one in each]

    def _row(
        self,
        stakes: list[Any],
        point: list[float],
        share: list[int],
        times: float,
        bounds: dict[int, tuple[float, float]],
        guard: Likelihood,
    ) -> Row:
        """Σ π·Λ − μ·ℓ < log(1/α) + Σ π·log(π/w) − μ·T, and the left is above the lines that its terms are
        above."""
        total, linear = sum(share), [Fraction(0)] * self.about.space.size
        bound, off = -log_of(self.level)[0], dict[int, Fraction]()
        if times:
            threshold: Fraction = given(guard.threshold, "no evidence to take off")
            bound -= Fraction(times) * threshold
            off = {e: Fraction(times) * k for e, k in guard.weight.items() if k}
        touched = {}
        for e, (low, high) in bounds.items():
            form, shift = self.doubles[e]
            touched[e] = min(max(fdot(form, point) + shift, max(low, 1e-9 * high)), high)
        lines: list[tuple[int, Fraction, Fraction]] = []
        losing: dict[int, list[tuple[Fraction, Fraction]]] = {}
        for weight, number, each in zip(self.weights, share, stakes, strict=True):
            if not number:
                continue
            part = Fraction(number, total)
            bound += part * log_of(part / weight)[1]
            for stake, seen in zip(each, self.seen, strict=True):
                lines += self._lines(stake, seen, part, bounds, touched, losing)
        for e in sorted({*losing, *off}):
            taken = off.get(e, Fraction(0))
            lines.append((e, *pooled(losing.get(e, []), taken, *bounds[e], touched[e])))
        for e, slope, constant in lines:
            form, shift = self.forms[e]
            bound -= constant + slope * shift
            if slope:
                linear = [a + slope * b for a, b in zip(linear, form, strict=True)]
        return linear, near(bound)[1]

    def _lines(
        self,
        stakes: dict[tuple[Any, int], float],
        seen: dict[tuple[Any, int], int],
        part: Fraction,
        bounds: dict[int, tuple[float, float]],
        touched: dict[int, float],
        losing: dict[int, list[tuple[Fraction, Fraction]]],
    ) -> Any:
        """(expression, slope, constant) of lines below K·log(1 + a/f); those of groups that take part for
        sure with a < 0 are only collected: (a, K)."""
        for group in self.groups:
            lost = {e: stakes[group, e] for e, _ in group if stakes.get((group, e), 0.0) < 0}
            apart = any(bounds[e][0] < -2 * a for e, a in lost.items())
            for e, _ in group:
                a, times = stakes.get((group, e), 0.0), part * seen.get((group, e), 0)
                low, high = bounds[e]
                if not times or not a or (a > 0 and (apart or high <= 0)):
                    continue
                Work.spend(200)
                stake = Fraction(a)
                if apart:
                    worst = log_of(1 + stake / Fraction(max(low, -2 * a)))[0]
                    yield e, Fraction(0), times * near(worst)[0]
                elif a > 0:
                    at = Fraction(touched[e])
                    exact = stake / (at * (at + stake))
                    slope = Fraction(float(exact))
                    constant = log_of(1 + stake / at)[0] + slope * at - abs(slope - exact) * Fraction(high)
                    yield e, -times * slope, times * near(constant)[0]
                else:
                    losing.setdefault(e, []).append((stake, times))


POINTS = 32


class Nearby:
    """Points around an estimate t: root·rootᵀ, the inverse of the information, is their spread."""

    def __init__(
        self,
        bets: Bets,
        search: Search,
        t: list[float],
        slopes: list[list[float]],
        information: list[list[float]],
    ):
        self.bets, self.search, self.slopes, size = bets, search, slopes, len(t)
        unit = [1.0 / sqrt(information[i][i]) for i in range(size)]
        scaled = [[a * unit[i] * unit[j] for j, a in enumerate(row)] for i, row in enumerate(information)]
        inverse = [solved(scaled, [float(i == j) for i in range(size)]) for j in range(size)]
        self.root = [[0.0] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                left = inverse[i][j] - fdot(self.root[i][:j], self.root[j][:j])
                self.root[i][j] = sqrt(max(left, 1e-300)) if i == j else left / self.root[j][j]
        self.root = [[a * unit[i] for a in row] for i, row in enumerate(self.root)]
        index = [1]
        while len(index) < size:
            index.append(2 * index[-1] ^ (37 if index[-1] >= 16 else 0))
        self.points: list[list[float]] = []
        for i in range(POINTS):
            signs = [-1.0 if (i & k).bit_count() % 2 else 1.0 for k in index]
            move = [fdot(row, signs) for row in self.root]
            reach = max(fdot(face, move) / max(bound - fdot(face, t), 1e-300) for face, bound in search.faces)
            factor = min(1.0, 0.9 / max(reach, 1e-300))
            self.points.append(shortened([a + factor * b for a, b in zip(t, move, strict=True)], 28))

    def chance(self, number: int) -> list[float]:
        """Of every transition at a point."""
        x, _ = lifted_at(self.points[number], self.search.products)
        chances = {e: fdot(form, x) + c for e, (form, c) in self.bets.doubles.items()}
        return [min(max(chances[e], 0.0), 1.0) for e in self.bets.about.expression]

    def direction(self, along: list[float]) -> list[float]:
        """A gradient as long as 1; two values that are estimated independently have orthogonal ones."""
        seen = [fdot(along, [row[j] for row in self.root]) for j in range(len(along))]
        size = max(sqrt(fdot(seen, seen)), 1e-300)
        return [a / size for a in seen]


def pooled(
    terms: list[tuple[Fraction, Fraction]], off: Fraction, low: float, high: float, point: float
) -> tuple[Fraction, Fraction]:
    """(slope, constant) of a line below g = Σ K·log(1 + a/f) − off·log f from low to high, 0 < −2·a ≤ low.

    f²·g'' rises, so g is concave, then convex. A line below g at both ends whose slope is at least g'(high)
    is below g in between, and so is one below g at `low` and below the tangent at a point where g'' ≥ 0.
    """

    def value(at: float) -> Fraction:
        logs = sum((k * near(log_of(1 + a / Fraction(at))[0])[0] for a, k in terms), Fraction(0))
        return logs - near(off * log_of(Fraction(at))[1])[1] if off else logs

    def slope_at(at: Fraction) -> Ends:
        each = [(k, near(-a / (at * (at + a)))) for a, k in terms]
        less, more = (sum((k * ends[i] for k, ends in each), Fraction(0)) for i in (0, 1))
        return less - near(off / at)[1], more - near(off / at)[0]

    if not terms:  # convex: log f ≤ log c + f/c − 1 for every c > 0, or −log f ≥ 0
        steep = float(off) / point if point > 0 else 0.0
        if not 0 < steep < inf:
            return Fraction(0), Fraction(0)
        slope = Fraction(steep)
        return -slope, near(off * (1 - log_of(off / slope)[1]))[0]
    Work.spend(2000 * len(terms))
    first = value(low)
    at = max(point, touching([(float(a), float(k)) for a, k in terms], float(off), low, high))
    there = Fraction(at)
    bends = [k * near(a * (2 * there + a) / (there + a) ** 2)[0] for a, k in terms]
    if at < high and off + sum(bends) >= 0:
        less, more = slope_at(there)
        slope = Fraction(float(more))
        missed = max(abs(slope - less), abs(slope - more)) * Fraction(high)
        constant = min(first - slope * Fraction(low), value(at) - slope * there - missed)
        return slope, near(constant)[0]
    last, steepest = value(high), upward(slope_at(Fraction(high))[1])
    chord = Fraction(float(last - first) / (high - low)) if high > low else steepest
    slope = max(chord, steepest)
    return slope, near(min(first - slope * Fraction(low), last - slope * Fraction(high)))[0]


def touching(terms: list[tuple[float, float]], off: float, low: float, high: float) -> float:
    """From where on tangents of g are below g(low); high if from nowhere. Only a good place to try."""

    def above(at: float) -> bool:
        value = sum(k * (log(1 + a / at) - log(1 + a / low)) for a, k in terms) - off * log(at / low)
        slope = sum(-k * a / (at * (at + a)) for a, k in terms) - off / at
        return value + slope * (low - at) > 0

    least, most = low, high
    for _ in range(40):
        middle = 0.5 * (least + most)
        least, most = (middle, most) if above(middle) else (least, middle)
    return most


def lifted_at(t: list[float], products: list[tuple[int, int]]) -> tuple[list[float], list[list[float]]]:
    """All coordinates at free parameters, and how each changes with these."""
    values, slopes = list(t), [[float(i == j) for i in range(len(t))] for j in range(len(t))]
    for x, y in products:
        slopes.append([a * values[y] + b * values[x] for a, b in zip(slopes[x], slopes[y], strict=True)])
        values.append(values[x] * values[y])
    return values, slopes


def in_free(linear: list[float], slopes: list[list[float]]) -> list[float]:
    """A form of all coordinates, by free parameters."""
    result = [0.0] * len(slopes[0])
    for a, slope in zip(linear, slopes, strict=True):
        if a:
            result = [old + a * b for old, b in zip(result, slope, strict=True)]
    return result


def helped(
    wanted: list[float],
    inverse: list[list[float]],
    faces: list[list[float]],
    room: list[float],
    price: float,
) -> list[float]:
    """n = wanted + Σ ν·face with ν ≥ 0 that minimises √(2·price·n·inverse·n) + ν·room, one ν at a time."""
    scale = sqrt(2.0 * price)
    bent = [[fdot(row, face) for row in inverse] for face in faces]
    square = [fdot(face, one) for face, one in zip(faces, bent, strict=True)]
    useful = [k for k, a in enumerate(square) if a > 0 and room[k] < scale * sqrt(a)]
    share, normal = [0.0] * len(faces), list(wanted)
    for _ in range(400):
        before = list(share)
        for k in useful:
            rest = [n - share[k] * a for n, a in zip(normal, faces[k], strict=True)]
            middle = fdot(rest, bent[k]) / square[k]
            spread = max(fdot(rest, [fdot(row, rest) for row in inverse]) / square[k] - middle**2, 0.0)
            slope = room[k] / (scale * sqrt(square[k]))
            best = max(0.0, -middle - sqrt(spread) * slope / sqrt(1.0 - slope**2))
            if best != share[k]:
                share[k] = best
                normal = [n + best * a for n, a in zip(rest, faces[k], strict=True)]
        if all(abs(a - b) <= 1e-13 * (1.0 + abs(a)) for a, b in zip(share, before, strict=True)):
            break
    return normal


# From statements to sets: rows of the region, its box, bounds of expressions.


class Learned:
    """The chain from counts to the bounds of every transition; `over` bounds a choice over the region."""

    def __init__(self, problem: Problem, node: Any, arrays: dict[str, Any]):
        own = Node(node, "learned.", arrays, "region coupled slab")
        require(isinstance(node["coupled"], list) and isinstance(node["slab"], list), "no lists of hints")
        require(node["coupled"] == [], "coupled proofs are not read by this checker", NOT_READ)
        data, self.problem = problem.data, problem
        bets = data is not None and data.bets
        require(node["slab"] == [] or bets, "stages of a slab where there is none", 1)
        require(len(node["slab"]) <= 8, "too many stages of a slab")
        lower, upper = own.reals("lower", None, 0.0, 1.0), own.reals("upper", None, 0.0, 1.0)
        costs = [own.reals(name) for name in ("cost_lower", "cost_upper")]
        require(costs == [None, None], "costs that were seen are not read by this checker", NOT_READ)
        self.pilot_share = own.integers("pilot_share", most=4096)
        fits = self.pilot_share is None or 0 < sum(self.pilot_share) <= 4096
        require(fits, "shares of pilots that are none, or too many")
        likely = data is not None and (data.likely or data.bets)
        require(self.pilot_share is None or likely, "shares of pilots where there are none", 1)
        wanted = data is not None and data.intervals
        require((lower is not None) == (upper is not None) == wanted, "intervals do not fit the method", 1)
        require(len(lower or ()) == len(upper or ()), "intervals without one of their ends")
        self.lower, self.upper = ([Fraction(end) for end in ends or []] for ends in (lower, upper))
        self.expression, self.polynomials = problem.expression, problem.polynomials
        self.used = sorted(set(self.expression))
        self.space = Coordinates(problem.domain, [self.polynomials[e] for e in self.used])
        self.is_untied = data is not None and data.shared_by == "transitions"
        self.words = NO_DOMAIN if data is None else CONTRADICTION
        self._require_room(self.space.start_box())
        size = self.space.size
        hints = None if node["region"] is None else Region(node["region"], arrays, size)
        stages = [SlabStage(one, f"learned.slab.{i}.", arrays, size) for i, one in enumerate(node["slab"])]
        require(hints is None or not self.is_untied, "a region beside intervals of transitions", 1)
        self._distributions()
        self._prove(data)
        for stage in stages:
            self._narrow(stage)
        self._project(hints)

    def _distributions(self) -> None:
        """Outcomes of every choice, {(expression, multiplicity): how often seen}, whose sum is 1."""
        problem = self.problem
        counts = [0] * len(self.expression)
        if problem.data is not None:
            counts = problem.data.counts(len(counts))
        self.counts, self.outcomes = counts, list[dict[tuple[int, int], int]]()
        sums: set[tuple[tuple[int, int], ...]] = set()
        for a, b in pairwise(problem.transition_start):
            members: dict[int, list[int]] = {}
            for t in range(a, b):
                members.setdefault(self.expression[t], []).append(counts[t])
            outcomes = {(e, len(seen)): sum(seen) for e, seen in sorted(members.items())}
            self.outcomes.append(outcomes)
            sums.add(tuple(outcomes))
        for outcomes_of in sums:
            total: Terms = {}
            for e, m in outcomes_of:
                polynomial = self.polynomials[e]
                fits = not is_number(polynomial) or 0 <= polynomial.get((), 0) <= 1
                require(fits, "a number that is no probability", 1)
                total = plus(total, polynomial, m)
            require(total == ONE, "the probabilities of a choice do not sum to 1", 1)

    def _prove(self, data: Data | None) -> None:
        self.ends: dict[tuple[int, int], Fraction] = {}
        self.events: Events | None = None
        self.balls: Balls | None = None
        self.likelihood: Likelihood | None = None
        self.bets: Bets | None = None
        self.slab: list[list[Row]] = []
        if data is None:
            return
        rest = data.delta
        if data.method == "weissman":
            self.balls = Balls(self, data.delta)
        elif data.intervals:
            counted = self._transitions() if self.is_untied else self._events(data.shared_by == "events")
            events, free = len(counted), len(self.space.free)
            tenths = 1 if events < 2 * free else 5 if events < 4 * free else 9
            if data.second.startswith("value"):
                tenths = 5 if events < 4 * free and free > 7 else 9
            rest = data.delta * tenths / 10 if data.second else Fraction(0)
            level = (data.delta - rest) / max(events, 1)
            for number, (k, n, low, high) in enumerate(counted):
                fits = interval_follows(data.first, k, n, low, high, level)
                require(fits, f"interval {number} does not follow from the counts by {data.first}", 1)
        if data.bets:
            self.bets = Bets(self, data, self.problem.given_weights, rest)
            rest = self.bets.guard
        if data.likely or data.bets:
            self.likelihood = Likelihood(self, data, rest)

    def _events(self, paired: bool) -> list[tuple[int, int, Fraction, Fraction]]:
        events = self.events = Events(self, paired)
        require(len(self.lower) == len(events.polynomials), "the intervals do not fit the events", 1)
        self.ends = events.ends(self.lower, self.upper)
        return list(zip(events.successes, events.trials, self.lower, self.upper, strict=True))

    def _transitions(self) -> list[tuple[int, int, Fraction, Fraction]]:
        require(len(self.lower) == len(self.counts), "the intervals do not fit the transitions", 1)
        spans = [range(a, b) for a, b in pairwise(self.problem.transition_start)]
        trials = [sum(self.counts[t] for t in span) for span in spans for _ in span]
        counted = list(zip(self.counts, trials, self.lower, self.upper, strict=True))
        return [one for e, one in zip(self.expression, counted, strict=True) if self._unknown(e)]

    def _unknown(self, e: int) -> bool:
        return not is_number(self.polynomials[e])

    def _narrow(self, stage: SlabStage) -> None:
        """The rows of one more stage of a slab, from the bounds that the rows before it prove."""
        bets: Bets = given(self.bets, "stages of a slab where there is none")
        box, bases = self._shrink(stage.region)
        narrowed = box if stage.region.stages else None
        bounds = {e: self._proved(e, bases, narrowed, False) for e in self.used}
        guard: Likelihood = given(self.likelihood, "a slab without a guard")
        self.slab.append(bets.rows(bounds, stage, guard))

    def _shrink(self, hints: Region) -> tuple[Box, dict[tuple[int, int], Fraction]]:
        """The region's box stage by stage, and what bases prove of expressions then."""
        space, box, bases = self.space, self.space.start_box(), dict[tuple[int, int], Fraction]()
        last = [name[0] == 5 for name in hints.rows]
        require(last == sorted(last), "rows that rest on proved bounds come last", 1)
        early = [name for name in hints.rows if name[0] != 5]
        for stage in hints.stages:
            box = self._shrunk(self._polytope(hints, early, box), stage)
        if hints.box_lower is not None and hints.box_upper is not None:
            lower = [min(a, Fraction(b)) for a, b in zip(box[0], hints.box_lower, strict=True)]
            upper = [max(a, Fraction(b)) for a, b in zip(box[1], hints.box_upper, strict=True)]
            box = lower, upper
        region = self._polytope(hints, early, box)
        for e, side, basis, centre in hints.bounds:
            require(e < len(self.polynomials) and centre == 0, "a bound of no expression", 1)
            linear, constant = space.affine(self.polynomials[e])
            if side:
                end = constant + region.most(linear, basis)
                bases[e, 1] = min(bases.get((e, 1), end), end)
            else:
                end = constant - region.most([-a for a in linear], basis)
                bases[e, 0] = max(bases.get((e, 0), end), end)
        return box, bases

    def _project(self, hints: Region | None) -> None:
        """The region's box stage by stage, the bounds of expressions, and what then follows for rows."""
        space, box = self.space, self.space.start_box()
        bases: dict[tuple[int, int], Fraction] = {}
        self.region: Polytope | None = None
        self.bases: list[list[int]] = []
        if hints is not None:
            self.bases = hints.choice_bases
            box, bases = self._shrink(hints)
        self._bound(bases, box if hints is not None and hints.stages else None)
        if hints is not None:
            self.region = self._polytope(hints, hints.rows, box)
        rows = [row for row in space.rows if row is not None]
        require((self.region or Polytope(box, [])).has_a_point(rows), self.words, 1)

    def _require_room(self, box: Box) -> None:
        require(all(low <= high for low, high in zip(*box, strict=True)), self.words, 1)

    def _shrunk(self, region: Polytope, stage: list[list[int]]) -> Box:
        """The box after one more stage, in doubles where it became smaller."""
        space, (lower, upper) = self.space, region.box
        low, high = [], []
        for j in range(space.size):
            unit = [Fraction(int(i == j)) for i in range(space.size)]
            high.append(min(upper[j], upward(region.most(unit, stage[2 * j]))))
            low.append(max(lower[j], -upward(region.most([-a for a in unit], stage[2 * j + 1]))))
        self._require_room((low, high))
        box = space.with_products(low, high)
        self._require_room(box)
        return box

    def _polytope(self, hints: Region, names: list[list[int]], box: Box) -> Polytope:
        return Polytope(box, [self._row(hints, (name[0], name[1], name[2]), box) for name in names])

    def _row(self, hints: Region, name: tuple[int, int, int], box: Box) -> Row:
        """A row from its name: 0 domain, 1 event, 2 product, 3 cut, 4 L1 ball, 5 expression, 8 slab."""
        space, (origin, index, part) = self.space, name
        if origin == 2:
            return space.envelope(index, part, box)
        if origin == 4 and self.balls is not None:
            return self.balls.row(index, part)
        if origin == 3 and self.likelihood is not None:
            require(index < len(hints.points) and part == 0, "no such tangent", 1)
            if index not in hints.tangents:
                hints.tangents[index] = self.likelihood.row(hints.points[index])
            return hints.tangents[index]
        if origin == 8:
            fits = index < len(self.slab) and part < len(self.slab[index])
            require(fits, "no such row of a slab", 1)
            return self.slab[index][part]
        require(part <= 1, "no such row", 1)
        if origin == 0:
            require(2 * index + part < len(space.rows), "no such row of the domain", 1)
            found: Row = given_row(space.rows[2 * index + part])
            return found
        if origin == 1 and self.events is not None:
            require(index < len(self.events.polynomials), "no such event", 1)
            end = (self.upper, self.lower)[part][index]
            return space.bounded(self.events.polynomials[index], end, part == 1)
        require(origin == 5 and index in self.bounds, f"rows of origin {origin} where there are none", 1)
        end = self.bounds[index][1 - part]
        return space.bounded(self.polynomials[index], end, part == 1)

    def _bound(self, bases: dict[tuple[int, int], Fraction], box: Box | None) -> None:
        """The bounds of every expression that is used, of every transition, and of rewards, in doubles."""
        problem, least = self.problem, self.problem.assumed
        self.bounds: dict[int, Ends] = {}
        for e in self.used:
            low, high = self._proved(e, bases, box, False)
            if self._unknown(e) and least is not None and not self.is_untied:
                low = max(low, min(Fraction(least), high))
            require(low <= high, self.words, 1)
            self.bounds[e] = low, high
        ends = [self.bounds[e] for e in self.expression]
        if self.is_untied:
            for t, e in enumerate(self.expression):
                if self._unknown(e):
                    low, high = max(ends[t][0], self.lower[t]), min(ends[t][1], self.upper[t])
                    ends[t] = low if least is None else max(low, min(Fraction(least), high)), high
        self.transitions = ends
        self.rewards: list[Ends] | None = None
        if problem.earned is not None:
            known = {e: self._proved(e, bases, box, True) for e in set(problem.earned)}
            self.rewards = [known[e] for e in problem.earned]

    def _proved(
        self, e: int, bases: dict[tuple[int, int], Fraction], box: Box | None, is_reward: bool
    ) -> Ends:
        """The best of what is plain, of events, bases, and ranges over the domain's and the region's box."""
        polynomial, domain = self.polynomials[e], self.space.domain
        whole = Fraction(0), Fraction(1)
        ranges = [range_over(polynomial, domain.lower, domain.upper)]
        if box is not None:
            ranges.append(range_over(self.space.in_free(polynomial), *box))
        require(not is_reward or None not in ranges, "a reward has too many terms", 1)
        found = [whole if one is None else one for one in ranges]
        low = max(one[0] for one in found)
        high = min(one[1] for one in found)
        low, high = max(low, bases.get((e, 0), low)), min(high, bases.get((e, 1), high))
        if not is_reward:
            constant = polynomial.get((), Fraction(0))
            plain = whole if self._unknown(e) else (constant, constant)
            low = max(low, plain[0], self.ends.get((e, 0), plain[0]))
            high = min(high, plain[1], self.ends.get((e, 1), plain[1]))
        require(low <= high, self.words, 1)
        return downward(low), upward(high)

    def over(self, law: list[int], values: list[Fraction], basis: int, maximise: bool) -> Fraction:
        """A bound of p·v = v₀ + Σ (v_j − v₀)·f_j(x) over the region, from above if `maximise`, or below."""
        region: Polytope = given(self.region, "bases of choices without a region")
        require(basis < len(self.bases), "bases of choices that are not there", 1)
        sign = 1 if maximise else -1
        first, direction = sign * values[0], [Fraction(0)] * self.space.size
        level = first
        for e, value in zip(law, values, strict=True):
            delta = sign * value - first
            if delta:
                linear, constant = self.space.affine(self.polynomials[e])
                level += delta * constant
                direction = [a + delta * b for a, b in zip(direction, linear, strict=True)]
        return sign * (level + region.most(direction, self.bases[basis]))


def given_row(row: Row | None) -> Row:
    require(row is not None, "the other side of an inequality", 1)
    assert row is not None
    return row


class SlabStage:
    """Hints about the rows of a slab: what proves bounds before them, and where each is to be tight."""

    def __init__(self, node: Any, path: str, arrays: dict[str, Any], size: int):
        own = Node(node, path, arrays, "region")
        self.region = Region(node["region"], arrays, size, f"{path}region.")
        (_, width), self.points = own.table("point", "float64", 2)
        (_, _), self.shares = own.table("share", "int", 2)
        self.side, self.times = own.integers("side", None, 0, 1), own.reals("guard", None, 0.0, 2.0**20)
        fits = width == size and all(isfinite(v) for row in self.points for v in row)
        fits = fits and all(0 <= n <= 2**20 for row in self.shares for n in row)
        require(fits, f"'{path}' has points or shares that are none")


class Region:
    """Hints about a region: names of rows, points of tangents, and bases."""

    def __init__(self, node: Any, arrays: dict[str, Any], size: int, path: str = "learned.region."):
        own = Node(node, path, arrays, "")
        self.rows = self._table(own, "row", "int", 3)
        self.points = self._table(own, "point", "float64", size)
        boxes, bounds, choices = (
            self._table(own, name, "int", size) for name in ("box_basis", "bound_basis", "choice_basis")
        )
        require(size > 0 and len(boxes) % (2 * size) == 0, "no coordinates, or a stage that is not whole")
        self.stages = [boxes[i : i + 2 * size] for i in range(0, len(boxes), 2 * size)]
        self.choice_bases = choices
        expression = given(own.integers("bound_expression", len(bounds)), "no bounds")
        side = given(own.integers("bound_side", len(bounds), 0, 1), "no bounds")
        centre = own.reals("bound_near", len(bounds)) or [0.0] * len(bounds)
        self.bounds = list(zip(expression, side, bounds, centre, strict=True))
        self.box_lower, self.box_upper = own.reals("box_lower", size), own.reals("box_upper", size)
        self.tangents: dict[int, Row] = {}

    @staticmethod
    def _table(own: Node, name: str, kind: str, width: int) -> list[list[Any]]:
        (_, found), entries = own.table(name, kind, 2)
        fits = found == width and all(
            isfinite(v) and (kind != "int" or v >= 0) for row in entries for v in row
        )
        require(fits, f"'{own.path}{name}' does not fit the coordinates, or is out of range")
        return entries


# The theorem: one backup is inductive, and the play stops where that alone proves nothing.


class Game:
    """The problem under the claim's policy, from the side of one of its two bounds."""

    def __init__(self, problem: Problem, claim: Claim, upward: bool):
        self.problem, self.claim, self.upward = problem, claim, upward
        self.owner = "MIN" if upward else "MAX"
        self.fixed = claim.choice is not None or claim.weight is not None
        self.agent_owns = not self.fixed and problem.agent == self.owner
        self.reward, self.basis = problem.rewards[upward], claim.bases[upward]
        self.choice = list(claim.choice or ())

    def options(self, state: int) -> list[int]:
        """The choices that count: the policy's, the witness's where the agent owns the bound, or all."""
        if self.claim.choice is not None:
            return [self.choice[state]]
        if self.claim.weight is not None:
            return [c for c in self.problem.of_state[state] if self.claim.weight[c] > 0]
        if self.agent_owns:
            require(self.claim.witness is not None, "the agent's witness is missing", 1)
            return [given(self.claim.witness, "")[state]]
        return list(self.problem.of_state[state])

    def nature_owns(self, c: int) -> bool:
        return self.problem.nature == self.owner and not self.problem.single[c]

    def backup(self, c: int, values: list[Number]) -> Number:
        """r + γ·opt p·x over the set of a choice: nature's optimum, or the worst case of one distribution."""
        problem = self.problem
        maximise = self.upward if problem.single[c] else problem.nature == "MAX"
        best = pour(problem.rows[c], values, maximise)
        if self.basis is not None and self.basis[c] >= 0 and problem.learned is not None:
            there = [values[t] for t, _, _ in problem.rows[c]]
            if inf not in there:
                exact = [Fraction(value) for value in there]
                better = problem.learned.over(problem.law[c], exact, self.basis[c], maximise)
                best = min(best, better) if maximise else max(best, better)
        factor = Fraction(1) if problem.discount is None else problem.discount
        return inf if best == inf else self.reward[c] + factor * Fraction(best)

    def state_backup(self, state: int, values: list[Number], all_choices: bool = False) -> Number:
        options = (
            list(self.problem.of_state[state]) if all_choices and not self.fixed else self.options(state)
        )
        backed = [self.backup(c, values) for c in options]
        if self.claim.weight is not None:
            if inf in backed:
                return inf
            return sum(
                (given(self.claim.weight, "")[c] * x for c, x in zip(options, backed, strict=True)),
                Fraction(0),
            )
        return max(backed) if self.problem.agent == "MAX" else min(backed)

    def after(self, values: list[Number], steps: int, counted: bool) -> list[Number]:
        """So many backups; targets count from lower_steps on, a policy by steps changes on the way."""
        problem, place = self.problem, 0
        for step in range(steps - 1, -1, -1):
            while place < len(self.claim.earlier) and self.claim.earlier[place][0] >= step:
                _, state, choice = self.claim.earlier[place]
                self.choice[state], place = choice, place + 1
            for s in problem.passing:  # draws within the step, the last one first
                values[s] = self.backup(problem.of_state[s][0], values)
            values = [self.state_backup(s, values, all_choices=True) for s in range(problem.states)]
            if problem.kind == "UNTIL":
                for s in range(problem.states):
                    if counted and step >= problem.lower_steps and given(problem.target, "")[s]:
                        values[s] = Fraction(1)
                    elif problem.allowed is not None and not problem.allowed[s]:
                        values[s] = Fraction(0)
            if problem.learned is not None:  # outward: a bound of a bound
                values = [v if v == inf else near(Fraction(v))[self.upward] for v in values]
        return values

    def moves(self, c: int, state: int, good: set[int], values: list[Number]) -> bool:
        """Do the owners move into `good` with positive probability, keeping the bound inductive?"""
        row = self.problem.rows[c]
        if not self.nature_owns(c):
            return surely(row, good)
        backed = self.state_backup(state, values) if self.claim.weight is not None else self.backup(c, values)
        strict = backed < values[state] if self.upward else backed > values[state]
        kept = [(t, low, Fraction(0) if self.upward and values[t] == inf else high) for t, low, high in row]
        possible = any(t in good and can_be_positive(kept, i) for i, (t, _, _) in enumerate(kept))
        if not possible or strict:
            return possible
        return optimal_weight(kept, values, good, self.upward) > 0


def pour(row: list[tuple[int, Fraction, Fraction]], values: list[Number], maximise: bool) -> Number:
    """The optimum of p·x over lower ≤ p ≤ upper, Σp = 1."""
    order = sorted(row, key=lambda entry: values[entry[0]], reverse=maximise)
    left = 1 - sum((low for _, low, _ in row), Fraction(0))
    total = Fraction(0)
    for t, low, high in order:
        extra = max(Fraction(0), min(left, high - low))
        left -= extra
        if low + extra > 0:
            if values[t] == inf:
                return inf
            total += (low + extra) * Fraction(values[t])
    return total


def surely(row: list[tuple[int, Fraction, Fraction]], good: set[int]) -> bool:
    """Every distribution gives `good` a positive probability."""
    inside = any(t in good and low > 0 for t, low, _ in row)
    return inside or sum((high for t, _, high in row if t not in good), Fraction(0)) < 1


def can_be_positive(row: list[tuple[int, Fraction, Fraction]], i: int) -> bool:
    """Some distribution gives entry i a positive probability."""
    others = sum((low for j, (_, low, _) in enumerate(row) if j != i), Fraction(0))
    return row[i][2] > 0 and (row[i][1] > 0 or others < 1)


def optimal_weight(
    row: list[tuple[int, Fraction, Fraction]], values: list[Number], good: set[int], upward: bool
) -> Fraction:
    """The largest weight on `good` among nature's optimal distributions."""
    entries = [entry for entry in row if entry[2] > 0]
    entries.sort(key=lambda entry: entry[0] not in good)
    entries.sort(key=lambda entry: values[entry[0]], reverse=not upward)
    left = 1 - sum((low for _, low, _ in entries), Fraction(0))
    weight = Fraction(0)
    for t, low, high in entries:
        extra = min(left, high - low)
        left -= extra
        weight += low + extra if t in good else 0
    return weight


class TimedChain:
    """A chain in continuous time: rates between bounds, the interval chain of its jumps, and its steps."""

    def __init__(self, problem: Problem, hints: Any, arrays: dict[str, Any]):
        self.problem, time = problem, problem.time
        numbers = {"UNTIL": (0, 1, 2), "TOTAL": (1, 2), "REACH_REWARD": (0,), "AVERAGE": (0,)}
        require(problem.is_chain and len(time) in numbers.get(problem.kind, ()), "no question of a chain")
        rising = time == sorted(time) and min(time, default=0) >= 0
        require(rising and (problem.kind != "TOTAL" or len(time) < 2 or time[0] == 0), "times do not fit")
        plain = problem.lower_steps == 0 and problem.upper_steps is None and problem.automaton is None
        plain = plain and problem.misfit is None and problem.assumed is None and not any(problem.terminal)
        require(plain, "steps, terminal rewards or assumptions in continuous time")
        used, paid = sorted(set(problem.expression)), sorted(set(problem.earned or ()))
        if problem.is_domain:
            ends = self._over_domain(hints, arrays, used, paid)
        else:
            ends = {e: (problem.at_point[e], problem.at_point[e]) for e in {*used, *paid}}
        words = CONTRADICTION if problem.data is not None else NO_DOMAIN
        require(all(low <= high for low, high in ends.values()), words, 1)
        require(all(ends[e][1] >= 0 for e in used), words, 1)
        self.groups: list[list[tuple[Fraction, Fraction, list[int]]]] = []
        for s, (a, b) in enumerate(pairwise(problem.transition_start)):
            members: dict[int, list[int]] = {}
            for t in range(a, b):
                if problem.successor[t] != s:
                    members.setdefault(problem.expression[t], []).append(problem.successor[t])
            self.groups.append([(max(ends[e][0], Fraction(0)), ends[e][1], to) for e, to in members.items()])
        self.exits = [sum((high * len(to) for _, high, to in row), Fraction(0)) for row in self.groups]
        above = Fraction(9, 8) if problem.kind == "AVERAGE" else 1 + Fraction(1, 2**20)
        self.uniform = upward(max(self.exits) * above) or Fraction(1)
        if problem.earned is not None:
            problem.rewards = [[ends[e][side] for e in problem.earned] for side in (0, 1)]
        self._jumps()

    def _over_domain(
        self, node: Any, arrays: dict[str, Any], used: list[int], paid: list[int]
    ) -> dict[int, Ends]:
        problem, own = self.problem, Node(node, "learned.", arrays, "region coupled slab")
        require(node["region"] is None and node["coupled"] == node["slab"] == [], "hints do not fit", 1)
        ends = [own.reals(f"rate_{side}", None, 0.0, infinite=True) for side in ("lower", "upper")]
        lower, upper = list(problem.domain.lower), list(problem.domain.upper)
        known: dict[int, tuple[Fraction, Number]] = {}
        data = problem.data
        require(
            (ends[0] is not None) == (ends[1] is not None) == (data is not None), "intervals do not fit", 1
        )
        if data is not None:
            classes, of = self._classes(used)
            fits = len(ends[0] or ()) == len(ends[1] or ()) == len(classes)
            require(fits and inf not in (ends[0] or ()), "intervals of rates do not fit", 1)
            counts = data.counts(len(problem.successor))
            level = data.delta / max(len(classes), 1)
            for c, base in enumerate(classes):
                jumps, exposure = 0, Fraction(0)
                for s, (a, b) in enumerate(pairwise(problem.transition_start)):
                    for t in range(a, b):
                        if of.get(problem.expression[t], (-1, 0))[0] == c and problem.successor[t] != s:
                            jumps += counts[t]
                            exposure += of[problem.expression[t]][1] * Fraction(given(data.waited, "")[s])
                low, high = Fraction(given(ends[0], "")[c]), given(ends[1], "")[c]
                scale = self._scale(base)
                sure = low == 0 or rate_outside(jumps, exposure, scale, low, level, False)
                sure = sure and (
                    high == inf or rate_outside(jumps, exposure, scale, Fraction(high), level, True)
                )
                require(sure and low <= high, f"the interval of rate {c} does not follow", 1)
                self._narrow(base, low, high, lower, upper)
                for e in (e for e, (number, _) in of.items() if number == c):
                    known[e] = of[e][1] * low, inf if high == inf else of[e][1] * Fraction(high)
        words = CONTRADICTION if data is not None else NO_DOMAIN
        require(all(a <= b for a, b in zip(lower, upper, strict=True)), words, 1)
        result: dict[int, Ends] = {}
        for e in {*used, *paid}:
            low, high = given(range_over(problem.polynomials[e], lower, upper), "too many terms")
            if e in used and e in known:
                low, high = max(low, known[e][0]), min(high, known[e][1])
            result[e] = low, high
        return result

    def _classes(self, used: list[int]) -> tuple[list[Terms], dict[int, tuple[int, Fraction]]]:
        """Polynomials up to a positive factor, in the order of their first expression."""
        classes: list[Terms] = []
        of: dict[int, tuple[int, Fraction]] = {}
        for e in used:
            polynomial = self.problem.polynomials[e]
            if is_number(polynomial):
                continue
            factor = abs(polynomial[max(polynomial)])
            base = {monomial: c / factor for monomial, c in polynomial.items()}
            if base not in classes:
                classes.append(base)
            of[e] = classes.index(base), factor
        return classes, of

    def _scale(self, base: Terms) -> Fraction:
        """½ over the root of the rate's ends over the domain, or over a hundredth of the upper one."""
        domain = self.problem.domain
        low, high = given(range_over(base, domain.lower, domain.upper), "too many terms")
        if high <= 0:
            return Fraction(1)
        if low <= 0:
            return 50 / Fraction(high)
        square = 1 / (4 * Fraction(low) * Fraction(high))
        shift = 128 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
        return Fraction(isqrt((square.numerator << (2 * shift)) // square.denominator), 1 << shift)

    @staticmethod
    def _narrow(
        base: Terms, low: Fraction, high: Number, lower: list[Fraction], upper: list[Fraction]
    ) -> None:
        """What low ≤ a·θ_i + c ≤ high says of a parameter that is alone."""
        free = [monomial for monomial in base if monomial]
        if len(free) != 1 or degree_of(free[0]) != 1:
            return
        i, slope, constant = free[0][0][0], base[free[0]], base.get((), Fraction(0))
        sides: list[Fraction | None] = [(low - constant) / slope, None]
        sides[1] = None if high == inf else (Fraction(high) - constant) / slope
        least, most = sides if slope > 0 else sides[::-1]
        lower[i] = lower[i] if least is None else max(lower[i], least)
        upper[i] = upper[i] if most is None else min(upper[i], most)

    def _jumps(self) -> None:
        """Rows and rewards of the interval chain: rates over a number, and a loop that takes the rest."""
        problem, average = self.problem, self.problem.kind == "AVERAGE"
        problem.single, problem.law = [True] * problem.states, []
        for s, row in enumerate(self.groups):
            by = self.uniform if average else self.exits[s] or Fraction(1)
            least = sum((low * len(to) for low, _, to in row), Fraction(0))
            entries = [(t, low / by, high / by) for low, high, to in row for t in to]
            problem.rows.append([*entries, (s, 1 - self.exits[s] / by, 1 - least / by)])
        if problem.kind == "REACH_REWARD":
            by_state = [exit or Fraction(1) for exit in self.exits]
            problem.rewards = [
                [gain / by for gain, by in zip(gains, by_state, strict=True)] for gains in problem.rewards
            ]

    def bound(self, claim: Claim, upward: bool) -> Number:
        """At the initial state."""
        problem, time = self.problem, self.problem.time
        states = range(problem.states)
        if problem.kind == "TOTAL":
            gains = problem.rewards[upward]
            require(min(gains) >= 0, "rewards up to a time are negative", 1)
            peak = max(gains)
            if peak == 0:
                return Fraction(0)
            start, everywhere = [gain / peak for gain in gains], [True] * problem.states
            if len(time) == 1:
                return peak * self._after(start, everywhere, time[0], upward)[problem.initial]
            low, high, left, right, excess = poisson(self.uniform * time[1])
            later = [Fraction(0)] * len(low)
            for k in range(len(low) - 2, -1, -1):
                later[k] = later[k + 1] + (high if upward else low)[k + 1]
            shares = [min(Fraction(1), one + (left + right if upward else 0)) for one in later]
            total = self._sum(start, everywhere, shares, upward)[problem.initial]
            return peak * min((total + (excess if upward else 0)) / self.uniform, time[1])
        allowed = [True] * problem.states if problem.allowed is None else problem.allowed
        target = given(problem.target, "") if problem.target is not None else [False] * problem.states
        if len(time) == 2:
            active = [bool(allowed[s] and not target[s]) for s in states]
            start = [Fraction(int(target[s])) for s in states]
            later = self._after(start, active, time[1] - time[0], upward)
        else:
            value = bound_of(problem, claim, upward, jumps=True)
            if not time:
                return value
            vector = given(claim.vectors[upward], "no vector")
            later = [min(max(Fraction(v), Fraction(0)), Fraction(1)) for v in vector]
        if time[0] > 0:  # at 0 a target counts, allowed or not
            start = [later[s] if allowed[s] else Fraction(0) for s in states]
            later = self._after(start, [bool(a) for a in allowed], time[0], upward)
        return later[problem.initial]

    def _after(
        self, start: list[Fraction], active: list[bool], time: Fraction, upward: bool
    ) -> list[Fraction]:
        low, high, left, right, _ = poisson(self.uniform * time)
        total = self._sum(start, active, high if upward else low, upward)
        if upward:
            total = [min(value + left + right, Fraction(1)) for value in total]
        return [value if moves else kept for value, kept, moves in zip(total, start, active, strict=True)]

    def _sum(
        self, start: list[Fraction], active: list[bool], shares: list[Fraction], upward: bool
    ) -> list[Fraction]:
        """Σ shares[k]·(start after k steps), each rate at its worse end in every step."""
        now, total = start, [Fraction(0)] * len(start)
        best = max if upward else min
        for k, share in enumerate(shares):
            if k:
                after = []
                for s, row in enumerate(self.groups):
                    change = Fraction(0)
                    for low, high, to in row if active[s] else ():
                        gain = sum((now[t] for t in to), Fraction(0)) - len(to) * now[s]
                        change += best(low * gain, high * gain)
                    after.append(near(now[s] + change / self.uniform)[upward] if active[s] else start[s])
                Work.spend(3 * len(self.problem.successor), Fraction(1, 2**PLACES))
                now = [min(max(value, Fraction(0)), Fraction(1)) for value in after]
            total = [near(old + share * value)[upward] for old, value in zip(total, now, strict=True)]
        return total


def rate_outside(
    k: int, time: Fraction, scale: Fraction, rate: Fraction, level: Fraction, above: bool
) -> bool:
    """Is the mixture over the likelihood of a rate at least 1/level, on this side of k/time?"""
    if rate <= 0 or rate * time == k or (rate * time > k) != above:
        return False
    half = Fraction(1, 2)
    gamma = combined((1, log_factorial(2 * k)), (-1, log_factorial(k)), (-2 * k, log_of(Fraction(2))))
    log_scale, log_total = log_of(scale), log_of(scale + time)
    terms = [
        (1, gamma),
        (half, log_scale),
        (-half - k, log_total),
        (-k, log_of(rate)),
        (1, (rate * time,) * 2),
    ]
    return combined(*terms)[0] >= -log_of(level)[0]


def poisson(mean: Fraction) -> tuple[list[Fraction], list[Fraction], Fraction, Fraction, Fraction]:
    """P(N = k) for k = 0, 1, … from below and from above, what is at most left out before and behind, and at
    most E[(N − last − 1)⁺]: terms from the mode on, in units of 2^-PLACES, and geometric series behind."""
    require(mean <= 10**5, "more steps than this checker makes", NOT_READ)
    one, enough, mode = 1 << PLACES, 1 << (PLACES - 90), int(mean)
    rising = [(one, one)]
    while True:
        k = mode + len(rising)
        ratio = mean / k
        if ratio < 1 and rising[-1][1] * ratio <= enough * (1 - ratio):
            break
        low, high = rising[-1]
        rising.append((int(low * ratio), -int(-high * ratio // 1)))
    falling = [(one, one)]
    while (k := mode - len(falling) + 1) > 0 and falling[-1][1] * k > enough * (mean - k):
        low, high = falling[-1]
        falling.append((int(low * k / mean), -int(-high * k / mean // 1)))
    first = mode - len(falling) + 1
    terms = [(0, 0)] * first + falling[:0:-1] + rising
    left = falling[-1][1] * first / (mean - first) if first else Fraction(0)
    right = rising[-1][1] * ratio / (1 - ratio)
    least = sum(low for low, _ in terms)
    most = sum(high for _, high in terms) + left + right
    low_ends, high_ends = (
        [low / Fraction(most) for low, _ in terms],
        [Fraction(high, least) for _, high in terms],
    )
    return low_ends, high_ends, left / least, right / least, right / (1 - ratio) / least


def bound_of(problem: Problem, claim: Claim, upward: bool, jumps: bool = False) -> Number:
    """The bound at the initial state that is proved, before the complement; `jumps`: of a chain's jumps."""
    if problem.chain is not None and not jumps:
        return problem.chain.bound(claim, upward)
    game = Game(problem, claim, upward)
    states = range(problem.states)
    if problem.steps is not None:
        goal: list[Number] = [Fraction(int(problem.target is not None and problem.target[s])) for s in states]
        return game.after(goal, problem.steps, True)[problem.initial]
    vector = given(claim.vectors[upward], "no vector")
    values: list[Number] = [inf if v == inf else Fraction(v) for v in vector]
    if problem.kind == "AVERAGE":
        averages(game, values, [Fraction(b) for b in given(claim.biases[upward], "no bias")])
        return values[problem.initial]
    boundary = boundary_of(problem)
    for s in states:
        if s in boundary:
            fits = boundary[s] <= values[s] if upward else boundary[s] >= values[s]
        else:
            backed = game.state_backup(s, values)
            fits = backed <= values[s] if upward else backed >= values[s]
        fits = fits and not (upward and problem.kind in ("UNTIL", "TOTAL") and values[s] < 0)
        require(fits, f"the {'upper' if upward else 'lower'} bound is not inductive at state {s}", 1)
    if problem.kind != "DISCOUNTED":
        stops(game, values, set(boundary), given_ranking(claim, upward))
    if problem.lower_steps > 0:
        values = game.after(values, problem.lower_steps, False)
    return values[problem.initial]


def averages(game: Game, gain: list[Number], bias: list[Number]) -> None:
    """gain ≥ p·gain and gain + bias ≥ r + p·bias (≤ below), with one p for both."""
    problem, upward = game.problem, game.upward
    for s in range(problem.states):
        for c in game.options(s):
            holds = False
            theirs = upward if problem.single[c] else problem.nature == "MAX"
            for one, other in ((theirs, upward), (upward, theirs)):
                kept = Fraction(pour(problem.rows[c], gain, one)) - Fraction(gain[s])
                earned = game.reward[c] + Fraction(pour(problem.rows[c], bias, other))
                earned -= Fraction(gain[s]) + Fraction(bias[s])
                holds |= (kept <= 0 and earned <= 0) if upward else (kept >= 0 and earned >= 0)
            require(holds, f"gain and bias do not bound the average at state {s}", 1)


def given_ranking(claim: Claim, upward: bool) -> list[int]:
    ranking = claim.rankings[upward]
    require(ranking is not None, "a ranking is missing", 1)
    return ranking or []


def boundary_of(problem: Problem) -> dict[int, Fraction]:
    """The states whose value is given."""
    found: dict[int, Fraction] = {}
    for s in range(problem.states if problem.target is not None else 0):
        if given(problem.target, "")[s]:
            found[s] = problem.terminal[s] if problem.kind == "REACH_REWARD" else Fraction(1)
        elif problem.allowed is not None and not problem.allowed[s]:
            found[s] = Fraction(0)
    return found


def stops(game: Game, values: list[Number], boundary: set[int], ranking: list[int]) -> None:
    """What the inequality alone leaves open."""
    problem, upward = game.problem, game.upward
    open_states = [s for s in range(problem.states) if s not in boundary]
    if problem.kind != "UNTIL":
        earned = [game.reward[c] for s in open_states for c in policy_choices(game, s)]
        require(all(r >= 0 for r in earned), "a negative reward voids the argument", 1)
    if upward and problem.kind != "REACH_REWARD":
        return
    if upward:
        needed = [s for s in open_states if values[s] != inf]
        absorbed = boundary
    else:
        absorbed = boundary | {s for s in open_states if values[s] <= 0}
        endless = {s for s in open_states if values[s] == inf}
        for s in endless:
            holds = misses if problem.kind == "REACH_REWARD" else earns_for_ever
            require(holds(game, s, endless, ranking), f"nothing shows that state {s} is infinite", 1)
        if problem.kind == "REACH_REWARD":
            return
        needed = [s for s in open_states if values[s] != inf and values[s] > 0]
    for s in needed:
        good = absorbed | {t for t in range(problem.states) if ranking[t] < ranking[s]}
        moving = [
            (problem.kind == "TOTAL" and not upward and game.reward[c] > 0) or game.moves(c, s, good, values)
            for c in game.options(s)
        ]
        fits = any(moving) if game.claim.weight is not None else all(moving)
        require(fits, f"nothing shows that the play stops from state {s}", 1)


def policy_choices(game: Game, state: int) -> list[int]:
    """The choices that can be taken: all where the agent is free."""
    return game.options(state) if game.fixed else list(game.problem.of_state[state])


def levels(
    game: Game, c: int, s: int, endless: set[int], level: list[int], ranking: list[int]
) -> tuple[bool, bool, bool]:
    """A smaller level is reached; levels no larger are never left; a smaller rank within these is reached."""
    row = game.problem.rows[c]
    smaller = {t for t in endless if level[t] < level[s]}
    inside = {t for t in endless if level[t] <= level[s]}
    nearer = {t for t in inside if ranking[t] < ranking[s]}
    if not game.nature_owns(c):
        stay = all(t in inside or high == 0 for t, _, high in row)
        return surely(row, smaller), stay, surely(row, nearer)
    down = any(t in smaller and can_be_positive(row, i) for i, (t, _, _) in enumerate(row))
    within = [(t, low, high if t in inside else Fraction(0)) for t, low, high in row]
    stay = all(t in inside or low == 0 for t, low, _ in row) and sum(high for _, _, high in within) >= 1
    closer = any(t in nearer and can_be_positive(within, i) for i, (t, _, _) in enumerate(within))
    return down, stay, closer


def misses(game: Game, s: int, endless: set[int], ranking: list[int]) -> bool:
    found = [levels(game, c, s, endless, ranking, ranking) for c in game.options(s)]
    if game.claim.weight is not None:
        return any(down for down, _, _ in found) or all(stay for _, stay, _ in found)
    return all(down or stay for down, stay, _ in found)


def earns_for_ever(game: Game, s: int, endless: set[int], ranking: list[int]) -> bool:
    layer = [rank // (game.problem.states + 1) for rank in ranking]
    options = game.options(s)
    found = [levels(game, c, s, endless, layer, ranking) for c in options]
    earns = [game.reward[c] > 0 for c in options]
    if game.claim.weight is not None:
        moves = any(e or closer for e, (_, _, closer) in zip(earns, found, strict=True))
        return any(down for down, _, _ in found) or (all(stay for _, stay, _ in found) and moves)
    return all(down or (stay and (e or closer)) for e, (down, stay, closer) in zip(earns, found, strict=True))


def verify(path: str) -> list[str]:
    """What the certificate proves, one line a claim; raises `Refused` where it does not."""
    node, arrays = read_certificate(path)
    top = Node(node, "", arrays, "problem claims values learned about")
    about = top.node["about"]
    words = isinstance(about, dict) and len(about) <= 64 and all(type(text) is str for text in about.values())
    words = words and all(len(name) <= 64 and len(text) <= 4096 for name, text in about.items())
    require(words, "what the file says of itself does not fit")
    Work.left = MOST_WORK
    problem = Problem(top.node["problem"], arrays)
    claims, values = top.node["claims"], top.node["values"]
    require(isinstance(claims, list) and isinstance(values, list), "no claims")
    pairs = any(isinstance(one, dict) and one.get("policy") in ("pair", "unknown") for one in claims)
    require(not pairs, "differences between policies are not read by this checker", NOT_READ)
    lonely = len(claims) == 1 and isinstance(claims[0], dict) and claims[0].get("name") == "given policy"
    if problem.automaton is not None and lonely:
        problem.follow(claims[0], arrays)
    problem.peek(claims, arrays)
    problem.derive(top.node["learned"], arrays)
    require(0 < len(claims) == len(values) <= 4, "every claim needs its hints, and there must be one")
    read = [Claim(i, c, v, problem, arrays) for i, (c, v) in enumerate(zip(claims, values, strict=True))]
    require(len({claim.name for claim in read}) == len(read), "two claims have one name")
    told = problem.data is not None and problem.data.seen is not None
    speaks = problem.is_chain or any(claim.is_given for claim in read)
    require(not told or speaks, "episodes are those of a chain, or of a given policy")
    require(not arrays, f"nobody asked for the member {next(iter(arrays), '')!r}")
    lines = []
    for claim in read:
        low, high = bound_of(problem, claim, False), bound_of(problem, claim, True)
        if problem.complement:
            low, high = 1 - high, 1 - low
        least, most = range_of(problem)
        require(least <= claim.lower and claim.upper <= most, "a claim outside of what is possible")
        low, high = max(low, least), min(high, most)
        if problem.data is not None and (problem.is_chain or claim.is_given):
            met = problem.data.met(claim, low, high, problem.complement)
            require(met is not None, problem.learned.words if problem.learned else CROSSED, 1)
            low, high = met or (low, high)
        crossed = any(a > b for a, b in zip(*(vector or () for vector in claim.vectors), strict=True))
        require(low <= high and not crossed, problem.learned.words if problem.learned else CROSSED, 1)
        require(claim.lower <= low and claim.upper >= high, f"{claim.name}: the claim is not proved", 1)
        assert not isnan(claim.lower)
        lines.append(f"{claim.name} in [{claim.lower!r}, {claim.upper!r}]{words_of(problem)}")
    return lines


def range_of(problem: Problem) -> tuple[Number, Number]:
    """Between what the value lies, whatever the model is."""
    if problem.is_probability:
        return Fraction(0), Fraction(1)
    negative = any(value < 0 for value in (*problem.rewards[0], *problem.terminal))
    endless = problem.kind in ("REACH_REWARD", "TOTAL")
    return -inf if negative else Fraction(0), inf if endless else Fraction(sys.float_info.max)


def words_of(problem: Problem) -> str:
    """How sure it is, and what that assumes."""
    assumes = (
        [] if problem.assumed is None else [f"what can happen has at least probability {problem.assumed!r}"]
    )
    if problem.misfit is not None:
        where = sum(e > 0 for e in problem.misfit)
        assumes.append(f"at {where} choices the process is within {max(problem.misfit)!r} of the model")
    if problem.automaton is not None:
        assumes.append("the automaton recognises the formula that is meant")
    sure = " for every instantiation" if problem.is_domain else ""
    if problem.data is not None:
        sure = f" with confidence 1 - {float(problem.data.delta + problem.data.share)!r}"
        if problem.data.seen is not None:
            whose = "chain" if problem.is_chain else "given policy"
            assumes.append(f"the episodes are independent draws of the {whose}")
        likelihood = None if problem.learned is None else problem.learned.likelihood
        planned = likelihood is not None and likelihood.planned
        assumes += problem.data.assumes(planned, problem.given_weights is not None)
    return sure + ("" if not assumes else f", assuming: {'; '.join(assumes)}")


def main(paths: list[str]) -> int:
    worst = 0
    for path in paths:
        try:
            for line in verify(path):
                sys.stdout.write(f"{path}: {line}\n")
        except Refused as refused:
            worst = max(worst, refused.code)
            sys.stderr.write(f"{path}: {str(refused).encode('unicode_escape').decode()}\n")
        except (ArithmeticError, ValueError, LookupError, RecursionError, MemoryError) as error:
            worst = max(worst, 1)
            sys.stderr.write(f"{path}: numbers that do not fit: {type(error).__name__}\n")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
