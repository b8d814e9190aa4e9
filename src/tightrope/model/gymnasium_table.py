"""`from_gymnasium`: toy-text environments of Gymnasium, which carry their transition table, as models.

`env.P[state][action]` lists outcomes (probability, next state, reward, terminated). Outcomes with the same
next state are added up. States in which an episode has ended stay where they are. The environment's numbers
are the model's own states, and its actions the model's actions in their order, so that policies and learners
of the model act in the environment as it is.

The caller puts parameters in: for every choice a function may say which probabilities its outcomes have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.errors import InputError
from tightrope.model.arrays import REWARD, from_arrays
from tightrope.model.builder import Probability, Row, build_from_rows
from tightrope.model.door import double
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.rational_function import Function

Outcome = tuple[float, int, float, bool]
"""(probability, next state, reward, terminated)."""

Probabilities = Callable[[int, int, Sequence[Outcome]], Sequence[Probability] | None]
"""From a state, an action and its outcomes to their probabilities; None keeps those of the table."""

TERMINAL, GOAL = "terminal", "goal"


def from_gymnasium(
    env: Any,
    *,
    parameters: Parameters | None = None,
    probabilities: Probabilities | None = None,
    actions: Sequence[str] | None = None,
    initial: int | None = None,
) -> MDP | ParametricMDP | IntervalMDP:
    """The model of an environment with a table `P`, such as FrozenLake, CliffWalking or Taxi.

    * `probabilities(state, action, outcomes)` gives the probabilities of the outcomes, polynomials in
      `parameters` among them, or None to keep the table's.
    * `actions`: what they are called; their numbers where nothing is said.
    * `initial`: the state episodes begin in, where the environment draws it.

    The label "terminal" holds where an episode has ended, "goal" where it has ended with the largest reward
    that an end has. Rewards are the structure "reward"; where those of a choice's outcomes differ it is their
    mean, which a model with parameters cannot have: there the structure is left out.

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
        raise InputError("`probabilities` are polynomials in parameters, and `parameters` says nothing")
    first = _initial(env, states) if initial is None else initial
    ended = {outcome[1] for row in table for outcomes in row for outcome in outcomes if outcome[3]}
    labels = {TERMINAL: sorted(ended), GOAL: _goals(table)}
    if parameters is None:
        return _plain(table, names, first, ended, labels)
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
    known = [reward for reward in rewards if reward is not None]
    return build_from_rows(
        rows,
        parameters,
        states=states,
        initial=first,
        labels=labels,
        choice_rewards={REWARD: known} if len(known) == len(rewards) else {},
    )


def _plain(
    table: list[list[list[Outcome]]],
    names: list[str],
    first: int,
    ended: set[int],
    labels: dict[str, list[int]],
) -> MDP | ParametricMDP | IntervalMDP:
    """The table as it is."""
    from scipy.sparse import csr_array

    states = len(table)
    matrices, mean = [], np.zeros((states, len(names)))
    for action in range(len(names)):
        entries: list[tuple[float, int, int]] = []
        for state, row in enumerate(table):
            if state in ended:
                entries += [(1.0, state, state)] if action == 0 else []
                continue
            entries += [(probability, state, after) for probability, after, _, _ in row[action]]
            mean[state, action] = _take_mean(row[action])
        values, sources, targets = (np.array(column) for column in zip(*entries, strict=True))
        matrices.append(csr_array((values, (sources, targets)), shape=(states, states)))
    return from_arrays(matrices, mean, initial=first, labels=labels, actions=names)


def _take_mean(outcomes: Sequence[Outcome]) -> float:
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
    found: dict[int, Probability] = {}
    sums: dict[int, Function] = {}
    for number, outcome in enumerate(outcomes):
        probability = outcome[0] if given is None else given[number]
        if isinstance(probability, tuple):
            raise InputError("`probabilities` gives an interval: parameters and intervals do not go together")
        sums[outcome[1]] = sums.get(outcome[1], Polynomial({})) + probability
    found.update(sums)
    return found


def _table(env: Any) -> list[list[list[Outcome]]]:
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


def _initial(env: Any, states: int) -> int:
    weights = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    if weights is None:
        return 0
    possible = np.flatnonzero(np.asarray(weights))
    if len(possible) != 1:
        raise InputError(
            f"`env` begins in one of {len(possible)} states, and a model in one",
            hint=f"say which: `initial={int(possible[0]) if len(possible) else 0}`",
        )
    return int(possible[0])


def _goals(table: list[list[list[Outcome]]]) -> list[int]:
    ends = [outcome for row in table for outcomes in row for outcome in outcomes if outcome[3]]
    most = max((outcome[2] for outcome in ends), default=0.0)
    return sorted({outcome[1] for outcome in ends if outcome[2] == most})
