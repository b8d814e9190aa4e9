"""A property parsed once: what its text asks of one model, of which kind, and in which directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as OneOf

from tightrope.errors import InputError, Location
from tightrope.model.objective import Direction, Objective
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.expand.model import BUILT_IN_LABELS
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import (
    Property,
    PropertyFile,
    RewardFormula,
    ValueOperator,
    is_infinite,
)
from tightrope.prism.parse.syntax import (
    Binary,
    Expression,
    Position,
    SourceText,
    suggestion,
)
from tightrope.prism.properties import resolve, shape
from tightrope.prism.properties.capabilities import CAPABILITIES, QueryKind, Task, require_task
from tightrope.prism.properties.state_formulas import StateFormulas

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
            objective = objective.after_draw(structure.initial)
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
    holds, fails = {
        ">=": (lower >= threshold, upper < threshold),
        ">": (lower > threshold, upper <= threshold),
        "<=": (upper <= threshold, lower > threshold),
        "<": (upper < threshold, lower >= threshold),
    }[comparison]
    return "true" if holds else "false" if fails else "not certified"
