"""One update of an online learner: what is guaranteed after so many episodes, and by which policy."""

from __future__ import annotations

from dataclasses import dataclass, field

from tightrope.formats.policy import Policy
from tightrope.learning.result import Interval
from tightrope.numerics.record import Record

CERTIFIED = "certified"


@dataclass(frozen=True, eq=False, repr=False)
class Update(Record):
    """After `episode` episodes of `steps` steps altogether.

    * `guarantee`: what the robust policy attains at least (at most, where the agent minimises), with the
      ledger's confidence; for time-uniform methods that of all updates together.
    * `optimistic`: what no policy can exceed, with the same confidence.
    * `sampling_policy`: the optimistic policy, which collects the episodes that follow;
      `robust_policy` is the one that is guaranteed.
    * `status`: `certified`, or why a solve did not come as close as was asked; the bounds hold all the same.
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
    sampling_policy: Policy
    status: str
    fallback: bool
    seconds: float = field(compare=False)

    @property
    def width(self) -> float:
        """How far the guarantee is at most from the best that any policy can do."""
        return 0.0 if self.optimistic == self.guarantee else abs(self.optimistic - self.guarantee)

    def is_kept(self, performance: Interval, maximises: bool) -> bool:
        """Whether the guarantee holds in a model in which bounds of the robust policy's value are known."""
        if maximises:
            return self.guarantee <= performance.upper
        return performance.lower <= self.guarantee

    def to_json(self) -> dict[str, object]:
        """The keys of a line of `tightrope online --json` that the learner itself knows."""
        return {
            "update": self.number,
            "episode": self.episode,
            "steps": self.steps,
            "guarantee": self.guarantee,
            "optimistic": self.optimistic,
            "width": self.width,
            "status": self.status,
            "fallback": self.fallback,
            "seconds": round(self.seconds, 6),
        }
