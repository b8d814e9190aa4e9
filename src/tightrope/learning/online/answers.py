"""Online learning about questions that are no single objective: uniform collection, answers at doublings.

Episodes take every choice with equal probability; after 1, 2, 4, … of them `learn` answers from all so far.
Event intervals are confidence sequences, so with probability at least 1 − δ all answers hold, and a run may
stop when its interval is narrow enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tightrope.data.collection import GrowingCounts
from tightrope.data.steps import ObservationMap
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.learning.online.exploration import Collecting, Exploration, GapTarget
from tightrope.learning.options import LearnKwargs
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import as_text
from tightrope.problem import Problem, require_discrete
from tightrope.statistics.estimates import IntervalMethod, check_delta

if TYPE_CHECKING:
    from tightrope.learning.learn import Learned


class EvenLearner:
    """`online` for questions that are not one objective: `learn` after 1, 2, 4, … episodes."""

    def __init__(self, problem: Problem, delta: float, words: LearnKwargs, how: Collecting):
        check_delta(delta)
        model = require_discrete(problem.model)
        if not isinstance(model, ParametricMDP):
            raise InputError("the model has no parameters: there is nothing to learn about it")
        self.problem, self.delta, self.model = problem, delta, model
        intervals: LearnKwargs = {"interval": IntervalMethod.BETA_BINOMIAL, "region": "polytope"}
        self.words: LearnKwargs = {**intervals, **words}
        self.target = None if how.until_gap is None else GapTarget.of(how.until_gap)
        self.data = GrowingCounts(self.model, by_choice=False)
        if how.data is not None:
            self.data.begin_with(how.data)
        self.last_result: Learned | None = None
        self._reader = ObservationMap(self.model.structure, states=how.states)
        self._due = max(1, 2 * self.episodes)

    def __repr__(self) -> str:
        known = "nothing yet" if self.last_result is None else self.last_result.headline()
        return as_text(
            f"EvenLearner: {self.problem.text}", [("data", f"{self.episodes:,} episodes"), ("known", known)]
        )

    @property
    def episodes(self) -> int:
        """How many episodes were observed."""
        return self.data.number

    def policy(self) -> Policy:
        """The policy to collect the next episode with: every choice of a state alike."""
        return Policy.uniform(self.model)

    def observe(self, episode: Sequence[object] | OffsetArray) -> Learned | None:
        """Count an episode, as `OnlineLearner.observe` takes it; the answer, where one was due."""
        self.data.add(self._reader.transitions(episode, f"episode {self.episodes}"))
        return self.update() if self.episodes >= self._due else None

    def update(self) -> Learned:
        """Answer from all episodes so far, whether or not that is due."""
        self._due = max(1, 2 * self.episodes)
        self.last_result = result = self.result()
        return result

    def result(self) -> Learned:
        """Everything `learn` says about the data so far."""
        counts = replace(self.data.counts(), log=self.data.log_of(self.model))
        return learn(self.problem, counts, delta=self.delta, **self.words)

    @property
    def is_reached(self) -> bool:
        """Whether the last answer's interval is as narrow as was asked for."""
        interval = getattr(self.last_result, "interval", None)
        return self.target is not None and interval is not None and self.target.is_reached(interval)


def refuse_uneven(text: str, how: Collecting) -> None:
    """Refuse what has no meaning where episodes are collected evenly."""
    explore = None if how.explore in ("uniform", Exploration.UNIFORM) else how.explore
    others = {"on_drift": how.on_drift, "baseline": how.baseline, "allow_loss": how.allow_loss or None}
    for name, value in {"explore": explore, **others}.items():
        if value is not None:
            raise InputError(
                f"`{name}` cannot be used with {text}, for which episodes are collected evenly",
                hint=f"leave `{name}` out",
            )
