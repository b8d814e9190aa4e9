"""Models from transition arrays of MDP toolboxes (`from_arrays`) and from Gymnasium (`from_gymnasium`).

`P[a, s, t]` is the probability that action a leads from s to t; a row of zeros: the action is not available.
Numbers give an `MDP` of these float64s, polynomials in `parameters` an exact `ParametricMDP`
(`tightrope.model.numbers`), whose rows must sum to exactly 1. In Gymnasium `env.P[state][action]` lists
(probability, next state, reward, terminated); equal next states are added, terminated states absorbing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, check_type
from tightrope.model import numbers as door
from tightrope.model.builder import Probability, Row, build_from_rows, check_parameters, label_bitmaps
from tightrope.model.free import Free
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.numbers import double
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Function, Polynomial
from tightrope.model.structure import NamedStates, RewardStructure, Structure
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, offsets
from tightrope.numerics.late import sparse

_CANCELLED = 2.0**-12

Matrix: TypeAlias = Any
"""An array of any shape, or one of SciPy's, which carry no types."""

REWARD = "reward"
"""The name of the reward structure."""


def from_arrays(
    P: object,
    R: Matrix = None,
    *,
    parameters: Parameters | None = None,
    initial: int = 0,
    labels: Mapping[str, npt.ArrayLike] | None = None,
    actions: Sequence[str] | None = None,
    states: Sequence[Hashable] | None = None,
) -> MDP | ParametricMDP | IntervalMDP:
    """Build a model from transition arrays.

    Parameters
    ----------
    P
        (A, S, S), dense or a sequence of A dense or sparse matrices, or {action: matrix}.
    R : optional
        Rewards of shape (S,), (S, A) or (A, S, S), the structure "reward"; the last count as their mean.
    parameters : Parameters, optional
        Those in the entries of `P`.
    initial, labels, actions, states
        The initial state, {label: states or mask}, and names of actions and states.

    Returns
    -------
    MDP, ParametricMDP or IntervalMDP
        The model.

    Examples
    --------

    >>> import numpy as np
    >>> import tightrope as tr
    >>> P = np.array([[[0.1, 0.9], [0, 1]], [[1, 0], [0, 1]]])
    >>> model = tr.from_arrays(P, np.array([1.0, 0.0]), labels={"goal": [1]}, actions=["go", "stay"])
    >>> tr.solve(model, 'Rmin=? [ F "goal" ]').is_certified
    True
    >>> (p,) = (parameters := tr.Parameters.box(p=(0.1, 0.9))).symbols()
    >>> tr.from_arrays(np.array([[[1 - p, p], [0, 1]]]), parameters=parameters).parameters.names
    ('p',)
    """
    check_parameters(parameters)
    check_type("initial", initial, int, "the number of a state")
    check_type("labels", labels or {}, Mapping, "a mapping from names to states")
    for argument, given in (("actions", actions), ("states", states)):
        if given is not None:
            check_type(argument, given, Sequence, "a list of names")
    names, matrices = _matrices(P, actions)
    size = matrices[0].shape[0]
    bitmaps = label_bitmaps(labels or {}, size)
    own: list[Hashable] = [*range(size)] if states is None else list(states)
    if len(own) != size:
        raise InputError(f"`states` names {len(own)} states, but `P` has {size}")
    if not 0 <= initial < size:
        raise InputError(f"`initial` is {initial}, but the states are 0..{size - 1}")
    if parameters is None and all(matrix.dtype != object for matrix in matrices):
        return _plain(matrices, names, R, initial, bitmaps, own)
    return _exact_model(matrices, names, R, parameters, initial, bitmaps, own)


def _exact_model(
    matrices: list[Matrix],
    names: list[str],
    R: Matrix,
    parameters: Parameters | None,
    initial: int,
    bitmaps: Mapping[str, BoolArray],
    own: list[Hashable],
) -> ParametricMDP | IntervalMDP:
    """Numbers and polynomials exactly, a row for each available action."""
    rows = _exact_rows(matrices, names)
    pairs = [(state, names.index(action)) for state, action, _ in rows]
    rewards = _rewards(R, pairs, len(own), len(names), None)
    return build_from_rows(
        rows,
        parameters,
        states=len(own),
        initial=initial,
        labels={name: np.flatnonzero(members).tolist() for name, members in bitmaps.items()},
        choice_rewards={} if rewards is None else {REWARD: rewards.tolist()},
        state_names=own,
    )


def _exact_rows(matrices: list[Matrix], names: list[str]) -> list[Row]:
    """A row for every action that is available in a state, with the entries as they are."""
    matrices = [matrix.toarray() if hasattr(matrix, "toarray") else matrix for matrix in matrices]
    rows: list[Row] = []
    for state in range(len(matrices[0])):
        for action, matrix in zip(names, matrices, strict=True):
            row = enumerate(matrix[state])
            entries = {t: x for t, x in row if not (isinstance(x, int | float | np.number) and x == 0)}
            if entries:
                rows.append((state, action, entries))
    return rows


