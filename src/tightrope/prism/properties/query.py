"""A property parsed once: what its text asks of one model, of which kind, and in which directions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Literal as OneOf

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.objective import Direction, Objective
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.expand.expressions import check_type, fold
from tightrope.prism.expand.model import BUILT_IN_LABELS
from tightrope.prism.expand.program import Definitions, Program
from tightrope.prism.parse import syntax
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import (
    PathFormula,
    PathOperator,
    Property,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
    is_infinite,
)
from tightrope.prism.parse.syntax import Binary, Expression, Position, SourceText, suggestion
from tightrope.prism.properties import resolve, shape
from tightrope.prism.properties.capabilities import CAPABILITIES, QueryKind, Task, require_task
from tightrope.prism.properties.resolve import StateFormulas
from tightrope.prism.properties.shape import kind_of, without_negation

TruthValue = OneOf["true", "false", "not certified"]


@dataclass(frozen=True, eq=False)
class Query:
    """What a property asks of a model with a `structure`.

    * `kind` says who answers it (`capabilities`).
    * `directions`: the agent's and nature's, of one P, R, S or CVaR; `reading` tells how one direction was
      read where both decide.
    * `comparison` and `threshold` are None where a number is asked for.
    * `plain_objective`: what is solved, of plain queries in discrete time.
    * `formula`, `file` and `options` are what was parsed; queries made of an `Objective` have no formula.
    """

    text: str
    kind: QueryKind
    structure: Structure = field(repr=False)
    plain_objective: Objective | None = None
    directions: tuple[Direction, Direction] | None = None
    comparison: str | None = None
    threshold: Fraction | None = None
    reading: resolve.DirectionReading | None = None
    name: str | None = None
    formula: Expression | None = field(default=None, repr=False)
    file: PropertyFile | None = field(default=None, repr=False)
    options: resolve.PropertyOptions = field(default_factory=resolve.PropertyOptions, repr=False)
    position: Position | None = field(default=None, repr=False)

    @staticmethod
    def of_objective(objective: Objective, structure: Structure) -> Query:
        """The query of an objective that nobody wrote down."""
        directions = objective.agent, objective.nature
        worst = objective.after_elsewhere(structure)
        return Query(objective.kind.value, QueryKind.PLAIN, structure, worst, directions)

    @property
    def objective(self) -> Objective:
        """What is solved; queries of other kinds are refused, in the words of the table."""
        if self.plain_objective is None:
            raise self.refusal()
        return self.plain_objective

    @property
    def is_plain(self) -> bool:
        """Whether it is one objective."""
        return self.kind is QueryKind.PLAIN

    @property
    def is_threshold(self) -> bool:
        return self.comparison is not None

    @property
    def limit(self) -> tuple[str, Fraction] | None:
        """The comparison and the threshold, where there is one."""
        return (
            None if self.comparison is None or self.threshold is None else (self.comparison, self.threshold)
        )

    @property
    def operator(self) -> ValueOperator:
        """The one P, R, S or CVaR that it is."""
        if not isinstance(self.formula, ValueOperator):
            raise self.error("one P, R or S is required here", self.position)
        return self.formula

    @property
    def syntax(self) -> PropertyFile:
        """The file behind it, whose labels and constants it may use."""
        if self.file is None:
            raise InputError(f"the objective {self.text} has no text", hint="write it as a property")
        return self.file

    @property
    def source(self) -> SourceText:
        """Where complaints about it point to."""
        return SourceText(self.syntax.source, self.syntax.file)

    def state_formulas(self, nested: Callable[[Expression], BoolArray] | None = None) -> StateFormulas:
        """Its labels and constants on the model; `nested` evaluates operators inside state formulas."""
        return resolve.formulas_of(self.syntax, self.structure, self.options, nested)

    def require(self, task: Task) -> None:
        """Refuse it, in the words of the table, where a task does not take it."""
        require_task(self.kind, self.text, task)

    def with_objective(self, objective: Objective, structure: Structure) -> Query:
        """The same question, of which an objective on another structure is what remains to be solved."""
        return replace(self, kind=QueryKind.PLAIN, structure=structure, plain_objective=objective)

    def on(self, structure: Structure) -> Query:
        """The same text, read on another model."""
        assert self.formula is not None
        property_ = Property(self.name, self.formula, self.text, self.position)
        return read_query(property_, self.syntax, structure, self.options)

    def with_nature(self, direction: str) -> Query:
        """The same text with "min" or "max" for both directions: nature picks probabilities or rates."""
        directed = replace(self.operator, agent=direction, nature=direction)
        property_ = Property(self.name, directed, self.text, self.position)
        return read_query(property_, self.syntax, self.structure, replace(self.options, is_interval=True))

    def answer(self, lower: float, upper: float) -> TruthValue:
        """Whether the value meets the threshold, from certified bounds; comparisons are exact."""
        if self.comparison is None or self.threshold is None:
            raise ValueError("only a property with a threshold is true or false")
        return decide(self.comparison, self.threshold, lower, upper)

    def error(self, message: str, position: Position | None, hint: str | None = None) -> InputError:
        """An error about its text."""
        return self.source.error(message, position, hint)

    def refusal(self) -> InputError:
        """Why it is not one objective."""
        if self.kind is QueryKind.NESTED:
            try:  # the objective's own words say which operator stands inside
                resolve.read_objective(self.operator, self.syntax, self.structure, self.options)
            except InputError as error:
                return error
        if not isinstance(self.formula, ValueOperator):
            return self.error(
                "one P or R is required here, not a formula made of several or of none",
                self.position,
                "`check` and tr.solve take it, of models whose states are seen",
            )
        path, position = self.formula.path, self.formula.position
        if isinstance(path, RewardFormula) and self.kind is not QueryKind.CVAR:
            position = path.position
        elif self.kind in (QueryKind.LTL, QueryKind.REWARD_BOUNDED) and not isinstance(path, RewardFormula):
            position = shape.first_temporal(path) or position
        return self.error(
            f"{CAPABILITIES[self.kind].subject} not supported here",
            position,
            "`check` and tr.solve take it, of models whose states are seen; elsewhere one P or R stands over "
            "a simple path (one of F G U X W R) or a reward (F, C<=k, C)",
        )


def parse_query(
    text: str, structure: Structure, options: resolve.PropertyOptions | None = None, file: str = "`property`"
) -> Query:
    """The query of a text with one property, such as an option's."""
    parsed = parse_properties(text, file)
    return read_query(pick(parsed), parsed, structure, options)


