"""Rules as code without dependencies, as documents, and as graphs.

A function takes the variables of a state and gives the action. Rules that depend on the step take the step,
counted from 0; finite-memory rules take the memory, 0 at first, and give the next one. A state that the rule
does not know is an error in Python, −1 in C and NULL in SQL. A tree holds for the states that it reaches.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import UnsetType

from tightrope.atomic import atomic_write
from tightrope.errors import InputError
from tightrope.rules.rule import (
    RULE_FORMAT,
    Branch,
    Column,
    DecisionRule,
    Leaf,
    RuleMemory,
    RuleTest,
    Tree,
    Value,
    show_action,
    walk,
)

ENDINGS = {
    ".py": "python",
    ".c": "c",
    ".sql": "sql",
    ".json": "json",
    ".md": "markdown",
    ".dot": "dot",
}

RESERVED = re.compile(
    r"auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|"
    r"register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|"
    r"while|bool|true|false|policy|policy_actions|memory|step|table|texts|find_text|key|low|high|middle|i|text|"
    r"strcmp|memcmp|TABLE|first|action"
)
"""Words of C, and names in the code that is written."""


def format_of(path: Path, to: str | None) -> str:
    """The format that is named, or that the ending of a file means."""
    if to is not None and to not in ENDINGS.values():
        raise InputError(f"`to` is {to!r}, not one of {', '.join(ENDINGS.values())}")
    chosen = to or ENDINGS.get(path.suffix)
    if chosen is None:
        known = ", ".join(ENDINGS)
        raise InputError(
            f"the ending of {path.name} names no format", hint=f"use one of {known}, or say `to`"
        )
    return chosen


def export_rule(rule: DecisionRule, path: Path, to: str | None) -> None:
    """Write the rule to a file."""
    text = write_rule(rule, format_of(path, to))
    with atomic_write(path) as file:
        file.write(text)


def write_rule(rule: DecisionRule, to: str) -> str:
    """The rule in a format, as text."""
    return WRITERS[to](rule)


def _about(rule: DecisionRule) -> list[str]:
    """Where the rule comes from, as lines of a comment."""
    lines = [f"{RULE_FORMAT}: the action in every state."]
    if rule.promise is not None:
        lines += [f"Property: {rule.promise.question}", rule.promise.headline]
    if rule.tree is not None:
        lines.append(
            "It is about the states that it reaches from the initial state, where there is a choice."
        )
    return [re.sub(r"\s+", " ", line) for line in lines]


def _identifiers(columns: Sequence[Column]) -> dict[str, str]:
    """Names that Python and C take, all different."""
    names: dict[str, str] = {}
    for column in columns:
        name = re.sub(r"\W", "_", column.name, flags=re.ASCII)
        name = f"_{name}" if name[:1].isdigit() or not name else name
        while name in names.values() or RESERVED.fullmatch(name) or keyword.iskeyword(name):
            name += "_"
        names[column.name] = name
    return names


def _condition(
    test: RuleTest, rule: DecisionRule, name: Callable[[str], str], negate: str, equal: str
) -> str:
    """A test as an expression; `equal` has places for a name and a text."""
    left, column = name(test.left), rule.by_name[test.left]
    if test.equal and isinstance(test.bound, str):
        return equal.format(left, test.bound)
    if not isinstance(test.right, UnsetType):
        return f"{left} {'+' if test.sign > 0 else '-'} {name(test.right)} <= {test.bound}"
    return f"{negate}{left}" if column.kind == "bool" else f"{left} <= {test.bound}"


# --- Python ----------------------------------------------------------------------------------


def to_python(rule: DecisionRule) -> str:
    """A module with a function `policy`."""
    names = _identifiers(rule.columns)
    arguments = [f"{names[each.name]}: {each.kind.replace('text', 'str')}" for each in rule.columns]
    about = "\n".join(_about(rule)).replace("\\", "\\\\").replace('"""', "'''")
    key = "(" + "".join(f"{name}, " for name in names.values()) + ")"
    head = f'"""{about}\n"""\n\n'
    if rule.tree is not None:
        body = "\n".join(_python_tree(rule.tree, rule, names, "    "))
        return f"{head}\ndef policy({', '.join(arguments)}) -> str:\n{body}\n"
    entries: dict[tuple[Value, ...], list[str]] = {}
    if rule.memory is RuleMemory.NONE:
        shown = [f"    {tuple(row.state)!r}: {row.action!r},\n" for row in rule.table or ()]
        lookup, kind = f"TABLE[{key}]", "str"
    elif rule.memory is RuleMemory.MEMORY:
        shown = [
            f"    ({tuple(row.state)!r}, {row.memory}): ({row.action!r}, {row.following}),\n"
            for row in rule.table or ()
        ]
        lookup, kind = f"TABLE[{key}, memory]", "tuple[str, int]"
        arguments.append("memory: int")
    else:
        for row in rule.table or ():
            entries.setdefault(tuple(row.state), []).append(f"({row.memory}, {row.action!r})")
        shown = [f"    {state!r}: [{', '.join(runs)}],\n" for state, runs in entries.items()]
        lookup = f"[action for first, action in TABLE[{key}] if first <= step][-1]"
        kind = "str"
        arguments.append("step: int")
    return (
        f"{head}TABLE = {{\n{''.join(shown)}}}\n\n\ndef policy({', '.join(arguments)}) -> {kind}:\n"
        f"    return {lookup}\n"
    )


