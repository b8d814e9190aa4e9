"""A certificate: a problem, a claim about its value, and all that is needed to check the claim.

Plain arrays in one compressed file (NumPy's npz, no pickles) with a JSON header. The problem is
written out in full: the graph, the sets nature picks from, rewards, target states, who maximises.
The claim is a lower and an upper bound for every state before `complement`, the policy that attains
the agent's side of them, and a ranking where the two inequalities alone would prove nothing. What
is checked, and why it suffices, stands in `tightrope.certificate.checker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.certificate.archive import DAMAGE, Archive, split
from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray

KIND = "value"

SETS = ("plain", "point", "interval")
"""plain: doubles, each the nearest to the probability meant. point: exact expressions at a rational
point. interval: a lower and an upper bound a transition."""

POLICIES = ("free", "fixed", "randomised")
"""free: the agent chose `policy`. fixed: it was given. randomised: `weight` was given."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is claimed about: a graph, sets, an objective. Arrays as in the model and the objective."""

    kind: str
    agent: str
    nature: str
    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    initial: int
    sets: str
    lower_steps: int = 0
    upper_steps: int | None = None
    discount: float | None = None
    complement: bool = False
    probability: FloatArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    expression: IndexArray | None = None
    expressions: Mapping[str, Any] | None = None
    """For `point`: {"parameters", "theta", "monomials", "rows"}, exact, numbers as text."""
    reward: FloatArray | None = None
    target: BoolArray | None = None
    allowed: BoolArray | None = None
    terminal: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Claim:
    """Bounds of the problem's value before `complement`, with their witnesses.

    For `F>=k` (a lower step bound without an upper one) policy and ranking belong to the problem that is
    left after k steps, whose bounds are the `tail`.
    """

    lower: FloatArray
    upper: FloatArray
    policy_kind: str = "free"
    policy: OffsetArray | None = None
    weight: FloatArray | None = None
    ranking: OffsetArray | None = None
    tail_lower: FloatArray | None = None
    tail_upper: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Certificate:
    """`about` names the model and the question, its hash, versions; nothing in it is relied on."""

    problem: Problem
    claim: Claim
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> tuple[float, float]:
        """The certified interval of the initial state, as the question asks for it."""
        low = float(self.claim.lower[self.problem.initial])
        high = float(self.claim.upper[self.problem.initial])
        if not self.problem.complement:
            return low, high
        return float(np.nextafter(1 - high, -np.inf)), float(np.nextafter(1 - low, np.inf))

    def digest(self) -> str:
        """SHA-256 over everything the claim speaks of; written into the file, and its short name."""
        return self._archive().digest()

    def save(self, path: str | Path) -> str:
        """Write the file, and return its digest."""
        return self._archive().save(path)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read and check the shape of the file; what it claims is the checker's business."""
        return cls.of_archive(Archive.load(path), path)

    @classmethod
    def of_archive(cls, archive: Archive, path: str | Path) -> Certificate:
        try:
            if archive.kind != KIND:
                raise ValueError(archive.kind)
            return cls(Problem(**archive.part("problem")), Claim(**archive.part("claim")), archive.about)
        except DAMAGE as error:
            raise InputError("this is not a certificate of values", Location(str(path))) from error

    def _archive(self) -> Archive:
        header, arrays = split({"problem": self.problem, "claim": self.claim})
        return Archive(KIND, header, arrays, self.about)