def read_query(
    property_: Property,
    file: PropertyFile,
    structure: Structure,
    options: resolve.PropertyOptions | None = None,
) -> Query:
    """What one property of a file asks of a model with this structure."""
    options = options or resolve.PropertyOptions()
    known = {*structure.labels, *BUILT_IN_LABELS, *(label.name for label in file.labels)}
    formula = shape.with_references(property_, file, known)
    clocks = getattr(options.definitions or structure.definitions, "clocks", None)
    if clocks or options.is_timed:
        formula = shape.with_time_bounds(formula, structure, file, bool(clocks))
    if clocks:
        _refuse_time_of_clocks(formula, property_, file)
    if isinstance(formula, ValueOperator) and formula.is_reward and is_infinite(formula.threshold):
        formula = _compared_with_infinity(formula, file, structure, options)
    query = Query(
        property_.text,
        shape.kind_of(formula, file),
        structure,
        name=property_.name,
        formula=formula,
        file=file,
        options=options,
        position=property_.position,
    )
    if structure.draws_start and query.kind not in (QueryKind.PLAIN, QueryKind.LONG_RUN):
        raise query.error(
            f"{CAPABILITIES[query.kind].subject} not supported where the first state is drawn",
            property_.position,
            "the draw would count as a step; ask with one initial state",
        )
    if structure.elsewhere is not None and query.kind is not QueryKind.PLAIN:
        raise query.error(
            f"{CAPABILITIES[query.kind].subject} not supported where outcomes that were never seen lead "
            "elsewhere",
            property_.position,
            "ask for one P or R over a simple path",
        )
    if not isinstance(formula, ValueOperator):
        return query
    with query.source.complaints():
        agent, nature, reading = resolve.read_directions(formula, file, structure, options)
        threshold = resolve.threshold_of(formula, query.state_formulas())
    objective = None
    if query.is_plain and not options.is_timed:
        objective = resolve.read_objective(formula, file, structure, options)
        if structure.draws_start:
            objective = objective.after_draw(structure)
        objective = objective.after_elsewhere(structure, file.source)
    return replace(
        query,
        plain_objective=objective,
        directions=(agent, nature),
        comparison=formula.comparison,
        threshold=threshold,
        reading=reading,
    )


