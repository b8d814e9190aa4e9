#!/usr/bin/env python3
"""A second checker for certificates of values, written from docs/trust.md and nothing else.

    python verify_standalone.py CERTIFICATE…

It shares no code with tightrope, needs no package, and calculates in exact rationals: for small models.
Exit code 0 means that every claim of every file is proved, 1 that one is not, 2 that a file is no
certificate, or one over a domain of parameters, which this checker does not read. It compares nothing with a
model: what it proves is about the problem written in the file.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
import zipfile
import zlib
from fractions import Fraction
from itertools import pairwise
from math import inf, isfinite, isnan
from typing import Any

KINDS = ("UNTIL", "NEXT", "REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED", "AVERAGE", "TEMPORAL")
TYPES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float64": "d", "bool": "B"}
MOST_WHOLE = 2**62
MOST_BYTES = 2**28
UNIT = Fraction(1, 2**52)

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


# The file: members, digest, header, arrays.


def read_members(path: str) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        require(len(names) == len(set(names)) <= 1000, "too many members, or two of one name")
        require(sum(entry.file_size for entry in entries) <= MOST_BYTES, "too large for this checker")
        members = {}
        for entry in entries:
            require(entry.compress_type in (0, 8) and not entry.flag_bits & 1, "neither stored nor deflated")
            with archive.open(entry) as file:
                members[entry.filename] = file.read(entry.file_size + 1)
            require(len(members[entry.filename]) == entry.file_size, "a member of another length")
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
    except (zipfile.BadZipFile, zlib.error, RecursionError) as error:
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
        require(
            node["domain"] is None and node["data"] is None,
            "a certificate over a domain is not for this checker",
        )
        self._graph(Node(node["graph"], "problem.graph.", arrays, "initial"))
        self._objective(
            Node(
                node["objective"],
                "problem.objective.",
                arrays,
                "kind agent nature complement lower_steps upper_steps discount",
            )
        )
        self._rows(own, node)
        temporal = self.kind == "TEMPORAL"
        require(temporal == (node["automaton"] is not None), "an automaton is for temporal questions")
        self.free_only = temporal
        if temporal:
            self._become(Automaton(node["automaton"], arrays, self.states))

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
        reward = own.reals("reward", self.choices)
        self.target = own.array("target", "bool", self.states)
        self.allowed = own.array("allowed", "bool", self.states)
        terminal = own.reals("terminal", self.states)
        event, until = self.kind in ("UNTIL", "NEXT", "TEMPORAL"), self.kind == "UNTIL"
        require((self.discount is not None) == (self.kind == "DISCOUNTED"), "the discount does not fit")
        require(self.discount is None or 0 < self.discount < 1, "the discount does not fit")
        require(self.upper_steps is None or self.kind in ("UNTIL", "CUMULATIVE"), "steps do not fit")
        require(self.upper_steps is not None or self.kind != "CUMULATIVE", "steps do not fit")
        require(self.lower_steps == 0 or until, "steps do not fit")
        require(self.upper_steps is None or self.lower_steps <= self.upper_steps, "steps do not fit")
        aimed = self.kind in ("UNTIL", "NEXT", "REACH_REWARD")
        require((self.target is not None) == aimed, "the target does not fit")
        require((reward is None) == event, "rewards do not fit")
        require(self.allowed is None or until, "allowed states do not fit")
        require(terminal is None or self.kind == "REACH_REWARD", "terminal values do not fit")
        require(not self.complement or event, "only a probability has a complement")
        self.reward = [Fraction(0)] * self.choices if reward is None else [Fraction(r) for r in reward]
        self.terminal = [Fraction(0)] * self.states if terminal is None else [Fraction(t) for t in terminal]
        self.steps = 1 if self.kind == "NEXT" else self.upper_steps
        work = (self.lower_steps + (self.upper_steps or 0)) * max(len(self.successor), 20_000)
        require(work <= 10**9, "more steps than this format allows")

    def _rows(self, own: Node, node: Any) -> None:
        count = len(self.successor)
        plain = own.reals("probability", count, 0.0, 1.0)
        low, high = own.reals("lower", count, 0.0, 1.0), own.reals("upper", count, 0.0, 1.0)
        expression = own.integers("expression", count)
        theta, polynomials = own.array("theta", "text"), own.array("polynomial", "text")
        ways = [
            plain is not None,
            low is not None and high is not None,
            expression is not None and theta is not None and polynomials is not None,
        ]
        parts = [plain, low, high, expression, theta, polynomials]
        require(
            sum(ways) == 1 and sum(p is not None for p in parts) == (1, 2, 3)[ways.index(True)],
            "not one model",
        )
        self.interval = ways[1]
        require(self.interval == (self.nature != "ANY"), "nature's direction does not fit")
        assumed = None if node["assumed_support"] is None else own.real("assumed_support", 0.0, 1.0)
        require(assumed is None or (self.interval and 0 < assumed < 1), "an assumption that does not fit")
        self.single = [not self.interval] * self.choices
        self.rows: list[list[tuple[int, Fraction, Fraction]]] = []
        if polynomials is not None:
            values = values_at(polynomials, [rational(text) for text in theta or []])
            require(max(expression or [0]) < len(values), "no such expression")
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
        least, most = sum(low for _, low, _ in row), sum(high for _, _, high in row)
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
        seen, front = {(self.initial, 0)}, [(self.initial, 0)]
        for s, q in front:
            following = automaton.successor[q][automaton.letter[s]]
            behind = {(t, following) for c in self.of_state[s] for t, _, _ in self.rows[c]}
            front += sorted(behind - seen)
            seen |= behind
        pairs = sorted(seen, key=lambda pair: pair[0] * memories + pair[1])
        number = {pair: i for i, pair in enumerate(pairs)}
        rows, single, of_state = [], [], []
        for s, q in pairs:
            following = automaton.successor[q][automaton.letter[s]]
            of_state.append(range(len(rows), len(rows) + len(self.of_state[s])))
            for c in self.of_state[s]:
                rows.append([(number[t, following], low, high) for t, low, high in self.rows[c]])
                single.append(self.single[c])
        self.initial = number[self.initial, 0]
        self.rows, self.single, self.of_state = rows, single, of_state
        self.states, self.choices, self.kind = len(pairs), len(rows), "UNTIL"
        self.reward, self.terminal = [Fraction(0)] * len(rows), [Fraction(0)] * len(pairs)
        settled = automaton.settled()
        won = {i for i, (_, q) in enumerate(pairs) if q in settled}
        if not automaton.only_settles(settled):
            require(self.agent == "MAX", "a minimum of what such an automaton accepts", 1)
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
            ways = {
                i: [
                    targets
                    for targets in ({t for t, _, p in self.rows[c] if p > 0} for c in self.of_state[i])
                    if targets <= inside
                ]
                for i in inside
            }
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


def values_at(polynomials: list[str], theta: list[Fraction]) -> list[Fraction]:
    """Every polynomial at the point."""
    term = r"-?[0-9]{1,4000}(/[0-9]{1,4000})?(\*[0-9]{1,5}\^[0-9]{1,4})*"
    known: dict[tuple[tuple[int, int], ...], Fraction] = {}
    bits = [value.numerator.bit_length() + value.denominator.bit_length() for value in theta]
    work, values = 0, []
    for line in polynomials:
        require(not line or re.match(rf"{term}( {term})*\Z", line) is not None, "no polynomial")
        total, seen = Fraction(0), set()
        for coefficient, *factors in (part.split("*") for part in line.split(" ") if part):
            monomial = tuple((int(i), int(e)) for i, e in (factor.split("^") for factor in factors))
            require(all(i < j for (i, _), (j, _) in pairwise(monomial)), "parameters do not rise")
            require(all(i < len(theta) and e >= 1 for i, e in monomial), "no such parameter or exponent")
            require(sum(e for _, e in monomial) <= 4096 and monomial not in seen, "twice, or too large")
            seen.add(monomial)
            if monomial not in known:
                work += sum(e * bits[i] for i, e in monomial)
                require(work <= 10**7, "too large to be evaluated")
                known[monomial] = Fraction(1)
                for i, exponent in monomial:
                    known[monomial] *= theta[i] ** exponent
            number = rational(coefficient)
            require(number != 0, "a coefficient is 0")
            total += number * known[monomial]
        values.append(total)
    return values


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
        self.lower = own.real("lower", -1.7e308, 1.7e308, infinite=True)
        self.upper = own.real("upper", -1.7e308, 1.7e308, infinite=True)
        require(self.lower <= self.upper, "a lower bound above the upper one")
        states, choices = problem.states, problem.choices
        self.choice, weight = own.integers("choice", states), own.reals("weight", choices, 0.0, 1.0)
        require((self.choice is not None) == (policy == "fixed"), "the policy does not fit")
        require((weight is not None) == (policy == "randomised"), "the weights do not fit")
        self.vectors = [helps.reals(side, states, infinite=True) for side in ("lower", "upper")]
        self.biases = [helps.reals(f"{side}_bias", states) for side in ("lower", "upper")]
        average = problem.kind == "AVERAGE"
        require(all((b is not None) == average for b in self.biases), "a bias does not fit")
        require(policy == "free" or not problem.free_only, "a policy without memory")
        require(policy != "randomised" or not average, "the average of a randomised policy")
        require(not average or inf not in (self.vectors[1] or ()), "an average is infinite")
        low_rank, high_rank = helps.integers("lower_ranking", states), helps.integers("upper_ranking", states)
        self.rankings = [low_rank, low_rank if high_rank is None else high_rank]
        self.witness = helps.integers("witness", states)
        for picked in (self.choice, self.witness):
            fits = picked is None or all(c in span for c, span in zip(picked, problem.of_state, strict=True))
            require(fits, "a choice that its state does not have")
        require(self.witness is None or policy == "free", "a witness beside a policy that is given")
        require(all((v is not None) == (problem.steps is None) for v in self.vectors), "vectors do not fit")
        endless = problem.kind in ("REACH_REWARD", "TOTAL")
        require(endless or inf not in (self.vectors[0] or ()), "a lower bound is infinite, the value is not")
        by_step = problem.steps is not None or problem.lower_steps > 0
        named = policy == "free" if self.name == "value" else policy != "free"
        require(named or (self.name == "robust policy" and by_step), f"a {self.name} that is {policy}")
        self.weight = None
        if weight is not None:
            share = [Fraction(w) for w in weight]
            for span in problem.of_state:
                total = sum(weight[c] for c in span)
                require(abs(total - 1) <= 2.0**-40, "the weights are no distribution")
                exact = sum(share[c] for c in span)
                for c in span:
                    share[c] /= exact
            self.weight = share


# The theorem: one backup is inductive, and the play stops where that alone proves nothing.


class Game:
    """The problem under the claim's policy, from the side of one of its two bounds."""

    def __init__(self, problem: Problem, claim: Claim, upward: bool):
        self.problem, self.claim, self.upward = problem, claim, upward
        self.owner = "MIN" if upward else "MAX"
        self.fixed = claim.choice is not None or claim.weight is not None
        self.agent_owns = not self.fixed and problem.agent == self.owner

    def options(self, state: int) -> list[int]:
        """The choices that count: the policy's, the witness's where the agent owns the bound, or all."""
        if self.claim.choice is not None:
            return [self.claim.choice[state]]
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
        factor = Fraction(1) if problem.discount is None else problem.discount
        return inf if best == inf else problem.reward[c] + factor * Fraction(best)

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
        """So many backups; targets count from lower_steps on."""
        problem = self.problem
        for step in range(steps - 1, -1, -1):
            values = [self.state_backup(s, values, all_choices=True) for s in range(problem.states)]
            if problem.kind == "UNTIL":
                for s in range(problem.states):
                    if counted and step >= problem.lower_steps and given(problem.target, "")[s]:
                        values[s] = Fraction(1)
                    elif problem.allowed is not None and not problem.allowed[s]:
                        values[s] = Fraction(0)
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


