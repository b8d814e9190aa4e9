"""From PRISM text to syntax trees.

The grammar is in `grammar.lark`, that of properties in `properties.lark`. The tables for models, properties
and lone expressions are built on first use (some 0.15 s) and kept on disk for later processes, as the
compiled kernels are. All errors are `InputError`s with file, line and column.

Computing tables takes longer than parsing a model of usual size. They lie in `__pycache__` of this package,
or where that cannot be written to in the user's cache folder; lark names the grammar, its own version and
that of Python in them and computes them anew where one has changed or the file is damaged. Without a folder
to write to the tables are computed in every process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.grammar import Rule, Terminal
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift

from tightrope.prism.parse import syntax
from tightrope.prism.parse.builders import ExpressionBuilder, ModelBuilder, PropertyBuilder
from tightrope.prism.parse.digital_clocks import as_mdp
from tightrope.prism.parse.property_syntax import (
    Branching,
    Filter,
    Multi,
    PathFormula,
    Property,
    PropertyFile,
    Quantile,
    ValueOperator,
    spell,
    with_infinite_constants,
)
from tightrope.prism.parse.refusals import syntax_error
from tightrope.prism.parse.syntax import SourceText

T = TypeVar("T")


def load_tables(start: str, builder: Any) -> Lark:
    """The parser from `start`; `builder` makes our syntax trees as it goes."""
    names = ["grammar.lark", "properties.lark"] if start == "properties" else ["grammar.lark"]
    here = resources.files("tightrope.prism.parse")
    grammar = "\n".join(here.joinpath(name).read_text("utf-8") for name in names)
    folder = _folder()
    return Lark(
        grammar,
        start=start,
        parser="lalr",
        lexer="basic",
        transformer=builder,
        cache=False if folder is None else str(folder / f"grammar-{start}.tables"),
    )


def _folder() -> Path | None:
    """The first folder that can be written to."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for folder in (Path(__file__).parent / "__pycache__", Path(home).expanduser() / "tightrope"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


_BUILDERS: dict[str, type[ExpressionBuilder]] = {
    "model": ModelBuilder,
    "properties": PropertyBuilder,
    "lone_expression": ExpressionBuilder,
}


def parse_model(text: str, file: str) -> syntax.ModelFile:
    """A model file as written: nothing is looked up, substituted or typed yet."""
    source = SourceText(text, file)
    items = cast(Sequence[object], _parse(source, "model"))

    def once(kind: type[T], repeated: str) -> T | None:
        """What stands in the file at most once, with its place."""
        given = [item for item in items if isinstance(item, tuple) and isinstance(item[0], kind)]
        if len(given) > 1:
            raise source.error(repeated, given[1][1])
        return given[0][0] if given else None

    type_ = once(syntax.ModelType, "the model type is given twice")
    init = once(syntax.Expression, "there is a second init … endinit")
    system = _main_system([item for item in items if isinstance(item, syntax.NamedSystem)], source)
    modules = tuple(item for item in items if isinstance(item, syntax.Module | syntax.ModuleRenaming))
    listed = [item for item in items if isinstance(item, tuple) and isinstance(item[0], tuple)]
    if len(listed) > 1:
        raise source.error("there is a second observables … endobservables", listed[1][1])
    seen = [item for each in listed for item in each[0]]
    seen += [item for item in items if isinstance(item, syntax.Observable)]
    hides = type_ is syntax.ModelType.POMDP
    if seen and not hides:
        raise source.error(
            "observables belong to models of type pomdp", seen[0].position, "write pomdp in place of the type"
        )
    if hides and not seen and not listed:
        raise source.error(
            "a pomdp says what is observed",
            None,
            'write observables x, y endobservables, or observable "near" = x<3;',
        )
    if not modules:
        raise source.error("the model has no module", None, "a model looks like  mdp module m … endmodule")
    timed = [module for module in modules if isinstance(module, syntax.Module) and module.clocks]
    if timed and type_ is not syntax.ModelType.PTA:
        raise source.error(
            "clocks and invariants are those of timed automata", timed[0].position, "write pta for the type"
        )
    if type_ is not syntax.ModelType.MA:
        plain = (module for module in modules if isinstance(module, syntax.Module))
        for command in (each for module in plain for each in module.commands if each.has_rates):
            raise source.error(
                "commands <> with rates are those of Markov automata",
                command.position,
                "write ma for the type",
            )
    built = syntax.ModelFile(
        # PRISM takes a model without a type for an MDP.
        type=type_ or syntax.ModelType.MDP,
        constants=tuple(item for item in items if isinstance(item, syntax.Constant)),
        formulas=tuple(item for item in items if isinstance(item, syntax.Formula)),
        labels=tuple(item for item in items if isinstance(item, syntax.LabelDefinition)),
        globals=tuple(item for item in items if isinstance(item, syntax.VariableDeclaration)),
        modules=modules,
        rewards=tuple(item for item in items if isinstance(item, syntax.Rewards)),
        init=init,
        source=text,
        file=file,
        system=system,
        observables=tuple(seen),
    )
    if type_ is not syntax.ModelType.PTA:
        return built
    with source.complaints():
        return as_mdp(built)


