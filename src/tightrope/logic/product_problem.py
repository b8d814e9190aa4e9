"""A temporal question about a parametric model, as a plain one about a product, for learning.

The product with the formula's automaton is a parametric model over the same parameters. Its choices carry the
model's expressions, so events are tied across copies; every observation is counted once, at one copy
(`lift`). The question is to reach states in which the formula is won (`winning_states`), if no transition of
the true model vanishes. A policy of the product is a finite-memory policy of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.data.counts import Batches, Counts
from tightrope.errors import InputError
from tightrope.logic.accepting import finite_memory_choices
from tightrope.logic.formula import is_co_safe
from tightrope.logic.hoa import hoa_text
from tightrope.logic.temporal import Reachability, Translator, reach_by_progression, sought_formula
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP
from tightrope.model.numbers import Number
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.product import (
    Letters,
    Product,
    every_transition,
    first_copy,
    lift_model,
    lift_objective,
    product_of,
    product_with_memory,
)
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray, offsets
from tightrope.numerics.record import Record
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import RewardFormula, ValueOperator, spell
from tightrope.prism.parse.syntax import SourceText
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query, pick
from tightrope.prism.properties.resolve import PropertyOptions, formulas_of, refuse_reward_options
from tightrope.prism.properties.shape import check_is_path
from tightrope.problem import Model, Problem, constant_texts


@dataclass(frozen=True, eq=False, repr=False)
class ProductLift(Record):
    """See `tightrope.problem.Lift`; `temporal` is the temporal query, to be read again on another model.

    >>> import warnings
    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=("0.1", "0.9"))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "try", {0: 1 - p, 1: p}), (1, "", {2: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"a": [1]})
    >>> problem = tr.Problem(model, 'Pmax=? [ F ("a" & (X (G !"a"))) ]')
    >>> data = [[(0, "try", 1)]] * 30 + [[(0, "try", 0)]] * 20
    >>> with warnings.catch_warnings(action="ignore"):  # it says how the path is read
    ...     result = tr.learn(problem, data, delta=0.01)
    >>> result.guarantee, result.problem.base is model, result.controller.has_memory
    (1.0, True, True)
    """

    base: ParametricMDP = field(repr=False)
    product: Product = field(repr=False, compare=False)
    needs_support: bool = False
    reach: Reachability | None = field(default=None, repr=False, compare=False)
    letters: Letters | None = field(default=None, repr=False, compare=False)
    temporal: Query | None = field(default=None, repr=False, compare=False)

    @property
    def free_state(self) -> int | None:
        return None

    @property
    def optima(self) -> Mapping[tuple[Fraction, ...], float]:
        return {}

    @property
    def cut(self) -> bool:
        return False

    @cached_property
    def model(self) -> ParametricMDP:
        """The product as a model over the same parameters."""
        model = lift_model(self.base, self.product)
        assert isinstance(model, ParametricMDP)
        return model

    def to_product(self, counts: Counts) -> Counts:
        """Counts of the model as counts of the product, each at one copy of its transition."""
        copy = first_copy(self.product, self.base.transitions)
        start, name = self.model.transition_start, self.model.hash()
        if counts.batches is None:
            total = np.zeros(self.model.transitions, np.int64)
            total[copy[copy >= 0]] = counts.transition[copy >= 0]
            return Counts(
                total,
                start,
                counts.design,
                name,
                log=counts.log,
                names=counts.names,
                seen=lambda: counts.provenance,
            )
        parts = []
        begins = counts.batches.start
        for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            there, count = copy[counts.batches.transition[begin:end]], counts.batches.count[begin:end]
            order = np.argsort(there, kind="stable")
            order = order[there[order] >= 0]
            parts.append((there[order], count[order]))
        lifted = Counts.from_batches(Batches.from_parts(parts), start, counts.design, name)
        return replace(lifted, log=counts.log, names=counts.names, seen=lambda: counts.provenance)

    def to_base(self, counts: Counts) -> Counts:
        """Counts of the product as counts of the model: what all copies of a transition have seen."""
        if counts.batches is None:
            everything = np.zeros(self.base.transitions, np.int64)
            np.add.at(everything, self.product.transition, counts.transition)
            return Counts(everything, self.base.transition_start, counts.design, self.base.hash())
        parts = []
        for transition, count in counts.batches:
            total = np.bincount(self.product.transition[transition], weights=count)
            seen = np.flatnonzero(total)
            parts.append((seen, total[seen].astype(np.int64)))
        start = self.base.transition_start
        return Counts.from_batches(Batches.from_parts(parts), start, counts.design, self.base.hash())

    def follow(self, transitions: OffsetArray) -> OffsetArray:
        """The transitions of an episode of the model as those of the product, which begins with it."""
        structure, state, result = self.model.structure, self.model.initial, []
        for wanted in transitions.tolist():
            choices = structure.choice_start[state : state + 2]
            span = slice(*structure.transition_start[choices])
            place = span.start + int(np.flatnonzero(self.product.transition[span] == wanted)[0])
            result.append(place)
            state = int(structure.successor[place])
        return np.array(result, np.int64)

    def controller(self, policy: Policy) -> Policy:
        """A deterministic policy of the product as a controller of the model."""
        assert self.reach is not None and self.letters is not None
        rows = finite_memory_choices(
            self.product, self.reach.automaton, self.letters, policy.choice, self.reach.won
        )
        possible = Support.of(every_transition(self.base.structure))
        return Policy(self.base, rows.restrict_to_reached(possible))


def to_hoa(model: Model, property: str, *, const: Mapping[str, Number | bool] | None = None) -> str:
    """Write the deterministic automaton of the path of a property `P… [ … ]` in HOA.

    Parameters
    ----------
    model, property, const
        As for `Problem`.

    Returns
    -------
    str, in which comments give the state formulas of the atoms a0, a1, …

    Examples
    --------
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "", {0: 0.5, 1: 0.5}), (1, "", {0: 1})], labels={"a": [1]})
    >>> [line for line in tr.to_hoa(model, 'P=? [ G (F "a") ]').splitlines() if line.startswith("Acc")]
    ['Acceptance: 2 (Fin(0)&Inf(1))']
    """
    parsed = parse_properties(property, "`property`")
    source, operator = SourceText(parsed.source, parsed.file), pick(parsed).formula
    if not isinstance(operator, ValueOperator) or isinstance(operator.path, RewardFormula):
        raise source.error("one P over a path is required here", pick(parsed).position)
    options = PropertyOptions(constants=constant_texts(const))
    with source.complaints():
        check_is_path(operator.path)
        translator = Translator(formulas_of(parsed, model.structure, options))
        formula, _ = translator.both_ways(operator.path)
    names = [spell(atom, parsed) for atom in translator.written]
    return hoa_text(formula, len(translator.atoms), names)


def product_problem(model: ParametricMDP, query: Query, policy: Policy | None = None) -> tuple[Problem, str]:
    """The problem of a temporal query, of one `policy` if given, and how its path was read."""
    if query.kind is not QueryKind.LTL:
        raise query.error("a temporal formula in P is required here, without operators inside", None)
    if not isinstance(model, ParametricMDP):
        raise InputError("temporal problems are about models with parameters", hint="`solve` takes others")
    operator, directions = query.operator, query.directions
    assert directions is not None and not isinstance(operator.path, RewardFormula)
    with query.source.complaints():
        refuse_reward_options(query.options)
        translator = Translator(query.state_formulas())
        path = translator.both_ways(operator.path)
    sought = sought_formula(path, directions)
    letters = Letters.of(translator.atoms, model.states)
    stand_in, start = every_transition(model.structure), np.array([model.initial])
    if policy is None:
        reach = reach_by_progression(stand_in, sought.formula, letters, start)
    else:
        reach = reach_by_progression(_chain(policy), sought.formula, letters, start)
        whole = product_of(Support.of(stand_in), letters, reach.automaton, start)
        reach = _among_all(reach, whole, model.states)
    reaching = query.with_objective(sought.objective(reach), reach.product.structure)
    lift = ProductLift(model, reach.product, not is_co_safe(sought.formula), reach, letters, query)
    return Problem.lifted(lift, reaching), f"the path is read as {spell(operator.path, query.syntax)}"


def steer(problem: Problem, steering: Policy, counts: Counts) -> tuple[Problem, Policy, Counts]:
    """The same question about a given policy: a problem with its memory, the policy there, and the counts."""
    base = problem.base
    if steering.has_memory:
        assert isinstance(base, ParametricMDP)
        possible = Support.of(every_transition(base.structure))
        product, follows = product_with_memory(base, steering, possible)
        query = problem.query.with_objective(_lift_objective(problem, product), product.structure)
        beside = ProductLift(base, product)
        counts, policy = beside.to_product(counts), Policy(beside.model, follows.probability)
        if problem.lift is None:
            return Problem.lifted(beside, query), policy, counts
        again, followed = follow(problem, policy, beside.model)
    else:
        again, followed = follow(problem, Policy(base, steering))
    assert again.lift is not None
    return again, followed, again.lift.to_product(counts)


def follow(problem: Problem, policy: Policy, model: ParametricMDP | None = None) -> tuple[Problem, Policy]:
    """A temporal question about one policy: on the product with the rest of the formula, and the policy."""
    if policy.has_memory:
        raise InputError("over a domain, a temporal formula requires a policy without memory")
    if policy.depends_on_step:
        raise InputError("a policy that depends on the step cannot be used with a temporal formula")
    lift, base = problem.lift, problem.base if model is None else model
    assert isinstance(lift, ProductLift) and lift.temporal is not None and isinstance(base, ParametricMDP)
    again, _ = product_problem(base, lift.temporal.on(base.structure), policy)
    assert isinstance(again.lift, ProductLift)
    return again, Policy(again.lift.model, policy.probability[again.lift.product.choice])


def _chain(policy: Policy) -> MDP:
    """What is possible under a policy: one choice per state, with the transitions of all that it takes."""
    structure = policy.structure
    selected = (policy.probability > 0)[structure.transition_choice]
    owner = structure.choice_state[structure.transition_choice][selected]
    start = offsets(np.bincount(owner, minlength=structure.states))
    built = Structure(
        choice_start=np.arange(structure.states + 1),
        transition_start=start,
        successor=structure.successor[selected],
        initial_states=structure.initial_states,
    )
    return every_transition(built)


def _among_all(reach: Reachability, whole: Product, states: int) -> Reachability:
    """What is known of some states of a product, as states of the whole product; elsewhere nothing is won."""
    memories = reach.automaton.states
    number = np.full(states * memories, -1, np.int64)
    number[whole.state.astype(np.int64) * memories + whole.memory] = np.arange(whole.structure.states)
    place = number[reach.product.state.astype(np.int64) * memories + reach.product.memory]
    target = np.zeros(whole.structure.states, np.bool_)
    allowed = np.ones(whole.structure.states, np.bool_)
    target[place], allowed[place] = reach.target, reach.allowed
    return replace(reach, product=whole, target=target, allowed=allowed, won=[])


def _lift_objective(problem: Problem, product: Product) -> Objective:
    """Of a plain problem; a temporal one is asked anew on the model with the policy's memory."""
    objective = problem.objective
    if problem.lift is not None:
        return replace(objective, target=np.zeros(product.structure.states, np.bool_), allowed=None)
    return lift_objective(objective, product)