def _plain(
    matrices: list[Matrix],
    names: list[str],
    R: Matrix,
    initial: int,
    labels: Mapping[str, BoolArray],
    own: list[Hashable],
) -> MDP:
    """Float64s as they are, without a loop over states."""
    size = matrices[0].shape[0]
    parts = [_entries(matrix) for matrix in matrices]
    action = np.concatenate([np.full(len(part[0]), a) for a, part in enumerate(parts)])
    state, successor, probability = (np.concatenate([part[k] for part in parts]) for k in range(3))
    order = np.lexsort((successor, action, state))
    state, action, successor, probability = (x[order] for x in (state, action, successor, probability))
    choice = state * len(names) + action
    first = np.flatnonzero(np.r_[True, choice[1:] != choice[:-1]]) if len(choice) else np.zeros(0, np.int64)
    pairs = np.stack([state[first], action[first]], axis=1)
    door.check_doubles(probability, "the probability")
    rewards = _rewards(R, pairs, size, len(names), matrices)
    given = {**label_bitmaps({"init": [initial], "deadlock": []}, size), **labels}
    structure = Structure(
        offsets(np.bincount(pairs[:, 0], minlength=size)),
        np.r_[first, len(choice)],
        successor.astype(np.int32),
        (initial,),
        pairs[:, 1].astype(np.int32),
        tuple(names),
        given,
        {} if rewards is None else {REWARD: RewardStructure(None, rewards, np.ndim(R[0]) == 2)},
        {},
        NamedStates(own),
        declared_mdp=len(names) > 1,
    )
    return MDP(structure, probability)


def _matrices(P: object, actions: Sequence[str] | None) -> tuple[list[str], list[Matrix]]:
    """One square matrix per action, sparse ones as rows, and the actions' names."""
    if isinstance(P, Mapping):
        if actions is not None:
            raise InputError("leave `actions` out: `P` already maps names to matrices")
        actions, P = [str(name) for name in P], list(P.values())
    if isinstance(P, np.ndarray) and P.ndim != 3:
        raise InputError(
            f"`P` has the shape {P.shape}, not (A, S, S)", hint="P[a, s, t]: one (S, S) matrix per action"
        )
    if not isinstance(P, np.ndarray | list | tuple) or len(P) == 0:
        raise InputError(f"`P` is a {type(P).__name__}, not an array (A, S, S) or a list of matrices")
    matrices = [_matrix(matrix) for matrix in P]
    shape = matrices[0].shape
    for number, matrix in enumerate(matrices):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape != shape:
            raise InputError(
                f"the matrix of action {number} in `P` has the shape {matrix.shape}, not (S, S) as the first",
                hint="P[a, s, t]: one (S, S) matrix per action",
            )
    names = [str(number) for number in range(len(matrices))] if actions is None else [str(a) for a in actions]
    if len(names) != len(matrices):
        raise InputError(f"`actions` names {len(names)} actions, but `P` has {len(matrices)}")
    return names, matrices


def _matrix(matrix: object) -> Matrix:
    if hasattr(matrix, "tocsr"):
        return matrix.tocsr().astype(np.float64)
    try:
        array = np.asarray(matrix)
    except ValueError:
        raise InputError("a matrix in `P` has rows of different lengths") from None
    return array if array.dtype == object else _floats(array, "P")


def _entries(matrix: Matrix) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray]:
    """(row, column, value) of what is not zero."""
    if hasattr(matrix, "tocoo"):
        sparse = matrix.copy()
        sparse.sum_duplicates()
        sparse.eliminate_zeros()
        coordinates = sparse.tocoo()
        row, column = coordinates.row.astype(np.int64), coordinates.col.astype(np.int64)
        return row, column, coordinates.data.astype(np.float64)
    row, column = np.nonzero(matrix)
    return row, column, matrix[row, column]


def _rewards(
    R: Matrix, pairs: npt.ArrayLike, states: int, actions: int, matrices: list[Matrix] | None
) -> FloatArray | None:
    """One reward per choice (state, action)."""
    if R is None:
        return None
    state, action = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    if isinstance(R, list | tuple) and any(hasattr(part, "tocsr") for part in R):
        R = np.stack([part.toarray() for part in R])
    rewards = _floats(np.asarray(R), "R")
    if rewards.shape == (states,):
        return rewards[state]
    if rewards.shape == (states, actions):
        return rewards[state, action]
    if rewards.shape != (actions, states, states):
        raise InputError(
            f"`R` has the shape {rewards.shape}, not ({states},), ({states}, {actions}) or "
            f"({actions}, {states}, {states})",
            hint="R[s], R[s, a] or R[a, s, t]",
        )
    if matrices is None:
        raise InputError(
            "`R` gives rewards of transitions, whose mean depends on the parameters",
            hint="give rewards of shape (S,) or (S, A)",
        )
    mean = np.empty((states, actions))
    for number, (probability, reward) in enumerate(zip(matrices, rewards, strict=True)):
        mean[:, number] = _take_mean(*_entries(probability), reward)
    return np.asarray(mean[state, action], np.float64)


