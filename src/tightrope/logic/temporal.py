"""Probabilities of LTL and rewards until co-safe LTL, as reachability in the product with an automaton.

A co-safe formula has the target `true`; a safe one is the complement of a co-safe one. Both hold for any
agent and any nature. Otherwise a maximising agent reaches end components in which it wins almost surely
(`winning_states`), and a minimum is the complement of the maximum of the negated formula. Interval models
then need constant support, or the question is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.logic import formula as ltl
from tightrope.logic import values
from tightrope.logic.accepting import Won, finite_memory_choices, states_meeting, winning_states
from tightrope.logic.formula import FALSE, TRUE, Formula, is_co_safe, is_safe, progression, refuse_large
from tightrope.logic.hoa import translate
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.policy import Policy
from tightrope.model.product import Automaton, Letters, Product, factored_model, product_of
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.prism.parse.property_syntax import PathFormula, PathOperator, StepBound
from tightrope.prism.parse.syntax import Binary, Complaint, Expression, Unary, position_of
from tightrope.prism.properties.resolve import StateFormulas, steps_of
from tightrope.prism.properties.shape import is_path
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Attained, attained

MOST_STEPS = 500
"""The largest step bound inside a formula: every step is a state of its automaton."""
MOST_ATOMS = 30


@dataclass(frozen=True, eq=False)
class PathBounds:
    """Certified bounds in every state that was asked for, and the solution on the product."""

    bounds: values.StateBounds
    solution: Solution
    is_believed: bool = False
    """An automaton that another program made is part of it."""
    reach: Reachability | None = None
    letters: Letters | None = None

    def steered(self, model: MDP | IntervalMDP) -> SteeredPath:
        """The policy behind the bounds, as a finite-memory policy of the model, and what it attains."""
        assert self.reach is not None and self.letters is not None
        policy = self.solution.policy
        rows = finite_memory_choices(
            self.reach.product, self.reach.automaton, self.letters, policy.choice, self.reach.won
        )
        steering = Policy(model, rows.restrict_to_reached(Support.of(model)))
        return SteeredPath(steering, attained(self.solution, policy))


@dataclass(frozen=True, eq=False)
class SteeredPath:
    """A finite-memory policy, and the verified interval of its value from the initial state."""

    controller: Policy
    attained: Attained


def bound_path(
    model: MDP | IntervalMDP,
    path: tuple[Formula, Formula],
    atoms: list[BoolArray],
    directions: values.Directions,
    starts: OffsetArray,
    solve: values.Solve,
    translator: str | None = None,
) -> PathBounds:
    """Bounds on a formula's probability from `starts`; `translator` makes automata where they are needed."""
    sought = sought_formula(path, directions)
    letters = Letters.of(atoms, model.states)
    if not is_co_safe(sought.formula):
        values.require_constant(model, "temporal formulas that are neither safe nor co-safe")
    if is_co_safe(sought.formula) or translator is None:
        result = reach_by_progression(model, sought.formula, letters, starts)
    else:
        result = _by_translator(model, sought.formula, len(atoms), letters, starts, translator)
    solution = solve(result.model, sought.objective(result))
    bounds = values.from_starts(solution, starts, model.states, values.PROBABILITY)
    return PathBounds(bounds, solution, result.is_believed, result, letters)


@dataclass(frozen=True, eq=False)
class Sought:
    """A formula to be reached, and whether the value is 1 − its probability."""

    formula: Formula
    directions: values.Directions
    complement: bool

    def objective(self, result: Reachability) -> Objective:
        plain = values.reaching(self.directions, result.target, result.allowed, self.complement)
        return replace(plain, is_temporal=True)


def sought_formula(path: tuple[Formula, Formula], directions: values.Directions) -> Sought:
    """The formula itself, or its negation where that is the one to be reached."""
    formula, negation = path
    minimised = directions[0] is Direction.MIN
    if is_safe(formula) or (minimised and not is_co_safe(formula)):
        return Sought(negation, directions, True)
    return Sought(formula, directions, False)


