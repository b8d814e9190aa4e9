"""Parsing with precomputed tables.

`tables-model.json` and `tables-properties.json` hold lark's tables for `grammar.lark` and `properties.lark`
(`tools/parser_tables.py` writes them, a test compares). Only an incorrect text (`NotParsedError`) loads lark,
which takes 0.25 s and knows the expected tokens.

A number passes a dozen precedence rules unchanged. Such a run of reductions depends only on the state below,
the state on top and the next token, so one lookup replaces it. Tokens that no rule keeps are not created.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

END = "$END"


class NotParsedError(Exception):
    """The text is not in the language; lark says where and why."""


class Token(str):
    """A word of the text and its place, as far as builders ask for it."""

    __slots__ = ("column", "end_pos", "line", "start_pos")

    line: int
    column: int
    start_pos: int
    end_pos: int

    @staticmethod
    def made(text: str, start: int, line: int, column: int) -> Token:
        """The word that begins there."""
        token = Token(text)
        token.start_pos, token.end_pos, token.line, token.column = start, start + len(text), line, column
        return token

    def respelled(self, text: str) -> Token:
        """Another word in the same place."""
        token = Token(text)
        token.start_pos, token.end_pos = self.start_pos, self.end_pos
        token.line, token.column = self.line, self.column
        return token


class GrammarRule(NamedTuple):
    """How many symbols a rule takes from the stack, and what is made of them."""

    size: int
    origin: str
    method: str
    """Of the builder; the parts of a rule whose name begins with an underscore belong to the rule around."""

    hands_on: bool
    """Its only part passes unchanged, whatever it is."""

    is_transparent: bool
    """Its part passes unchanged where there is one only."""

    parts: list[list[int]]
    """Of each symbol that is kept: its place, whether it is a list of parts, and absent parts before it."""

    absent: int
    """Optional parts that are not there, at the end."""


class Tables(NamedTuple):
    """What lark computes from a grammar."""

    states: list[dict[str, int]]
    """By symbol the next state, or as -1 - r the rule that ends here."""

    last: int
    rules: list[GrammarRule]
    patterns: list[str]
    words: dict[str, dict[str, str]]
    """Names of tokens whose spelling may be a word with a name of its own."""

    ignored: list[str]
    with_newlines: list[str]
    valued: list[str]

    @staticmethod
    def read(start: str) -> Tables:
        """Those of a start symbol."""
        tables = json.loads(path_of(start).read_bytes())
        rows = tables.pop("rows")
        tables["states"] = [rows[row] for row in tables["states"]]
        tables["rules"] = [GrammarRule(*rule) for rule in tables["rules"]]
        return Tables(**tables)


def path_of(start: str) -> Path:
    """The file of a start symbol's tables."""
    return Path(__file__).with_name(f"tables-{start}.json")


class TableParser:
    """The parser of one start symbol; the methods of `builder` make our syntax trees as it goes."""

    def __init__(self, tables: Tables, builder: object):
        self._last = tables.last
        self._patterns = [re.compile(pattern) for pattern in tables.patterns]
        self._words = tables.words
        self._ignored, self._with_newlines = frozenset(tables.ignored), frozenset(tables.with_newlines)
        self._valued = frozenset(tables.valued)
        self._states = tables.states
        self._rules = [
            (rule.size, _action(rule, builder), rule.origin, rule.hands_on) for rule in tables.rules
        ]
        self._ends: dict[tuple[int, int, str], int] = {}

    def parse(self, text: str) -> object:
        """What the builder makes of the text."""
        states, rules, ends = self._states, self._rules, self._ends
        stack: list[int] = [0]
        values: list[object] = [None]
        for name, token in self._tokens(text):
            while True:
                top = stack[-1]
                step = states[top].get(name)
                if step is None:
                    raise NotParsedError
                if step >= 0:
                    stack.append(step)
                    values.append(token)
                    break
                size, build, origin, hands_on = rules[-1 - step]
                if hands_on:
                    key = (stack[-2], top, name)
                    end = ends.get(key)
                    stack[-1] = self._end_of(*key) if end is None else end
                    continue
                children: list[object] = []
                if size:
                    children = values[-size:]
                    del stack[-size:], values[-size:]
                stack.append(states[stack[-1]][origin])
                values.append(build(children))
                if name == END and stack[-1] == self._last:
                    return values[-1]
        raise NotParsedError

    def _end_of(self, below: int, top: int, name: str) -> int:
        """Where the reductions end that hand a value on."""
        key = (below, top, name)
        step = self._states[top].get(name)
        while step is not None and step < 0 and self._rules[-1 - step][3]:
            top = self._states[below][self._rules[-1 - step][2]]
            step = self._states[top].get(name)
        self._ends[key] = top
        return top

    def _tokens(self, text: str) -> Iterator[tuple[str, Token | None]]:
        """Names of tokens in the order of the text, with the token itself where a rule keeps it."""
        position, line, line_start, size = 0, 1, 0, len(text)
        matchers = [pattern.match for pattern in self._patterns]
        words, keeps, ignored, with_newlines = self._words, self._valued, self._ignored, self._with_newlines
        while position < size:
            for match in matchers:
                match_ = match(text, position)
                if match_:
                    break
            else:
                raise NotParsedError
            name, end = str(match_.lastgroup), match_.end()
            if name not in ignored:
                spelling = match_.group()
                if name in words:
                    name = words[name].get(spelling, name)
                if name in keeps:
                    yield name, Token.made(spelling, position, line, position - line_start + 1)
                else:
                    yield name, None
            if match_.lastgroup in with_newlines:
                newlines = text.count("\n", position, end)
                if newlines:
                    line += newlines
                    line_start = text.rindex("\n", position, end) + 1
            position = end
        yield END, None


def _action(rule: GrammarRule, builder: object) -> Callable[[list[object]], object]:
    """What is made of the values of a rule's symbols."""
    is_inner, method = rule.method.startswith("_"), getattr(builder, rule.method, None)
    is_transparent, parts, absent = rule.is_transparent, rule.parts, rule.absent
    assert method is not None or is_inner or is_transparent, rule
    keeps_all = not absent and parts == [[place, False, 0] for place in range(rule.size)]

    def build(values: list[object]) -> object:
        chosen = values if keeps_all else []
        for place, is_list, missing in () if keeps_all else parts:
            chosen += [None] * missing
            value = values[place]
            if not (is_list and isinstance(value, list)):
                chosen.append(value)
            elif chosen:
                chosen += value
            else:
                chosen = value  # nobody else holds it: a long list is not copied for every part
        if absent:
            chosen += [None] * absent
        if is_inner:
            return chosen
        return chosen[0] if method is None or (is_transparent and len(chosen) == 1) else method(*chosen)

    return build
