"""The oracle that keeps the probability of something bad within a bound, at the estimate.

Let an episode end where the bad states begin; then their probability is Σ_c occupancy(c)·P(c leads there),
linear in the occupancy like the reward. For a multiplier μ ≥ 0 every policy ρ that keeps the bound β has

    reward(ρ) ≤ max_ρ' (reward − μ·bad)(ρ') + μ·β,

an upper bound for any μ. The maximiser is too dangerous for small μ and safe for large ones; where two such
policies are both maximal, the mixture of them that meets β is the best there is. The next μ is the one at
which the two at hand are equal (the slope between them), until no third is better there: a few solves.

Every answer keeps the bound, so every mixture of answers does. All of this is at the estimate; what is
certified over the whole region is `tightrope.learning.online.safety`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.design.oracle import Answer, Atom, Oracle
from tightrope.errors import InputError
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray

ROUNDS = 40
CLOSE = 1e-5
"""Relative to what is collected: when the multiplier is good enough."""

_TIE = 1e-7
"""Of the reward: how much of it the safer of two policies may lack, all episode long."""


class NoPolicyKeepsBound(InputError):
    """At the estimate every policy is more dangerous than is allowed."""


def entering(structure: Structure, probability: FloatArray, states: BoolArray) -> FloatArray:
    """How likely each choice leads into the states from outside, one number per choice."""
    inside = states[structure.successor] & ~states[structure.choice_state[structure.transition_choice]]
    weights = probability * inside
    found = np.bincount(structure.transition_choice, weights=weights, minlength=structure.choices)
    return found.astype(np.float64)


def careful(ask: Oracle, bad: FloatArray) -> Oracle:
    """The same oracle, with ties broken towards the policy that is least likely to end badly."""

    def asked(reward: FloatArray) -> Answer:
        scale = float(np.abs(reward).max(initial=0.0))
        if scale == 0.0:
            scale = 1.0
        answer = ask(reward - _TIE * scale * bad)
        value = float(answer.atom.occupancy @ reward)
        return Answer(answer.atom, value, max(answer.upper + _TIE * scale, value))

    return asked


@dataclass(frozen=True, eq=False)
class Bounded:
    """An oracle whose answers keep Σ occupancy·bad ≤ `most`."""

    ask: Oracle
    bad: FloatArray
    most: float

    def safest(self) -> Atom:
        """The policy that is least likely to end badly, at the estimate."""
        return self.ask(-self.bad).atom

    def __call__(self, reward: FloatArray) -> Answer:
        """The most of the reward within the bound; `NoPolicyKeepsBound` where none keeps it."""
        bold = self.ask(reward)
        if self._risk(bold.atom) <= self.most:
            return bold
        safe = self.safest()
        if self._risk(safe) > self.most:
            raise NoPolicyKeepsBound(
                f"every policy ends badly with probability {self._risk(safe):.4g} at least, more than the "
                f"{self.most:.4g} that is allowed",
                hint="allow more with `at_most`",
            )
        daring, upper = bold.atom, bold.upper
        for _ in range(ROUNDS):
            gained = float(daring.occupancy @ reward) - float(safe.occupancy @ reward)
            slope = max(gained, 0.0) / max(self._risk(daring) - self._risk(safe), 1e-300)
            answer = self.ask(reward - slope * self.bad)
            upper = min(upper, answer.upper + slope * self.most)
            mixed = self._mix(safe, daring)
            reached = float(mixed.occupancy @ reward)
            line = float(safe.occupancy @ reward) - slope * self._risk(safe)
            better = float(answer.atom.occupancy @ reward) - slope * self._risk(answer.atom)
            if upper - reached <= CLOSE * abs(reached) or better <= line + 1e-12 * abs(line):
                break
            if self._risk(answer.atom) <= self.most:
                safe = answer.atom
            else:
                daring = answer.atom
        mixed = self._mix(safe, daring)
        value = float(mixed.occupancy @ reward)
        return Answer(mixed, value, max(upper, value))

    def _risk(self, atom: Atom) -> float:
        return float(atom.occupancy @ self.bad)

    def _mix(self, safe: Atom, daring: Atom) -> Atom:
        """The two, drawn per episode in the shares that just keep the bound."""
        low, high = self._risk(safe), self._risk(daring)
        share = 0.0 if high <= low else min(max((self.most - low) / (high - low), 0.0), 1.0)
        if share == 0.0:
            return safe
        parts = (
            *((share * part, policy) for part, policy in daring.parts),
            *(((1.0 - share) * part, policy) for part, policy in safe.parts),
        )
        occupancy = share * daring.occupancy + (1.0 - share) * safe.occupancy
        return replace(safe, parts=parts, occupancy=occupancy)
