"""The chain of a policy: one linear equation per state, whose coefficients are the model's expressions.

V(s) = reward(s) + Σ weight·f(x)·V(successor) on rows that are not fixed; targets, hopeless states and states
without further reward are fixed, by the structure alone. Also the Bellman operator on polynomials of degree ≤
2, with a bound (`defect`) on the cubic rest and all rounding. Derivation: docs/proofs/values.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tightrope.model.graph.components import strongly_connected_components
from tightrope.model.graph.qualitative import positive
from tightrope.model.graph.support import Support
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IndexArray,
    OffsetArray,
    offsets,
    ranges,
    stretches,
)
from tightrope.numerics.jit import inlined, kernel
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

    * A `weight` has a relative error of 8 units; it is exactly 1 for a deterministic policy without discount.
      `reward` is off by at most `reward_error`.
    * `acyclic`: entries of rows that are not fixed lead to smaller rows or to fixed ones.
    * `second`: in a difference of two policies the first row of the second one; the root is the last row.
    * `start`: initial values of the first phase of a step-bounded objective; None if the phase starts with
      the solution of the equations, or if there is none.
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
    second: int | None = None

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
    if policy.depends_on_step:
        return unrolled_chain(model, objective, policy)
    used = np.flatnonzero(policy.probability > 0)
    weight = policy.probability[used]
    if objective.discount is not None:
        weight = weight * objective.discount
    lengths = np.diff(structure.transition_start)[used]
    owner = structure.choice_state[used]
    row_start = offsets(np.bincount(owner, lengths, structure.states))
    transition = stretches(structure.transition_start[used], lengths)
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
    count = np.diff(row_start)[state]
    entry = stretches(row_start[state], count)
    held = fixed[state]
    cyclic = components.cyclic[components.component[state]] & ~held
    transition = transition[entry]
    # A state that only a fixed one leads to is no row: what comes after a fixed state does not matter.
    successor = row_of[structure.successor[transition]]
    made = Chain(
        state=state.astype(np.int32),
        initial=int(row_of[structure.initial]),
        row_start=offsets(count),
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


MOST_UNROLLED = 5_000_000
"""A policy that depends on the step has a row per state and step that it can meet, this many at most."""


def unrolled_chain(model: ParametricMDP, objective: Objective, policy: Policy) -> Chain | str:
    """The chain of a policy, which may depend on the step, with a row per state and number of steps left.

    It has no cycle and no phases: rows with n steps left lead to rows with n − 1.
    """
    structure, reward = model.structure, objective.reward
    start, phases = _phases(objective, structure.states)
    if start is None or isinstance(reward, ParametricReward):
        return (
            "a policy that depends on the step is taken for a number of steps, and rewards without parameters"
        )
    earned = np.zeros(structure.choices) if reward is None else reward.per_choice(structure)
    held = [phase for phase in phases for _ in range(phase.steps)]
    sizes_of = np.diff(structure.transition_start)
    levels: list[tuple[AnyArray, ...]] = []
    met = np.array([structure.initial])
    for step, phase in enumerate(reversed(held)):
        is_fixed = phase.fixed[met]
        owner, choice, chance = _choices_at(structure, policy, step, met)
        used = ~is_fixed[owner]
        owner, choice, chance = owner[used], choice[used], chance[used]
        count = sizes_of[choice]
        transition = stretches(structure.transition_start[choice], count)
        sizes = np.bincount(owner, count, len(met)).astype(np.int64)
        gain = np.bincount(owner, chance * earned[choice], len(met))
        several = np.bincount(owner, minlength=len(met))
        size = np.bincount(owner, np.abs(chance * earned[choice]), len(met))
        slack = np.where(several > 1, error_factor(int(several.max(initial=1)) + 12) * size, 0.0)
        ends_at = np.where(is_fixed, phase.value[met], 0.0)
        levels.append((met, sizes, transition, np.repeat(chance, count), gain, slack, is_fixed, ends_at))
        met = np.unique(structure.successor[transition])
        if sum(len(level[0]) for level in levels) > MOST_UNROLLED:
            return f"the policy has more than {MOST_UNROLLED:,} pairs of states and steps"
    zero, none = np.zeros(len(met)), np.zeros(0, np.int64)
    last = (met, zero.astype(np.int64), none, zero[:0], zero, zero, np.ones(len(met), np.bool_), start[met])
    levels.append(last)
    levels.reverse()
    ends = np.cumsum([0] + [len(level[0]) for level in levels])
    successor = [
        ends[i] + np.searchsorted(levels[i][0], structure.successor[levels[i + 1][2]])
        for i in range(len(levels) - 1)
    ]
    states, sizes, transitions, weight, gains, slacks, fixed, value = (
        np.concatenate(part) for part in zip(*levels, strict=True)
    )
    return Chain(
        state=states.astype(np.int32),
        initial=len(states) - 1,
        row_start=offsets(sizes),
        successor=np.concatenate([none, *successor]).astype(np.int32),
        expression=model.expression[transitions],
        weight=weight,
        reward=gains,
        reward_error=slacks,
        fixed=fixed,
        value=value,
        acyclic=True,
    )


def _choices_at(
    structure: Structure, policy: Policy, step: int, states: OffsetArray
) -> tuple[OffsetArray, OffsetArray, FloatArray]:
    """(which of the states, choice, probability) of what a policy may take at a step, by states."""
    if policy.steps is not None:
        return np.arange(len(states)), policy.steps.at(step)[states], np.ones(len(states))
    choice, owner = ranges(structure.choice_start, states)
    chance = policy.probability[choice]
    return owner[chance > 0], choice[chance > 0], chance[chance > 0]


def _add_rewards(
    chain: Chain, model: ParametricMDP, reward: ParametricReward, used: OffsetArray, chance: FloatArray
) -> Chain:
    """The chain with the rewards of the choices in `used`: entries to one more row, whose value is 1."""
    structure, last = model.structure, chain.rows
    row_of = np.full(structure.states, -1, dtype=np.int64)
    row_of[chain.state] = np.arange(last)
    row = row_of[structure.choice_state[used]]
    inside = np.flatnonzero(row >= 0)
    order = inside[np.argsort(row[inside], kind="stable")]
    count = np.diff(chain.row_start) + np.bincount(row[order], minlength=last)
    start = offsets(np.append(count, 0))
    earned = np.zeros(int(start[-1]), dtype=np.bool_)
    within = np.arange(len(order)) - np.searchsorted(row[order], row[order])
    earned[start[row[order]] + np.diff(chain.row_start)[row[order]] + within] = True

    def merged(entries: IndexArray | FloatArray, more: IndexArray | FloatArray) -> AnyArray:
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
        return positive(self.support, target, (True, True), within=within).states

    def reached(self, stop: BoolArray) -> BoolArray:
        """States on a path from the initial one that ends where it meets `stop`."""
        chain = self.support.structure
        owner = np.repeat(np.arange(chain.states), np.diff(chain.transition_start))
        keep = ~stop[owner]
        return reached_from(self.initial, owner[keep], chain.successor[keep], chain.states)


def reached_from(
    initial: int, owner: OffsetArray | IndexArray, successor: IndexArray, states: int
) -> BoolArray:
    """The states that are met from one, by the edges from `owner` to `successor`."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = csr_array((np.ones(len(owner), np.int8), (owner, successor)), shape=(states, states))
    reached = np.zeros(states, np.bool_)
    reached[breadth_first_order(graph, initial, return_predecessors=False)] = True
    return reached


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