def bound_reward(
    model: MDP | IntervalMDP,
    formula: Formula,
    atoms: list[BoolArray],
    objective: Objective,
    starts: OffsetArray,
    solve: values.Solve,
) -> PathBounds:
    """Bounds on the reward that is earned until a co-safe formula is satisfied.

    The state whose letter settles it earns nothing any more. `objective` has the directions, and the reward
    on the states of the model."""
    letters = Letters.of(atoms, model.states)
    automaton, left = progression(formula, letters.bits)
    product = product_of(Support.of(model), letters, automaton, starts)
    settled = np.array([rest == TRUE for rest in left])
    target = settled[automaton.successor[product.memory, letters.letter[product.state]]]
    reward = objective.reward
    assert reward is not None
    lifted = RewardStructure(
        None if reward.state is None else reward.state[product.state],
        None if reward.choice is None else reward.choice[product.choice],
    )
    solution = solve(factored_model(product, model), replace(objective, target=target, reward=lifted))
    return PathBounds(values.from_starts(solution, starts, model.states, values.ANYTHING), solution)


@dataclass(frozen=True, eq=False)
class Reachability:
    """The product, where the formula is won (`won`: how), and where it is not lost."""

    model: MDP | IntervalMDP
    product: Product
    automaton: Automaton
    target: BoolArray
    allowed: BoolArray
    won: list[Won]
    is_believed: bool = False


def reach_by_progression(
    model: MDP | IntervalMDP, formula: Formula, letters: Letters, starts: OffsetArray
) -> Reachability:
    """The probability of a formula as one of reaching states of a product. `model` has constant support."""
    if not is_co_safe(formula):
        refuse_large(formula)
    automaton, left = progression(formula, letters.bits)
    product = product_of(Support.of(model), letters, automaton, starts)
    there = factored_model(product, model)
    won: list[Won] = []
    if is_co_safe(formula):
        target = np.array([rest == TRUE for rest in left])[product.memory]
    else:
        target = winning_states(there, product, left, letters, won)
    allowed = np.array([rest != FALSE for rest in left])[product.memory]
    return Reachability(there, product, automaton, target, allowed | target, won)


def _by_translator(
    model: MDP | IntervalMDP,
    formula: Formula,
    atoms: int,
    letters: Letters,
    starts: OffsetArray,
    command: str,
) -> Reachability:
    automaton, pairs = translate(command, formula, atoms, letters.bits)
    product = product_of(Support.of(model), letters, automaton, starts)
    there = factored_model(product, model)
    target = np.zeros(there.states, np.bool_)
    for pair in pairs:
        target |= states_meeting(Support.of(there), product, letters, pair)
    return Reachability(there, product, automaton, target, np.ones(there.states, np.bool_), [], True)


