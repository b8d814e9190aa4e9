"""From PRISM text to syntax trees.

The grammar is in `grammar.lark`, that of properties in `properties.lark`; correct texts are parsed by the
tables that come with the package (`tables.py`), others by lark, which knows what is wrong. All errors are
`InputError`s with file, line and column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TypeVar, cast

from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.parse.builders import ModelBuilder, PropertyBuilder
from tightrope.prism.parse.digital_clocks import as_mdp
from tightrope.prism.parse.syntax import Complaint, SourceText
from tightrope.prism.parse.tables import NotParsedError, TableParser, Tables

T = TypeVar("T")


_BUILDERS = {"model": ModelBuilder, "properties": PropertyBuilder}


def parse_model(text: str, file: str) -> syntax.ModelFile:
    """A model file as written: nothing is looked up, substituted or typed yet."""
    source = SourceText(text, file)
    items = cast(Sequence[object], _parse(source, "model"))

    def every(kind: type[T]) -> tuple[T, ...]:
        return tuple(item for item in items if isinstance(item, kind))

    def once(kind: type[T], repeated: str) -> T | None:
        """What stands in the file at most once, with its place."""
        given = [item for item in every(tuple) if isinstance(item[0], kind)]
        if len(given) > 1:
            raise source.error(repeated, given[1][1])
        return given[0][0] if given else None

    # PRISM takes a model without a type for an MDP.
    type_ = once(syntax.ModelType, "the model type is given twice") or syntax.ModelType.MDP
    listed: tuple[syntax.Observable, ...] | None
    listed = once(tuple, "there is a second observables … endobservables")
    built = syntax.ModelFile(
        type=type_,
        constants=every(syntax.Constant),
        formulas=every(syntax.Formula),
        labels=every(syntax.LabelDefinition),
        globals=every(syntax.VariableDeclaration),
        modules=tuple(item for item in items if isinstance(item, syntax.Module | syntax.ModuleRenaming)),
        rewards=every(syntax.Rewards),
        init=once(syntax.Expression, "there is a second init … endinit"),
        source=text,
        file=file,
        system=_main_system(every(syntax.NamedSystem), source),
        observables=(*(listed or ()), *every(syntax.Observable)),
    )
    with source.complaints():
        _check_kind(built, listed is not None)
        return as_mdp(built) if type_ in (syntax.ModelType.PTA, syntax.ModelType.POPTA) else built


def _check_kind(model: syntax.ModelFile, lists_observables: bool) -> None:
    """Complain about what models of other types have, and what this one lacks."""
    kinds, seen = syntax.ModelType, model.observables
    hides = model.type in (kinds.POMDP, kinds.POPTA)
    if seen and not hides:
        hint = "write pomdp in place of the type"
        raise Complaint("observables belong to models of type pomdp", seen[0].position, hint)
    if hides and not seen and not lists_observables:
        hint = 'write observables x, y endobservables, or observable "near" = x<3;'
        raise Complaint("a pomdp says what is observed", None, hint)
    if not model.modules:
        raise Complaint("the model has no module", None, "a model looks like  mdp module m … endmodule")
    for module in (each for each in model.modules if isinstance(each, syntax.Module)):
        if module.clocks and model.type not in (kinds.PTA, kinds.POPTA):
            what = "clocks and invariants are those of timed automata"
            raise Complaint(what, module.position, "write pta for the type")
        for command in (each for each in module.commands if each.has_rates):
            if model.type is not kinds.MA:
                what = "commands <> with rates are those of Markov automata"
                raise Complaint(what, command.position, "write ma for the type")


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
            if part.name not in named:
                raise source.error(f'there is no system "{part.name}"', part.position)
            if part.name in inside:
                raise source.error("systems refer to each other in a circle", part.position)
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


def parse_properties(text: str, file: str) -> formulas.PropertyFile:
    """Constants, labels and properties of a property file, or of an option's text."""
    items = cast(Sequence[object], _parse(SourceText(text, file), "properties"))
    read = formulas.PropertyFile(
        constants=tuple(item for item in items if isinstance(item, syntax.Constant)),
        labels=tuple(item for item in items if isinstance(item, syntax.LabelDefinition)),
        properties=tuple(item for item in items if isinstance(item, formulas.Property)),
        source=text,
        file=file,
    )
    for each in read.properties:
        _check_depth(each.formula, SourceText(text, file))
    for before, behind in pairwise(read.properties):
        is_clear = isinstance(behind.formula, formulas.StateOperator)
        if not before.ends and (not is_clear or isinstance(behind.formula, formulas.Multi)):
            raise SourceText(text, file).error(
                "a property begins directly after another one", behind.position, "is a ';' missing before it?"
            )
    written = replace(read, properties=tuple(_with_text(property_, read) for property_ in read.properties))
    return formulas.with_infinite_constants(written)


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
        is_operator = isinstance(node, formulas.StateOperator)
        operators += is_operator
        most = _DEEPEST if operators <= _DEEPEST_OPERATORS else _DEEPEST_OPERATORS
        if (is_operator or isinstance(node, formulas.PathFormula)) and max(depth, operators) > most:
            place = getattr(node, "position", None)
            raise source.error(f"this formula is nested more than {most} deep", place, "ask it in parts")
        stack.extend((getattr(node, field.name), depth + 1, operators) for field in fields(node))


def _with_text(property_: formulas.Property, file: formulas.PropertyFile) -> formulas.Property:
    formula = property_.formula
    return replace(property_, text=formulas.spell(formula, file))


def _parse(source: SourceText, start: str) -> object:
    with source.complaints():
        try:
            return _parser(start).parse(source.text)
        except NotParsedError:
            from tightrope.prism.parse.refusals import refuse_by_lark

            refuse_by_lark(source, start)


@cache
def _parser(start: str) -> TableParser:
    return TableParser(Tables.read(start), _BUILDERS[start]())
