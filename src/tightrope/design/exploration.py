"""Designed exploration of an online run, with a certified probability of bad episodes.

The design is repeated whenever episodes have grown by half; it depends on data and the last policies alone.
An episode *ends badly* if it meets a state to avoid. The policy is evaluated over the region's expression
sets, nature against it: a verified bound at no additional δ. While it exceeds the limit, a smaller bound at
the estimate is tried, then mixtures with the safest policy, then that policy; else exploration is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack, cast

import numpy as np

from tightrope.ambiguity.sets import Sets
from tightrope.data.columns import StateForm
from tightrope.data.counts import Counts
from tightrope.data.design import find_decided_states
from tightrope.design import oracle as oracles
from tightrope.design.design import FEWEST, Design, Question, Stage
from tightrope.design.directions import Directions
from tightrope.design.episodes import stationary
from tightrope.design.oracle import careful
from tightrope.errors import CannotCertify, InputError, check_keywords, choose
from tightrope.learning.learn import plain_problem
from tightrope.learning.online.exploration import Collecting, Exploration, OnDrift, default_exploration
from tightrope.learning.online.learner import ITERATIONS as ITERATIONS_ONLINE
from tightrope.learning.online.learner import EvenLearner, OnlineLearner, refuse_uneven
from tightrope.learning.options import DEFAULTS, LearnKwargs, LearnOptions, Progress, spell_out
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.record import Record
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem, problem_of
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve


@dataclass(frozen=True, eq=False, repr=False)
class Explore(Record):
    """A way to explore.

    * `cap`: the longest episode in steps; needed if one need not end.
    * `cost`: prices of episodes, steps or actions ("episode=1,step=0.01"); episodes by default.
    * `avoid`, `at_most`: episodes meet states of this formula, such as '"crash"', with at most this
      probability, certified over the region.

    >>> Explore("designed", cost="episode=1,step=0.01").price.step
    0.01
    """

    way: Exploration | str = Exploration.OPTIMISTIC
    cap: int | None = None
    cost: oracles.Cost | str | None = None
    avoid: str | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "way", choose("explore", Exploration, self.way))
        if (self.avoid is None) != (self.at_most is None):
            raise InputError(
                "`avoid` requires `at_most`, and `at_most` requires `avoid`: a condition and its largest "
                "probability"
            )
        if self.kind is not Exploration.DESIGNED:
            for name in ("cost", "avoid"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"`{name}` requires designed exploration, and {self.kind.value} was asked for",
                        hint='`explore="designed"`',
                    )

    @staticmethod
    def of(how: Collecting) -> Explore:
        """What is asked for, or what is best for the question where nothing is."""
        if isinstance(how.explore, Explore):
            return how.explore
        way = default_exploration(how.until_gap) if how.explore is None else how.explore
        return Explore(choose("explore", Exploration, way))

    @property
    def kind(self) -> Exploration:
        assert isinstance(self.way, Exploration)
        return self.way

    def designer(self, problem: Problem, delta: float, coupled: bool) -> Designer | None:
        """Who designs the stages, where exploration is designed."""
        return Designer.of(problem, delta, coupled, self) if self.kind is Exploration.DESIGNED else None

    @property
    def price(self) -> oracles.Cost:
        """What data cost."""
        if isinstance(self.cost, oracles.Cost):
            return self.cost
        return oracles.Cost() if self.cost is None else oracles.Cost.parse(self.cost)


@dataclass(frozen=True, eq=False)
class Designer:
    """Designs stages for a learner: what exploration is for, what data cost, what is to be avoided."""

    question: Question
    cost: oracles.Cost
    lost: BoolArray
    safety: Safety | None

    @staticmethod
    def of(problem: Problem, delta: float, coupled: bool, explore: Explore) -> Designer:
        """For a learner's question; an episode ends where the objective is decided, or at the cap."""
        model, objective = problem.model, problem.objective
        assert isinstance(model, ParametricMDP)
        stop = find_decided_states(objective, model.states)
        safety = None
        if explore.avoid is not None and explore.at_most is not None:
            safety = Safety.of(model, explore.avoid, explore.at_most, stop)
            stop = stop | safety.bad
        explore.price.per_choice(model.structure)
        radius = math.sqrt(2.0 * (math.log(1.0 / delta) + 3.0 + len(model.parameters.names)))
        question = Question(model, objective, stop, explore.cap, coupled, radius)
        lost = safety.bad if safety is not None else bad_states(objective, model.states)
        return Designer(question, explore.price, lost, safety)

    def design(
        self, counts: Counts, robust: Policy, optimistic: Policy, sets: Callable[[], Sets]
    ) -> Explored:
        """The next stage: as many episodes as there are. `sets` are those of the present region."""
        stage = Stage.after(self.question, counts)
        criterion = stage.criterion(robust, optimistic)
        followed = stage.episodes.occupancy(robust)
        per_episode = self.cost_of(followed)
        amount = max(counts.design.episodes or 0, FEWEST) * per_episode
        if self.safety is None:
            chosen = stage.design(criterion, amount, self.oracle(stage))
            explored = Explored(chosen, chosen.policy)
        else:
            explored = self.keep_safe(sets(), stage, lambda ask: stage.design(criterion, amount, ask))
        if explored.design is None or not isinstance(criterion, Directions):
            return explored
        matrix = stage.past + amount / per_episode * stage.information.of_visits(followed)
        return replace(explored, greedy=criterion.value(matrix) / max(explored.design.value, 1e-300))

    def oracle(self, stage: Stage, bound: float | None = None) -> oracles.Oracle:
        """Who collects most per cost at the estimate, with at most the given probability of what to avoid."""
        structure = self.question.model.structure
        probability = stage.information.probability[self.question.model.expression]
        bad = oracles.entering(structure, probability, self.lost)
        ask: oracles.Oracle = careful(oracles.best_episodes(stage.episodes), bad)
        if self.safety is not None:
            ask = oracles.Bounded(ask, bad, self.safety.most if bound is None else bound)
        return oracles.price_oracle(ask, self.cost, structure)

    def keep_safe(self, sets: Sets, stage: Stage, designed: Callable[[oracles.Oracle], Design]) -> Explored:
        """The best exploration that is certified over the sets; `CannotCertify` where there is none."""
        assert self.safety is not None
        return self.safety.explore(
            sets, lambda bound: designed(self.oracle(stage, bound)), stage.episodes.occupancy
        )

    def cost_of(self, occupancy: FloatArray) -> float:
        """What an episode costs."""
        price = self.cost.per_choice(self.question.model.structure)
        return self.cost.episode + float(occupancy @ price)


