"""Bounds of long-run averages by a gain g and a bias h, which need be no more than what is checked here.

Where g ≥ p·g and g + h ≥ r + p·h at every choice that counts, E[g(s_t)] never rises, and the sum of n rewards
is at most n·g(s_0) + 2·max|h|: the average is at most g. A lower bound has ≤ in both (`docs/trust.md`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.certificate.game.nature import Vector
from tightrope.certificate.game.progress import Play
from tightrope.numerics.arrays import BoolArray, FloatArray


def bounds_average(play: Play, bias_of: FloatArray) -> BoolArray:
    """Where is gain ≥ p·gain and gain + bias ≥ r + p·bias (≤ for a lower bound), with one p for both?

    Where nature owns the bound, one of the two is asked of her best p and the other one of every p.
    """
    game, upward, sign = play.game, play.upward, 1 if play.upward else -1
    n, gain = game.n, play.value
    bias = Vector.of(n, bias_of, game.used)
    total = gain.number + bias.number
    total = total - sign * n.error(2, abs(gain.number) + abs(bias.number))
    anyway = replace(game, objective=replace(game.objective, nature="ANY"))
    holds = np.zeros(len(play.state), dtype=np.bool_)
    for one, other in ((game, anyway), (anyway, game)):
        kept = replace(one, reward=n.zeros(len(play.state))).choices(gain, upward)
        earned = other.choices(bias, upward)
        both = (sign * kept.number <= sign * gain.number[play.state]) & ~kept.infinite
        holds |= both & (sign * earned.number <= sign * total[play.state]) & ~earned.infinite
    return play.by_state(holds & n.finite(total)[play.state], np.zeros(len(holds), dtype=np.bool_))