def _python_tree(tree: Tree, rule: DecisionRule, names: dict[str, str], indent: str) -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield f"{indent}return {tree.action!r}"
        return
    test = tree.test
    condition = _condition(test, rule, names.__getitem__, "not ", "{} == ")
    yield f"{indent}if {condition}{repr(test.bound) if condition.endswith('== ') else ''}:"
    yield from _python_tree(tree.yes, rule, names, indent + "    ")
    yield from _python_tree(tree.no, rule, names, indent)


# --- C ---------------------------------------------------------------------------------------


def to_c(rule: DecisionRule) -> str:
    """A file with `policy_actions` and a function `policy`, which gives the index of an action."""
    names = _identifiers(rule.columns)
    arguments = [
        f"const char *{names[column.name]}" if column.kind == "text" else f"long long {names[column.name]}"
        for column in rule.columns
    ]
    about = "\n * ".join(line.replace("*/", "* /") for line in _about(rule))
    actions = "".join(f"    {_c_text(action)},\n" for action in rule.actions)
    head = (
        f"/* {about}\n */\n#include <string.h>\n\nconst char *const policy_actions[] = {{\n{actions}}};\n\n"
    )
    if rule.tree is not None:
        body = "\n".join(_c_tree(rule.tree, rule, names, "    "))
        return f"{head}int policy({', '.join(arguments)})\n{{\n{body}\n}}\n"
    return head + _c_table(rule, names, arguments)


def _c_tree(tree: Tree, rule: DecisionRule, names: dict[str, str], indent: str) -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield f"{indent}return {rule.actions.index(tree.action)}; /* {tree.action.replace('*/', '* /')} */"
        return
    test = tree.test
    condition = _condition(test, rule, names.__getitem__, "!", "strcmp({}, ")
    if condition.endswith(", "):
        condition += f"{_c_text(str(test.bound))}) == 0"
    yield f"{indent}if ({condition}) {{"
    yield from _c_tree(tree.yes, rule, names, indent + "    ")
    yield f"{indent}}}"
    yield from _c_tree(tree.no, rule, names, indent)


