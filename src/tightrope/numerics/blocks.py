"""Coordinates in blocks: groups of columns that no row links, so that what is solved falls into small parts.

A model with hundreds of unknown distributions has constraints and expressions that touch a few coordinates
each. A linear program or a likelihood over all of them is then the sum of one per block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray

MANY = 12
"""Up to so many coordinates nothing is gained by looking for blocks."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some columns, and for every matrix the rows that touch them."""

    columns: OffsetArray
    rows: tuple[OffsetArray, ...]


def find_blocks(*matrices: FloatArray) -> tuple[Block, ...]:
    """The blocks of matrices that share their columns; () where there are few columns or one block."""
    size = matrices[0].shape[1]
    if size <= MANY:
        return ()
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    places = [np.nonzero(matrix) for matrix in matrices]
    starts = size + np.cumsum([0, *(len(matrix) for matrix in matrices)])
    row = np.concatenate([start + place[0] for start, place in zip(starts[:-1], places, strict=True)])
    column = np.concatenate([place[1] for place in places])
    nodes = int(starts[-1])
    graph = coo_array((np.ones(len(row), dtype=np.int8), (row, column)), shape=(nodes, nodes))
    label = connected_components(graph, directed=False)[1]
    numbers = np.unique(label[:size])
    if len(numbers) == 1:
        return ()
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], numbers)
    last = np.searchsorted(label[order], numbers, side="right")
    blocks = []
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        members = np.sort(order[begin:end])
        cuts = np.searchsorted(members, starts)
        rows = tuple(
            members[a:b] - start for a, b, start in zip(cuts[:-1], cuts[1:], starts[:-1], strict=True)
        )
        blocks.append(Block(members[: cuts[0]], rows))
    return tuple(blocks)
