"""The policy, the ranking, and every inequality checked once more on the model as given.

A choice is *good* for the agent if its safe backup attains the agent's bound. Where the agent owns
progress, the policy is found by drawing states towards the goal through good choices only (`attract`):
whoever is drawn has a good choice that makes progress, and the order of drawing is the ranking. A greedy
policy alone could wait in an end component for ever. Where nature is an owner too, it may use transitions
of an optimal answer, or, where there is slack, any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.model.graph.qualitative import Ranked
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.solver.equations.qualitative import Decision
from tightrope.solver.equations.system import Equations, Meaning
from tightrope.solver.iteration.backend import Backend
from tightrope.solver.iteration.finite_horizon import weigh


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds that hold (widened to what is known anyway if `holds` is False), policy and ranking."""

    lower: FloatArray
    upper: FloatArray
    policy: OffsetArray
    ranking: OffsetArray
    holds: bool


def certify(
    backend: Backend, equations: Equations, decision: Decision, lower: FloatArray, upper: FloatArray
) -> Certificate:
    """Check L ≤ Φ(L) and Φ(U) ≤ U everywhere and find the policy and ranking that go with them."""
    system, structure = equations.system, equations.system.structure
    bounds = _Bounds(backend, equations, lower, upper)
    judged = backend.judge(equations, bounds.low, bounds.high)
    low_holds = bool((bounds.fixed | bounds.is_endless | judged.low_holds).all())
    high_holds = bool((bounds.fixed | judged.high_holds).all())
    policy, ranking = judged.policy, np.zeros(structure.states, np.int64)
    if equations.can_idle:
        owns = equations.agent_owns
        open_choice = judged.good if owns else backend.upload(system.enabled)
        drawn = _keep_progress(bounds, decision.progress, open_choice) or _draw(
            bounds, open_choice, judged.slack, owns
        )
        if equations.owners_maximise:
            low_holds &= drawn.is_complete
        else:
            high_holds &= drawn.is_complete
        ranking = drawn.ranking
        if owns:
            np.copyto(policy, drawn.policy, where=drawn.policy >= 0)
        infinite = decision.states & np.isposinf(decision.value)
        ranking[infinite] = decision.layer[infinite]
        if system.agent_maximises:
            shown = infinite & (decision.witness >= 0)
            policy[shown] = decision.witness[shown]
    free = ~equations.fixed
    if not low_holds:
        lower = np.where(free & ~np.isposinf(lower), system.floor, lower)
    if not high_holds:
        upper = np.where(free & ~decision.states, system.ceiling, upper)
    return Certificate(lower, upper, policy, ranking, low_holds and high_holds)