def _c_table(rule: DecisionRule, names: dict[str, str], arguments: list[str]) -> str:
    """Rows in order: a search by halves finds the last one that is not beyond the state."""
    texts = sorted({value for row in rule.table or () for value in row.state if isinstance(value, str)})
    code = {text: number for number, text in enumerate(texts)}
    steps, memory = rule.memory is RuleMemory.STEP, rule.memory is RuleMemory.MEMORY
    listed = sorted(
        (
            *(code[value] if isinstance(value, str) else int(value) for value in row.state),
            row.memory,
            rule.actions.index(row.action),
            row.following,
        )
        for row in rule.table or ()
    )
    width = len(rule.columns)
    lines = "".join(f"    {{{', '.join(map(str, row))}}},\n" for row in listed)
    keys = [
        f"find_text({names[column.name]})" if column.kind == "text" else names[column.name]
        for column in rule.columns
    ]
    if steps or memory:
        arguments = [*arguments, "int step" if steps else "int *memory"]
    keys.append("step" if steps else "*memory" if memory else "0")
    finder = ""
    if texts:
        every = "".join(f"    {_c_text(text)},\n" for text in texts)
        finder = (
            f"static const char *const texts[] = {{\n{every}}};\n\n"
            "static int find_text(const char *text)\n{\n"
            f"    int i;\n    for (i = 0; i < {len(texts)}; i++)\n"
            "        if (strcmp(texts[i], text) == 0)\n            return i;\n    return -1;\n}\n\n"
        )
    same = width if steps else width + 1
    learn = f"    *memory = table[low - 1][{width + 2}];\n" * memory
    return (
        f"{finder}static const long long table[{len(listed)}][{width + 3}] = {{\n{lines}}};\n\n"
        f"int policy({', '.join(arguments)})\n{{\n"
        f"    const long long key[] = {{{', '.join(keys)}}};\n"
        f"    int low = 0, high = {len(listed)}, i;\n"
        "    while (low < high) {\n        const int middle = low + (high - low) / 2;\n"
        f"        for (i = 0; i < {width} && table[middle][i] == key[i]; i++)\n            ;\n"
        "        if (table[middle][i] <= key[i])\n            low = middle + 1;\n"
        "        else\n            high = middle;\n    }\n"
        f"    if (low == 0 || memcmp(table[low - 1], key, {same} * sizeof *key) != 0)\n        return -1;\n"
        f"{learn}    return table[low - 1][{width + 1}];\n}}\n"
    )


def _c_text(text: str) -> str:
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{"".join(plain)}"'


# --- SQL -------------------------------------------------------------------------------------


def to_sql(rule: DecisionRule) -> str:
    """A view `decisions`: the rows of a table `states`, which has a column per variable, with the action."""
    columns = [_sql_name(column.name) for column in rule.columns]
    about = "".join(f"-- {line}\n" for line in _about(rule))
    extra = [] if rule.memory is RuleMemory.NONE else [rule.memory.value]
    head = f"{about}-- A table or view `states` has the columns {', '.join([*columns, *extra])}.\n"
    if rule.tree is not None:
        action = _sql_tree(rule.tree, rule, "  ")
        return f"{head}CREATE VIEW decisions AS\nSELECT states.*,\n{action} AS action\nFROM states;\n"
    kinds = {"int": "INTEGER", "bool": "BOOLEAN", "text": "TEXT"}
    fields = [f"{_sql_name(column.name)} {kinds[column.kind]}" for column in rule.columns]
    steps, memory = rule.memory is RuleMemory.STEP, rule.memory is RuleMemory.MEMORY
    keys = [*columns, *["from_step"] * steps, *["memory"] * memory]
    beside = (f"{name} INTEGER" for name in keys[len(columns) :])
    fields += [*beside, "action TEXT", *["next_memory INTEGER"] * memory]
    rows = []
    for row in rule.table or ():
        values = [*map(_sql_value, row.state), *[str(row.memory)] * len(extra), _sql_value(row.action)]
        rows.append(f"({', '.join([*values, *[str(row.following)] * memory])})")
    inserts = "".join(
        "INSERT INTO policy VALUES\n" + ",\n".join(rows[i : i + 500]) + ";\n"
        for i in range(0, len(rows), 500)
    )
    matches = " AND ".join(f"policy.{name} = states.{name}" for name in columns)
    wanted = "policy.action" + ", policy.next_memory" * memory
    view = f"SELECT states.*, {wanted}\nFROM states LEFT JOIN policy ON {matches}"
    view += " AND policy.memory = states.memory" * memory
    if steps:
        view = (
            f"SELECT states.*, (SELECT action FROM policy WHERE {matches} AND from_step <= states.step\n"
            "  ORDER BY from_step DESC LIMIT 1) AS action\nFROM states"
        )
    table = f"CREATE TABLE policy ({', '.join(fields)}, PRIMARY KEY ({', '.join(keys)}));\n"
    return f"{head}{table}{inserts}CREATE VIEW decisions AS\n{view};\n"


