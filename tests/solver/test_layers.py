"""In which order a block is swept: by distance to its exits, or by its states' numbers where these agree."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray
from tightrope.solver.equations.ordering import Layers, layers
from tightrope.solver.equations.system import Block


def ordered(number: IndexArray) -> Layers:
    """A line of states, one step on or back from each, left at its end for state n; `number[i]` is the state
    in place i.
    """
    n = len(number)
    place = np.argsort(number)
    neighbours = [sorted({int(number[max(i - 1, 0)]), int(number[i + 1]) if i + 1 < n else n}) for i in place]
    rows = [*neighbours, [n]]
    structure = Structure(
        choice_start=np.arange(n + 2),
        transition_start=np.cumsum([0, *(len(row) for row in rows)]),
        successor=np.array([s for row in rows for s in row], np.int32),
    )
    bound = np.ones(structure.transitions)
    values = np.append(np.zeros(n), 1.0)
    scratch = np.full(n + 1, -1, np.int32)
    block = Block.of_states(np.random.default_rng(3).permutation(n).astype(np.int32))
    found = layers(Support(structure, 0.1 * bound, bound), block, values, scratch, True)
    assert np.all(scratch == -1)
    assert sorted(found.block.member.tolist()) == list(range(n))
    assert np.array_equal(found.distance, n - place[found.block.member])
    return found


@pytest.mark.parametrize("step", [1, -1])
def test_states_numbered_along_the_way_keep_their_order(step: int) -> None:
    """Sweeps start next to the exit; nothing else needs to be visited in an order of its own."""
    number = np.arange(40)[::step].astype(np.int32)
    number[[7, 8]] = number[[8, 7]]
    found = ordered(number)
    assert found.block.member.tolist() == list(range(40))[::-step]
    assert len(found.block.visit) == 0


def test_states_numbered_anyhow_are_ordered_by_distance() -> None:
    found = ordered(np.random.default_rng(1).permutation(40).astype(np.int32))
    assert found.distance.tolist() == list(range(1, 41))
    assert found.block.member[found.block.visit].tolist() == list(range(39, -1, -1))
