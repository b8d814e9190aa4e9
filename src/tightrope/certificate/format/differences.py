"""In what two certificates differ, field by field: how one in a file is tied to a problem of one's own."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from tightrope.certificate.format.fields import list_fields


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
            found = [first_difference(a, b, f"{inner}.") for a, b in zip(mine, yours, strict=False)]
            if len(mine) != len(yours) or any(found):
                return next(filter(None, found), inner)
        elif here != ours:
            return inner
    return None
