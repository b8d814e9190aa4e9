"""A problem: a model and a property, the first argument of everything that computes.

    model = tr.load("model.prism")
    problem = tr.Problem(model, 'Pmax=? [ F "goal" ]')
    tr.solve(problem.at(p=0.55))
    tr.learn(problem, data, delta=0.001)

The property may use labels, variables, constants and formulas of the model's file. A table states which
functions answer which kinds (`tightrope.prism.properties.capabilities`). An ambiguous text raises a
`ReadingWarning` that names the interpretation.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol, cast

from tightrope.errors import InputError, ReadingWarning, describe
from tightrope.model.continuous import CTMC, Continuous, IntervalCTMC, MarkovAutomaton, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.numbers import Number, number_text
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.pomdp import POMDP
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.prism.properties.query import Query, TruthValue, parse_query
from tightrope.prism.properties.resolve import PropertyOptions
from tightrope.prism.properties.shape import speaks_of_time

Model = ParametricMDP | IntervalMDP | MDP
"""Any model in discrete time: with parameters, with intervals, or with plain numbers on its transitions."""

AnyModel = Model | Continuous | MarkovAutomaton | POMDP
"""Any model, in discrete or in continuous time."""

DISCRETE = (ParametricMDP, IntervalMDP, MDP)
MODELS = (*DISCRETE, ParametricCTMC, CTMC, IntervalCTMC, MarkovAutomaton, POMDP)
EXAMPLE = "'Pmax=? [ F \"goal\" ]'"


class Lift(Protocol):
    """How a question about a product (`model`) returns to the model of data and policies (`base`). Counts and
    episodes of the base go `to_product`, counts back `to_base`. `needs_support`: no transition may vanish.
    """

    @property
    def base(self) -> ParametricMDP: ...

    @property
    def model(self) -> ParametricMDP: ...

    @property
    def needs_support(self) -> bool: ...

    @property
    def free_state(self) -> int | None:
        """Where what any policy can reach is read off, if not at the initial state."""

    @property
    def optima(self) -> Mapping[tuple[Fraction, ...], float]:
        """What no controller exceeds at single points; `cut` where a clock ended the search."""

    @property
    def cut(self) -> bool: ...

    def to_product(self, counts: Any) -> Any: ...

    def to_base(self, counts: Any) -> Any: ...

    def follow(self, transitions: OffsetArray) -> OffsetArray:
        """The transitions of an episode of the base as those of the product, which begins with it."""

    def controller(self, policy: Policy) -> Policy:
        """A deterministic policy of the product as one of the base, with a memory."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(Record):
    """A model and a question about it.

    * `property`: a text such as 'Pmax=? [ F "goal" ]', any of docs/properties.md, or an `Objective`.
    * `const`: values of constants that the text leaves open.
    * `discount` makes `R… [ C ]` the discounted reward; `terminal_reward` names the reward structure whose
      state rewards are the values of target states.

    If the question needs a memory, `model` is a product, `lift` made it, and `base` is the model of the data.

    >>> import tightrope as tr
    >>> problem = tr.Problem(tr.load("bench:betting(5)"), 'Rmax=? [ F "done" ]')
    >>> problem.text, problem.maximises
    ('Rmax=? [ F "done" ]', True)
    """

    model: AnyModel
    query: Query = field(repr=False)
    lift: Lift | None = field(default=None, repr=False)

    def __init__(
        self,
        model: AnyModel,
        property: str | Objective | Query,
        *,
        const: Mapping[str, Number | bool] | None = None,
        discount: float | None = None,
        terminal_reward: str | None = None,
    ):
        object.__setattr__(self, "model", require_model(model))
        query = _query(self.model, property, const, discount, terminal_reward)
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "lift", None)
        reading = None if query.plain_objective is None or isinstance(property, Query) else query.reading
        if reading is not None:
            warnings.warn(reading.warning, ReadingWarning, stacklevel=2)

    @staticmethod
    def lifted(lift: Lift, query: Query) -> Problem:
        """A problem on a product."""
        problem = Problem(lift.model, query)
        object.__setattr__(problem, "lift", lift)
        return problem

    def _title_(self) -> str:
        return f"Problem: {self.text}"

    def _facts_(self) -> Facts:
        is_plain = self.query.plain_objective is not None
        about = self.objective._facts_() if is_plain else [("kind", self.query.kind.value)]
        return [("model", self.model._title_()), *about]

    @property
    def objective(self) -> Objective:
        """The objective on the states of the model."""
        return self.query.objective

    @property
    def base(self) -> AnyModel:
        """The model that data and policies refer to."""
        return self.model if self.lift is None else self.lift.base

    def optima_in(self, region: Any) -> dict[tuple[Fraction, ...], float]:
        """Bounds for all controllers, at examined points that certainly lie in the region."""
        if region is None or self.lift is None or not region.kind.has_facets:
            return {}
        return {point: bound for point, bound in self.lift.optima.items() if region.contains(point)}

    @property
    def is_of_controller(self) -> bool:
        """Whether the model is the chain of a controller, which may have been chosen by looking at the data:
        then nothing may be bet on its value."""
        return self.lift is not None and self.lift.free_state is not None

    @property
    def free_state(self) -> int:
        """The state whose best value no policy exceeds: the initial one, but of the chain of a controller."""
        elsewhere = None if self.lift is None else self.lift.free_state
        return self.model.structure.initial if elsewhere is None else elsewhere

    def to_product(self, counts: Any) -> Any:
        """Convert counts of the base to counts of the model."""
        return counts if self.lift is None else self.lift.to_product(counts)

    def to_base(self, counts: Any) -> Any:
        """Convert counts of the model to counts of the base."""
        return counts if self.lift is None else self.lift.to_base(counts)

    def controller(self, policy: Policy) -> Policy:
        """Return `policy`, a deterministic one of the model, as one of the base, perhaps with a memory."""
        if self.lift is None:
            return policy
        return self.lift.controller(policy).made(lambda: policy.made_from)

    @property
    def text(self) -> str:
        """The property as it was written."""
        return self.query.text

    @property
    def maximises(self) -> bool:
        """Whether the agent maximises the value."""
        directions = self.query.directions
        if self.query.plain_objective is None and directions is not None:
            return directions[0] is Direction.MAX
        return self.objective.maximises

    def at(self, point: Point | None = None, /, **values: Number) -> Problem:
        """Return the same question about the ordinary MDP at a point.

        >>> import tightrope as tr
        >>> problem = tr.benchmark("betting(5)").problem
        >>> type(problem.at(p=0.55, q=0).model).__name__
        'MDP'

        Parameters
        ----------
        point : mapping or sequence, optional
            All values, by name or in order.
        **values : number
            The same by keywords, as in `at(p=0.55)`.
        """
        model = self.model.model if isinstance(self.model, POMDP) else self.model
        if not isinstance(model, ParametricMDP | ParametricCTMC):
            raise InputError("this model has no parameters, so it has no points")
        plain: AnyModel = model.instantiate(point, **values)
        if isinstance(self.model, POMDP) and isinstance(plain, MDP):
            plain = replace(self.model, model=plain)
        return self.with_model(plain)

    def with_model(self, model: AnyModel) -> Problem:
        """The same question about another model over the same states; of a product, that of reaching what
        satisfies the formula."""
        text = self.text if self.lift is None else f"reaching what satisfies {self.text}"
        return Problem(model, replace(self.query, text=text))

    def answer(self, lower: float, upper: float) -> TruthValue:
        """Return 'true', 'false' or 'not certified': the threshold under the bounds `lower`, `upper`."""
        if not self.query.is_threshold:
            raise InputError(f"{self.text} asks for a value: it is neither true nor false")
        return self.query.answer(lower, upper)


