"""A policy as a table: a row per state and choice that may be taken there.

| column | holds |
|---|---|
| the variables, or `state` | the state (`tightrope.formats.table.frames`) |
| `from_step` | from which step on this row holds, for policies that depend on the step |
| `action` | the name of the action |
| `choice` | the number of the choice within its state, counted from 0 |
| `probability` | how likely it is taken there |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.formats.table.frames import action_column, with_states

if TYPE_CHECKING:
    from tightrope.formats.policy import Policy


def policy_table(policy: Policy) -> Any:
    """The pyarrow table."""
    structure, runs = policy.structure, policy.steps
    columns: dict[str, Any] = {}
    if runs is not None:
        taken, share = runs.choice, np.ones(len(runs.choice))
        columns["from_step"] = runs.step
    else:
        taken = np.flatnonzero(policy.probability > 0)
        share = policy.probability[taken]
    state = structure.choice_state[taken]
    columns["action"] = action_column(structure, taken)
    columns["choice"] = taken - structure.choice_start[state]
    columns["probability"] = share
    return with_states(structure, state, columns)
