"""What a certificate is asked about, where it is more than one objective of the solver's: long-run averages
and temporal formulas with the automaton that recognises them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.certificate import problem as certified
from tightrope.certificate.product import Automaton as CertifiedAutomaton
from tightrope.errors import InputError
from tightrope.logic.hoa import translate
from tightrope.logic.long_run import read_average
from tightrope.logic.solving import opposite
from tightrope.logic.temporal import Translator, sought_formula
from tightrope.logic.translation import is_co_safe, whole_automaton
from tightrope.model.product import Automaton, Letters, RabinPair
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.parse.property_syntax import RewardFormula, spell
from tightrope.prism.parse.syntax import Complaint
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import Reading, refuse_reward_options


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


CERTIFIABLE = (QueryKind.LTL, QueryKind.LONG_RUN)
"""Queries that certificates cover although they are no single objective of the solver's."""


def asked_of(query: Query, translator: str | None = None) -> Asked:
    """What is asked, in the words of a certificate; `translator` is the command of another program, whose
    automata of formulas that are neither safe nor co-safe are taken."""
    if query.kind not in CERTIFIABLE:
        raise InputError(
            f"no certificate is about {query.text}: they are about one P or R over a simple path or a "
            "reward, one long-run average, or one P over a temporal formula"
        )
    structure, options = query.structure, query.options
    if query.kind is QueryKind.LONG_RUN:
        reward, (agent, nature) = read_average(query)
        average = certified.Objective(
            kind="AVERAGE",
            agent=agent.name,
            nature=nature.name if options.is_interval else "ANY",
            complement=False,
            lower_steps=0,
            reward=reward.per_choice(structure),
        )
        return Asked(average, sides=query.reading, limit=query.limit)
    path, directions = query.operator.path, query.directions
    assert directions is not None and not isinstance(path, RewardFormula)
    try:
        refuse_reward_options(options)
        atoms = Translator(query.state_formulas())
        sought = sought_formula(atoms.both_ways(path), directions)
    except Complaint as complaint:
        raise complaint.in_source(query.source) from None
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
    reading = f"the path is read as  {spell(path, query.syntax)}"
    return Asked(objective, made, reading, query.reading, query.limit)


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