def require_discrete(model: object) -> Model:
    """A model in discrete time, or an error that says what was given instead."""
    known = require_model(model)
    if isinstance(known, DISCRETE):
        return known
    if isinstance(known, POMDP):
        raise InputError(
            "the model is partially observable, and this is not supported for such models",
            hint="`check`, `learn`, tr.solve and tr.learn take them; `model.model` is the model behind the "
            "observations, whose policies see everything",
        )
    raise InputError(f"`model` is {describe(model)}, and a model in discrete time is required")


def require_model(model: object) -> AnyModel:
    """The model, or an error that says what was given instead."""
    if isinstance(model, MODELS):
        return model
    if isinstance(model, str):
        raise InputError(f"`model` is the text {model!r}, not a model", hint=f"read it: tr.load({model!r})")
    if isinstance(model, Problem):
        raise InputError("`model` is a problem; give its model or the problem alone")
    raise InputError(f"`model` is {describe(model)}, not a model", hint="tr.load reads one")


def problem_of(problem: object, property: object = None) -> Problem:
    """A problem itself, or the one that a model and a property make."""
    if isinstance(problem, Problem):
        if property is not None:
            raise InputError(
                f"the property is given twice: the problem asks {problem.text} already",
                hint="give the model instead: problem.model",
            )
        return problem
    if isinstance(problem, MODELS) and property is None:
        raise InputError("no property is given", hint=f"make a problem of it: tr.Problem(model, {EXAMPLE})")
    if not isinstance(problem, MODELS):
        shown = f"the text {problem!r}" if isinstance(problem, str) else describe(problem)
        raise InputError(
            f"`problem` is {shown}, neither a problem nor a model", hint=f"tr.Problem(model, {EXAMPLE})"
        )
    return Problem(problem, cast(str, property))  # which is refused where it is none


