"""Policies over learned sets: the robust one, the optimistic one, and the interval of a given one.

Let the agent maximise the reported value (minimising mirrors everything). Nature against the agent gives the
robust policy and g, a verified lower bound on what it attains against every nature in the sets. Nature for
the agent, with that policy fixed, gives h, a verified upper bound on what it can attain. So [g, h] contains
the policy's value under every nature in the sets, the true one among them with the ledger's confidence.

The robust policy of a property with a step bound depends on the step; it is fixed as it is, step by step
(`tightrope.model.policy_choices`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from tightrope.ambiguity.sets import Sets
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import Interval, PolicyValue
from tightrope.learning.stages import Progress
from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.rewards import ParametricReward, RewardStructure
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.team import Team
from tightrope.regions.costs import reward_ends
from tightrope.solver.equations.assumed_support import assume_support
from tightrope.solver.iteration.host import LEAST_TRANSITIONS
from tightrope.solver.kernels.interval_kernel import IntervalKernel
from tightrope.solver.kernels.kernel import Kernel
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Limits
from tightrope.solver.solve_sets import kernel_of, solve_sets
from tightrope.solver.workspace import Workspace


def depends_on_step(objective: Objective) -> bool:
    """Whether the best policy is not a choice a state: it must know how many steps were taken."""
    if objective.kind is ObjectiveKind.NEXT:
        return False
    return objective.is_bounded or objective.lower_steps > 0


def maximises(objective: Objective) -> bool:
    """Whether the agent wants the reported value to be large."""
    return (objective.agent is Direction.MAX) != objective.complement


def with_support(sets: Sets, smallest: float) -> Sets:
    """The sets under the assumption that what can happen has at least this probability."""
    raised = assume_support(sets.interval_model(), smallest)
    assert isinstance(raised, IntervalMDP)
    return replace(sets, lower=raised.lower)


def _nothing() -> None:
    """There is nothing else to be done."""


def are_solved_together(structure: Structure, device: str, threads: int) -> bool:
    """Whether the robust and the optimistic policy are looked for at the same time."""
    return device == "cpu" and threads > 1 and structure.transitions >= LEAST_TRANSITIONS


class PolicySolver:
    """Solves over one kind of sets; what came out at the deadline is verified all the same.

    The time that is left is shared evenly by the solves that are left: two for the robust policy, one for the
    optimistic one, two for a given one.
    """

    def __init__(
        self,
        sets: Sets,
        objective: Objective,
        options: LearnOptions,
        deadline: float,
        progress: Progress,
        solves: int = 3,
    ):
        smallest = options.assume_support
        self.sets = sets if smallest is None else with_support(sets, smallest)
        self.objective, self.options = objective, options
        self.kernel = kernel_of(self.sets)
        self.deadline, self.progress = deadline, progress
        self.workspace = Workspace(options.device, options.threads)
        self.solves_left = solves
        self.notes: list[str] = []
        self.reward_ends: tuple[RewardStructure, RewardStructure] | None = None
        if smallest is not None:
            self.notes.append(
                f"assumed: every transition that can happen has at least probability {smallest:g}"
            )

    def robust(self, start: FloatArray | None = None) -> PolicyValue:
        """The policy with the best guarantee, and its interval."""
        return self._with_far_end(self.find_guaranteed(start))

    def _with_far_end(self, guarantee: Solution) -> PolicyValue:
        """The policy with the other end of its interval."""
        agent = self.objective.agent
        self.progress("solve: the other end of its interval")
        policy = guarantee.policy
        if depends_on_step(self.objective):
            self.notes.append("the robust policy depends on the step: one choice per state and step")
        far = self._solve(self.kernel, agent, policy)
        low, high = (guarantee, far) if maximises(self.objective) else (far, guarantee)
        return self._between(policy, low, high)

    def solve_both(
        self, before: Callable[[], None] = _nothing, after: Callable[[], None] = _nothing
    ) -> tuple[PolicyValue, Solution]:
        """The robust policy with its interval, and the optimistic one. With several threads half of them look
        for the optimistic policy while the others look for the robust one; what else there is to wait for or
        to do, whatever the policies are, comes `before` and `after` the optimistic one then.
        """
        threads = self.workspace.threads
        if not are_solved_together(self.kernel.structure, self.workspace.device, threads):
            return self.robust(), self.optimistic()
        half, rest = Workspace(threads=threads // 2), Workspace(threads=threads - threads // 2)

        def find_optimistic(worker: int) -> Solution:
            before()
            found = self.optimistic(workspace=half)
            after()
            return found

        with Team(2) as team:
            guarantee, optimistic = team.run(
                [lambda _: self.find_guaranteed(workspace=rest), find_optimistic]
            )
        return self._with_far_end(guarantee), optimistic

    def find_guaranteed(
        self, start: FloatArray | None = None, workspace: Workspace | None = None
    ) -> Solution:
        """The policy with the best guarantee; `start` are values to look from, say those of fewer data."""
        self.progress("solve: the robust policy")
        return self._solve(self.kernel, self.objective.agent.opposite, None, start, workspace)

    def optimistic(self, start: FloatArray | None = None, workspace: Workspace | None = None) -> Solution:
        """The policy that is best if nature is kind; its value bounds what any policy can reach."""
        self.progress("solve: the optimistic policy")
        return self._solve(self.kernel, self.objective.agent, None, start, workspace)

    def evaluate(self, policy: Policy) -> PolicyValue:
        """The interval of a given policy: nature against it, and for it."""
        self.progress("solve: the given policy")
        kernel = self.kernel
        if (
            not policy.is_deterministic
            and not isinstance(kernel, IntervalKernel)
            and not self.objective.is_bounded
        ):
            self.notes.append(
                "the given policy is randomised: it was evaluated over the expression sets, "
                "which enclose the rectangular ones"
            )
            kernel = IntervalKernel.of(self.sets.interval_model())
        natures = (Direction.MIN, Direction.MAX)
        if self.objective.complement:
            natures = (Direction.MAX, Direction.MIN)
        low, high = (self._solve(kernel, nature, policy) for nature in natures)
        return self._between(policy, low, high)

    def _between(self, policy: Policy, low: Solution, high: Solution) -> PolicyValue:
        initial = self.kernel.structure.initial
        interval = Interval(float(low.lower[initial]), float(high.upper[initial]))
        return PolicyValue(policy, interval, (low, high))

    def _reward(self, nature: Direction) -> RewardStructure | None:
        """Rewards that depend on parameters at their end for nature, over the region of the sets."""
        reward = self.objective.reward
        if not isinstance(reward, ParametricReward):
            return reward
        if self.reward_ends is None:
            self.reward_ends = reward_ends(reward, self.sets.model, self.sets.over)
        least, most = self.reward_ends
        return least if nature is Direction.MIN else most

    def _solve(
        self,
        kernel: Kernel,
        nature: Direction,
        policy: Policy | None = None,
        start: FloatArray | None = None,
        workspace: Workspace | None = None,
    ) -> Solution:
        left = max(self.deadline - time.perf_counter(), 0.0) / max(self.solves_left, 1)
        self.solves_left -= 1
        return solve_sets(
            kernel,
            replace(self.objective, nature=nature, reward=self._reward(nature)),
            policy=policy,
            precision=self.options.precision,
            limits=Limits(self.options.iterations, left),
            start=start,
            workspace=workspace or self.workspace,
        )
