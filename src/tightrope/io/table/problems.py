"""Why a row of data cannot be counted: one code a reason, in the words that reports use.

Every row gets the code of the first thing that is wrong with it, 0 where nothing is.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

ProblemCodes: TypeAlias = npt.NDArray[np.int8]
"""One `Problem` a row."""


class Problem(IntEnum):
    """The codes; `words` is how a report of dropped rows names them."""

    NONE = 0
    MISSING_VALUE = 1
    NOT_A_NUMBER = 2
    FRACTIONAL = 3
    UNKNOWN_STATE = 4
    UNKNOWN_NEXT_STATE = 5
    DISABLED_ACTION = 6
    AMBIGUOUS_ACTION = 7
    CONTRADICTING_ACTION = 8
    IMPOSSIBLE_TRANSITION = 9
    NEGATIVE_COUNT = 10
    NEGATIVE_BATCH = 11
    BROKEN_CHAIN = 12
    MISSING_STEP = 13
    AFTER_THE_END = 14
    RAGGED_ROW = 15
    UNMAPPED_VALUE = 16
    REPEATED_STEP = 17
    AMBIGUOUS_NUMBER = 18
    REPEATED_TIME = 19

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Problem.NONE: "nothing",
    Problem.MISSING_VALUE: "missing value",
    Problem.NOT_A_NUMBER: "not a number",
    Problem.FRACTIONAL: "not a whole number",
    Problem.UNKNOWN_STATE: "unknown state",
    Problem.UNKNOWN_NEXT_STATE: "unknown next state",
    Problem.DISABLED_ACTION: "disabled action",
    Problem.AMBIGUOUS_ACTION: "ambiguous action",
    Problem.CONTRADICTING_ACTION: "action and choice disagree",
    Problem.IMPOSSIBLE_TRANSITION: "impossible transition",
    Problem.NEGATIVE_COUNT: "negative count",
    Problem.NEGATIVE_BATCH: "negative batch number",
    Problem.BROKEN_CHAIN: "broken chain",
    Problem.MISSING_STEP: "missing step",
    Problem.AFTER_THE_END: "step after the episode's end",
    Problem.RAGGED_ROW: "wrong number of fields",
    Problem.UNMAPPED_VALUE: "value without a meaning",
    Problem.REPEATED_STEP: "step given twice",
    Problem.AMBIGUOUS_NUMBER: "ambiguous number of an action",
    Problem.REPEATED_TIME: "instant given twice",
}


def mark(problems: ProblemCodes, wrong: npt.NDArray[np.bool_], problem: Problem) -> None:
    """Give the rows in `wrong` this code, unless they have one already."""
    problems[wrong & (problems == Problem.NONE)] = problem