REDESIGNS = 4
HALVINGS = 5
ITERATIONS = 20_000
PRECISION = 1e-4
ROUNDING = 1e-12
"""More than sums of shares lose."""

AS_GOOD = 0.01
"""Of the width: so near to the best the robust policy is as good to explore with."""

Designed = Callable[[float], Design]
"""A design that keeps a bound at the estimate; `NoPolicyKeepsBound` where there is none."""

Occupancy = Callable[[Policy], FloatArray]
"""How often a policy takes each choice in an episode, at the estimate."""


@dataclass(frozen=True, eq=False)
class Explored:
    """What is executed, its design, its certified probability of ending badly, the robust policy's relative
    width."""

    design: Design | None
    policy: Policy
    certified: float | None = None
    greedy: float | None = None


@dataclass(frozen=True, eq=False)
class Safety:
    """The states to avoid, where episodes end otherwise, and the bound on the probability."""

    text: str
    bad: BoolArray
    stop: BoolArray
    most: float

    @staticmethod
    def of(model: ParametricMDP, avoid: str, at_most: float, stop: BoolArray) -> Safety:
        """From a state formula such as '"crash"'."""
        if not 0.0 < at_most < 1.0:
            raise InputError(f"`at_most` is {at_most:g}, not a probability between 0 and 1")
        target = _states_of(model, avoid)
        if target[model.initial]:
            raise InputError(f"episodes begin in a state to avoid: {avoid} holds in the initial state")
        if not target.any():
            raise InputError(f"no state is to be avoided: {avoid} holds nowhere")
        return Safety(avoid, target, stop, at_most)

    @property
    def objective(self) -> Objective:
        """The worst probability of ending badly, kept small by the agent."""
        return Objective(
            ObjectiveKind.UNTIL, Direction.MIN, Direction.MAX, target=self.bad, allowed=~self.stop | self.bad
        )

    def certified(self, sets: Sets, policy: Policy | None) -> tuple[float, Policy]:
        """A verified upper bound for the policy, or for the best one where none is given, over the sets."""
        solution = _solved(IntervalOperator.of(sets.interval_model()), self.objective, policy)
        return min(float(solution.upper[sets.model.initial]), 1.0), policy or solution.policy.at(0)

    def certified_drawn(self, sets: Sets, policies: Sequence[tuple[float, Policy]], cap: int | None) -> float:
        """A verified upper bound where one of the policies is drawn per episode, by its share."""
        kernel, total = IntervalOperator.of(sets.interval_model()), 0.0
        for share, policy in policies:
            objective = self.objective
            if policy.depends_on_step:
                assert cap is not None
                objective = replace(objective, upper_steps=cap)
            solution = _solved(kernel, objective, policy)
            total += share * min(float(solution.upper[sets.model.initial]), 1.0)
        weight = sum(share for share, _ in policies)
        return min(total / weight * (1.0 + ROUNDING), 1.0)

    def explore(self, sets: Sets, designed: Designed, occupancy: Occupancy) -> Explored:
        """The best exploration that is certified; `CannotCertify` where none is."""
        least, safest = self.certified(sets, None)
        if least > self.most:
            raise CannotCertify(
                f"no exploration is certified to meet {self.text} with probability at most {self.most:g}: "
                f"with the data so far the safest policy is certified at {least:.4g}\n"
                "hint: begin with data that were collected otherwise (`data`), or allow more with `at_most`"
            )
        bound, safe = self.most, None
        for _ in range(REDESIGNS):
            try:
                safe = designed(bound)
            except oracles.NoPolicyKeepsBound:
                break
            reached, _ = self.certified(sets, safe.policy)
            if reached <= self.most:
                return Explored(safe, safe.policy, reached)
            bound -= 1.05 * (reached - self.most)
            if bound <= 0.0:
                break
        careful = occupancy(safest)
        low, high, best = 0.0, 1.0, Explored(safe, safest, least)
        for _ in range(HALVINGS if safe is not None else 0):
            assert safe is not None
            share = 0.5 * (low + high)
            mixed = stationary(safest.structure, share * safe.occupancy + (1.0 - share) * careful)
            reached, _ = self.certified(sets, mixed)
            if reached <= self.most:
                low, best = share, Explored(safe, mixed, reached)
            else:
                high = share
        return best


