"""How data name states: by index, by the model's variables, or as the model's author calls them."""

from __future__ import annotations

from enum import Enum

from tightrope.errors import InputError


class StateForm(Enum):
    """An index means something only within one model; variables survive a change of the model's numbering.

    >>> [one.value for one in StateForm]
    ['index', 'variables']
    """

    INDEX = "index"
    VARIABLES = "variables"


class StateNames(Enum):
    """What stands in a log where it names a state."""

    INDEX = "index"
    """The number that the model gives the state; only where the user or the file says so."""

    VARIABLES = "variables"
    """The values of all variables of the model, a column each."""

    OWN = "own"
    """What the author of a model written in Python calls the state."""


def state_form(states: StateForm | str | None) -> StateForm | None:
    """The form that a user names, None for none; a name that is none is an `InputError`."""
    try:
        return None if states is None else StateForm(states)
    except ValueError:
        known = ", ".join(repr(form.value) for form in StateForm)
        raise InputError(f"states={states!r} is no way to name states; there are {known}") from None
