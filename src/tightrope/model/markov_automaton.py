"""Markov automata: states that wait, and states in which somebody chooses at once.

A *Markovian* state waits an exponential time with its exit rate and jumps by its one distribution. In any
other state no time passes: one of its choices is taken immediately. What does not speak of time has the same
value in the MDP of jumps (`untimed`): reachability, and expected rewards, where a Markovian state earns its
reward per unit of time for 1/exit on average. The reward structure "time" there earns that duration itself,
so that expected times are expected rewards. Probabilities and rewards of the MDP are the float64 nearest to
the exact values.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.model.door import double
from tightrope.model.mdp import MDP
from tightrope.model.rewards import RewardStructure
from tightrope.model.structure import Structure, Structured, frozen_array
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts
from tightrope.numerics.remember import remember

TIME = "time"
"""The reward structure that earns the duration of every visit."""


@dataclass(frozen=True, eq=False, repr=False)
class MarkovAutomaton(Structured):
    """`exit_rate[s]` is 0 where choices are immediate; state rewards are earned per unit of time.

    >>> import numpy as np
    >>> import tightrope as tr
    >>> rows = [(0, "a", {1: 1}), (0, "b", {0: 0.5, 1: 0.5}), (1, "", {1: 1})]
    >>> mdp = tr.build_from_rows(rows).instantiate()
    >>> automaton = tr.MarkovAutomaton(mdp.structure, mdp.probability, np.array([0.0, 4.0]))
    >>> automaton.untimed.rewards["time"].choice.tolist()
    [0.0, 0.0, 0.25]
    """

    structure: Structure
    probability: FloatArray
    exit_rate: FloatArray

    def __post_init__(self) -> None:
        for name in ("probability", "exit_rate"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64))
        if self.exit_rate.shape != (self.states,):
            raise InputError(f"{len(self.exit_rate)} exit rates for {self.states} states")
        wrong = np.flatnonzero(~((self.exit_rate >= 0) & np.isfinite(self.exit_rate)))
        if len(wrong):
            state, rate = self.structure.state_name(int(wrong[0])), self.exit_rate[wrong[0]]
            raise InputError(f"the exit rate of state {state} is {rate:g}, not a number of at least 0")
        several = np.flatnonzero((self.exit_rate > 0) & (np.diff(self.structure.choice_start) > 1))
        if len(several):
            raise InputError(
                f"state {self.structure.state_name(int(several[0]))} waits, and has several choices: they "
                "are immediate, so that it cannot wait",
                hint="give it the exit rate 0, and leave out its Markovian transitions",
            )

    @property
    def is_markovian(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which states wait."""
        return self.exit_rate > 0

    def _facts_(self) -> Facts:
        waiting = int(np.count_nonzero(self.exit_rate))
        return [("waiting", f"{waiting:,} of {self.states:,} states"), *self.structure._facts_()]

    @cached_property
    def untimed(self) -> MDP:
        """The MDP of jumps, with rewards per visit and the durations of visits as "time"."""
        structure = self.structure
        duration = [1 / Fraction(rate) if rate else Fraction(0) for rate in self.exit_rate.tolist()]
        rewards = {
            name: RewardStructure(choice=self._per_visit(reward, duration))
            for name, reward in structure.rewards.items()
        }
        spent = np.array([double(each) for each in duration])[structure.choice_state]
        rewards.setdefault(TIME, RewardStructure(choice=spent))
        return MDP(replace(structure, rewards=rewards), self.probability)

    def _per_visit(self, reward: RewardStructure, duration: list[Fraction]) -> FloatArray:
        choices = self.structure.choices
        per_time = np.zeros(self.states) if reward.state is None else reward.state
        at_once = np.zeros(choices) if reward.choice is None else reward.choice
        held = [Fraction(r) * d for r, d in zip(per_time.tolist(), duration, strict=True)]
        pairs = zip(self.structure.choice_state.tolist(), at_once.tolist(), strict=True)
        return np.array([double(held[state] + Fraction(gained)) for state, gained in pairs])

    @remember
    def hash(self) -> str:
        digest = hashlib.sha256(b"markov automaton")
        self.structure.hash_into(digest)
        digest.update(self.probability.tobytes() + self.exit_rate.tobytes())
        return digest.hexdigest()