def _main_system(given: Sequence[syntax.NamedSystem], source: SourceText) -> syntax.Composition | None:
    """The composition without a name, or the only one, with those that it names written out."""
    named = {}
    for one in given:
        if one.name in named:
            again = "there is a second system … endsystem"
            raise source.error(again if one.name is None else f'{again} "{one.name}"', one.position)
        named[one.name] = one.composition
    if not given:
        return None
    if None not in named and len(given) > 1:
        raise source.error(
            "every system … endsystem has a name, so none is the model's",
            given[0].position,
            "leave the name of the main one out",
        )

    main = named.get(None, given[0].composition)
    if not any(isinstance(part, syntax.SystemName) for part in _compositions(main)):
        return main  # however deep it is: who composes it tells

    def written_out(part: syntax.Composition, inside: tuple[str, ...]) -> syntax.Composition:
        if isinstance(part, syntax.SystemName):
            if part.name not in named or part.name in inside:
                known = (
                    f'there is no system "{part.name}"'
                    if part.name not in named
                    else "systems refer to each other in a circle"
                )
                raise source.error(known, part.position)
            return written_out(named[part.name], (*inside, part.name))
        if isinstance(part, syntax.Parallel):
            return replace(part, left=written_out(part.left, inside), right=written_out(part.right, inside))
        if isinstance(part, syntax.ActionRenaming):
            return replace(part, inner=written_out(part.inner, inside))
        return part

    return written_out(main, ())


def _compositions(main: syntax.Composition) -> Iterator[syntax.Composition]:
    """A composition and all its parts."""
    parts = [main]
    while parts:
        yield (part := parts.pop())
        if isinstance(part, syntax.Parallel):
            parts += [part.left, part.right]
        elif isinstance(part, syntax.ActionRenaming):
            parts.append(part.inner)


def parse_properties(text: str, file: str) -> PropertyFile:
    """Constants, labels and properties of a property file, or of an option's text."""
    items = cast(Sequence[object], _parse(SourceText(text, file), "properties"))
    read = PropertyFile(
        constants=tuple(item for item in items if isinstance(item, syntax.Constant)),
        labels=tuple(item for item in items if isinstance(item, syntax.LabelDefinition)),
        properties=tuple(item for item in items if isinstance(item, Property)),
        source=text,
        file=file,
    )
    for each in read.properties:
        _check_depth(each.formula, SourceText(text, file))
    for before, behind in pairwise(read.properties):
        if not (before.ends or isinstance(behind.formula, ValueOperator | Filter | Branching | Quantile)):
            raise SourceText(text, file).error(
                "a property begins behind another one", behind.position, "is a ';' missing before it?"
            )
    written = replace(read, properties=tuple(_with_text(property_, read) for property_ in read.properties))
    return with_infinite_constants(written)


_DEEPEST = 150
_DEEPEST_OPERATORS = 30
"""Levels above a part of a formula, and operators such as P=? around one. Expressions alone may be deeper."""


def _check_depth(formula: syntax.Expression, source: SourceText) -> None:
    """Refuse formulas that are nested too deeply for what is done with them, level by level."""
    stack: list[tuple[object, int, int]] = [(formula, 0, 0)]
    while stack:
        node, depth, operators = stack.pop()
        if isinstance(node, tuple):
            stack.extend((each, depth, operators) for each in node)
            continue
        if not is_dataclass(node) or isinstance(node, syntax.Position):
            continue
        is_operator = isinstance(node, ValueOperator | Branching | Filter | Quantile | Multi)
        operators += is_operator
        most = _DEEPEST if operators <= _DEEPEST_OPERATORS else _DEEPEST_OPERATORS
        if (is_operator or isinstance(node, PathFormula)) and max(depth, operators) > most:
            place = getattr(node, "position", None)
            raise source.error(f"this formula is nested more than {most} deep", place, "ask it in parts")
        stack.extend((getattr(node, field.name), depth + 1, operators) for field in fields(node))


def parse_expression(text: str, file: str) -> syntax.Expression:
    """A lone expression, labels allowed."""
    return cast(syntax.Expression, _parse(SourceText(text, file), "lone_expression"))


def _with_text(property_: Property, file: PropertyFile) -> Property:
    formula = property_.formula
    text = file.text_of(formula) if isinstance(formula, ValueOperator) else spell(formula, file)
    return replace(property_, text=text)


def _parse(source: SourceText, start: str) -> object:
    with source.complaints():
        try:
            try:
                return _fast_parser(start).parse(source.text)
            except NotParsedError:
                return _parser(start).parse(source.text)
        except UnexpectedInput as error:
            raise syntax_error(error, source, _spelling(start)) from None


@cache
def _parser(start: str) -> Lark:
    return load_tables(start, _BUILDERS[start]())


@cache
def _fast_parser(start: str) -> FastParser:
    return FastParser(_parser(start), start)


@cache
def _spelling(start: str) -> dict[str, str]:
    """What the tokens with one spelling look like; the others have an empty text."""
    return {
        terminal.name: terminal.pattern.value if isinstance(terminal.pattern, PatternStr) else ""
        for terminal in _parser(start).terminals
    }


# Parsing a correct text with lark's tables, several times as fast as lark itself does.
#
# An expression has a rule for every level of precedence, so a number passes a dozen rules that hand it on
# unchanged. A run of such reductions ends, for the state below, the state on top and the next token, always
# in the same state: it is looked up in one step. Tokens that no rule keeps are never made.
#
# The result is that of lark, whose tables, terminals and callbacks are used. A text that is not correct is
# left to lark (`NotParsedError`), which knows what was expected where.

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
        retype, keeps, ignored, with_newlines = (
            self._retype,
            self._kept,
            self._ignored,
            self._with_newlines,
        )
        while position < size:
            for match in matchers:
                match_ = match(text, position)
                if match_:
                    break
            else:
                raise NotParsedError
            name, end = match_.lastgroup, match_.end()
            if name not in ignored:
                if name in keeps or name in retype:
                    column = position - line_start + 1
                    token = Token(
                        name, match_.group(), position, line, column, line, column + end - position, end
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
