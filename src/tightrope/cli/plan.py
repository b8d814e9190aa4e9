"""`tightrope plan MODEL --data F --gap E`: how much more data, collected how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import (
    AssumeSupport,
    AtMost,
    Avoid,
    Columns,
    Const,
    Cost,
    CoupledGap,
    Data,
    DataFormatName,
    Delta,
    Design,
    Device,
    DeviceName,
    Discount,
    Domain,
    Json,
    Map,
    Model,
    Param,
    PlannedEpisodes,
    Prop,
    SkipInvalid,
    States,
    TerminalReward,
    Threads,
    require_device,
)
from tightrope.region.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.uncertainty.sets import SetsKind


def plan(
    model: Model,
    data: Data,
    gap: Annotated[
        str | None,
        typer.Option(
            "--gap",
            metavar="E|E%",
            help="The width of the robust policy's interval that is wanted, or a share of its value.",
            show_default=False,
        ),
    ] = None,
    optimality: Annotated[
        float | None,
        typer.Option(
            "--optimality",
            metavar="E",
            help="Guarantee and best possible value so close instead.",
            show_default=False,
        ),
    ] = None,
    above: Annotated[
        float | None,
        typer.Option(
            "--above",
            metavar="T",
            help="A guarantee so good instead (below T, for costs).",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="The gap to expect from N more episodes instead.",
            show_default=False,
        ),
    ] = None,
    delta: Delta = 0.001,
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
        typer.Option("--interval", help="The intervals of events.", show_default=False),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="Plan for the interval of this policy instead of the robust one.",
            show_default=False,
        ),
    ] = None,
    within_cap: Annotated[
        int | None,
        typer.Option(
            "--within-cap",
            metavar="N",
            min=1,
            help="Steps of an episode at most (benchmarks have theirs); required where it need not end.",
            show_default=False,
        ),
    ] = None,
    cost: Cost = None,
    avoid: Avoid = None,
    at_most: AtMost = None,
    generative: Annotated[
        bool,
        typer.Option(
            "--generative", help="How many draws of which choice, where every choice can be sampled at will."
        ),
    ] = False,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    discount: Discount = None,
    terminal_reward: TerminalReward = None,
    assume_support: AssumeSupport = None,
    coupled_gap: CoupledGap = None,
    device: Device = DeviceName.CPU,
    threads: Threads = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Write the plan, policies to explore with, and the figure."
        ),
    ] = None,
    states: States = None,
    columns: Columns = None,
    value_maps: Map = None,
    design: Design = None,
    planned_episodes: PlannedEpisodes = None,
    data_format: DataFormatName = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
) -> None:
    """Forecast how many more episodes a gap takes, and design their exploration.

    From the data so far: the gap now, the episodes that designed, robust, optimistic and uniform collection
    would need with a likely range, what the gap hangs on, and a randomised policy to collect the next stage
    with. It is a forecast, not a guarantee; the guarantee is what 'tightrope learn' says about the data once
    they are there. Exit code 1: what is asked for cannot be reached.

    Example: tightrope plan 'bench:rover(10,10)' --data pilot.parquet --gap 0.015 -o plan
    """
    from tightrope.cli.log_source import LogRequest
    from tightrope.cli.plan_run import Request, run
    from tightrope.data.read_options import ReadOptions

    require_device(device)
    words = {
        "optimality": optimality,
        "above": above,
        "budget": budget,
        "cost": cost,
        "avoid": avoid,
        "at_most": at_most,
        "generative": generative or None,
        "region": region,
        "sets": sets,
        "interval": interval,
        "assume_support": assume_support,
        "coupled_gap": coupled_gap,
        "device": device.value,
        "threads": threads,
    }
    run(
        Request(
            model=model,
            log=LogRequest(
                tuple(data),
                ReadOptions(
                    states=None if states is None else states.value,
                    columns=columns,
                    maps=value_maps,
                    design=None if design is None else design.value,
                    planned_episodes=planned_episodes,
                    skip_invalid=skip_invalid,
                    format=data_format,
                ),
            ),
            prop=prop,
            const=const,
            param=param,
            domain=domain,
            discount=discount,
            terminal_reward=terminal_reward,
            delta=delta,
            gap=gap,
            policy=policy,
            within_cap=within_cap,
            words={name: value for name, value in words.items() if value is not None},
            output=output,
            json=json,
        )
    )
