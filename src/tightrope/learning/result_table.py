"""Results as a table: what is certified of every state under the robust policy, and what is done there.

| column | holds |
|---|---|
| the variables, or `state` | the state (`tightrope.model.states`) |
| `lower`, `upper` | the certified interval of the value from this state on, under the robust policy |
| `optimistic` | what no policy can exceed (undercut, where the agent minimises) from this state on |
| `action`, `choice` | what the robust policy does: the action, and the choice's number within the state |

The intervals of all states hold together, with the confidence of the ledger. Where coupled sets make that of
the initial state tighter, the row of that state says so; the others are those over the rectangular sets.
`action` is the first decision of a policy that depends on the step, and null where the policy is random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.model.states import action_column, with_nulls, with_states

if TYPE_CHECKING:
    from tightrope.learning.result import LearningResult


def result_table(result: LearningResult) -> Any:
    """The pyarrow table, a row per state."""
    structure, policy = result.model.structure, result.policy.at(0)
    low, high = result.robust.solutions
    lower, upper = low.lower.copy(), high.upper.copy()
    lower[structure.initial], upper[structure.initial] = result.interval.lower, result.interval.upper
    taken = np.maximum.reduceat(
        np.where(policy.probability > 0, np.arange(structure.choices), -1), structure.choice_start[:-1]
    )
    mixed = np.add.reduceat((policy.probability > 0).astype(np.int64), structure.choice_start[:-1])
    best = result.optimistic.upper if result.problem.maximises else result.optimistic.lower
    columns = {
        "lower": lower,
        "upper": upper,
        "optimistic": best,
        "action": with_nulls(action_column(structure, taken), mixed == 1),
        "choice": with_nulls(taken - structure.choice_start[:-1], mixed == 1),
    }
    return with_states(structure, np.arange(structure.states), columns)
