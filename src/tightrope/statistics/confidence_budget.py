"""The confidence budget: how δ is spent, on how many events, and under which sampling assumption.

Every result carries its confidence budget. If the data violate the assumption, `holds` is False and the
result is nominal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.io.coding import record_of
from tightrope.io.results import LedgerFacts
from tightrope.verdict import Assumed, AssumptionStatus


class Assumption(Enum):
    """What a method needs to know about the way its data were collected, from much to nothing.

    >>> [one.value for one in Assumption]
    ['fixed design', 'trajectories', 'adaptive and anytime', 'none']
    """

    FIXED_DESIGN = "fixed design"
    """The number of visits of every event was fixed in advance, or is independent of the outcomes."""

    TRAJECTORIES = "trajectories"
    """The amount of data (trajectories, rounds) was fixed in advance; the policy may have been adaptive."""

    ADAPTIVE_ANYTIME = "adaptive and anytime"
    """Nothing: policy, stopping and the moment of looking may depend on everything seen so far."""

    NONE = "none"
    """No assumption makes the statement true: kept for comparison with published figures only."""


_WORDS = {
    Assumption.FIXED_DESIGN: "the visits of each event were fixed in advance, independently of outcomes",
    Assumption.TRAJECTORIES: "the amount of data was fixed in advance; the policy may have been adaptive",
    Assumption.ADAPTIVE_ANYTIME: "the data may come from any policy and may stop at any time",
    Assumption.NONE: "none: the published proof has a gap, so nothing is guaranteed",
}


SAMPLING = "sampling"
"""How the data must have been collected for the method."""

COMPLETE = "complete data"
"""No outcome is missing from the data."""


@dataclass(frozen=True)
class ConfidenceBudget:
    """With probability at least 1 − delta the true parameters are covered, if all `assumptions` hold.

    `assumption` is what the method needs; the others are about the data, such as that no outcome is missing.
    What the user states of the data stands first. `of_costs` and `of_outcomes` are the parts of δ for
    observed costs and observed returns of episodes; the rest is for probabilities.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> result.ledger.delta, result.ledger.holds
    (0.01, True)
    """

    delta: float
    events: int
    gamma: float
    method: str
    budget: str
    assumption: Assumption
    assumptions: tuple[Assumed, ...] = ()
    notes: tuple[str, ...] = ()
    of_costs: float = 0.0
    of_outcomes: float = 0.0

    def with_outcomes(
        self, delta: float, of_outcomes: float, assumed: tuple[Assumed, ...], line: str
    ) -> ConfidenceBudget:
        """The ledger of this statement and of one about outcomes together, at `delta` in all."""
        known = tuple(dict.fromkeys((*self.assumptions, *assumed)))
        notes = (*self.notes, f"outcomes: {line}")
        return replace(self, delta=delta, of_outcomes=of_outcomes, assumptions=known, notes=notes)

    @property
    def holds(self) -> bool:
        """Whether the guarantee may rest on all that it assumes of the data."""
        return all(one.holds for one in self.assumptions)

    @property
    def censored(self) -> tuple[str, ...]:
        """What is missing from the data; where something is, nothing holds."""
        return tuple(one.why for one in self.assumptions if one.name == COMPLETE and not one.holds)

    @property
    def holds_at_all_times(self) -> bool:
        """Whether what was said at any moment holds together with all that was said before."""
        return self.holds and self.assumption is Assumption.ADAPTIVE_ANYTIME

    @property
    def lines(self) -> tuple[str, ...]:
        """The ledger in words, for reports."""
        share = f"δ = {self.delta:g}"
        if self.of_costs or self.of_outcomes:
            share = f"δ = {self.delta - self.of_costs - self.of_outcomes:g} of {self.delta:g}"
        if self.events > 1:
            share += f" shared by {self.events} events (budget '{self.budget}'): γ = {self.gamma:.3g} each"
        elif self.events == 1:
            share += f" for one statement (budget '{self.budget}')"
        head = [f"{self.method}: {share}", f"sampling: {_WORDS[self.assumption]}"]
        stated = [
            one for one in self.assumptions if one.kept is AssumptionStatus.STATED and one.name != SAMPLING
        ]
        head += [f"stated, {one.name}: {one.why}" for one in stated]
        if self.censored:
            head.append(f"outcomes are missing from the data: {'; '.join(self.censored)}")
            head.append("missing outcomes may depend on their values: the confidence level is nominal")
        broken = [one for one in self.assumptions if not one.holds and one.name != COMPLETE]
        for one in broken:
            if one.name != SAMPLING:
                head.append(f"{one.name}: {one.why}: the confidence level is nominal")
            elif self.assumption is not Assumption.NONE and not self.censored:
                head.append("the data were collected in another way: the confidence level is nominal")
        return (*head, *self.notes)

    def record(self) -> LedgerFacts:
        """What is written of it."""
        return record_of(LedgerFacts, self, outcomes=self.of_outcomes)


def assumed_of(
    assumption: Assumption, design: SamplingDesign, tied: bool, ordered: bool = False
) -> tuple[Assumed, ...]:
    """The assumptions of a method's statement about data of this design. `tied` events pool several choices;
    `ordered` methods predict later data from earlier ones, the others use counts alone.

    Fixed-design intervals also hold for trajectories that meet an event at most once each: whether a
    trajectory meets it is decided before its outcome is drawn, so given the number of visits the outcomes are
    independent draws. Where outcomes are missing, nothing holds: they may be missing because of their values.
    """
    words = _WORDS[assumption]
    if assumption is Assumption.ADAPTIVE_ANYTIME:
        sampled = Assumed.derived(SAMPLING, words)
    elif assumption is Assumption.NONE:
        sampled = Assumed.violated(SAMPLING, words)
    else:
        holds = design.kind is not SamplingKind.ADAPTIVE
        if assumption is Assumption.FIXED_DESIGN:
            holds = design.fixed_visits(tied)
        why = f"the method requires that {words}; the stated design is {design.kind.value}"
        sampled = Assumed(SAMPLING, AssumptionStatus.STATED if holds else AssumptionStatus.NO, why)
    missing = [Assumed.violated(COMPLETE, reason) for reason in design.censored]
    log = [design.ends, *([design.order] if ordered else []), *design.chosen]
    stated = [one for one in log if one.kept is AssumptionStatus.STATED]
    return (*stated, sampled, *(one for one in log if one not in stated), *missing)