def learnable(given: object) -> Problem:
    """The problem, if there is something to learn about it: parameters, and a value to optimise."""
    problem = problem_of(given)
    if not isinstance(require_discrete(problem.model), ParametricMDP):
        raise InputError(
            f"learning requires parameters, and {describe(problem.model)} has none",
            hint="`solve` computes the values of such a model",
        )
    if problem.objective.kind is ObjectiveKind.CUMULATIVE and problem.objective.terminal is not None:
        raise InputError("`learn` does not support instantaneous rewards (R [ I=k ])")
    require_value(problem)
    return problem


def require_value(problem: Problem) -> None:
    """Refuse to learn about what is true or false."""
    if problem.query.is_threshold:
        raise InputError(
            f"{problem.text} is true or false, but learning needs a value to optimise",
            hint="ask for the value: Pmax=? [ … ]",
        )


def _query(
    model: AnyModel,
    property: object,
    const: Mapping[str, Number | bool] | None,
    discount: float | None,
    terminal_reward: str | None,
) -> Query:
    if isinstance(property, Query | Objective):
        for name, value in (("const", const), ("discount", discount), ("terminal_reward", terminal_reward)):
            if value is not None:
                raise InputError(f"`{name}` requires a property as text, and an objective is given")
        if isinstance(property, Query):
            return property
        if not isinstance(model, (*DISCRETE, POMDP)):
            raise InputError(
                f"an objective is about discrete time, and the model is {describe(model)}",
                hint=f"write the property as a text: {EXAMPLE}",
            )
        _check_size(property, model)
        return Query.of_objective(property, model.structure)
    if not isinstance(property, str):
        raise InputError(
            f"`property` is {describe(property)}, not a property's text", hint=f"write it as {EXAMPLE}"
        )
    behind = model.model if isinstance(model, POMDP) else model
    options = PropertyOptions(
        constants=constant_texts(const),
        is_interval=isinstance(behind, IntervalMDP | IntervalCTMC),
        is_timed=isinstance(model, Continuous),
        discount=discount,
        terminal_reward=terminal_reward,
    )
    if isinstance(model, MarkovAutomaton):
        if discount is not None:
            raise InputError("`discount` cannot be used with Markov automata: steps mean nothing there")
        query = parse_query(property, model.untimed.structure, replace(options, is_timed=True))
        if speaks_of_time(query.syntax):
            return query
        return parse_query(property, model.untimed.structure, options)
    query = parse_query(property, model.structure, options)
    if isinstance(model, POMDP) and model.pace > 1 and query.is_plain:
        return query.with_objective(model.paced(query.objective), model.structure)
    return query


def _check_size(objective: Objective, model: AnyModel) -> None:
    for name in ("target", "allowed", "terminal"):
        array = getattr(objective, name)
        if array is not None and len(array) != model.states:
            raise InputError(
                f"the objective's {name!r} has {len(array)} entries, but the model has {model.states} states"
            )


def constant_texts(const: object) -> dict[str, str]:
    """Values of constants as the texts that the PRISM front end reads."""
    if const is None:
        return {}
    if not isinstance(const, Mapping):
        raise InputError(f"`const` is {describe(const)}, not a mapping", hint='write const={"n": 50}')
    return {str(name): number_text(value, f"`const`: {name}") for name, value in const.items()}