def _take_mean(
    row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], probability: FloatArray, reward: FloatArray
) -> FloatArray:
    """Σ probability · reward of every row; in rationals where products cancel or are too small."""
    earned = reward[row, column]
    product = probability * earned
    mean: FloatArray = np.bincount(row, weights=product, minlength=len(reward)).astype(np.float64)
    size = np.bincount(row, weights=np.abs(product), minlength=len(reward))
    small = (np.abs(product) < door.TINY) & (probability != 0) & (earned != 0)
    close = np.bincount(row, weights=small, minlength=len(reward)) > 0
    close |= (np.abs(mean) < _CANCELLED * size) | ~np.isfinite(size)
    for state in np.flatnonzero(close).tolist():
        pairs = zip(probability[row == state].tolist(), earned[row == state].tolist(), strict=True)
        try:
            mean[state] = door.double(sum((Fraction(p) * Fraction(r) for p, r in pairs), Fraction(0)))
        except door.NotHeldError as error:
            raise InputError(f"`R`: what state {state} earns on average: {error.message}") from None
    return mean


def _floats(array: AnyArray, argument: str) -> FloatArray:
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"`{argument}` holds {array.dtype}, not numbers") from None
    door.check_doubles(numbers, f"`{argument}`:")
    if numbers.dtype != array.dtype and ((numbers == 0) != (array == 0)).any():
        raise InputError(f"`{argument}` holds numbers that are not 0, and too small for a double")
    return numbers


Outcome = tuple[float, int, float, bool]
"""(probability, next state, reward, terminated)."""

Probabilities = Callable[[int, int, Sequence[Outcome]], Sequence[Probability] | None]
"""From a state, an action and its outcomes to their probabilities; None keeps those of the table."""

TERMINAL, GOAL = "terminal", "goal"


def from_gymnasium(
    env: object,
    *,
    parameters: Parameters | None = None,
    probabilities: Probabilities | None = None,
    actions: Sequence[str] | None = None,
    initial: int | None = None,
) -> MDP | ParametricMDP | IntervalMDP:
    """Build the model of an environment with a table `P`, such as FrozenLake or Taxi.

    Parameters
    ----------
    env
        The environment.
    parameters, probabilities
        `probabilities(state, action, outcomes)` gives probabilities in `parameters`, or None for the table's.
    actions, initial
        Names of actions, and the first state of episodes if the environment draws it.

    Returns
    -------
    MDP, ParametricMDP or IntervalMDP
        Labels: "terminal" for ended episodes, "goal" for those with the largest final reward. Rewards are the
        structure "reward", as means over successors; with parameters such rewards are left out.

    Examples
    --------
    >>> import gymnasium
    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0.1, 0.9))
    >>> (p,) = parameters.symbols()
    >>> def slip(state, action, outcomes):  # aside, ahead, aside
    ...     return [(1 - p) / 2, p, (1 - p) / 2] if len(outcomes) == 3 else None
    >>> env = gymnasium.make("FrozenLake-v1", map_name="4x4")
    >>> model = tr.from_gymnasium(env, parameters=parameters, probabilities=slip)
    >>> model.states, model.parameters.names
    (16, ('p',))
    """
    table = _table(env)
    states, count = len(table), len(table[0])
    names = [str(number) for number in range(count)] if actions is None else [str(name) for name in actions]
    if len(names) != count:
        raise InputError(f"`actions` names {len(names)} actions, but the environment has {count}")
    if probabilities is not None and parameters is None:
        raise InputError("`probabilities` have parameters, and `parameters` is missing")
    first = _initial(env, states) if initial is None else initial
    ended = {outcome[1] for row in table for outcomes in row for outcome in outcomes if outcome[3]}
    labels = {TERMINAL: sorted(ended), GOAL: _goals(table)}
    if parameters is None:
        return _plain_table(table, names, first, ended, labels)
    rows, rewards = _parametric_table(table, names, ended, probabilities)
    known = [reward for reward in rewards if reward is not None]
    return build_from_rows(
        rows,
        parameters,
        states=states,
        initial=first,
        labels=labels,
        choice_rewards={REWARD: known} if len(known) == len(rewards) else {},
    )