class Translator:
    """Path formulas of a property as LTL; `atoms` are the state formulas that they are made of.

    A state formula that holds everywhere or nowhere is no atom, unless steps are to be counted
    (`counts_steps`): `X true` is satisfied by the second state of a play, and rewards are added up until it.
    """

    def __init__(self, formulas: StateFormulas, counts_steps: bool = False):
        self._formulas, self._counts_steps = formulas, counts_steps
        self.atoms: list[BoolArray] = []
        self.written: list[Expression] = []
        self._number: dict[bytes, int] = {}

    def both_ways(self, path: Expression) -> tuple[Formula, Formula]:
        """A path formula and its negation."""
        return self._read(path, True), self._read(path, False)

    def _read(self, expression: Expression, holds: bool) -> Formula:
        """The formula, or its negation, with negations at the atoms."""
        if not is_path(expression):
            return self._atom(expression, holds)
        if isinstance(expression, PathFormula):
            return self._temporal(expression, holds)
        if isinstance(expression, Unary) and expression.operator == "!":
            return self._read(expression.operand, not holds)
        if isinstance(expression, Binary) and expression.operator in ("&", "|", "=>"):
            left = self._read(expression.left, holds != (expression.operator == "=>"))
            right = self._read(expression.right, holds)
            return (ltl.both if (expression.operator == "&") == holds else ltl.either)(left, right)
        if isinstance(expression, Binary) and expression.operator in ("<=>", "=", "!="):
            same = holds != (expression.operator == "!=")
            sides = [
                (self._read(side, True), self._read(side, False))
                for side in (expression.left, expression.right)
            ]
            (a, not_a), (b, not_b) = sides
            return ltl.either(ltl.both(a, b if same else not_b), ltl.both(not_a, not_b if same else b))
        raise Complaint("path formulas are combined by !, &, |, => and <=> only", position_of(expression))

    def _atom(self, expression: Expression, holds: bool) -> Formula:
        members = self._formulas.states(expression)
        if not self._counts_steps and (members.all() or not members.any()):
            return TRUE if bool(members.all()) == holds else FALSE
        key = np.packbits(members).tobytes()
        opposite = np.packbits(~members).tobytes()
        if opposite in self._number:
            return ltl.atom(self._number[opposite], not holds)
        if key not in self._number:
            self._number[key] = len(self.atoms)
            self.atoms.append(members)
            self.written.append(expression)
            if len(self.atoms) > MOST_ATOMS:
                raise Complaint(
                    f"a temporal formula is about at most {MOST_ATOMS} state formulas",
                    position_of(expression),
                )
        return ltl.atom(self._number[key], holds)

    def _temporal(self, path: PathFormula, holds: bool) -> Formula:
        operator = path.operator
        if path.bound is not None and path.bound.reward is not None:
            raise Complaint(
                "a bound on a reward stands alone: it is not part of a larger path", path.position
            )
        right = self._read(path.right, holds)
        if operator is PathOperator.NEXT:
            return ltl.next_(right)
        left = TRUE if holds else FALSE
        if path.left is not None:
            left = self._read(path.left, holds)
        if operator is PathOperator.WEAK_UNTIL and path.bound is not None:
            # with bounds a W b is (!a | b) R (a | b)
            aside = self._read(path.left, not holds) if path.left is not None else left
            join = ltl.either if holds else ltl.both
            left, right = join(right, aside), join(right, left)
        if operator is PathOperator.GLOBALLY:
            left = FALSE if holds else TRUE
        if path.bound is not None:
            return self._write_out_steps(operator, left, right, holds, path)
        if operator in (PathOperator.UNTIL, PathOperator.EVENTUALLY):
            return ltl.until(left, right) if holds else ltl.release(left, right)
        if operator is PathOperator.WEAK_UNTIL:
            return ltl.weak_until(left, right) if holds else ltl.strong_release(left, right)
        return ltl.release(left, right) if holds else ltl.until(left, right)

    def _write_out_steps(
        self, operator: PathOperator, left: Formula, right: Formula, holds: bool, path: PathFormula
    ) -> Formula:
        """Steps written out: a U[l,u] b is b at one of the steps l..u, and a at all steps before that one."""
        assert path.bound is not None
        lower, upper = _steps(path.bound, self._formulas, path)
        # F and U promise; G and R are the negations of promises, read with both sides negated.
        promises = (operator in (PathOperator.UNTIL, PathOperator.EVENTUALLY)) == holds
        first, then = (ltl.either, ltl.both) if promises else (ltl.both, ltl.either)
        if upper is None:
            formula = ltl.until(left, right) if promises else ltl.release(left, right)
        else:
            formula = right
            for _ in range(upper - lower):
                formula = first(right, then(left, ltl.next_(formula)))
        for _ in range(lower):
            formula = then(left, ltl.next_(formula))
        return formula


def _steps(bound: StepBound, formulas: StateFormulas, path: PathFormula) -> tuple[int, int | None]:
    lower, upper = steps_of(bound, formulas, path.position)
    if max(lower, upper or 0) > MOST_STEPS:
        raise Complaint(
            f"inside a temporal formula a step bound is at most {MOST_STEPS}",
            path.position,
            "larger ones stand alone: P=? [ F<=k … ]",
        )
    return lower, upper
