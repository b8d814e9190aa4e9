"""The policy, the ranking, and every inequality checked once more on the model as given.

A choice is *good* for the agent if its safe backup attains the agent's bound. Where the agent owns
progress, the policy is found by drawing states towards the goal through good choices only (`attract`):
whoever is drawn has a good choice that makes progress, and the order of drawing is the ranking. A greedy
policy alone could wait in an end component for ever. Where nature is an owner too, it may use transitions
of an optimal answer, or, where there is slack, any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.model.graph.qualitative import attract_into
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.solver.decided import Decision
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.horizon import weighted
from tightrope.solver.kernel import Backups


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds that hold (widened to what is known anyway if `holds` is False), policy and ranking."""

    lower: FloatArray
    upper: FloatArray
    policy: OffsetArray
    ranking: OffsetArray
    holds: bool


def certified(
    backups: Backups,
    support: Support,
    equations: Equations,
    decision: Decision,
    lower: FloatArray,
    upper: FloatArray,
) -> Certificate:
    """Check L ≤ Φ(L) and Φ(U) ≤ U everywhere and find the policy and ranking that go with them."""
    system, structure = equations.system, equations.system.structure
    state = structure.choice_state
    free = ~equations.fixed
    low, high = backups.safe_choices(system, lower, False), backups.safe_choices(system, upper, True)
    maximises, enabled = system.agent_maximises, system.enabled
    low_best, low_choice = _best_of(structure, low, enabled, maximises)
    high_best, high_choice = _best_of(structure, high, enabled, maximises)
    endless = np.isposinf(lower)
    low_holds = bool(np.all(~free | endless | (low_best >= lower)))
    high_holds = bool(np.all(~free | (high_best <= upper)))

    policy = low_choice if maximises else high_choice
    ranking = np.zeros(structure.states, np.int64)
    if equations.can_idle:
        bound, each = (lower, low) if equations.owners_maximise else (upper, high)
        required = bound[state]
        good = enabled & (each >= required if equations.owners_maximise else each <= required)
        slack = each > required if equations.owners_maximise else each < required
        owns = equations.agent_owns
        open_choice = good if owns else enabled.copy()
        drawn_all = _draw(
            backups, support, equations, lower, upper, open_choice, slack, owns, policy, ranking
        )
        if equations.owners_maximise:
            low_holds &= drawn_all
        else:
            high_holds &= drawn_all
        infinite = decision.states & np.isposinf(decision.value)
        ranking[infinite] = decision.layer[infinite]
        if maximises:
            shown = infinite & (decision.witness >= 0)
            policy[shown] = decision.witness[shown]
    if not low_holds:
        lower = np.where(free & ~endless, system.floor, lower)
    if not high_holds:
        upper = np.where(free & ~decision.states, system.ceiling, upper)
    return Certificate(lower, upper, policy, ranking, low_holds and high_holds)


def _draw(
    backups: Backups,
    support: Support,
    equations: Equations,
    lower: FloatArray,
    upper: FloatArray,
    open_choice: BoolArray,
    slack: BoolArray,
    agent_joins: bool,
    policy: OffsetArray,
    ranking: OffsetArray,
) -> bool:
    """Rank the states whose bound rests on progress, through `open_choice`; an agent who joins gets the
    choices as policy.

    Returns whether all could be ranked. `slack[c]`: the choice is strictly better than its state's bound
    requires."""
    system, structure = equations.system, equations.system.structure
    values = lower if equations.owners_maximise else upper
    within = needs_rank(equations, lower, upper)
    drawn = equations.fixed.copy()
    if equations.owners_maximise:
        drawn = ~within & ~np.isposinf(lower)
    if equations.nature_owns and backups.lower is not backups.upper:
        kept = backups.optimal_transitions(values, system.nature_maximises)
        kept |= support.possible & slack[structure.transition_choice]
        support = replace(support, kept=kept)
    if equations.meaning is Meaning.TOTAL:
        _draw_rewarded(equations, within, open_choice, agent_joins, drawn, policy)
    rank = np.zeros(structure.states, np.int32)
    witness = np.full(structure.states, -1, np.int64)
    attract_into(support, within, open_choice, agent_joins, equations.nature_owns, drawn, rank, witness)
    ranking[:] = rank
    if agent_joins:
        policy[witness >= 0] = witness[witness >= 0]
    return bool(np.all(drawn[within]))