_UNIT = 2.0**-52
_SPARE = 1.0 + 1e-10
_TINY = 1e-140  # squares of it do not underflow


class ChainArrays(NamedTuple):
    """What compiled loops over the rows of a chain take."""

    row_start: OffsetArray
    successor: IndexArray
    expression: IndexArray
    weight: FloatArray
    reward: FloatArray
    reward_error: FloatArray


class Affine(NamedTuple):
    """middle + gradient·y ± fuzz per expression; `steepness` ≥ ‖gradient‖, and 0 exactly where it is."""

    middle: FloatArray
    gradient: FloatArray
    steepness: FloatArray
    fuzz: FloatArray
    radius: float


class Polynomials(NamedTuple):
    """One polynomial per row: constant [N], slope [N, n], curvature [N, n, n] (symmetric; [N, 0, 0] in first
    order), and size [N] ≥ its absolute value on the ball."""

    constant: FloatArray
    slope: FloatArray
    curvature: FloatArray
    size: FloatArray


class RowSums(NamedTuple):
    """Room for the slope, the curvature and the cubic terms of one row."""

    slope: FloatArray
    curvature: FloatArray
    cubic: FloatArray


@inlined
def _right_side(
    s: int, rows: ChainArrays, affine: Affine, source: Polynomials, sums: RowSums
) -> tuple[float, float, float, bool]:
    """A row's right-hand side into the sums: (constant, size of terms, what is fuzzy, any cubic terms?)"""
    row_start, successor, expression, weight, reward, _ = rows
    middle, gradient, steepness, fuzz, radius = affine
    constant, slope, curvature, size = source
    b, q, t3 = sums
    n = slope.shape[1]
    second = curvature.shape[1] == n
    v, scale, blurred, enters = reward[s], abs(reward[s]), 0.0, False
    b[:] = 0.0
    q[:] = 0.0
    if second:
        t3[:] = 0.0
    for entry in range(row_start[s], row_start[s + 1]):
        e, t, w = expression[entry], successor[entry], weight[entry]
        wm = w * middle[e]
        v += wm * constant[t]
        scale += w * (abs(middle[e]) + radius * steepness[e]) * size[t]
        blurred += w * fuzz[e] * size[t]
        steep = steepness[e] > 0.0
        enters |= steep
        for i in range(n):
            b[i] += wm * slope[t, i]
            if second:
                for j in range(n):
                    q[i, j] += wm * curvature[t, i, j]
            if steep:
                wg = w * gradient[e, i]
                b[i] += wg * constant[t]
                for j in range(n):
                    half = 0.5 * wg * slope[t, j]
                    q[i, j] += half
                    q[j, i] += half
                    if second:
                        for k in range(n):
                            t3[i, j, k] += wg * curvature[t, j, k]
    return v, scale, blurred, enters


