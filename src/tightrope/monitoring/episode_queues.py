"""Episodes of a policy that nobody followed, put together from the steps of a log.

Every distribution of a model has a queue of the outcomes that the log saw of it, in the order of the log.
An episode of the policy takes, at each choice that it meets, the next outcome of that choice's queue, and no
outcome is taken twice (the queue-based evaluator of Mandel, Liu, Brunskill and Popović 2016). When a queue is
empty all is over: the episode that needs it and all later ones do not count.

*Why the episodes are draws of the policy.* Let rows be in an order in which the outcome of each, given all
before it and its choice, has the law of that choice. Let X_{c,i} be the outcome of the i-th row of queue c;
where the log ends before, let it be a further draw. Whatever rule picked the choices, the X_{c,i} are
independent with the laws of their queues: by induction over rows, since the next one to be read from queue c
is independent of all that was read (optional skipping). Reading these queues in another order, where the next
one to read follows from what was read before and from coins of one's own, is again such a rule. So episodes
read one after the other are independent draws of the policy under the true probabilities, whoever collected
the log and however it came to its end.

*Why their number may depend on what was seen.* With queues that never end the sequence of episodes does not
depend on the log's length. A log shows a first part of it, of a length M that depends on outcomes. Statements
that hold for all numbers of episodes together (`tightrope.statistics.returns` without a plan) hold at M.
Going on with other episodes after one that lacks an outcome would not do: which ones these are depends on the
length of the log.

Where only counts are known and the numbers of visits were fixed beforehand, outcomes of a queue are equally
likely in every order, and one is drawn (with a fixed seed). Episodes are cut after a number of steps that is
known beforehand; what they could still bring is between the bounds of the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.episode_scores import Episodes, PathRules
from tightrope.numerics.arrays import FloatArray, OffsetArray

MOST_STEPS = 10_000
"""An episode is cut after so many."""

_NEGLIGIBLE = 1e-4
"""A discounted one where what is left counts by so much."""


@dataclass(frozen=True, eq=False)
class Queues:
    """Outcomes by distribution: those of queue q are slot[start[q]:start[q + 1]], as places among the
    transitions of a choice; `of_choice` is the queue of every choice of the base. Distributions of numbers
    alone need no data: `known` are theirs, and coins of one's own decide."""

    of_choice: OffsetArray
    start: OffsetArray
    slot: OffsetArray
    known: dict[int, list[float]]

    @staticmethod
    def of(model: ParametricMDP, counts: Counts) -> Queues | None:
        """Those of some data; None where neither rows nor numbers fixed beforehand are known."""
        row, structure = None, model.structure
        if counts.log is not None:
            row = counts.log().transition.astype(np.int64)
        elif counts.design.kind is SamplingKind.GENERATIVE_FIXED:
            row = np.repeat(np.arange(structure.transitions), counts.transition)
            row = np.random.default_rng(0).permutation(row)
        if row is None:
            return None
        choice = structure.transition_choice[row]
        of_choice = model.signatures.of_choice.astype(np.int64)
        owner, place = of_choice[choice], row - structure.transition_start[choice]
        order = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[order], np.arange(len(model.signatures) + 1))
        constant = model.expressions.is_constant[model.signatures.expression]
        first = model.signatures.start[:-1]
        known = {}
        for q in np.flatnonzero(np.logical_and.reduceat(constant, first)).tolist():
            own = model.signatures.expression[model.signatures.start[q] : model.signatures.start[q + 1]]
            known[q] = [float(model.expressions.polynomial(e).constant_term) for e in own.tolist()]
        return Queues(of_choice, start.astype(np.int64), place[order].astype(np.int64), known)

    def episodes(self, rules: PathRules, policy: FloatArray, base_choice: OffsetArray) -> Episodes:
        """All whole episodes of a policy (probabilities of choices) on the structure of the rules, whose
        choices are copies of those of the base."""
        structure, random = rules.structure, np.random.default_rng(0)
        first_choice = structure.choice_start.tolist()
        first_transition = structure.transition_start.tolist()
        successor, queue = structure.successor.tolist(), self.of_choice[base_choice].tolist()
        slot, next_one, end = self.slot.tolist(), self.start[:-1].tolist(), self.start[1:].tolist()
        width = np.diff(structure.transition_start).tolist()
        options = [
            [(c, p) for c, p in zip(range(a, b), policy[a:b].tolist(), strict=True) if p > 0.0]
            for a, b in pairwise(first_choice)
        ]
        goes_on = [np.isnan(rules.early).tolist(), np.isnan(rules.decided).tolist()]
        known = {q: list(enumerate(chances)) for q, chances in self.known.items()}
        last = min(rules.last, MOST_STEPS)
        if rules.discount < 1.0:
            last = min(last, math.ceil(math.log(_NEGLIGIBLE) / math.log(rules.discount)))
        rows: list[int] = []
        starts: list[int] = []
        steps: list[int] = []
        most = int(self.start[-1])
        while len(starts) < most:
            state, step, begin = structure.initial, 0, len(rows)
            while step < last and (step == 0 or goes_on[step >= rules.first][state]):
                possible = options[state]
                choice = possible[0][0] if len(possible) == 1 else _draw(possible, random.random())
                place = 0
                if width[choice] > 1:
                    q = queue[choice]
                    if q in known:
                        place = _draw(known[q], random.random())
                    elif next_one[q] < end[q]:
                        place = slot[next_one[q]]
                        next_one[q] += 1
                    else:
                        return _made(rows[:begin], starts, steps[:begin])
                row = first_transition[choice] + place
                rows.append(row)
                steps.append(step)
                state, step = successor[row], step + 1
            starts.append(begin)
        return _made(rows, starts, steps)


def _draw(possible: list[tuple[int, float]], coin: float) -> int:
    for choice, probability in possible:
        coin -= probability
        if coin < 0.0:
            return choice
    return possible[-1][0]


def _made(rows: list[int], starts: list[int], steps: list[int]) -> Episodes:
    row, start, step = (np.array(one, dtype=np.int64) for one in (rows, starts, steps))
    return Episodes(row, start, step, 0)
