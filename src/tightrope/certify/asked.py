"""What a certificate is asked about, where it is more than one objective of the solver's: long-run averages
and temporal formulas with the automaton that recognises them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.certificate import problem as certified
from tightrope.certificate.game.product import Automaton as CertifiedAutomaton
from tightrope.errors import InputError
from tightrope.logic.external import translate
from tightrope.logic.product_problem import is_temporal
from tightrope.logic.solving import Directions, opposite
from tightrope.logic.temporal import Translator, sought_formula
from tightrope.logic.translation import is_co_safe
from tightrope.logic.whole import whole_automaton
from tightrope.model.automaton import Automaton, RabinPair
from tightrope.model.product import Letters
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.parse.diagnostics import Complaint, Source
from tightrope.prism.parse.property_syntax import (
    Property,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.spelling import spell
from tightrope.prism.properties.question import Reading
from tightrope.prism.properties.resolve import (
    PropertyOptions,
    formulas_of,
    read_directions,
    refuse_reward_options,
    reward_structure_of,
    threshold_of,
)
from tightrope.prism.properties.shape import has_operators
from tightrope.prism.properties.state_formulas import StateFormulas


@dataclass(frozen=True, eq=False)
class Asked:
    """An objective in the words of a certificate, and the automaton where it is temporal. `reading` says how
    a path was read, `sides` how one direction was read where agent and nature both decide; `limit` is the
    comparison and the threshold, where there is one."""

    objective: certified.Objective
    automaton: CertifiedAutomaton | None = None
    reading: str | None = None
    sides: Reading | None = None
    limit: tuple[str, Fraction] | None = None


def is_average(property_: Property) -> bool:
    """Whether a property is one long-run average, or share of time, without operators inside."""
    asked = property_.formula
    if not isinstance(asked, ValueOperator) or not isinstance(asked.path, RewardFormula):
        return False
    target = asked.path.target
    inside = target is not None and has_operators(target)
    return asked.condition is None and asked.path.operator is RewardOperator.LONG_RUN and not inside


def is_certifiable(property_: Property) -> bool:
    """Whether certificates cover a property that is no single objective of the solver's."""
    return is_temporal(property_) or is_average(property_)


def asked_of(
    property_: Property,
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions,
    translator: str | None = None,
) -> Asked:
    """What is asked, read on a model; `translator` is the command of another program, whose automata of
    formulas that are neither safe nor co-safe are taken."""
    operator, source = property_.formula, Source(file.source, file.file)
    if not is_certifiable(property_) or not isinstance(operator, ValueOperator):
        raise InputError(
            f"no certificate is about {property_.text}: they are about one P or R over a simple path or a "
            "reward, one long-run average, or one P over a temporal formula"
        )
    try:
        *sides, one_direction = read_directions(operator, file, structure, options)
        directions = sides[0], sides[1]
        formulas = formulas_of(file, structure, options)
        threshold = threshold_of(operator, formulas)
        limit = None if operator.comparison is None or threshold is None else (operator.comparison, threshold)
        if is_average(property_):
            average = _average(operator, structure, options, directions, formulas)
            return Asked(average, sides=one_direction, limit=limit)
        refuse_reward_options(options)
        atoms = Translator(formulas)
        assert not isinstance(operator.path, RewardFormula)
        sought = sought_formula(atoms.both_ways(operator.path), directions)
    except Complaint as complaint:
        raise complaint.in_source(source) from None
    letters = Letters.of(atoms.atoms, structure.states)
    believed = translator is not None and not is_co_safe(sought.formula)
    if translator is not None and believed:
        automaton, pairs = translate(translator, sought.formula, len(atoms.atoms), letters.bits)
    else:
        automaton, pairs = whole_automaton(sought.formula, letters.bits)
    agent, nature = opposite(directions) if sought.complement else directions
    objective = certified.Objective(
        kind="TEMPORAL",
        agent=agent.name,
        nature=nature.name if options.is_interval else "ANY",
        complement=sought.complement,
        lower_steps=0,
    )
    made = to_automaton(automaton, pairs, atoms.atoms, structure.states, believed)
    return Asked(objective, made, f"the path is read as  {spell(operator.path, file)}", one_direction, limit)


def _average(
    operator: ValueOperator,
    structure: Structure,
    options: PropertyOptions,
    directions: Directions,
    formulas: StateFormulas,
) -> certified.Objective:
    agent, nature = directions
    if options.discount is not None or options.terminal_reward is not None:
        raise Complaint("discounts and terminal rewards do not go with long-run averages", operator.position)
    if operator.is_reward:
        reward = reward_structure_of(operator, structure)
    else:
        assert isinstance(operator.path, RewardFormula) and operator.path.target is not None
        reward = RewardStructure(formulas.states(operator.path.target).astype(np.float64))
    return certified.Objective(
        kind="AVERAGE",
        agent=agent.name,
        nature=nature.name if options.is_interval else "ANY",
        complement=False,
        lower_steps=0,
        reward=reward.per_choice(structure),
    )


def to_automaton(
    automaton: Automaton, pairs: list[RabinPair], atoms: list[BoolArray], states: int, believed: bool = False
) -> CertifiedAutomaton:
    """In the words of a certificate."""
    marks = [(number, mask) for number, pair in enumerate(pairs) for mask in pair.repeated]
    shape = automaton.successor.shape
    return CertifiedAutomaton(
        atom=np.array(atoms, dtype=np.bool_).reshape(len(atoms), states),
        successor=automaton.successor.astype(np.int64),
        avoided=np.array([pair.avoided for pair in pairs], dtype=np.bool_).reshape(len(pairs), *shape),
        pair=np.array([number for number, _ in marks], dtype=np.int64),
        repeated=np.array([mask for _, mask in marks], dtype=np.bool_).reshape(len(marks), *shape),
        believed=believed,
    )