def _sql_tree(tree: Tree, rule: DecisionRule, indent: str) -> str:
    if isinstance(tree, Leaf):
        return f"{indent}{_sql_value(tree.action)}"
    test = tree.test
    condition = _condition(test, rule, _sql_name, "NOT ", "{} = ")
    condition += _sql_value(test.bound) if condition.endswith(" = ") else ""
    sides = (_sql_tree(side, rule, indent + "  ").lstrip() for side in (tree.yes, tree.no))
    yes, no = sides
    return f"{indent}CASE WHEN {condition} THEN {yes}\n{indent}ELSE {no} END"


def _sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_value(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper()


# --- documents and graphs --------------------------------------------------------------------


def to_json(rule: DecisionRule) -> str:
    """The record itself, which `DecisionRule.read` reads."""
    return msgspec.json.format(msgspec.json.encode(rule), indent=1).decode() + "\n"


def to_markdown(rule: DecisionRule) -> str:
    """For people: the tree as nested lists, or the table."""
    title, *about = _about(rule)
    lines = [f"# {title.removesuffix('.')}", "", *(f"{line}  " for line in about), ""]
    if rule.tree is not None:
        lines += [f"{'  ' * depth}- {line}" for depth, line in rule.words()]
        return "\n".join(lines) + "\n"
    memory = rule.memory is RuleMemory.MEMORY
    extra = ["from step"] * (rule.memory is RuleMemory.STEP) + ["memory"] * memory
    head = [*(column.name for column in rule.columns), *extra, "action", *["next memory"] * memory]
    cells = [head, ["---"] * len(head)]
    for row in rule.table or ():
        shown = [column.call(value) for column, value in zip(rule.columns, row.state, strict=True)]
        shown += [*[str(row.memory)] * len(extra), show_action(row.action)]
        cells.append([*shown, *[str(row.following)] * memory])
    escaped = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in cells)
    return "\n".join([*lines, *(f"| {row} |" for row in escaped)]) + "\n"


def to_dot(rule: DecisionRule) -> str:
    """A graph for Graphviz: the tree, or how the memory changes."""
    head = [f"// {line}" for line in _about(rule)]
    if rule.tree is not None:
        lines, number = [*head, "digraph tree {", "  node [shape=box];"], {}
        for place, node in enumerate(walk(rule.tree)):
            number[id(node)] = place
            text = node.test.words(rule.by_name) if isinstance(node, Branch) else show_action(node.action)
            shape = "" if isinstance(node, Branch) else ", style=rounded"
            lines.append(f"  {place} [label={json.dumps(text)}{shape}];")
        for node in walk(rule.tree):
            if isinstance(node, Branch):
                for side, word in ((node.yes, "yes"), (node.no, "no")):
                    lines.append(f'  {number[id(node)]} -> {number[id(side)]} [label="{word}"];')
        return "\n".join([*lines, "}", ""])
    if rule.memory is not RuleMemory.MEMORY:
        raise InputError(
            "graphs are drawn of trees and of finite-memory policies", hint="policy.tree() finds one"
        )
    lines = [*head, "digraph controller {", "  rankdir=LR;", "  start [shape=point]; start -> 0;"]
    lines += [f"  {memory} [shape=circle];" for memory in sorted({row.memory for row in rule.table or ()})]
    for row in rule.table or ():
        values = zip(rule.columns, row.state, strict=True)
        state = ", ".join(f"{column.name}={column.call(value)}" for column, value in values)
        label = json.dumps(f"{state}: {show_action(row.action)}")
        lines.append(f"  {row.memory} -> {row.following} [label={label}];")
    return "\n".join([*lines, "}", ""])


WRITERS: dict[str, Callable[[DecisionRule], str]] = {
    "python": to_python,
    "c": to_c,
    "sql": to_sql,
    "json": to_json,
    "markdown": to_markdown,
    "dot": to_dot,
}
