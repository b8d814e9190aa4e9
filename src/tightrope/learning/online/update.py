"""One update of an online learner: what is guaranteed after so many episodes, and by which policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.learning.result import Interval
from tightrope.model.policy import Policy
from tightrope.model.structure import Structure
from tightrope.numerics.record import Record


@dataclass(frozen=True, eq=False, repr=False)
class Update(Record):
    """After `episode` episodes of `steps` steps altogether.

    * `guarantee`: what the robust policy attains at least (at most, where the agent minimises), with the
      ledger's confidence; for time-uniform methods that of all updates together.
    * `optimistic`: what no policy can exceed, with the same confidence.
    * `sampling_policy` collects the episodes that follow (`tightrope.learning.online.exploration`);
      `robust_policy` is the one that is guaranteed, `optimistic_policy` the one that is best if nature is
      kind.
    * `interval`: the robust policy's certified interval, where a gap was asked for; the guarantee is one end.
    * `status`: as close as was asked, or why a solve did not come there; the bounds hold all the same.
    * `fallback`: the region was empty and tied sets were used instead.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> update = tr.online(model.problem('Pmax=? [ F "heads" ]'), sets="tied").update()
    >>> update.episode, update.guarantee, update.optimistic
    (0, 0.0, 1.0)
    """

    number: int
    episode: int
    steps: int
    guarantee: float
    optimistic: float
    robust_policy: Policy
    optimistic_policy: Policy
    sampling_policy: Policy
    status: str
    fallback: bool
    seconds: float = field(compare=False)
    interval: Interval | None = None

    @property
    def gap(self) -> float | None:
        """The width of the robust policy's interval, where it was computed."""
        return None if self.interval is None else self.interval.width

    @property
    def width(self) -> float:
        """How far the guarantee is at most from the best that any policy can do."""
        return 0.0 if self.optimistic == self.guarantee else abs(self.optimistic - self.guarantee)

    @property
    def _sampling(self) -> npt.NDArray[Any]:
        """The sampling policy as choices, or as probabilities where it is random."""
        policy = self.sampling_policy
        return policy.choice if policy.is_deterministic else policy.probability

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All of it as arrays."""
        return {
            "robust_policy": self.robust_policy.choice,
            "optimistic_policy": self.optimistic_policy.choice,
            "sampling_policy": self._sampling,
            "interval": np.array([] if self.interval is None else list(self.interval)),
            "numbers": np.array([self.number, self.episode, self.steps, self.fallback]),
            "bounds": np.array([self.guarantee, self.optimistic, self.seconds]),
            "status": np.frombuffer(self.status.encode(), dtype=np.uint8),
        }

    @staticmethod
    def restored(structure: Structure, state: Mapping[str, npt.NDArray[Any]]) -> Update:
        """What `state` was taken of."""
        number, episode, steps, fallback = state["numbers"].tolist()
        guarantee, optimistic, seconds = state["bounds"].tolist()
        taken = state["sampling_policy"]
        by_choices = taken.dtype != np.float64
        return Update(
            number=number,
            episode=episode,
            steps=steps,
            guarantee=guarantee,
            optimistic=optimistic,
            robust_policy=Policy.of_choices(structure, state["robust_policy"]),
            optimistic_policy=Policy.of_choices(structure, state["optimistic_policy"]),
            sampling_policy=Policy.of_choices(structure, taken) if by_choices else Policy(structure, taken),
            status=bytes(state["status"]).decode(),
            fallback=bool(fallback),
            seconds=seconds,
            interval=Interval(*state["interval"].tolist()) if len(state["interval"]) else None,
        )

    def is_kept(self, performance: Interval, maximises: bool) -> bool:
        """Whether the guarantee holds in a model in which bounds of the robust policy's value are known."""
        if maximises:
            return self.guarantee <= performance.upper
        return performance.lower <= self.guarantee

    def to_json(self) -> dict[str, object]:
        """The keys of a line of `tightrope online --json` that the learner itself knows."""
        gap = {} if self.gap is None else {"gap": self.gap}
        return {
            "update": self.number,
            "episode": self.episode,
            "steps": self.steps,
            "guarantee": self.guarantee,
            "optimistic": self.optimistic,
            "width": self.width,
            **gap,
            "status": self.status,
            "fallback": self.fallback,
            "seconds": round(self.seconds, 6),
        }
