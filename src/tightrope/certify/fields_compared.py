"""Two certificates, or parts of them, field by field: where do they differ first?"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from tightrope.certificate.fields import list_fields


def name_difference(what: str, field: str | None) -> str | None:
    return None if field is None else f"{what}: '{field}' differs"


def first_difference(given: Any, own: Any, path: str = "") -> str | None:
    """The name of the first field in which two certificates, or parts of them, differ, or None."""
    for name, _ in list_fields(given):
        here, ours, inner = getattr(given, name), getattr(own, name), f"{path}{name}"
        if type(here) is not type(ours):
            return inner
        if isinstance(here, np.ndarray):
            if here.dtype != ours.dtype or not np.array_equal(here, ours):
                return inner
        elif is_dataclass(here) or (isinstance(here, tuple) and any(map(is_dataclass, here))):
            mine, yours = ((here,), (ours,)) if is_dataclass(here) else (here, ours)
            differences = [first_difference(a, b, f"{inner}.") for a, b in zip(mine, yours, strict=False)]
            if len(mine) != len(yours) or any(differences):
                return next(filter(None, differences), inner)
        elif here != ours:
            return inner
    return None