class _Bounds:
    """Both bounds in the place where they are checked, and which states rest on progress."""

    def __init__(self, backend: Backend, equations: Equations, lower: FloatArray, upper: FloatArray) -> None:
        self.backend, self.equations = backend, equations
        self.low, self.high = backend.upload(lower), backend.upload(upper)
        self.fixed = backend.upload(equations.fixed)
        self.is_endless = self.low == np.inf

    @property
    def values(self) -> Any:
        """The bound on the owners' side."""
        return self.low if self.equations.owners_maximise else self.high

    @property
    def needs_rank(self) -> Any:
        """States whose bound on the owners' side rests on progress."""
        if self.equations.owners_maximise:
            return ~self.fixed & (self.low > 0) & ~self.is_endless
        return ~self.fixed & (self.high < np.inf)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The ranking, the choices that lead down in it (−1: none) and whether every state that needs a rank has
    one.
    """

    ranking: OffsetArray
    policy: OffsetArray
    is_complete: bool


def _keep_progress(bounds: _Bounds, known: Ranked | None, open_choice: Any) -> _Drawn | None:
    """The ranking by which the graph has decided, where it is one of just the states that need one, and, if
    the agent is to follow it, through choices that are open.
    """
    backend, equations = bounds.backend, bounds.equations
    nature_picks = equations.nature_owns and backend.kernel.lower is not backend.kernel.upper
    if known is None or nature_picks or backend.xp is not np:
        return None
    within = bounds.needs_rank
    if not np.array_equal(within, known.states & ~equations.fixed):
        return None
    if equations.agent_owns and not open_choice[known.witness[within]].all():
        return None
    ranking = known.rank.astype(np.int64)
    return _Drawn(ranking, known.witness, True)


def _draw(bounds: _Bounds, open_choice: Any, slack: Any, agent_joins: bool) -> _Drawn:
    """Rank the states whose bound rests on progress, through `open_choice`.

    `slack[c]`: the choice is strictly better than its state's bound requires."""
    backend, equations = bounds.backend, bounds.equations
    within = bounds.needs_rank
    start = ~within & ~bounds.is_endless if equations.owners_maximise else bounds.fixed
    kept = None
    if equations.nature_owns and backend.kernel.lower is not backend.kernel.upper:
        kept = backend.keep_transitions(bounds.values, equations.system.nature_maximises, slack)
    earning = None
    if equations.meaning is Meaning.TOTAL:
        earning = np.full(len(equations.fixed), -1, np.int64)
        choices = backend.download(open_choice).astype(np.bool_)
        now = _earn(equations, backend.download(within), choices, agent_joins, earning)
        start, open_choice = start | backend.upload(now), backend.upload(choices)
    rank, witness = backend.attract(kept, within, start, open_choice, (agent_joins, equations.nature_owns))
    is_complete = bool((~within | (rank >= 0)).all())
    ranking = backend.download(rank).astype(np.int64)
    np.maximum(ranking, 0, out=ranking)
    through: OffsetArray = backend.download(witness)
    if earning is not None:
        through = np.where(through >= 0, through, earning)
    return _Drawn(ranking, through, is_complete)


def rank_mixture(
    backend: Backend,
    equations: Equations,
    weights: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    of_chain: OffsetArray,
) -> OffsetArray:
    """The ranking of a randomised policy: it makes progress if one of the choices it mixes does.

    `of_chain` is the ranking of its chain (`solver.bellman.randomised`); its layers of infinite values
    are kept."""
    structure = equations.system.structure
    if not equations.can_idle:
        return np.zeros(structure.states, np.int64)
    lower, upper = bounds
    upward = not equations.owners_maximise
    values = upper if upward else lower
    each = backend.backups.safe_choices(equations.system, values, upward)
    backed = weigh(each, weights, structure.choice_start[:-1], np.diff(structure.choice_start), upward)
    slack = (backed < values) if upward else (backed > values)
    placed = _Bounds(backend, equations, lower, upper)
    slack_there = backend.upload(slack[structure.choice_state])
    ranking = _draw(placed, backend.upload(weights > 0), slack_there, True).ranking
    endless = np.flatnonzero(np.isposinf(lower))
    ranking[endless] = of_chain[endless]
    if equations.meaning is Meaning.TOTAL and len(endless):
        layer = of_chain[endless] // (len(of_chain) + 1)
        place = np.empty(len(endless), np.int64)
        place[np.argsort(of_chain[endless], kind="stable")] = np.arange(1, len(endless) + 1)
        ranking[endless] = layer * (structure.states + 1) + place
    return ranking


def _earn(
    equations: Equations,
    within: BoolArray,
    open_choice: BoolArray,
    agent_joins: bool,
    policy: OffsetArray,
) -> BoolArray:
    """States at which a total reward needs no progress, since one is earned: earned for ever it is infinite
    anyway. An agent who joins gets the choices as `policy`; else those that earn are closed.
    """
    system, structure = equations.system, equations.system.structure
    rewarded = open_choice & (system.reward > 0)
    if agent_joins:
        first = _first_where(rewarded, structure.states, structure.choice_state)
        now = within & (first >= 0)
        policy[now] = first[now]
        return now
    open_choice &= ~rewarded
    none_left: BoolArray = np.add.reduceat(open_choice.astype(np.int32), structure.choice_start[:-1]) == 0
    return within & none_left


def _first_where(mask: BoolArray, states: int, state: IndexArray) -> OffsetArray:
    """The first choice of every state that is in `mask`, −1 where there is none."""
    found = np.full(states, -1, np.int64)
    chosen = np.flatnonzero(mask)[::-1]
    found[state[chosen]] = chosen
    return found
