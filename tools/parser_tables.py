"""The parser tables that lark makes of PRISM's grammar, for `tightrope.prism.parse.tables`.

    python tools/parser_tables.py

Numbering is deterministic: states in order of discovery, rules by text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import cast

from lark import Lark, Token, Transformer
from lark.grammar import Rule, Terminal
from lark.lexer import UnlessCallback
from lark.parsers.lalr_analysis import Shift

from tightrope.prism.parse.refusals import load_lark
from tightrope.prism.parse.tables import GrammarRule, Tables, path_of
from tightrope.prism.parse.tables import Token as OwnToken

STARTS = ("model", "properties")


def read_by_lark(start: str, builder: object, text: str) -> object:
    """What the methods of a builder make of a text where lark parses it, which calls them with lists."""
    actions = cast("Transformer[Token, object]", _Actions(builder))
    options = {"parser": "lalr", "lexer": "basic", "transformer": actions}
    return Lark(load_lark(start).source_grammar, start=start, **options).parse(text)


class _Actions:
    """The methods of a builder as lark calls them."""

    def __init__(self, builder: object):
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[[list[object]], object]:
        method = getattr(self._builder, name)
        return lambda parts: method(*map(_own_token, parts))


def _own_token(part: object) -> object:
    if not isinstance(part, Token):
        return part
    return OwnToken.made(str(part), part.start_pos or 0, part.line or 1, part.column or 1)


def compute_tables(start: str) -> Tables:
    """The tables of a start symbol, by lark."""
    lark = load_lark(start)
    table, lexer = lark.parser.parser.parser.parse_table, lark.parser.lexer
    order, numbers = [table.start_states[start]], {table.start_states[start]: 0}
    for state in order:
        for _, (action, target) in sorted(table.states[state].items()):
            if action is Shift and target not in numbers:
                numbers[target] = len(order)
                order.append(target)
    actions = [table.states[state] for state in order]
    used = {arg for row in actions for action, arg in row.values() if action is not Shift}
    rules = sorted(used, key=lambda rule: (rule.origin.name, str(rule.expansion), str(rule.alias)))
    ends = {rule: -1 - number for number, rule in enumerate(rules)}
    terminals = [symbol for rule in rules for symbol in rule.expansion if isinstance(symbol, Terminal)]
    return Tables(
        states=[
            {name: numbers[to] if action is Shift else ends[to] for name, (action, to) in sorted(row.items())}
            for row in actions
        ],
        last=numbers[table.end_states[start]],
        rules=[_as_ours(rule) for rule in rules],
        patterns=[pattern.pattern for pattern in lexer.scanner._mres],
        words={name: _words(name, callback) for name, callback in sorted(lexer.callback.items())},
        ignored=sorted(lexer.ignore_types),
        with_newlines=sorted(lexer.newline_types),
        valued=sorted({terminal.name for terminal in terminals if not terminal.filter_out}),
    )


def _words(name: str, callback: UnlessCallback) -> dict[str, str]:
    """The words that a pattern matches and that have a name of their own."""
    texts = [terminal.pattern.value for terminal in callback.scanner.terminals]
    return {text: callback(Token(name, text)).type for text in sorted(texts)}


def _as_ours(rule: Rule) -> GrammarRule:
    """A rule of lark's, with what its tree builder does to the parts (`lark.parse_tree_builder`)."""
    options = rule.options
    absent_before = [0]
    for is_absent in options.empty_indices or [False] * len(rule.expansion):
        if is_absent:
            absent_before[-1] += 1
        else:
            absent_before.append(0)
    parts, absent = [], 0
    for place, symbol in enumerate(rule.expansion):
        absent += absent_before[place]
        if options.keep_all_tokens or not (isinstance(symbol, Terminal) and symbol.filter_out):
            parts.append([place, not symbol.is_term and symbol.name.startswith("_"), absent])
            absent = 0
    only = rule.expansion[0] if len(rule.expansion) == 1 and options.expand1 and rule.alias is None else None
    return GrammarRule(
        size=len(rule.expansion),
        origin=rule.origin.name,
        method=rule.alias or options.template_source or rule.origin.name,
        hands_on=only is not None and not only.is_term and not only.name.startswith("_"),
        is_transparent=bool(options.expand1 and rule.alias is None),
        parts=parts,
        absent=absent + absent_before[-1],
    )


def as_text(tables: Tables) -> str:
    """The text of a file: equal rows of states once."""
    rows: list[Mapping[str, int]] = []
    for row in tables.states:
        if row not in rows:
            rows.append(row)
    facts = {**tables._asdict(), "states": [rows.index(row) for row in tables.states], "rows": rows}
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in facts.items()
    ]
    return "{" + ",\n".join(lines) + "}\n"


def write_tables() -> None:
    """Write the files again."""
    for start in STARTS:
        path_of(start).write_text(as_text(compute_tables(start)), "utf-8")


if __name__ == "__main__":
    write_tables()