def _refuse_time_of_clocks(formula: Expression, property_: Property, file: PropertyFile) -> None:
    """Of a timed automaton, refuse what speaks of time but for the bound of the path itself."""
    path = getattr(formula, "path", None)
    bound = getattr(shape.without_negation(path)[0], "bound", None) if isinstance(path, Expression) else None
    timed = bound if getattr(bound, "reward", None) == shape.TIME else None
    formulas = [formula, *(label.expression for label in file.labels)]
    whole = replace(file, properties=tuple(replace(property_, formula=one) for one in formulas), chosen=None)
    shape.refuse_time(whole, "a timed automaton", but=timed)


def _compared_with_infinity(
    operator: ValueOperator, file: PropertyFile, structure: Structure, options: resolve.PropertyOptions
) -> Expression:
    """`R<1.0/0.0 [ … ]`: the comparison of a value, which may be infinite, and no threshold of ours."""
    with SourceText(file.source, file.file).complaints():
        agent, nature, _ = resolve.read_directions(operator, file, structure, options)
    value = replace(operator, comparison=None, threshold=None, agent=agent.value)
    if options.is_interval:
        value = replace(value, nature=nature.value)
    assert operator.comparison is not None and operator.threshold is not None
    return Binary(operator.comparison, value, operator.threshold, operator.position)


def pick(file: PropertyFile, name: str | None = None) -> Property:
    """The property with a name (or number, from 1); without one, the only property of the file."""
    by_name: dict[str, Property] = {}
    for number, property_ in enumerate(file.properties, start=1):
        if property_.name is not None and property_.name in by_name:
            raise SourceText(file.source, file.file).error(
                f'there are two properties "{property_.name}"', property_.position
            )
        by_name[property_.name or str(number)] = property_
        by_name.setdefault(str(number), property_)
    if name is None and len(file.properties) == 1:
        return file.properties[0]
    if name in by_name:
        return by_name[name]
    if name is not None:
        raise InputError(
            f"there is no property '{name}'", Location(file.file), suggestion(name, by_name, "properties")
        )
    raise InputError(
        f"one property is required, not {len(file.properties)}",
        Location(file.file),
        "pick one by its name or number" if by_name else 'a property looks like  Pmax=? [ F "goal" ]',
    )


def decide(comparison: str, threshold: Fraction, lower: float, upper: float) -> TruthValue:
    """Whether a value within certified bounds meets a threshold."""
    compare = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}[comparison]
    holds = compare(lower, threshold)
    if not lower <= upper or compare(upper, threshold) != holds:
        return "not certified"
    return "true" if holds else "false"


# Boundary states of a question: those behind which nothing needs to be explored.
#
# The value is fixed (1, 0 or the terminal reward) at target states and at states that an until forbids:
#
#     F b, a U b        b or !a          (an upper bound on the steps changes nothing)
#     G b, a W b, a R b  !b;  !a or b;  !b or a     (the complement's target and forbidden states)
#     R [ F b ]         b
#
# There is no boundary for other questions, nor for formulas that are no property of a single state or may
# fail.

