"""`verify --exact` leaves nothing in floats: numbers that a check compares, trims or rounds are rational."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adversary.honest import ALL
from tightrope.certificate.checker import check
from tightrope.certificate.format.archive import load
from tightrope.certificate.numbers import RATIONAL

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


class Watched(type(RATIONAL)):
    """Rationals that look at every array they are handed."""

    def __init__(self) -> None:
        self.numbers = 0

    def look(self, array: Any) -> Any:
        if not (np.isscalar(array) or (isinstance(array, np.ndarray) and array.dtype.kind == "i")):
            held = np.asarray(array)
            assert held.dtype == object, held.dtype
            assert not any(isinstance(one, float | np.floating) for one in held.reshape(-1).tolist())
            self.numbers += held.size
        return array

    def finite(self, array: Any) -> Any:
        return super().finite(self.look(array))

    def error(self, operations: Any, size: Any) -> Any:
        return super().error(operations, self.look(size))

    def fractions(self, array: Any) -> Any:
        return super().fractions(self.look(array))

    def floats(self, array: Any) -> Any:
        return super().floats(self.look(array))

    def up(self, array: Any) -> Any:
        return super().up(self.look(array))

    def trim(self, array: Any, upward: bool | None = None) -> Any:
        return super().trim(self.look(array), upward)

    def root_up(self, array: Any) -> Any:
        return super().root_up(self.look(array))


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_left_in_floats(name: str) -> None:
    watched = Watched()
    assert check(load(ALL[name].certificate).certificate, watched).valid
    assert watched.numbers > 0  # statistics and regions are rational in any case
