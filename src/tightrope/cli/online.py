"""`tightrope online MODEL --at … --episodes N`: explore, certify, repeat."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import (
    AssumeSupport,
    At,
    AtMost,
    Avoid,
    Const,
    Cost,
    Device,
    DeviceName,
    Discount,
    Domain,
    Model,
    Param,
    Prop,
    TerminalReward,
    Threads,
    require_device,
)
from tightrope.data.state_form import StateForm
from tightrope.errors import InputError
from tightrope.learning.online.exploration import Exploration, Explore, default_exploration
from tightrope.region.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.events import Budget
from tightrope.uncertainty.sets import SetsKind

MOST_EPISODES = 1_000_000
"""After which a run gives up that waits for a gap."""


class DriftAnswer(Enum):
    """What follows when the data contradict the model."""

    WARN = "warn"
    STOP = "stop"
    RESTART = "restart"


def online(
    model: Model,
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", metavar="N", min=1, help="Episodes altogether.", show_default=False),
    ] = None,
    explore: Annotated[
        Exploration | None,
        typer.Option(
            "--explore",
            help="Who collects the episodes: designed with --until-gap, else optimistic, unless said.",
            show_default=False,
        ),
    ] = None,
    until_gap: Annotated[
        str | None,
        typer.Option(
            "--until-gap",
            metavar="E|E%",
            help="Stop when the robust policy's certified interval is this narrow (5%: of the value).",
            show_default=False,
        ),
    ] = None,
    max_episodes: Annotated[
        int | None,
        typer.Option(
            "--max-episodes",
            metavar="N",
            min=1,
            help=f"With --until-gap: give up after so many ({MOST_EPISODES:,}).",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Episodes to begin with, a file that 'tightrope sample' wrote.",
            show_default=False,
        ),
    ] = None,
    cost: Cost = None,
    avoid: Avoid = None,
    at_most: AtMost = None,
    at: At = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", min=0, help="Same seed, same episodes.")] = 0,
    delta: Annotated[
        float,
        typer.Option("--delta", metavar="D", help="All guarantees together may fail with this probability."),
    ] = 0.001,
    prop: Prop = None,
    region: Annotated[
        RegionKind | None,
        typer.Option("--region", help="The confidence set of parameters.", show_default=False),
    ] = None,
    sets: Annotated[
        SetsKind | None, typer.Option("--sets", help="What nature may pick from.", show_default=False)
    ] = None,
    interval: Annotated[
        IntervalMethod | None,
        typer.Option(
            "--interval",
            help="The intervals of events; only beta-binomial holds for adaptive data.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[Budget, typer.Option("--budget", help="How events share δ.")] = Budget.TIED,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Keep the run here; the same command goes on where it stopped.",
            show_default=False,
        ),
    ] = None,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    discount: Discount = None,
    terminal_reward: TerminalReward = None,
    assume_support: AssumeSupport = None,
    precision: Annotated[
        float, typer.Option("--precision", metavar="EPS", help="How closely values are computed (relative).")
    ] = 1e-6,
    cap: Annotated[
        int | None,
        typer.Option(
            "--cap",
            metavar="STEPS",
            min=1,
            help="Steps after which an episode is cut off (1000, or a benchmark's own).",
            show_default=False,
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env", metavar="MODULE:FACTORY", help="Step a Gymnasium environment.", show_default=False
        ),
    ] = None,
    convert_obs: Annotated[
        str | None,
        typer.Option(
            "--convert-obs", metavar="MODULE:FUNCTION", help="Its observations to states.", show_default=False
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            "--actions", metavar="A,B,…", help="The names of its actions 0, 1, ….", show_default=False
        ),
    ] = None,
    states: Annotated[
        StateForm | None,
        typer.Option(
            "--states",
            help="With --env: 'index' says that observed numbers are the model's indices of states.",
            show_default=False,
        ),
    ] = None,
    on_drift: Annotated[
        DriftAnswer | None,
        typer.Option(
            "--on-drift",
            help="Let a monitor run along, and say what follows when the data contradict the model.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            metavar="A",
            help="With --on-drift: the probability that a false alarm is ever raised (0.001).",
            show_default=False,
        ),
    ] = None,
    device: Device = DeviceName.CPU,
    threads: Threads = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object an update on stdout, nothing else.")
    ] = False,
) -> None:
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
    from tightrope.cli.online_run import Request, run

    require_device(device)
    if (episodes is None) == (until_gap is None):
        raise InputError(
            "give either --episodes N or --until-gap E",
            hint="with --until-gap, --max-episodes N says when to give up",
        )
    if max_episodes is not None and until_gap is None:
        raise InputError("--max-episodes goes with --until-gap; --episodes N is the number of episodes")
    run(
        Request(
            model=model,
            episodes=episodes or max_episodes or MOST_EPISODES,
            explore=Explore(
                explore or default_exploration(until_gap), cost=cost, avoid=avoid, at_most=at_most
            ),
            until_gap=until_gap,
            data=data,
            at=at,
            seed=seed,
            delta=delta,
            prop=prop,
            region=region,
            sets=sets,
            interval=interval,
            budget=budget,
            output=output,
            const=const,
            param=param,
            domain=domain,
            discount=discount,
            terminal_reward=terminal_reward,
            assume_support=assume_support,
            precision=precision,
            device=device.value,
            threads=threads,
            cap=cap,
            env=env,
            convert_obs=convert_obs,
            actions=actions,
            states=states,
            on_drift=None if on_drift is None else on_drift.value,
            alpha=alpha,
            json=json,
        )
    )
