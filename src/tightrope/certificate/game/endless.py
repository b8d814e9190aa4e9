"""Lower bounds that are infinite: does a play from there miss the target, or earn without end?

In the set E of states off the boundary whose lower bound is +∞, maximisers either reach a smaller level of E
with positive probability or never leave levels no larger; by induction on the level, which is the ranking for
rewards until a target, and a layer of it for total rewards, they miss the target or earn again and again with
positive probability (`docs/trust.md`).
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.game.nature import can_be_positive, signs_of_sums
from tightrope.certificate.game.progress import Play, moves_always
from tightrope.numerics.arrays import BoolArray, OffsetArray


def misses(play: Play, endless: BoolArray) -> BoolArray:
    """States from which maximisers stay within `endless`, or reach a smaller rank of it."""
    down, stay, _ = _levels(play, endless, play.ranking)
    return play.by_state(down, stay)


def earns_forever(play: Play, endless: BoolArray) -> BoolArray:
    """States from which maximisers reach a smaller layer, or stay in theirs and earn again and again."""
    game, layer = play.game, play.ranking // (len(play.ranking) + 1)
    sooner, stay, closer = _levels(play, endless, layer)
    moves = (game.reward > 0) | closer
    if game.weight is None:
        return play.by_state(sooner | (stay & moves), np.zeros(len(stay), dtype=np.bool_))
    starts, used = game.choice_start[:-1], game.weight > 0
    result: BoolArray = np.logical_or.reduceat(sooner & used, starts) | (
        np.logical_and.reduceat(stay | ~used, starts) & np.logical_or.reduceat(moves & used, starts)
    )
    return result


def _levels(play: Play, endless: BoolArray, level: OffsetArray) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Of every choice: a smaller level of `endless` is reached with positive probability; levels no larger
    are never left; within these a smaller rank is reached with positive probability."""
    boxes, state, ranking = play.boxes, play.state, play.ranking
    n, count = boxes.n, len(state)
    down, stay, closer = (np.zeros(count, dtype=np.bool_) for _ in range(3))
    for rows, table, single in boxes.blocks():
        here, successor = state[rows][:, None], boxes.successor[table]
        lower, upper = boxes.rows(table)
        smaller = endless[successor] & (level[successor] < level[here])
        inside = endless[successor] & (level[successor] <= level[here])
        nearer = inside & (ranking[successor] < ranking[here])
        if play.game.nature_owns("MAX") and not single:
            down[rows] = np.any(smaller & can_be_positive(n, lower, upper), axis=1)
            within = np.where(inside, upper, 0)
            stay[rows] = ~np.any(~inside & (lower > 0), axis=1) & (signs_of_sums(n, within) >= 0)
            # She must stay within the level and come closer with one distribution.
            closer[rows] = np.any(nearer & can_be_positive(n, lower, within), axis=1)
        else:
            down[rows] = moves_always(n, lower, upper, smaller)
            stay[rows] = ~np.any(~inside & (upper > 0), axis=1)
            closer[rows] = moves_always(n, lower, upper, nearer)
    return down, stay, closer