def needs_rank(equations: Equations, lower: FloatArray, upper: FloatArray) -> BoolArray:
    """States whose bound on the owners' side rests on progress."""
    if equations.owners_maximise:
        return ~equations.fixed & (lower > 0) & np.isfinite(lower)
    return ~equations.fixed & np.isfinite(upper)


def mixed_ranking(
    backups: Backups,
    support: Support,
    equations: Equations,
    weights: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    of_chain: OffsetArray,
) -> OffsetArray:
    """The ranking of a randomised policy: it makes progress if one of the choices it mixes does.

    `of_chain` is the ranking of its chain (`tightrope.solver.randomised`); its layers of infinite values
    are kept."""
    structure = equations.system.structure
    ranking = np.zeros(structure.states, np.int64)
    if not equations.can_idle:
        return ranking
    upward = not equations.owners_maximise
    values = upper if upward else lower
    each = backups.safe_choices(equations.system, values, upward)
    backed = weighted(each, weights, structure.choice_start[:-1], np.diff(structure.choice_start), upward)
    slack = (backed < values) if upward else (backed > values)
    unused = np.full(structure.states, -1, np.int64)
    _draw(
        backups,
        support,
        equations,
        lower,
        upper,
        weights > 0,
        slack[structure.choice_state],
        True,
        unused,
        ranking,
    )
    endless = np.flatnonzero(np.isposinf(lower))
    ranking[endless] = of_chain[endless]
    if equations.meaning is Meaning.TOTAL and len(endless):
        layer = of_chain[endless] // (len(of_chain) + 1)
        place = np.empty(len(endless), np.int64)
        place[np.argsort(of_chain[endless], kind="stable")] = np.arange(1, len(endless) + 1)
        ranking[endless] = layer * (structure.states + 1) + place
    return ranking


def _best_of(
    structure: Structure, each: FloatArray, enabled: BoolArray, maximises: bool
) -> tuple[FloatArray, OffsetArray]:
    """The best of every state's enabled choices and the first choice that attains it; without one nothing
    (−∞ for a maximum) and −1.
    """
    if structure.is_chain and enabled.all():
        return each, np.arange(structure.states, dtype=np.int64)
    best, first = np.empty(structure.states), np.empty(structure.states, np.int64)
    _best_choices(structure.choice_start, each, enabled, maximises, best, first)
    return best, first


@kernel
def _best_choices(
    choice_start: OffsetArray,
    each: FloatArray,
    enabled: BoolArray,
    maximises: bool,
    best: FloatArray,
    first: OffsetArray,
) -> None:
    for s in range(len(best)):
        found, taken = -np.inf if maximises else np.inf, -1
        for c in range(choice_start[s], choice_start[s + 1]):
            if enabled[c] and (taken < 0 or (each[c] > found if maximises else each[c] < found)):
                found, taken = each[c], c
        best[s], first[s] = found, taken


def _draw_rewarded(
    equations: Equations,
    within: BoolArray,
    open_choice: BoolArray,
    agent_joins: bool,
    drawn: BoolArray,
    policy: OffsetArray,
) -> None:
    """A total reward needs no progress where a reward is earned: earned for ever it is infinite anyway."""
    system, structure = equations.system, equations.system.structure
    rewarded = open_choice & (system.reward > 0)
    if agent_joins:
        first = _first_where(rewarded, structure.states, structure.choice_state)
        now = within & (first >= 0)
        policy[now] = first[now]
    else:
        open_choice &= ~rewarded
        now = within & (np.add.reduceat(open_choice.astype(np.int32), structure.choice_start[:-1]) == 0)
    drawn |= now


def _first_where(mask: BoolArray, states: int, state: IndexArray) -> OffsetArray:
    """The first choice of every state that is in `mask`, −1 where there is none."""
    found = np.full(states, -1, np.int64)
    chosen = np.flatnonzero(mask)[::-1]
    found[state[chosen]] = chosen
    return found
