"""Two certificates, or parts of them, field by field: where do they differ first?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from tightrope.certificate.fields import list_fields
from tightrope.certificate.problem import CertifiedProblem

ASKED = ("objective", "automaton", "time")
"""The fields of a problem that are the property; `data` are compared apart, and all others are the model."""


def compare_problems(
    problem: CertifiedProblem, own: CertifiedProblem, is_asked: bool, controlled: str = ""
) -> Iterator[tuple[str, str | None]]:
    """The problem of a file and the user's own, as a whole: every field that differs is the model's, or the
    property's where one is given (`is_asked`)."""
    names = (*ASKED, "data")
    model = replace(own, **{name: getattr(problem, name) for name in names})
    if not is_asked and problem.objective.earned is not None and problem.polynomial is not None:
        known = model.polynomial or ()  # rewards are a part of the property
        model = replace(model, polynomial=(*known, *problem.polynomial[len(known) :]))
    yield "model", name_difference(f"another model{controlled}", first_difference(problem, model))
    if is_asked:
        question = replace(problem, **{name: getattr(own, name) for name in ASKED})
        differs = first_difference(problem, question)
        yield (
            "property",
            name_difference(f"another property{controlled}", differs and differs.removeprefix("objective.")),
        )


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
