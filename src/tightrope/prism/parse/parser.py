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
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from lark import Lark
from lark.exceptions import UnexpectedInput
from lark.lexer import PatternStr

from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint, Source
from tightrope.prism.parse.expression_builder import ExpressionBuilder
from tightrope.prism.parse.fast_parser import FastParser, NotParsedError
from tightrope.prism.parse.model_builder import ModelBuilder
from tightrope.prism.parse.property_builder import PropertyBuilder
from tightrope.prism.parse.property_syntax import (
    Branching,
    Filter,
    Multi,
    PathFormula,
    Property,
    PropertyFile,
    Quantile,
    ValueOperator,
)
from tightrope.prism.parse.refusals import syntax_error
from tightrope.prism.parse.spelling import spell


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


def parse_model(text: str, file: str) -> syntax.Model:
    """A model file as written: nothing is looked up, substituted or typed yet."""
    source = Source(text, file)
    items = cast(list[object], _parse(source, "model"))
    types = cast(list[tuple[syntax.ModelType, syntax.Position]], _tuples_of(items, syntax.ModelType))
    inits = cast(list[tuple[syntax.Expression, syntax.Position]], _tuples_of(items, syntax.Expression))
    systems = [
        cast(tuple[syntax.Composition, syntax.Position], item)
        for kind in (syntax.ModuleName, syntax.Parallel, syntax.Hiding, syntax.ActionRenaming)
        for item in _tuples_of(items, kind)
    ]
    if len(types) > 1:
        raise source.error("the model type is given twice", types[1][1])
    if len(inits) > 1:
        raise source.error("there is a second init … endinit", inits[1][1])
    if len(systems) > 1:
        raise source.error("there is a second system … endsystem", systems[1][1])
    modules = tuple(item for item in items if isinstance(item, syntax.Module | syntax.ModuleRenaming))
    if not modules:
        raise source.error("the model has no module", None, "a model looks like  mdp module m … endmodule")
    return syntax.Model(
        # PRISM takes a model without a type for an MDP.
        type=types[0][0] if types else syntax.ModelType.MDP,
        constants=tuple(item for item in items if isinstance(item, syntax.Constant)),
        formulas=tuple(item for item in items if isinstance(item, syntax.Formula)),
        labels=tuple(item for item in items if isinstance(item, syntax.LabelDefinition)),
        globals=tuple(item for item in items if isinstance(item, syntax.Variable)),
        modules=modules,
        rewards=tuple(item for item in items if isinstance(item, syntax.Rewards)),
        init=inits[0][0] if inits else None,
        source=text,
        file=file,
        system=systems[0][0] if systems else None,
    )


def parse_properties(text: str, file: str) -> PropertyFile:
    """Constants, labels and properties of a property file, or of an option's text."""
    items = cast(list[object], _parse(Source(text, file), "properties"))
    read = PropertyFile(
        constants=tuple(item for item in items if isinstance(item, syntax.Constant)),
        labels=tuple(item for item in items if isinstance(item, syntax.LabelDefinition)),
        properties=tuple(item for item in items if isinstance(item, Property)),
        source=text,
        file=file,
    )
    for each in read.properties:
        _check_depth(each.formula, Source(text, file))
    for before, behind in pairwise(read.properties):
        both = isinstance(before.formula, ValueOperator) and isinstance(behind.formula, ValueOperator)
        if not (before.ends or both):
            raise Source(text, file).error(
                "a property begins behind another one", behind.position, "is a ';' missing before it?"
            )
    return replace(read, properties=tuple(_with_text(property_, read) for property_ in read.properties))


_DEEPEST = 150
_DEEPEST_OPERATORS = 30
"""Levels above a part of a formula, and operators such as P=? around one. Expressions alone may be deeper."""


def _check_depth(formula: syntax.Expression, source: Source) -> None:
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
    return cast(syntax.Expression, _parse(Source(text, file), "lone_expression"))


def _with_text(property_: Property, file: PropertyFile) -> Property:
    formula = property_.formula
    text = file.text_of(formula) if isinstance(formula, ValueOperator) else spell(formula, file)
    return replace(property_, text=text)


def _tuples_of(items: list[object], kind: type) -> list[tuple[object, ...]]:
    return [item for item in items if isinstance(item, tuple) and isinstance(item[0], kind)]


def _parse(source: Source, start: str) -> object:
    try:
        try:
            return _fast_parser(start).parse(source.text)
        except NotParsedError:
            return _parser(start).parse(source.text)
    except UnexpectedInput as error:
        raise syntax_error(error, source, _spelling(start)) from None
    except Complaint as complaint:
        raise complaint.in_source(source) from None


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
