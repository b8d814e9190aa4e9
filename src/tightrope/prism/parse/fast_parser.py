"""Parsing a correct text with lark's tables, several times as fast as lark itself does.

An expression has a rule for every level of precedence, so a number passes a dozen rules that hand it on
unchanged. A run of such reductions ends, for the state below, the state on top and the next token, always in
the same state: it is looked up in one step. Tokens that no rule keeps are never made.

The result is that of lark, whose tables, terminals and callbacks are used. A text that is not correct is left
to lark (`NotParsedError`), which knows what was expected where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lark import Lark, Token
from lark.grammar import Rule, Terminal
from lark.parsers.lalr_analysis import Shift

END = "$END"


class NotParsedError(Exception):
    """The text is not in the language; lark says where and why."""


class FastParser:
    """The parser of one start symbol, from lark's."""

    def __init__(self, lark: Lark, start: str):
        engine = lark.parser.parser.parser
        table = engine.parse_table
        lexer = lark.parser.lexer
        self._first = table.start_states[start]
        self._last = table.end_states[start]
        self._patterns = lexer.scanner._mres
        self._retype = lexer.callback
        self._ignored = lexer.ignore_types
        self._with_newlines = lexer.newline_types
        rules = {
            arg
            for actions in table.states.values()
            for action, arg in actions.values()
            if isinstance(arg, Rule) and action is not Shift
        }
        terminals = [s for rule in rules for s in rule.expansion if isinstance(s, Terminal)]
        self._kept = frozenset(terminal.name for terminal in terminals if not terminal.filter_out)
        steps: dict[Rule, tuple[Any, ...]] = {
            rule: (len(rule.expansion), engine.callbacks[rule], rule.origin.name, _hands_on(rule))
            for rule in rules
        }
        self._states: dict[Any, dict[str, Any]] = {
            state: {name: arg if action is Shift else steps[arg] for name, (action, arg) in actions.items()}
            for state, actions in table.states.items()
        }
        self._ends: dict[tuple[Any, Any, str], Any] = {}

    def parse(self, text: str) -> Any:
        """What the callbacks make of the text."""
        states, ends = self._states, self._ends
        stack: list[Any] = [self._first]
        values: list[Any] = [None]
        for name, token in self._tokens(text):
            while True:
                top = stack[-1]
                step = states[top].get(name)
                if step is None:
                    raise NotParsedError
                if type(step) is not tuple:
                    stack.append(step)
                    values.append(token)
                    break
                size, build, origin, hands_on = step
                if hands_on:
                    key = (stack[-2], top, name)
                    end = ends.get(key)
                    stack[-1] = self._end_of(*key) if end is None else end
                    continue
                children: list[Any] = []
                if size:
                    children = values[-size:]
                    del stack[-size:], values[-size:]
                stack.append(states[stack[-1]][origin])
                values.append(build(children))
                if name == END and stack[-1] == self._last:
                    return values[-1]
        raise NotParsedError

    def _end_of(self, below: Any, top: Any, name: str) -> Any:
        """Where the reductions end that hand a value on."""
        key = (below, top, name)
        step = self._states[top].get(name)
        while type(step) is tuple and step[3]:
            top = self._states[below][step[2]]
            step = self._states[top].get(name)
        self._ends[key] = top
        return top

    def _tokens(self, text: str) -> Iterator[tuple[str, Token | None]]:
        """Names of tokens in the order of the text, with the token itself where a rule keeps it."""
        position, line, line_start, size = 0, 1, 0, len(text)
        matchers: list[Callable[[str, int], Any]] = [pattern.match for pattern in self._patterns]
        retype, kept, ignored, with_newlines = self._retype, self._kept, self._ignored, self._with_newlines
        while position < size:
            for match in matchers:
                found = match(text, position)
                if found:
                    break
            else:
                raise NotParsedError
            name, end = found.lastgroup, found.end()
            if name not in ignored:
                if name in kept or name in retype:
                    column = position - line_start + 1
                    token = Token(
                        name, found.group(), position, line, column, line, column + end - position, end
                    )
                    if name in retype:
                        token = retype[name](token)
                    yield token.type, token
                else:
                    yield name, None
            if name in with_newlines:
                newlines = text.count("\n", position, end)
                if newlines:
                    line += newlines
                    line_start = text.rindex("\n", position, end) + 1
            position = end
        yield END, None


def _hands_on(rule: Rule) -> bool:
    """Whether a reduction by the rule leaves its only value as it is."""
    if len(rule.expansion) != 1 or not rule.options.expand1 or rule.alias is not None:
        return False
    symbol = rule.expansion[0]
    return not symbol.is_term and not symbol.name.startswith("_")
