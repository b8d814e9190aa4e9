"""How a data file names states: by index, or by the values of the model's variables."""

from __future__ import annotations

from enum import Enum

from tightrope.errors import InputError


class StateForm(Enum):
    """An index means something only within one model; variables survive a change of the model's numbering."""

    INDEX = "index"
    VARIABLES = "variables"


def state_form(states: StateForm | str | None) -> StateForm | None:
    """The form that a user names, None for none; a name that is none is an `InputError`."""
    try:
        return None if states is None else StateForm(states)
    except ValueError:
        known = ", ".join(repr(form.value) for form in StateForm)
        raise InputError(f"states={states!r} is no way to name states; there are {known}") from None
