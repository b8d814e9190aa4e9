"""The discrete-time chains behind a chain in continuous time.

* The *embedded* chain jumps with probability rate/exit and earns ρ/exit a visit, ρ the reward per unit of
  time: untimed properties have the same value there.
* The *uniformised* chain moves with probability rate/Λ and stays otherwise: its long-run shares of steps are
  the chain's shares of time.

With intervals of rates both become interval chains, rounded outward. The embedded one divides by the highest
exit rate U(s): rates r jump with r/U, stay with 1 − Σr/U and earn ρ/U a step, so jumps have the proportions
of r and ρ/Σr is earned before one. Every choice of rates is a pick of nature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tightrope.model.continuous import CTMC, IntervalCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.numbers import doubles
from tightrope.model.structure import Durations, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.rounding import down, error_factor, up

_ABOVE = 1.125
"""The uniform rate of interval chains is so much above the largest exit rate that no self-loop vanishes."""


def embed(chain: CTMC) -> MDP:
    """The jumps of a chain: probabilities and rewards are the float64 nearest to the exact values."""
    signatures = chain.signatures
    owner = np.repeat(np.arange(len(signatures)), np.diff(signatures.start))
    part = chain.exact.take(signatures.expression.astype(np.int64)) / chain.exit_exact.take(owner)
    signature = signatures.of_choice
    length = np.diff(chain.transition_start)
    within = np.arange(chain.transitions) - np.repeat(chain.transition_start[:-1], length)
    probability = doubles(part, "the probability of a jump")[
        np.repeat(signatures.start[signature], length) + within
    ]
    rewards = {
        name: _rewards(chain, name)(choice=_per_visit(earned, chain)) for name, earned in chain.earned.items()
    }
    return MDP(replace(chain.structure, rewards=rewards), probability)


def _rewards(chain: CTMC | IntervalCTMC, name: str) -> type[RewardStructure]:
    """The kind of rewards: "time" that the model does not have is how long visits last."""
    return RewardStructure if name in chain.structure.rewards else Durations


def _per_visit(earned: FloatArray, chain: CTMC) -> FloatArray:
    """earned/exit, computed once for every distinct pair."""
    amounts, amount = np.unique(earned, return_inverse=True)
    signature = chain.signatures.of_choice.astype(np.int64)
    pairs, pair = np.unique(signature * len(amounts) + amount.reshape(-1), return_inverse=True)
    exact = RationalArray.from_fractions([Fraction(float(x)) for x in amounts])
    quotient = exact.take(pairs % len(amounts)) / chain.exit_exact.take(pairs // len(amounts))
    result: FloatArray = doubles(quotient, "a reward per visit")[pair.reshape(-1)]
    return result


def uniform_chain(chain: CTMC) -> MDP:
    """The uniformised chain, with rewards per unit of time as rewards per step."""
    loops = SelfLoops.of(chain.structure)
    rate = Fraction(float(chain.exit_exact.to_float_up().max()))
    of_expression = chain.exact / RationalArray.constant(rate, len(chain.exact))
    signatures = len(chain.signatures)
    left = RationalArray.constant(rate, signatures) - chain.exit_exact
    stay = (left / RationalArray.constant(rate, signatures)).to_float()[chain.signatures.of_choice]
    probability = loops.spread(doubles(of_expression, "the probability of a jump")[chain.expression])
    probability[loops.loop] += stay
    rewards = {name: RewardStructure(state=earned) for name, earned in chain.earned.items()}
    return MDP(replace(loops.structure, rewards=rewards), probability)


def embed_robustly(chain: IntervalCTMC, highest_rewards: bool) -> IntervalMDP:
    """The interval chain behind intervals of rates; rewards are the highest or the lowest ones."""
    exits = _highest_exits(chain)
    model = _interval_chain(chain, exits)
    rewards = {}
    for name, ends in chain.earned.items():
        high = ends[1] if highest_rewards else ends[0]
        error = error_factor(4) * np.abs(high / exits)
        shown = high / exits + error if highest_rewards else high / exits - error
        rewards[name] = _rewards(chain, name)(choice=shown)
    return IntervalMDP(replace(model.structure, rewards=rewards), model.lower, model.upper)


def uniform_robust_chain(chain: IntervalCTMC, highest_rewards: bool) -> IntervalMDP:
    """The uniformised interval chain; rewards per unit of time, the highest or the lowest ones, per step."""
    exits = np.full(chain.states, float(_highest_exits(chain).max()) * _ABOVE)
    model = _interval_chain(chain, exits)
    rewards = {
        name: RewardStructure(state=ends[1] if highest_rewards else ends[0])
        for name, ends in chain.earned.items()
    }
    return IntervalMDP(replace(model.structure, rewards=rewards), model.lower, model.upper)


def _highest_exits(chain: IntervalCTMC) -> FloatArray:
    total = np.add.reduceat(chain.upper[chain.expression], chain.transition_start[:-1])
    longest = int(np.diff(chain.transition_start).max())
    return np.where(total > 0, total, 1.0) * (1 + error_factor(longest + 2))


def _interval_chain(chain: IntervalCTMC, divisor: FloatArray) -> IntervalMDP:
    """Rates divided by a number per state that no exit rate exceeds; self-loops take the rest."""
    loops = SelfLoops.of(chain.structure)
    owner = chain.structure.transition_choice
    low_rate, high_rate = chain.lower[chain.expression], chain.upper[chain.expression]
    low = loops.spread(np.maximum(down(low_rate / divisor[owner]), 0.0))
    high = loops.spread(np.minimum(up(high_rate / divisor[owner]), 1.0))
    starts = chain.transition_start[:-1]
    error = error_factor(int(np.diff(chain.transition_start).max()) + 4)
    least = np.add.reduceat(low_rate, starts) / divisor
    largest = np.add.reduceat(high_rate, starts) / divisor
    low[loops.loop] = np.maximum(down(low[loops.loop] + np.maximum(1 - largest - error, 0.0)), 0.0)
    high[loops.loop] += np.maximum(1 - least + error, 0.0)
    return IntervalMDP(loops.structure, np.minimum(low, 1.0), np.minimum(up(high), 1.0))


@dataclass(frozen=True, eq=False)
class SelfLoops:
    """A structure in which every state has a self-loop; `place` is where old transitions are now."""

    structure: Structure
    place: OffsetArray
    loop: OffsetArray

    def spread(self, values: FloatArray) -> FloatArray:
        """One number per old transition as one per new one, 0 for new self-loops."""
        result = np.zeros(self.structure.transitions)
        result[self.place] = values
        return result

    @staticmethod
    def of(structure: Structure) -> SelfLoops:
        owner = structure.transition_choice
        is_loop: BoolArray = structure.successor == owner
        has_loop = np.zeros(structure.states, np.bool_)
        has_loop[owner[is_loop]] = True
        added = (~has_loop).astype(np.int64)
        shift = np.cumsum(added) - added
        place = np.arange(structure.transitions) + shift[owner]
        start = structure.transition_start + np.r_[0, np.cumsum(added)]
        successor = np.zeros(int(start[-1]), dtype=np.int32)
        successor[place] = structure.successor
        loop = start[1:] - 1
        loop[owner[is_loop]] = place[is_loop]
        fresh = np.flatnonzero(~has_loop)
        successor[loop[fresh]] = fresh
        return SelfLoops(
            replace(structure, transition_start=start, successor=successor, rewards={}), place, loop
        )
