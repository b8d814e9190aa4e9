"""How the data were collected: what a statistical guarantee may assume about the counts.

Given the history, an outcome is a draw from the visited choice's distribution, but the number of visits may
depend on earlier outcomes. Intervals for a fixed number of visits (Clopper–Pearson, Hoeffding) are valid

* under `GENERATIVE_FIXED`: every choice was sampled a number of times fixed in advance;
* under `TRAJECTORIES` only for events met at most once in a trajectory, since visits are then independent of
  outcomes;
* never under `ADAPTIVE`, the weakest assumption and the default of files: policy or stopping may depend on
  outcomes.

Time-uniform methods are valid under all three. Two assumptions belong to every design (`tightrope.verdict`):

* *ends of episodes*: an episode ended, or was cut by a rule that uses no later outcomes. If failed rows or
  the last sojourns are lost, no method is valid.
* *order in time*: earlier counts do not depend on later ones. Only methods that predict batches from earlier
  ones (likelihood, slab, watching) need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import numpy as np

from tightrope.errors import InputError
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.late import csgraph, sparse
from tightrope.verdict import Assumed, AssumptionStatus


class SamplingKind(Enum):
    """The three designs, from the strongest assumption to the weakest.

    >>> [one.value for one in SamplingKind]
    ['generative-fixed', 'trajectories', 'adaptive']
    """

    GENERATIVE_FIXED = "generative-fixed"
    TRAJECTORIES = "trajectories"
    ADAPTIVE = "adaptive"


OPEN_END = "the last action of a log has no outcome in it"

ORDER, ENDS = "order in time", "ends of episodes"
"""The names of what is assumed of the data themselves."""

KNOWN_ORDER = Assumed.derived(ORDER, "the data were counted in the order of time")
KNOWN_ENDS = Assumed.derived(ENDS, "every episode was observed to its end")
_UNSAID = {
    "order": Assumed.unverified(ORDER, "the file does not record the order of its data"),
    "ends": Assumed.unverified(ENDS, "the file does not record how its episodes ended"),
}
_DOUBT = (AssumptionStatus.YES, AssumptionStatus.STATED, AssumptionStatus.UNKNOWN, AssumptionStatus.NO)


def worse(one: Assumed, other: Assumed) -> Assumed:
    """What is left of an assumption that has to hold of two data sets."""
    return max(one, other, key=lambda assumed: _DOUBT.index(assumed.kept))


@dataclass(frozen=True)
class SamplingDesign:
    """The kind of sampling, and what is known about its episodes.

    * `episodes`: their number; None for generative models and tables of counts.
    * `repeats`: an episode can visit a choice repeatedly. Tied events can repeat even if choices cannot.
    * `planned`: the number of episodes fixed in advance; `late_plan`: it was fixed after some data, so
      unusable.
    * `bet_on`: digests of the policies that a slab was to bet on, fixed before the data.
    * `anytime`: interim analyses are made, so the plan is one amount of data among others.
    * `planned_from`: the digest of the data that the sampling was planned from; adaptive together with these.
    * `censored`: which data are missing, in words. Their absence may depend on outcomes, so results are
      nominal.
    * `open_end`: the outcome of the last visit is missing. Time-uniform methods stay valid; for fixed visits,
      or if more data follow, it counts as censored.
    * `by_episodes`: batches end after numbers of episodes; otherwise of rows, and no plan of episodes
      applies.
    * `order`, `ends`: the assumptions, and their source. `followed`: the policy of all episodes, if known.
    * `chosen`: whether model and priors were chosen without these data (`tightrope.provenance`); not written.

    >>> SamplingDesign(SamplingKind.TRAJECTORIES, episodes=10, steps=50).kind.value
    'trajectories'
    """

    kind: SamplingKind
    episodes: int | None = None
    steps: int = 0
    repeats: bool = True
    planned: int | None = None
    censored: tuple[str, ...] = ()
    open_end: bool = False
    late_plan: bool = False
    bet_on: tuple[str, ...] = ()
    anytime: bool = False
    planned_from: str | None = None
    by_episodes: bool = True
    order: Assumed = KNOWN_ORDER
    ends: Assumed = KNOWN_ENDS
    followed: str | None = None
    chosen: tuple[Assumed, ...] = ()

    def __post_init__(self) -> None:
        if self.open_end and self.kind is not SamplingKind.ADAPTIVE and OPEN_END not in self.censored:
            object.__setattr__(self, "censored", (*self.censored, OPEN_END))
        if not all(0 <= number < 1 << 62 for number in (self.steps, self.episodes or 0, self.planned or 0)):
            raise ValueError(f"episodes and steps must not be negative, got {self.episodes} and {self.steps}")

    def fixed_visits(self, tied: bool) -> bool:
        """Whether fixed-design intervals hold: for events of one choice each, or `tied` over choices."""
        if self.anytime:
            return False
        if self.kind is SamplingKind.GENERATIVE_FIXED:
            return True
        return self.kind is SamplingKind.TRAJECTORIES and not self.repeats and not tied

    def merged(self, later: SamplingDesign) -> SamplingDesign:
        """The design of both data sets together: the weaker assumption of the two.

        Which data sets are put together must not depend on their outcomes; where it does, say `ADAPTIVE`.
        """
        kind = max(self.kind, later.kind, key=list(SamplingKind).index)
        if self.planned_from is not None or later.planned_from is not None:
            kind = SamplingKind.ADAPTIVE
        known = self.episodes is not None and later.episodes is not None
        episodes = (self.episodes or 0) + (later.episodes or 0) if known else None
        planned = self.planned is not None and later.planned is not None and kind is not SamplingKind.ADAPTIVE
        return SamplingDesign(
            kind,
            episodes,
            self.steps + later.steps,
            self.repeats or later.repeats,
            (self.planned or 0) + (later.planned or 0) if planned else None,
            tuple(dict.fromkeys([*self.censored, *([OPEN_END] if self.open_end else []), *later.censored])),
            later.open_end,
            self.late_plan or later.late_plan,
            tuple(policy for policy in self.bet_on if policy in later.bet_on),
            self.anytime or later.anytime,
            by_episodes=self.by_episodes and later.by_episodes,
            order=worse(self.order, later.order),
            ends=worse(self.ends, later.ends),
            followed=self.followed if self.followed == later.followed else None,
            chosen=tuple(dict.fromkeys((*self.chosen, *later.chosen))),
        )

    def to_json(self) -> dict[str, object]:
        """The fields that say something, for files."""
        plain, always = SamplingDesign(self.kind), ("kind", "episodes", "steps", "repeats")
        fields = {k: v for k, v in vars(self).items() if k in always or v != getattr(plain, k)}
        fields |= {k: {"kept": getattr(self, k).kept, "why": getattr(self, k).why} for k in _UNSAID}
        fields.pop("chosen", None)
        written: dict[str, object] = msgspec.to_builtins(fields)
        return written

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> SamplingDesign:
        """Read what `to_json` wrote; anything else is an `InputError`."""
        try:
            known = {k: v for k, v in fields.items() if k != "chosen"}
            if not {"steps", "repeats"} <= known.keys():
                raise TypeError
            for name, unsaid in _UNSAID.items():
                stated = fields.get(name)
                known[name] = unsaid.to_json() if stated is None else {**stated, "name": unsaid.name}
            return msgspec.convert(known, SamplingDesign)
        except (msgspec.ValidationError, TypeError):
            kinds = ", ".join(kind.value for kind in SamplingKind)
            raise InputError(
                f"the sampling design in the metadata is not one of ours: {dict(fields)}",
                hint=f"'kind' is one of {kinds}; 'episodes' and 'steps' are whole numbers",
            ) from None


def absorbing_states(structure: Structure) -> BoolArray:
    """States all of whose choices lead back to them, or elsewhere: nothing was ever seen to leave them."""
    leaves = structure.successor != structure.choice_state[structure.transition_choice]
    if structure.elsewhere is not None:
        leaves &= ~(structure.elsewhere[0] | structure.elsewhere[1])[structure.successor]
    result: BoolArray = np.ones(structure.states, dtype=np.bool_)
    result[structure.choice_state[structure.transition_choice[leaves]]] = False
    return result


def find_decided_states(objective: Objective, states: int) -> BoolArray:
    """States in which nothing that follows changes the objective's value.

    With a lower step bound reaching the target early decides nothing, but leaving the allowed
    states always does.
    """
    decided: BoolArray = np.zeros(states, dtype=np.bool_)
    if objective.kind is ObjectiveKind.UNTIL:
        if objective.allowed is not None:
            decided |= ~objective.allowed
        if objective.target is not None and objective.lower_steps == 0:
            decided |= objective.target
    elif objective.kind is ObjectiveKind.REACH_REWARD and objective.target is not None:
        decided |= objective.target
    return decided


def deciding_steps(objective: Objective) -> int | None:
    """The number of steps after which the objective is decided in any case, if there is one."""
    return 1 if objective.kind is ObjectiveKind.NEXT else objective.upper_steps


def can_repeat_choice(structure: Structure, stop: BoolArray, cap: int) -> bool:
    """Whether an episode can take the same choice twice: a cycle through states that do not stop it.

    Looks at the structure only, so it may say yes where a probability of 0 forbids it.
    """
    if cap <= 1:
        return False
    source = structure.choice_state[structure.transition_choice]
    edges = _edges(structure, ~stop[source] & ~stop[structure.successor])
    if edges is None:
        return True
    components, _ = csgraph.connected_components(edges, directed=True, connection="strong")
    return bool(components < structure.states)


def has_levels(structure: Structure) -> bool:
    """Whether every step leads from one level of the model to the next, as where a variable counts steps.

    Then two states that a step leads between are that far apart on every way. States that nothing leaves end
    an episode, and their steps do not count.
    """
    leaves = ~absorbing_states(structure)
    edges = _edges(structure, leaves[structure.choice_state[structure.transition_choice]])
    if edges is None:
        return False
    level = csgraph.dijkstra(edges, indices=structure.initial, unweighted=True)
    source, target = edges.nonzero()
    seen = np.isfinite(level[source])
    return bool(np.all(level[target[seen]] == level[source[seen]] + 1))


def _edges(structure: Structure, mask: BoolArray) -> Any:
    """Which state leads to which by some transitions; None where one leads to itself."""
    source = structure.choice_state[structure.transition_choice][mask]
    target, shape = structure.successor[mask], (structure.states, structure.states)
    if np.any(source == target):
        return None
    return sparse.csr_array((np.ones(len(source), dtype=np.bool_), (source, target)), shape=shape)