Boundary = Callable[[Program], syntax.Expression | None]
"""For a program, where exploration may stop; None where all states count."""


@dataclass(frozen=True)
class BoundaryOf:
    """The boundary of properties: a state is on it if it is on that of every property."""

    files: Sequence[PropertyFile]
    constants: Mapping[str, str]

    def __call__(self, program: Program) -> syntax.Expression | None:
        if program.is_interval and program.type is not syntax.ModelType.DTMC:
            return None  # a property reads differently where no choice is left
        try:
            result = [_boundary(p, file, program, self.constants) for file in self.files for p in file.wanted]
        except (syntax.Complaint, InputError, _NotLocalError):
            return None
        known = [expression for expression in result if expression is not None]
        if not known or len(known) < len(result):
            return None
        return reduce(lambda a, b: syntax.Binary("&", a, b, None), known)


class _NotLocalError(Exception):
    """The formula speaks of more than a state's variables."""


def _boundary(
    property_: Property, file: PropertyFile, program: Program, constants: Mapping[str, str]
) -> syntax.Expression | None:
    operator = property_.formula
    if kind_of(operator, file) is not QueryKind.PLAIN:
        return None
    assert isinstance(operator, ValueOperator)
    formulas = StateFormulas(file, _no_states(program), Definitions.of(program), constants)
    writer = _BoundaryWriter(file, program, formulas)
    path = operator.path if isinstance(operator.path, RewardFormula) else without_negation(operator.path)[0]
    if isinstance(path, RewardFormula):
        return writer.write(path.target) if path.operator is RewardOperator.REACH and path.target else None
    if not isinstance(path, PathFormula) or path.operator is PathOperator.NEXT:
        return None
    if path.bound is not None and path.bound.lower is not None:
        return None
    right = writer.write(path.right)
    if path.operator is PathOperator.EVENTUALLY:
        return right
    if path.operator is PathOperator.GLOBALLY:
        return syntax.Unary("!", right, None)
    assert path.left is not None
    left = writer.write(path.left)
    if path.operator is PathOperator.RELEASE:
        return syntax.Binary("|", left, syntax.Unary("!", right, None), None)
    return syntax.Binary(
        "|", right, syntax.Unary("!", left, None), None
    )  # until, and weak until: the same states


@dataclass(frozen=True, eq=False)
class _BoundaryWriter:
    """Formulas of a property file written out over the variables of a program."""

    file: PropertyFile
    program: Program
    formulas: StateFormulas

    def write(self, expression: syntax.Expression) -> syntax.Expression:
        written = self._without_labels(self.formulas.inlined(expression), ())
        constants = self.formulas.constants
        variables = {variable.name: variable.type for variable in self.program.variables}
        check_type(written, {**constants.types, **variables}, syntax.Type.BOOL, "a state formula")
        return fold(written, constants.values)

    def _without_labels(self, expression: syntax.Expression, opened: tuple[str, ...]) -> syntax.Expression:
        if isinstance(expression, syntax.Label):
            name = expression.name
            for label in self.file.labels:
                if label.name == name and name not in opened:
                    return self._without_labels(self.formulas.inlined(label.expression), (*opened, name))
            for label in self.program.labels:
                if label.name == name:
                    return label.expression
            raise _NotLocalError
        parts = tuple(self._without_labels(child, opened) for child in syntax.children(expression))
        return syntax.with_children(expression, parts)


def _no_states(program: Program) -> Structure:
    """The names of a program on a structure of one state, to read formulas by."""
    return Structure(
        np.array([0, 1]),
        np.array([0, 1]),
        np.array([0]),
        labels={label.name: np.zeros(1, np.bool_) for label in program.labels},
        valuations={
            variable.name: np.zeros(1, np.bool_ if variable.type is syntax.Type.BOOL else np.int32)
            for variable in program.variables
        },
    )
