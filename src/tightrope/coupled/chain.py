"""The chain of a policy: one linear equation per state, whose coefficients are the model's expressions.

Once the policy is fixed, every objective the solver knows is

    V(s) = reward(s) + Σ weight·f(x)·V(successor)     on rows that are not fixed,     V = value on fixed rows

with weight = the policy's probability of the choice times the discount, and f the expression of the
transition. Only states that the policy can reach from the initial one become rows. Fixed rows are

* UNTIL: targets (1), states that are neither target nor allowed (0), and the set Z of states from which no
  target can be reached (0): every transition out of Z leads to Z or to a state that is not allowed.
* REACH_REWARD: targets, with their terminal value.
* TOTAL: the closed set of states from which no reward can be earned (0).
* DISCOUNTED: none.

"Can" is read from the structure: a transition that the policy takes counts as possible whatever its
expression, which makes Z smaller and never wrong. Whether a play stops for every x of a set is not decided
here; the error bound of `tightrope.coupled.taylor` proves it or fails.

Rewards with parameters are entries, too, to a row whose value is fixed at 1 (`tightrope.coupled.earned`).

Step-bounded objectives repeat the backup a number of times (`Phase`), as `solver.iteration.horizon` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.coupled.rows import ChainArrays
from tightrope.model.graph.components import strongly_connected_components
from tightrope.model.graph.qualitative import positive
from tightrope.model.graph.support import Support
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record
from tightrope.numerics.rounding import error_factor


@dataclass(frozen=True, eq=False)
class Phase:
    """`steps` backups of all rows; after each of them the rows in `fixed` are set to `value`."""

    steps: int
    fixed: BoolArray
    value: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Record):
    """Row i is state[i]; its entries row_start[i]..row_start[i+1] lead to rows `successor`.

    * A `weight` is its true value up to a relative error of 8 units; it is exactly 1 for a deterministic
      policy without discount. `reward` is off by at most `reward_error`.
    * `acyclic`: entries of rows that are not fixed lead to smaller rows or to fixed ones.
    * `start`: the values that the first phase of a step-bounded objective begins with; None where it begins
      with the solution of the equations, or where there is no phase.
    """

    state: IndexArray
    initial: int
    row_start: OffsetArray
    successor: IndexArray
    expression: IndexArray
    weight: FloatArray
    reward: FloatArray
    reward_error: FloatArray
    fixed: BoolArray
    value: FloatArray
    acyclic: bool
    start: FloatArray | None = None
    phases: tuple[Phase, ...] = ()

    @property
    def arrays(self) -> ChainArrays:
        return ChainArrays(
            self.row_start, self.successor, self.expression, self.weight, self.reward, self.reward_error
        )

    @property
    def rows(self) -> int:
        return len(self.state)

    @property
    def row_of_entry(self) -> OffsetArray:
        return np.repeat(np.arange(self.rows), np.diff(self.row_start))


def chain_of(model: ParametricMDP, objective: Objective, policy: Policy) -> Chain | str:
    """The chain, or why there is none: the value is infinite whatever the parameters."""
    structure = model.structure
    used, weight = _list_used(structure, policy)
    if objective.discount is not None:
        weight = weight * objective.discount
    lengths = np.diff(structure.transition_start)[used]
    owner = structure.choice_state[used]
    per_state = np.zeros(structure.states, np.int64)
    np.add.at(per_state, owner, lengths)
    row_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_state)])
    shift = structure.transition_start[used] - (np.cumsum(lengths) - lengths)
    transition = np.arange(int(row_start[-1])) + np.repeat(shift, lengths)
    parametric = objective.reward if isinstance(objective.reward, ParametricReward) else None
    chance = weight if objective.discount is None else weight / objective.discount
    plain = None if parametric is not None else objective.reward
    reward, reward_error = _rewards(structure, plain, used, chance)
    graph = _Graph.of(structure, row_start, structure.successor[transition])
    rewarded = reward > 0
    if parametric is not None:
        zero = np.diff(parametric.expressions.row_start) == 0
        rewarded[structure.choice_state[used[~zero[parametric.expression[used]]]]] = True
    fixed, value, trouble = _boundary(objective, graph, rewarded)
    start, phases = _phases(objective, structure.states)
    keep = graph.reached(np.zeros_like(fixed) if phases else fixed)
    if trouble is not None and bool(np.any(keep & trouble)):
        return "the expected reward is infinite under this policy, whatever the parameters"
    components = strongly_connected_components(graph.support, expand=~fixed)
    state = components.order[keep[components.order]]
    row_of = np.full(structure.states, -1, np.int32)
    row_of[state] = np.arange(len(state), dtype=np.int32)
    count = per_state[state]
    entry = np.arange(int(count.sum())) + np.repeat(row_start[state] - (np.cumsum(count) - count), count)
    held = fixed[state]
    cyclic = components.cyclic[components.component[state]] & ~held
    transition = transition[entry]
    # A state that only a fixed one leads to is no row: what comes after a fixed state does not matter.
    successor = row_of[structure.successor[transition]]
    made = Chain(
        state=state.astype(np.int32),
        initial=int(row_of[structure.initial]),
        row_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(count)]),
        successor=np.maximum(successor, 0).astype(np.int32),
        expression=model.expression[transition],
        weight=np.repeat(weight, lengths)[entry],
        reward=reward[state],
        reward_error=reward_error[state],
        fixed=held,
        value=np.where(held, value[state], 0.0),
        acyclic=not bool(cyclic.any()),
        start=None if start is None else start[state],
        phases=tuple(Phase(p.steps, p.fixed[state], p.value[state]) for p in phases),
    )
    if parametric is None:
        return made
    return _add_rewards(made, model, parametric, used, chance)


def _add_rewards(
    chain: Chain, model: ParametricMDP, reward: ParametricReward, used: OffsetArray, chance: FloatArray
) -> Chain:
    """The chain with the rewards of the choices in `used`, which the policy takes with these chances: entries
    with expressions after those of the model, to one more row whose value is 1.
    """
    structure, last = model.structure, chain.rows
    row_of = np.full(structure.states, -1, dtype=np.int64)
    row_of[chain.state] = np.arange(last)
    row = row_of[structure.choice_state[used]]
    kept = np.flatnonzero(row >= 0)
    order = kept[np.argsort(row[kept], kind="stable")]
    count = np.diff(chain.row_start) + np.bincount(row[order], minlength=last)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(count), [int(count.sum())]])
    earned = np.zeros(int(start[-1]), dtype=np.bool_)
    within = np.arange(len(order)) - np.searchsorted(row[order], row[order])
    earned[start[row[order]] + np.diff(chain.row_start)[row[order]] + within] = True

    def merged(entries: IndexArray | FloatArray, more: IndexArray | FloatArray) -> Any:
        result = np.empty(len(earned), dtype=entries.dtype)
        result[~earned], result[earned] = entries, more
        return result

    def ended(values: FloatArray) -> FloatArray:
        return np.append(values, 1.0)

    def held(fixed: BoolArray) -> BoolArray:
        return np.append(fixed, True)

    offset = len(model.expressions)
    return replace(
        chain,
        state=np.append(chain.state, chain.state[-1:]),
        row_start=start,
        successor=merged(chain.successor, np.full(len(order), last, dtype=np.int32)),
        expression=merged(chain.expression, (offset + reward.expression[used[order]]).astype(np.int32)),
        weight=merged(chain.weight, chance[order]),
        reward=np.append(chain.reward, 0.0),
        reward_error=np.append(chain.reward_error, 0.0),
        fixed=held(chain.fixed),
        value=ended(chain.value),
        start=None if chain.start is None else ended(chain.start),
        phases=tuple(Phase(one.steps, held(one.fixed), ended(one.value)) for one in chain.phases),
    )


@dataclass(frozen=True, eq=False)
class _Graph:
    """The policy's graph on all states of the model, every transition it takes being possible."""

    support: Support
    initial: int

    @staticmethod
    def of(structure: Structure, row_start: OffsetArray, successor: IndexArray) -> _Graph:
        chain = Structure(
            choice_start=np.arange(structure.states + 1, dtype=np.int64),
            transition_start=row_start,
            successor=successor,
            initial_states=structure.initial_states,
        )
        every = np.ones(len(successor))
        return _Graph(Support(chain, every, every), structure.initial)

    def reaches(self, target: BoolArray, within: BoolArray | None = None) -> BoolArray:
        """States with a path to `target` through `within`."""
        return positive(self.support, target, agent_reaches=True, nature_reaches=True, within=within).states

    def reached(self, stop: BoolArray) -> BoolArray:
        """States on a path from the initial one that ends where it meets `stop`."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        chain = self.support.structure
        length = np.where(stop, 0, np.diff(chain.transition_start))
        keep = np.repeat(~stop, np.diff(chain.transition_start))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
        successor = chain.successor[keep]
        graph = csr_array((np.ones(len(successor), np.int8), successor, offsets), shape=(chain.states,) * 2)
        met = breadth_first_order(graph, self.initial, return_predecessors=False)
        found = np.zeros(chain.states, np.bool_)
        found[met] = True
        return found


def _list_used(structure: Structure, policy: Policy) -> tuple[OffsetArray, FloatArray]:
    """The choices the policy takes, in order, and their probabilities."""
    used = np.flatnonzero(policy.probability > 0)
    return used, policy.probability[used]


def _rewards(
    structure: Structure, reward: RewardStructure | None, used: OffsetArray, chance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Expected rewards of one step, and bounds on their rounding: none where one choice is certain."""
    if reward is None:
        return np.zeros(structure.states), np.zeros(structure.states)
    earned = reward.per_choice(structure)[used]
    owner = structure.choice_state[used]
    total, size = np.zeros(structure.states), np.zeros(structure.states)
    np.add.at(total, owner, chance * earned)
    np.add.at(size, owner, np.abs(chance * earned))
    count = np.bincount(owner, minlength=structure.states)
    single = count == 1
    total[owner[single[owner]]] = earned[single[owner]]
    error = np.where(single, 0.0, error_factor(int(count.max(initial=1)) + 12) * size)
    return total, error


