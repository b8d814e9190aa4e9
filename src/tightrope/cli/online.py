"""`tightrope online MODEL --at … --episodes N`: explore, certify, repeat."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tightrope.ambiguity.sets import SetsKind
from tightrope.cli import options
from tightrope.cli.options import DeviceName, option, require_device
from tightrope.cli.records import SubjectOptions, takes
from tightrope.data.state_form import StateForm
from tightrope.design.exploration import Explore
from tightrope.errors import InputError
from tightrope.learning.online.exploration import Exploration, default_exploration
from tightrope.regions.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.events import Budget

if TYPE_CHECKING:
    from tightrope.learning.options import LearnOptions

MOST_EPISODES = 1_000_000
"""After which a run gives up that waits for a gap."""


class DriftAnswer(Enum):
    """What follows when the data contradict the model."""

    WARN = "warn"
    STOP = "stop"
    RESTART = "restart"


@dataclass(frozen=True, kw_only=True)
class Request(SubjectOptions):
    """The options of the command."""

    episodes: Annotated[int | None, option("--episodes", "Episodes altogether.", "N", min=1)] = None
    explore: Annotated[
        Exploration | None,
        option(
            "--explore", "Who collects the episodes: designed with --until-gap, else optimistic, unless said."
        ),
    ] = None
    until_gap: Annotated[
        str | None,
        option(
            "--until-gap",
            "Stop when the robust policy's certified interval is this narrow (5%: of the value).",
            "E|E%",
        ),
    ] = None
    max_episodes: Annotated[
        int | None,
        option("--max-episodes", f"With --until-gap: give up after so many ({MOST_EPISODES:,}).", "N", min=1),
    ] = None
    data: Annotated[
        Path | None, option("--data", "Episodes to begin with, a file that 'tightrope sample' wrote.", "FILE")
    ] = None
    cost: options.Cost = None
    avoid: options.Avoid = None
    at_most: options.AtMost = None
    at: options.At = None
    seed: Annotated[int, option("--seed", "Same seed, same episodes.", "S", min=0)] = 0
    delta: Annotated[
        float, option("--delta", "All guarantees together may fail with this probability.", "D")
    ] = 0.001
    region: Annotated[RegionKind | None, option("--region", "The confidence set of parameters.")] = None
    sets: Annotated[SetsKind | None, option("--sets", "What nature may pick from.")] = None
    interval: Annotated[
        IntervalMethod | None,
        option("--interval", "The intervals of events; only beta-binomial holds for adaptive data."),
    ] = None
    budget: Annotated[Budget, option("--budget", "How events share δ.")] = Budget.TIED
    output: Annotated[
        Path | None,
        option("-o --output", "Keep the run here; the same command goes on where it stopped.", "DIR"),
    ] = None
    assume_support: options.AssumeSupport = None
    precision: options.Precision = 1e-6
    cap: Annotated[
        int | None,
        option(
            "--cap", "Steps after which an episode is cut off (1000, or a benchmark's own).", "STEPS", min=1
        ),
    ] = None
    env: options.Env = None
    convert_obs: options.ConvertObs = None
    actions: options.Actions = None
    states: Annotated[
        StateForm | None,
        option(
            "--states", "With --env: 'index' says that observed numbers are the model's indices of states."
        ),
    ] = None
    on_drift: Annotated[
        DriftAnswer | None,
        option(
            "--on-drift", "Let a monitor run along, and say what follows when the data contradict the model."
        ),
    ] = None
    alpha: Annotated[
        float | None,
        option("--alpha", "With --on-drift: the probability that a false alarm is ever raised (0.001).", "A"),
    ] = None
    device: options.Device = DeviceName.CPU
    threads: options.Threads = None
    accept_nominal: options.AcceptNominal = False
    json: Annotated[bool, option("--json", "Print one JSON object an update on stdout, nothing else.")] = (
        False
    )

    @property
    def most_episodes(self) -> int:
        """Episodes altogether, at most."""
        return self.episodes or self.max_episodes or MOST_EPISODES

    @property
    def drift_answer(self) -> str | None:
        """What follows when the data contradict the model, in the word of `tightrope.online`."""
        return None if self.on_drift is None else self.on_drift.value

    @property
    def exploration(self) -> Explore:
        """Who collects the episodes, and under which bounds."""
        kind = self.explore or default_exploration(self.until_gap)
        return Explore(kind, cost=self.cost, avoid=self.avoid, at_most=self.at_most)

    def learn_options(self) -> LearnOptions:
        """What is said about how to learn."""
        from tightrope.learning.online.learner import ITERATIONS
        from tightrope.learning.options import LearnOptions

        return LearnOptions(
            region=self.region,
            sets=self.sets,
            interval=self.interval,
            budget=self.budget,
            precision=self.precision,
            device=self.device.value,
            threads=self.threads,
            assume_support=self.assume_support,
            iterations=ITERATIONS,
        )


@takes(Request)
def online(asked: Request) -> None:
    """Explore a model, and certify a robust policy again and again.

    A policy that the data so far suggest collects the episodes (--explore). As they grow, everything is
    computed anew: that policy, the robust one and its guarantee. With probability at least 1 - delta all
    guarantees are kept, so a run may stop when its gap is small enough (--until-gap). With -o, a run that
    was killed goes on from its last update.

    The guarantees are about a world that does not change. With --on-drift a monitor tells when it has: 'warn'
    goes on, 'stop' ends the run with exit code 1, 'restart' forgets everything before the alarm; the
    guarantees since then hold together with probability at least 1 - delta.

    Example: tightrope online 'bench:rover(10,10)' --episodes 10000 --seed 1 --sets expression -o run

    Example: tightrope online model.prism --env plant:make --episodes 5000 --on-drift restart
    """
    from tightrope.cli.online_run import run

    require_device(asked.device)
    if (asked.episodes is None) == (asked.until_gap is None):
        raise InputError(
            "give either --episodes N or --until-gap E",
            hint="with --until-gap, --max-episodes N says when to give up",
        )
    if asked.max_episodes is not None and asked.until_gap is None:
        raise InputError("--max-episodes goes with --until-gap; --episodes N is the number of episodes")
    run(asked)
