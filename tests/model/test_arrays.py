"""Models keep their numbers: whoever built one cannot change it through the arrays that went in."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure, frozen_array, release


def structure() -> Structure:
    return Structure(np.arange(3), np.array([0, 2, 3]), np.array([0, 1, 1]))


def test_a_model_keeps_its_numbers() -> None:
    lower, upper = np.array([0.1, 0.2, 1.0]), np.array([0.8, 0.9, 1.0])
    model = IntervalMDP(structure(), lower, upper)
    lower[0] = 5
    upper[:] = 7
    assert model.lower.tolist() == [0.1, 0.2, 1.0]
    assert model.upper.tolist() == [0.8, 0.9, 1.0]
    for array in (model.lower, model.upper, model.structure.successor):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_structure_keeps_its_arrays() -> None:
    successor = np.array([0, 1, 1], np.int32)
    label = np.array([False, True])
    built = Structure(np.arange(3), np.array([0, 2, 3]), successor, labels={"goal": label})
    successor[:] = 0
    label[:] = True
    assert built.successor.tolist() == [0, 1, 1]
    assert built.labels["goal"].tolist() == [False, True]


def test_a_read_only_view_is_no_guarantee() -> None:
    base = np.array([0.5, 0.5, 1.0])
    view = base.view()
    view.flags.writeable = False
    model = MDP(structure(), view)
    base[:] = 0
    assert model.probability.tolist() == [0.5, 0.5, 1.0]


def test_what_was_released_is_not_copied() -> None:
    base = np.array([[0.5, 0.5, 1.0]])
    row = base[0]
    release(row, None)
    assert frozen_array(row, np.float64) is row
    assert not base.flags.writeable
    assert frozen_array(frozen_array(np.ones(3))).flags.writeable is False
