"""How a data file names states: by index, or by the values of the model's variables."""

from __future__ import annotations

from enum import Enum


class StateForm(Enum):
    """An index means something only within one model; variables survive a change of the model's numbering."""

    INDEX = "index"
    VARIABLES = "variables"
