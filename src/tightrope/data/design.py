"""How the data were collected: what a statistical guarantee may assume about the counts.

Given the history, the outcome of a visit is a draw from the visited choice's distribution, but how
often a choice is visited may depend on earlier outcomes. Intervals for a fixed number of visits
(Clopper–Pearson, Hoeffding) are valid

* under `GENERATIVE_FIXED`: every choice was sampled a number of times fixed in advance;
* under `TRAJECTORIES` only for events met at most once in a trajectory: then the visits to the event are
  independent of its outcomes;
* never under `ADAPTIVE`, where the policy or the moment of stopping may depend on outcomes: the weakest
  assumption, and that of a file that does not say how it came about.

Time-uniform methods (the beta-binomial sequence, the likelihood region) are valid under all three. Two
assumptions travel with every design (`tightrope.verdict`):

* *ends of episodes*: where an episode stops in the data it was over, or was cut by a rule that does not look
  at what came next. Where the row that failed is lost, or the last sojourn, no method holds.
* *order in time*: what is counted earlier did not depend on what is counted later. Methods whose statement
  follows from the counts alone (intervals, balls, the ellipsoid) do not need it; those that predict a batch
  from the batches before it (likelihood, slab, watching) do.

A simulated episode ends as soon as the objective is decided, in an absorbing state, or at a cap on its
length: that depends on the state alone, so what was seen before remains a run of the true model.
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
from tightrope.numerics.arrays import BoolArray, OffsetArray
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
    """The kind of sampling with what is known about its episodes.

    `episodes` is None where the data do not come in episodes (a generative model, a table of counts).
    `repeats` says whether an episode can meet the same choice more than once; a tied event, which pools
    several choices, can be met more than once even where no choice is. `planned` is the number of episodes
    that were planned before the first one, where that is known; `late_plan` says that the plan was made when
    some of the data had been seen, and may not be built on. `bet_on` are digests of the policies that a slab
    was to bet on (`tightrope.model.policy`), where that was settled before the data came. `anytime`
    says that the data are looked at while they come (`tightrope.learning.online`): then the plan is one
    amount of data among others, and nothing is left to its first part alone. `planned_from` is the digest of
    the data by which it was decided what to sample, or of the policy that came out: on their own these data
    are what `kind` says, together with others (those they were planned from among them) they are adaptive.

    `censored` says in words what is missing from the data: rows that were dropped, steps that were never
    logged, outcomes that nobody recorded. Whether something is missing may depend on how it came out, so no
    method's statement holds for what is left: the confidence is nominal.

    `open_end` says that the outcome of the very last visit is missing. What is there then is all that came
    before some moment, and time-uniform methods hold at all moments at once, even at one that the missing
    outcome chose. It is censored like any other where visits are said to be fixed in advance, and where
    more data follow.

    `by_episodes` says that batches end after numbers of episodes: where it is False they end after numbers of
    rows, and a plan of episodes says nothing about them. `order` and `ends` are what is assumed of the data
    themselves, and how that is known. `followed` names the policy that all episodes followed, where the data
    say it: "uniform", or a policy's digest. `chosen` says of the model and of priors whether they were chosen
    without these data (`tightrope.provenance`); it is found out where they meet, and not written.

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

    def to_json(self) -> dict[str, Any]:
        """The fields that say something, for files."""
        plain, always = SamplingDesign(self.kind), ("kind", "episodes", "steps", "repeats")
        fields = {k: v for k, v in vars(self).items() if k in always or v != getattr(plain, k)}
        fields |= {k: {"kept": getattr(self, k).kept, "why": getattr(self, k).why} for k in _UNSAID}
        fields.pop("chosen", None)
        written: dict[str, Any] = msgspec.to_builtins(fields)
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
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    source = structure.choice_state[structure.transition_choice]
    inside = ~stop[source] & ~stop[structure.successor]
    source, target = source[inside], structure.successor[inside]
    if np.any(source == target):
        return True
    edges = csr_array(
        (np.ones(len(source), dtype=np.bool_), (source, target)), shape=(structure.states, structure.states)
    )
    components, _ = connected_components(edges, directed=True, connection="strong")
    return bool(components < structure.states)


def has_levels(structure: Structure) -> bool:
    """Whether every step leads from one level of the model to the next, as where a variable counts steps.

    Then two states that a step leads between are that far apart on every way. States that nothing leaves end
    an episode, and their steps do not count.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    source = structure.choice_state[structure.transition_choice]
    inside = ~absorbing_states(structure)[source]
    source, target = source[inside], structure.successor[inside]
    if np.any(source == target):
        return False
    edges = csr_array(
        (np.ones(len(source), dtype=np.bool_), (source, target)), shape=(structure.states, structure.states)
    )
    order, before = breadth_first_order(edges, structure.initial, directed=True)
    level: OffsetArray = np.full(structure.states, -1, dtype=np.int64)
    level[structure.initial] = 0
    for state in order[1:].tolist():
        level[state] = level[before[state]] + 1
    seen = level[source] >= 0
    return bool(np.all(level[target[seen]] == level[source[seen]] + 1))
