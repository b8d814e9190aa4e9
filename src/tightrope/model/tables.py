"""Tables for notebooks: pyarrow tables of what a model's states, choices and transitions are said to be.

States are shown by the names of their author: a column per variable, or a column `state` of own states or,
where there are none, of indices. Names of variables are kept; a column of ours that has the name of a
variable gets an underscore at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.structure import Structure

Table = Any
"""A `pyarrow.Table`."""


def state_columns(structure: Structure, states: npt.NDArray[np.integer]) -> dict[str, Any]:
    """What the states are called, a column per variable."""
    import pyarrow as pa

    if structure.valuations:
        return {name: pa.array(column[states]) for name, column in structure.valuations.items()}
    own = structure.own_states
    if own is None:
        return {"state": pa.array(states.astype(np.int64))}
    listed = [own[state] for state in states.tolist()]
    try:
        return {"state": pa.array(listed)}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return {"state": pa.array([repr(state) for state in listed])}


def action_column(structure: Structure, choices: npt.NDArray[np.integer]) -> Any:
    """The names of the choices' actions, stored once each."""
    import pyarrow as pa

    indices = pa.array(structure.action_of_choice[choices].astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(structure.action_names, pa.string()))


def with_nulls(column: Any, valid: npt.NDArray[np.bool_]) -> Any:
    """The column, null where it is not valid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column if isinstance(column, pa.Array) else pa.array(column)
    return pc.if_else(pa.array(valid), array, pa.scalar(None, array.type))


def with_states(structure: Structure, states: npt.NDArray[np.integer], columns: Mapping[str, Any]) -> Table:
    """A table of the states' columns and then these."""
    import pyarrow as pa

    named = state_columns(structure, states)
    for name, column in columns.items():
        while name in named:
            name += "_"
        named[name] = column if isinstance(column, pa.Array) else pa.array(column)
    return pa.table(named)


def to_pandas(table: Table) -> Any:
    """A pandas data frame; pandas is optional."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise InputError(
            "data frames need the package 'pandas', which is not installed",
            hint="pip install 'tightrope[pandas]', or use to_arrow()",
        ) from error
    return table.to_pandas()