def _boundary(
    objective: Objective, graph: _Graph, rewarded: BoolArray
) -> tuple[BoolArray, FloatArray, BoolArray | None]:
    """(fixed, value, states whose value is infinite)."""
    states = len(rewarded)
    fixed, value = np.zeros(states, np.bool_), np.zeros(states)
    if objective.is_bounded or objective.kind is ObjectiveKind.DISCOUNTED:
        return fixed, value, None
    if objective.kind is ObjectiveKind.UNTIL:
        assert objective.target is not None
        target = objective.target
        barred = np.zeros(states, np.bool_) if objective.allowed is None else ~objective.allowed & ~target
        fixed = ~graph.reaches(target, ~target & ~barred) | target
        return fixed, target.astype(np.float64), None
    if objective.kind is ObjectiveKind.REACH_REWARD:
        assert objective.target is not None
        fixed = objective.target.copy()
        if objective.terminal is not None:
            value = np.where(fixed, objective.terminal, 0.0)
        return fixed, value, ~graph.reaches(fixed, ~fixed)
    fixed = ~graph.reaches(rewarded)
    return fixed, value, ~graph.reaches(fixed)


def _phases(objective: Objective, states: int) -> tuple[FloatArray | None, tuple[Phase, ...]]:
    """What a step-bounded objective begins with, and its backups."""
    nowhere, zero = np.zeros(states, np.bool_), np.zeros(states)
    if objective.kind is ObjectiveKind.CUMULATIVE:
        assert objective.upper_steps is not None
        return zero, (Phase(objective.upper_steps, nowhere, zero),)
    if objective.kind not in (ObjectiveKind.UNTIL, ObjectiveKind.NEXT):
        return None, ()
    assert objective.target is not None
    goal = objective.target.astype(np.float64)
    if objective.kind is ObjectiveKind.NEXT:
        return goal, (Phase(1, nowhere, zero),)
    barred = nowhere if objective.allowed is None else ~objective.allowed
    phases: list[Phase] = []
    if objective.upper_steps is not None:
        last = objective.upper_steps - objective.lower_steps
        phases.append(Phase(last, barred | objective.target, goal))
    if objective.lower_steps:
        phases.append(Phase(objective.lower_steps, barred, zero))
    return (goal if objective.upper_steps is not None else None), tuple(phases)