def _solved(kernel: IntervalOperator, objective: Objective, policy: Policy | None) -> Solution:
    return solve(kernel, objective, policy=policy, precision=PRECISION, iterations=ITERATIONS, threads=1)


def bad_states(objective: Objective, states: int) -> BoolArray:
    """States in which an objective is lost: what ties are broken against where nobody asked."""
    nothing: BoolArray = np.zeros(states, dtype=np.bool_)
    if objective.kind is not ObjectiveKind.UNTIL or objective.agent is not Direction.MAX:
        return nothing
    if objective.complement or objective.allowed is None or objective.target is None:
        return nothing
    return ~objective.allowed & ~objective.target


def _states_of(model: ParametricMDP, avoid: str) -> BoolArray:
    """The states of a formula; in brackets, so that no step bound or path is taken for one."""
    try:
        target = Problem(model, f"Pmax=? [ F ({avoid}) ]").objective.target
    except InputError as error:
        raise InputError(
            f"`avoid` is {avoid!r}, no formula of states: {error.message}",
            hint=error.hint or "a formula of states is '\"crash\"' or 'x=3 & !\"goal\"'",
        ) from error
    assert target is not None
    return target


class OnlineKwargs(LearnKwargs, total=False):
    """How data are collected (`Collecting`), and the options of `learn`."""

    states: StateForm | str | None
    planned_episodes: int | None
    explore: Explore | Exploration | str | None
    until_gap: float | str | None
    data: Counts | None
    on_drift: OnDrift | str | None
    baseline: PolicyGiven | str | None
    allow_loss: float


@spell_out({**vars(Collecting()), **DEFAULTS})
def online(
    problem: Problem,
    *,
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    **words: Unpack[OnlineKwargs],
) -> OnlineLearner:
    """Make a learner for a problem whose data are collected while it learns.

    Parameters
    ----------
    problem, delta, progress, **options
        As for `learn`.
    planned_episodes : int, optional
        The expected number of episodes; a slab (betting region) is narrowest there.
    explore : str or Explore
        "designed" (the default with `until_gap`), "optimistic" (otherwise), "robust" or "uniform".
    until_gap : float or str, optional
        A width, or "5%" of the value; `Update.is_reached` reports that the interval is that narrow.
    data : Counts, optional
        Counts to begin with.
    on_drift : str or OnDrift, optional
        Run a monitor, and "warn", "stop" or "restart" after its alarm.
    baseline, allow_loss : Policy or str, float
        Collect only with policies that are certified to lose at most `allow_loss` against this baseline.

    Returns
    -------
    OnlineLearner
        For a temporal formula, `learner.problem.controller(learner.policy())` acts in episodes. For questions
        that are not one objective, `observe` returns the result of `learn` after 1, 2, 4, … episodes.

    Examples
    --------
    >>> import tightrope as tr
    >>> learner = tr.online(tr.benchmark("betting(5)").problem, delta=0.01, sets="tied")
    >>> learner.episodes, learner.policy().is_deterministic
    (0, True)
    >>> guarded = tr.online(tr.benchmark("betting(5)").problem, sets="tied", on_drift="restart")
    >>> guarded.guard.monitor.events, guarded.guard.restarts
    (0, 0)
    """
    asks, options = problem_of(problem), check_keywords("online", OnlineKwargs, words, ("delta",))
    how = Collecting(**{name: options.pop(name) for name in vars(Collecting()) if name in options})
    if asks.query.kind not in (QueryKind.PLAIN, QueryKind.LTL):
        refuse_uneven(asks.text, how)
        even = EvenLearner(asks, delta, cast(LearnKwargs, options), how)
        return cast(OnlineLearner, even)  # the same face: policy, observe, update, result, is_reached
    return OnlineLearner(
        plain_problem(asks),
        delta=delta,
        progress=progress,
        explorer=Explore.of(how),
        collecting=how,
        options=LearnOptions.of("online", {"iterations": ITERATIONS_ONLINE, **options}),
    )