def bound_of(problem: Problem, claim: Claim, upward: bool) -> Number:
    """The bound at the initial state that is proved, before the complement."""
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
                earned = problem.reward[c] + Fraction(pour(problem.rows[c], bias, other))
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
        earned = [problem.reward[c] for s in open_states for c in policy_choices(game, s)]
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
            (problem.kind == "TOTAL" and not upward and problem.reward[c] > 0)
            or game.moves(c, s, good, values)
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
    earns = [game.problem.reward[c] > 0 for c in options]
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
    require(words and top.node["learned"] is None, "a certificate of another kind")
    problem = Problem(top.node["problem"], arrays)
    claims, values = top.node["claims"], top.node["values"]
    require(isinstance(claims, list) and isinstance(values, list), "no claims")
    require(0 < len(claims) == len(values) <= 4, "every claim needs its hints, and there must be one")
    read = [Claim(i, c, v, problem, arrays) for i, (c, v) in enumerate(zip(claims, values, strict=True))]
    require(len({claim.name for claim in read}) == len(read), "two claims have one name")
    require(not arrays, f"nobody asked for the member {next(iter(arrays), '')!r}")
    lines = []
    for claim in read:
        low, high = bound_of(problem, claim, False), bound_of(problem, claim, True)
        if problem.complement:
            low, high = 1 - high, 1 - low
        require(claim.lower <= low and claim.upper >= high, f"{claim.name}: the claim is not proved", 1)
        assert not isnan(claim.lower)
        lines.append(f"{claim.name} in [{claim.lower!r}, {claim.upper!r}]")
    return lines


def main(paths: list[str]) -> int:
    worst = 0
    for path in paths:
        try:
            for line in verify(path):
                sys.stdout.write(f"{path}: {line}\n")
        except Refused as refused:
            sys.stderr.write(f"{path}: {str(refused).encode('unicode_escape').decode()}\n")
            worst = max(worst, refused.code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
