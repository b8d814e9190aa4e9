"""`online`: begin to learn about a problem while its data are collected."""

from __future__ import annotations

from typing import Unpack

from tightrope.data.counts import Counts
from tightrope.data.state_form import StateForm
from tightrope.learning.online.drift_guard import OnDrift
from tightrope.learning.online.exploration import Exploration, Explore
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.options import LearnWords
from tightrope.learning.stages import Progress
from tightrope.problem import Problem


def online(
    problem: Problem,
    *,
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    states: StateForm | str | None = None,
    planned_episodes: int | None = None,
    explore: Explore | Exploration | str | None = None,
    until_gap: float | str | None = None,
    data: Counts | None = None,
    on_drift: OnDrift | str | None = None,
    **options: Unpack[LearnWords],
) -> OnlineLearner:
    """A learner for a problem whose data are collected while it learns; options are those of `learn`.

    `planned_episodes` is how many are meant to come, where that is known: a slab's bets are best there.
    `explore` says who collects: "designed" (the default with `until_gap`), "optimistic" (otherwise), "robust"
    or "uniform", or an `Explore` that says more (prices, what to avoid, the cap on an episode's length).
    With `until_gap` (a width, or "5%" of the value) updates say how wide the robust policy's interval is,
    and `is_reached` when that is enough. `data` are counts to begin with. `on_drift` ("warn", "stop" or
    "restart", or an `OnDrift` that says more) lets a monitor run along, and says what follows when the
    episodes contradict the model.

    >>> import tightrope as tr
    >>> learner = tr.online(tr.benchmark("betting(5)").problem, delta=0.01, sets="tied")
    >>> learner.episodes, learner.policy().is_deterministic
    (0, True)

    A learner that forgets what came before a change:

    >>> guarded = tr.online(tr.benchmark("betting(5)").problem, sets="tied", on_drift="restart")
    >>> guarded.guard.monitor.events, guarded.guard.restarts
    (0, 0)

    A temporal problem (`temporal_problem`) is learned about on the product with its automaton: episodes are
    those of the model, and `problem.controller(learner.policy())` says how to act in them, with its memory.
    """
    return OnlineLearner(
        problem,
        delta=delta,
        progress=progress,
        states=states,
        planned_episodes=planned_episodes,
        explore=explore,
        until_gap=until_gap,
        data=data,
        on_drift=on_drift,
        **options,
    )