@inlined
def _rest(second: bool, radius: float, sums: RowSums) -> float:
    """A bound on the terms of higher order on the ball: the cubic ones, or in first order the quadratic."""
    _, q, t3 = sums
    n = len(q)
    square, crossed = 0.0, 0.0
    if second:
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    square += t3[i, j, k] * t3[i, j, k]
                    crossed += t3[i, j, k] * t3[j, i, k]
        # The two may cancel; their rounding is at most 2·n³ units of the first.
        symmetric = max(square + 2.0 * crossed, 0.0) + (8 * n**3 + 64) * _UNIT * square
        left = np.sqrt(symmetric / 3.0) * radius**3
    else:
        for i in range(n):
            for j in range(n):
                square += q[i, j] * q[i, j]
        left = np.sqrt(square) * radius**2
    return float(left)


@kernel
def apply_rows(
    solve: bool,
    rows: ChainArrays,
    affine: Affine,
    source: Polynomials,
    target: Polynomials,
    fixed: BoolArray,
    value: FloatArray,
    defect: FloatArray,
) -> None:
    """Rows in order. `solve`: write the right-hand side's polynomial to `target` (`source` itself, or other
    arrays for a step in time); else compare it with `source`. Fixed rows get their value."""
    radius, row_start = affine.radius, rows.row_start
    constant, slope, curvature, _ = source
    constant_out, slope_out, curvature_out, size_out = target
    n = slope.shape[1]
    second = curvature.shape[1] == n
    sums = RowSums(np.zeros(n), np.zeros((n, n)), np.zeros((n, n, n)))
    b, q, _ = sums
    for s in range(len(fixed)):
        if fixed[s]:
            constant_out[s], size_out[s], defect[s] = value[s], abs(value[s]), 0.0
            slope_out[s] = 0.0
            curvature_out[s] = 0.0
            continue
        v, scale, blurred, enters = _right_side(s, rows, affine, source, sums)
        flat, bent, gap = 0.0, 0.0, 0.0
        for i in range(n):
            if solve:
                slope_out[s, i] = b[i]
            flat += b[i] ** 2 if solve else (b[i] - slope[s, i]) ** 2
            if second:
                for j in range(n):
                    if solve:
                        even = 0.5 * (q[i, j] + q[j, i])
                        curvature_out[s, i, j] = even
                        bent += even * even
                    else:
                        bent += (q[i, j] - curvature[s, i, j]) ** 2
        extent = radius * (np.sqrt(flat) + radius * np.sqrt(bent))
        if solve:
            constant_out[s], size_out[s] = v, (abs(v) + extent) * _SPARE
        else:
            gap = abs(v - constant[s]) + extent
        entries = row_start[s + 1] - row_start[s]
        rounding = (2 * entries + 2 * n + 24) * _UNIT * (scale + size_out[s])
        gap += _rest(second, radius, sums) if enters else 0.0
        error = gap + rounding + blurred + rows.reward_error[s]
        defect[s] = error * _SPARE + _TINY


@kernel
def error_rows(
    rows: ChainArrays,
    affine: Affine,
    fixed: BoolArray,
    defect: FloatArray,
    error: FloatArray,
    error_out: FloatArray,
) -> None:
    """At least defect + P(x)·error for every x of the ball, rounded up; in place without cycles."""
    row_start, successor, expression, weight, _, _ = rows
    middle, gradient, steepness, fuzz, radius = affine
    n = gradient.shape[1]
    drift = np.zeros(n)
    for s in range(len(fixed)):
        if fixed[s]:
            error_out[s] = 0.0
            continue
        total = 0.0
        moved = 0.0
        for i in range(n):
            drift[i] = 0.0
        first, last = row_start[s], row_start[s + 1]
        for entry in range(first, last):
            e = expression[entry]
            wc = weight[entry] * error[successor[entry]]
            total += wc * (abs(middle[e]) + fuzz[e])
            if steepness[e] > 0.0:
                moved += wc * steepness[e]
                for i in range(n):
                    drift[i] += wc * gradient[e, i]
        length = 0.0
        for i in range(n):
            length += drift[i] * drift[i]
        units = (last - first + 2 * n + 24) * _UNIT
        bound = total + radius * (np.sqrt(length) + units * moved)
        error_out[s] = (defect[s] + bound) * (1.0 + units) * (1.0 + 1e-12)


@kernel
def visits(
    row_start: OffsetArray,
    successor: IndexArray,
    probability: FloatArray,
    fixed: BoolArray,
    initial: int,
    out: FloatArray,
) -> None:
    """Expected visits of every row from the initial one, in a chain without a cycle."""
    out[initial] = 1.0
    for s in range(len(fixed) - 1, -1, -1):
        if fixed[s] or out[s] == 0.0:
            continue
        for entry in range(row_start[s], row_start[s + 1]):
            t = successor[entry]
            out[t] += out[s] * probability[entry]
