"""`tightrope online MODEL --at … --episodes N`: explore, certify, repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import (
    AssumeSupport,
    At,
    Const,
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
from tightrope.region.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.events import Budget
from tightrope.uncertainty.sets import SetsKind


def online(
    model: Model,
    episodes: Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="Episodes altogether.")],
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
    device: Device = DeviceName.CPU,
    threads: Threads = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object an update on stdout, nothing else.")
    ] = False,
) -> None:
    """Explore a model, and certify a robust policy again and again.

    The policy that is best if nature is kind collects the episodes. Whenever some choice's visits have
    doubled, everything is computed anew: that policy, the robust one and its guarantee. With probability at
    least 1 - delta all guarantees are kept. With -o, a run that was killed goes on from its last update.

    Example: tightrope online 'bench:rover(10,10)' --episodes 10000 --seed 1 --sets expression -o run
    """
    from tightrope.cli.online_run import Request, run

    require_device(device)
    run(
        Request(
            model=model,
            episodes=episodes,
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
            json=json,
        )
    )
