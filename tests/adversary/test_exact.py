"""`verify --exact` leaves nothing in floats: numbers that a check compares, trims or rounds are rational."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adversary.honest import ALL
from tightrope_check.archive import load
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL

KINDS = (
    "point/cost",
    "interval/average",
    "interval/temporal",
    "plain/reach",
    "newest/follows",
    "walk/events/untied",
    "walk/hoeffding/tied",
    "walk/anytime/tied",
    "walk/likelihood/rectangular",
    "walk/slab/expression",
    "walk/polytope/quotients",
    "walk/polytope/discounted",
    "newest/costs",
    "spread/l1/rectangular",
    "spread/ellipsoid/rectangular",
    "spread/polytope/coupled",
    "domain/coupled",
    "remembered/tied",
)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_left_in_floats(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rationals look at every array they are handed, wherever that is, and float64 is handed none."""
    certificate, kind, seen = load(ALL[name].certificate).certificate, type(RATIONAL), 0

    def look(array: Any) -> None:
        nonlocal seen
        if not (np.isscalar(array) or (isinstance(array, np.ndarray) and array.dtype.kind == "i")):
            held = np.asarray(array)
            assert held.dtype == object, held.dtype
            assert not any(isinstance(one, float | np.floating) for one in held.reshape(-1).tolist())
            seen += held.size

    def watch(method: str, place: int | None) -> None:
        plain = getattr(kind, method)

        def looked(*given: Any, **named: Any) -> Any:
            result = plain(*given, **named)
            look(result if place is None else given[place])
            return result

        monkeypatch.setattr(kind, method, looked)

    def refuse(*given: Any) -> Any:
        raise AssertionError("float64 decides something")

    for method in ("finite", "fractions", "floats", "up", "down", "trim", "each"):
        watch(method, 1)
    watch("error", 2)
    watch("array", None)
    watch("zeros", None)
    for method in ("array", "zeros", "enclose", "error", "each", "require_finite"):
        monkeypatch.setattr(FLOAT64, method, refuse)
    assert check(certificate, RATIONAL).valid
    assert seen > 50