def _parametric_table(
    table: list[list[list[Outcome]]], names: list[str], ended: set[int], probabilities: Probabilities | None
) -> tuple[list[Row], list[float | None]]:
    """The rows of a table, and what each earns; None where its successors differ."""
    rows: list[Row] = []
    rewards: list[float | None] = []
    for state, row in enumerate(table):
        if state in ended:
            rows.append((state, names[0], {state: 1}))
            rewards.append(0.0)
            continue
        for action, outcomes in enumerate(row):
            given = None if probabilities is None else probabilities(state, action, outcomes)
            rows.append((state, names[action], _add_up(state, action, outcomes, given)))
            earned = {outcome[2] for outcome in outcomes if outcome[0] > 0}
            rewards.append(earned.pop() if len(earned) == 1 else None)
    return rows, rewards


def _plain_table(
    table: list[list[list[Outcome]]],
    names: list[str],
    first: int,
    ended: set[int],
    labels: dict[str, list[int]],
) -> MDP | ParametricMDP | IntervalMDP:
    """The table as it is."""
    states = len(table)
    matrices, mean = [], np.zeros((states, len(names)))
    for action in range(len(names)):
        entries: list[tuple[float, int, int]] = []
        for state, row in enumerate(table):
            if state in ended:
                entries += [(1.0, state, state)] if action == 0 else []
                continue
            entries += [(probability, state, after) for probability, after, _, _ in row[action]]
            mean[state, action] = _mean_reward(row[action])
        values, sources, targets = (np.array(column) for column in zip(*entries, strict=True))
        matrices.append(sparse.csr_array((values, (sources, targets)), shape=(states, states)))
    made = from_arrays(matrices, mean, initial=first, labels=labels, actions=names)
    differs = any(len({r for p, _, r, _ in row if p}) > 1 for rows in table for row in rows)
    return replace(made, structure=replace(made.structure, means=[REWARD] * differs))


def _mean_reward(outcomes: Sequence[Outcome]) -> float:
    """Σ probability · reward, the double nearest to it; what is no number stays so and is refused later."""
    if not all(math.isfinite(p) and math.isfinite(reward) for p, _, reward, _ in outcomes):
        return sum(p * reward for p, _, reward, _ in outcomes)
    return double(sum((Fraction(p) * Fraction(reward) for p, _, reward, _ in outcomes), Fraction(0)))


def _add_up(
    state: int, action: int, outcomes: Sequence[Outcome], given: Sequence[Probability] | None
) -> dict[int, Probability]:
    """The probabilities by next state."""
    if given is not None and len(given) != len(outcomes):
        raise InputError(
            f"`probabilities` gives {len(given)} numbers for the {len(outcomes)} outcomes of action {action} "
            f"in state {state}"
        )
    sums: dict[int, Function] = {}
    free: dict[int, Free] = {}
    for number, outcome in enumerate(outcomes):
        probability = outcome[0] if given is None else given[number]
        if isinstance(probability, tuple):
            raise InputError("`probabilities` gives an interval: parameters and intervals do not go together")
        if isinstance(probability, Free):
            free[outcome[1]] = probability
        else:
            sums[outcome[1]] = sums.get(outcome[1], Polynomial({})) + probability
    if both := sorted(free.keys() & sums.keys()):
        raise InputError(
            f"`probabilities` has a free and another outcome of action {action} in state {state} that lead "
            f"to state {both[0]}"
        )
    return {**sums, **free}


def _table(env: object) -> list[list[list[Outcome]]]:
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if table is None:
        raise InputError(
            f"`env` is a {type(env).__name__} without a transition table P",
            hint="toy-text environments have one; of others `read_data` and `online` learn from episodes",
        )
    try:
        return [
            [
                [(float(p), int(t), float(reward), bool(end)) for p, t, reward, end in table[state][action]]
                for action in range(len(table[state]))
            ]
            for state in range(len(table))
        ]
    except (TypeError, ValueError, KeyError, IndexError):
        raise InputError(
            "the table of `env` is not P[state][action] = [(probability, next state, reward, terminated), …]"
        ) from None


def _initial(env: object, states: int) -> int:
    weights = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    if weights is None:
        return 0
    possible = np.flatnonzero(np.asarray(weights))
    if len(possible) != 1:
        raise InputError(
            f"`env` has {len(possible)} initial states, and a model has one",
            hint=f"say which: `initial={int(possible[0]) if len(possible) else 0}`",
        )
    return int(possible[0])


def _goals(table: list[list[list[Outcome]]]) -> list[int]:
    ends = [outcome for row in table for outcomes in row for outcome in outcomes if outcome[3]]
    most = max((outcome[2] for outcome in ends), default=0.0)
    return sorted({outcome[1] for outcome in ends if outcome[2] == most})
