"""Policies over one kind of sets: robust, optimistic and given, each with its interval.

Let the agent maximise; minimising is symmetric. Nature against the agent gives the robust policy and g, a
verified lower bound on its value against every nature in the sets. Nature for the agent, with that policy
fixed, gives a verified upper bound h. So [g, h] contains the policy's value under every nature in the sets.
With a step bound the robust policy depends on the step (`tightrope.model.policy_file`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tightrope.ambiguity.sets import Sets
from tightrope.io.results import Interval
from tightrope.learning.options import LearnOptions, Progress, silent
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record, brief
from tightrope.numerics.team import Team
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.equations.system import assume_support
from tightrope.solver.iteration.host import LEAST_TRANSITIONS
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Workspace, operator_of, solve

if TYPE_CHECKING:
    from tightrope.coupled.result import CoupledValue

ROBUST, FAR_END = "the robust policy", "the other end of its interval"
OPTIMISTIC, GIVEN = "the optimistic policy", "the given policy"
"""What is solved for, as it is said."""


@dataclass(frozen=True, eq=False, repr=False)
class PolicyValue(Record):
    """A policy and its certified interval.

    `solutions` are the solves behind the two ends, lower end first. If `coupled` is given, the interval is
    its, and the solutions are those over the rectangular sets; `beyond`: coupled sets were tried without a
    request, so their limits do not count.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(500, seed=1)
    >>> result = tr.learn(bench.problem, data, delta=0.01, sets="tied")
    >>> result.robust.is_close, result.robust.interval == result.interval
    (True, True)
    """

    policy: Policy
    interval: Interval
    solutions: tuple[Solution, Solution]
    coupled: CoupledValue | None = None
    beyond: bool = False

    def _title_(self) -> str:
        return f"PolicyValue: {self.interval}"

    def _facts_(self) -> Facts:
        ends = [(name, brief(end)) for name, end in zip(("low", "high"), self.solutions, strict=True)]
        return [("policy", brief(self.policy)), *ends]

    @property
    def is_close(self) -> bool:
        """Whether the solves came as close as was asked."""
        return all(solution.is_initial_certified for solution in self.solutions) and not self.stopped

    @property
    def stopped(self) -> str | None:
        """Why the coupled interval is wider than was asked for, where it is."""
        if self.coupled is None or self.coupled.status.is_reached or self.beyond:
            return None
        return self.coupled.status.value


def are_solved_together(structure: Structure, device: str, threads: int) -> bool:
    """Whether the robust and the optimistic policy are looked for at the same time."""
    return device == "cpu" and threads > 1 and structure.transitions >= LEAST_TRANSITIONS


class PolicySolver:
    """Solves over one kind of sets; the solves left share the time left, and all is verified."""

    def __init__(
        self,
        sets: Sets,
        objective: Objective,
        options: LearnOptions,
        deadline: float = math.inf,
        progress: Progress = silent,
        solves: int = 3,
    ):
        smallest = options.assume_support
        self.notes: list[str] = []
        if smallest is not None:
            raised = assume_support(sets.interval_model(), smallest)
            assert isinstance(raised, IntervalMDP)
            sets = replace(sets, lower=raised.lower)
            self.notes.append(
                f"assumed: every possible transition has a probability of at least {smallest:g}"
            )
        self.sets, self.objective, self.options = sets, objective, options
        self.kernel = operator_of(sets)
        self.deadline, self.progress = deadline, progress
        self.workspace = Workspace(options.device, options.threads)
        self.solves_left = solves
        self.reward_ends: tuple[RewardStructure, RewardStructure] | None = None

    def robust(self, start: FloatArray | None = None) -> PolicyValue:
        """The policy with the best guarantee, and its interval; `start` are values to look from."""
        return self._with_far_end(self.find(ROBUST, start=start))

    def _with_far_end(self, guarantee: Solution) -> PolicyValue:
        """The policy with the other end of its interval."""
        policy = guarantee.policy
        if self.objective.depends_on_step:
            self.notes.append("the robust policy depends on the step: one choice per state and step")
        far = self.find(FAR_END, policy)
        low, high = (guarantee, far) if self.objective.maximises else (far, guarantee)
        return self._between(policy, low, high)

    def solve_both(
        self, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None
    ) -> tuple[PolicyValue, Solution]:
        """The robust policy with its interval, and the optimistic one, in two halves of the threads."""
        threads = self.workspace.threads
        if not are_solved_together(self.kernel.structure, self.workspace.device, threads):
            guarantee = self.find(ROBUST)
            return self._with_far_end(guarantee), self.find(OPTIMISTIC)
        half, rest = Workspace(threads=threads // 2), Workspace(threads=threads - threads // 2)

        def find_optimistic(worker: int) -> Solution:
            before()
            solution = self.find(OPTIMISTIC, workspace=half)
            after()
            return solution

        with Team(2) as team:
            guarantee, optimistic = team.run([lambda _: self.find(ROBUST, workspace=rest), find_optimistic])
        return self._with_far_end(guarantee), optimistic

    def evaluate(self, policy: Policy) -> PolicyValue:
        """The interval of a given policy: nature against it, and for it."""
        operator = self.kernel
        if (
            not policy.is_deterministic
            and not isinstance(operator, IntervalOperator)
            and not self.objective.is_bounded
        ):
            self.notes.append(
                "the given policy is randomised: it was evaluated over the expression sets, "
                "which enclose the rectangular ones"
            )
            operator = IntervalOperator.of(self.sets.interval_model())
        natures = (Direction.MIN, Direction.MAX)
        if self.objective.complement:
            natures = (Direction.MAX, Direction.MIN)
        low, high = (
            self.find(what, policy, nature=nature, operator=operator)
            for what, nature in zip((GIVEN, FAR_END), natures, strict=True)
        )
        return self._between(policy, low, high)

    def _between(self, policy: Policy, low: Solution, high: Solution) -> PolicyValue:
        initial = self.kernel.structure.initial
        interval = Interval.of(float(low.lower[initial]), float(high.upper[initial]))
        return PolicyValue(policy, interval.within(*self.objective.range), (low, high))

    def _reward(self, nature: Direction) -> RewardStructure | None:
        """Rewards that depend on parameters at their end for nature, over the region of the sets."""
        reward = self.objective.reward
        if not isinstance(reward, ParametricReward):
            return reward
        if self.reward_ends is None:
            from tightrope.regions.costs import reward_ends

            self.reward_ends = reward_ends(reward, self.sets.model, self.sets.over)
        least, most = self.reward_ends
        return least if nature is Direction.MIN else most

    def find(
        self,
        what: str,
        policy: Policy | None = None,
        *,
        nature: Direction | None = None,
        start: FloatArray | None = None,
        operator: BellmanOperator | None = None,
        workspace: Workspace | None = None,
    ) -> Solution:
        """Solve for `what`, of a `policy` or the best one; nature is against the agent for the robust one."""
        self.progress(f"solve: {what}")
        if nature is None:
            nature = self.objective.agent.opposite if what == ROBUST else self.objective.agent
        left = max(self.deadline - time.perf_counter(), 0.0) / max(self.solves_left, 1)
        self.solves_left -= 1
        return solve(
            operator or self.kernel,
            replace(self.objective, nature=nature, reward=self._reward(nature)),
            policy=policy,
            precision=self.options.precision,
            iterations=self.options.iterations,
            seconds=left,
            start=start,
            workspace=workspace or self.workspace,
        )
