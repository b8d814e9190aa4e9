"""Bounds of long-run averages by a gain g and a bias h, which need be no more than what is checked here.

Where g ≥ p·g and g + h ≥ r + p·h at every choice that counts, E[g(s_t)] never rises, and the sum of n rewards
is at most n·g(s_0) + 2·max|h|: the average is at most g. A lower bound has ≤ in both (`docs/trust.md`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.certificate.game.nature import Vector
from tightrope.certificate.game.operator import Game
from tightrope.certificate.verdict import Check


def bounds_average(game: Game, gain: Vector, bias: Vector, upward: bool) -> Check:
    """Is gain ≥ p·gain and gain + bias ≥ r + p·bias (≤ for a lower bound), with one p for both?

    Where nature owns the bound, one of the two is asked of her best p and the other one of every p.
    """
    owner, side, sign = ("MIN", "upper", 1) if upward else ("MAX", "lower", -1)
    state = np.repeat(np.arange(game.states), np.diff(game.choice_start))
    slack = game.n.error(1, abs(gain.number) + abs(bias.number))
    total = gain.number + bias.number - sign * slack
    game.n.require_finite(total)
    anyway = replace(game, objective=replace(game.objective, nature="ANY"))
    holds = np.zeros(len(state), dtype=np.bool_)
    for one, other in ((game, anyway), (anyway, game)):
        kept = replace(one, reward=game.n.zeros(len(state))).choices(gain, upward).number
        earned = other.choices(bias, upward).number
        holds |= (sign * kept <= sign * gain.number[state]) & (sign * earned <= sign * total[state])
    if game.agent_owns(owner):
        assert game.witness is not None
        wrong = ~holds[game.witness]
    else:
        wrong = ~np.logical_and.reduceat(holds, game.choice_start[:-1])
    return Check.everywhere(f"the {side} gain and its bias bound the average", wrong, "state")
