"""`tightrope learn MODEL --prop P --data F --delta D`: a robust policy and its certified interval."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.learn_timed import TimedLearning, learn_timed
from tightrope.cli.options import (
    AssumeSupport,
    At,
    ChosenAt,
    Columns,
    Const,
    CostRange,
    CostSd,
    CoupledGap,
    Data,
    DataFormatName,
    Delta,
    Design,
    Device,
    DeviceName,
    Discount,
    Domain,
    EngineName,
    Json,
    Map,
    Model,
    Overwrite,
    Param,
    PlannedEpisodes,
    Prop,
    Scheduler,
    Since,
    SkipInvalid,
    States,
    TerminalReward,
    Threads,
    Window,
    parse_cost_range,
    require_device,
)
from tightrope.cli.timed_model import refuse_options
from tightrope.errors import InputError
from tightrope.loading import is_continuous
from tightrope.region.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.events import Budget
from tightrope.statistics.least_squares import EllipsoidVersion


class SetsOption(Enum):
    """The kinds of sets, or all of them beside each other."""

    UNTIED = "untied"
    TIED = "tied"
    PARAMETER = "parameter"
    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    COUPLED = "coupled"
    ALL = "all"


def learn(
    model: Model,
    data: Data,
    delta: Delta = 0.001,
    prop: Prop = None,
    region: Annotated[
        RegionKind | None,
        typer.Option("--region", help="The confidence set of parameters.", show_default=False),
    ] = None,
    sets: Annotated[
        SetsOption | None,
        typer.Option(
            "--sets",
            help="What nature may pick from: at every choice anew, or once for the whole run (coupled); "
            "'all' compares.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        IntervalMethod | None,
        typer.Option("--interval", help="The intervals of events.", show_default=False),
    ] = None,
    budget: Annotated[Budget, typer.Option("--budget", help="How events share δ.")] = Budget.TIED,
    ellipsoid: Annotated[
        EllipsoidVersion, typer.Option("--ellipsoid", help="'paper' is the published one, which is unsound.")
    ] = EllipsoidVersion.SOUND,
    intersect: Annotated[
        bool, typer.Option("--intersect", help="Meet parameter sets with the tied intervals.")
    ] = False,
    no_fallback: Annotated[
        bool,
        typer.Option("--no-fallback", help="Stop where the region is empty, instead of using tied sets."),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE|optimal-at-truth",
            help="Certify this policy's interval as well.",
            show_default=False,
        ),
    ] = None,
    at: At = None,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    discount: Discount = None,
    terminal_reward: TerminalReward = None,
    assume_support: AssumeSupport = None,
    coupled_gap: CoupledGap = None,
    cost_range: CostRange = None,
    cost_sd: CostSd = None,
    precision: Annotated[
        float, typer.Option("--precision", metavar="EPS", help="How closely values are computed (relative).")
    ] = 1e-6,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", metavar="SECONDS", help="Stop refining after so long.", show_default=False
        ),
    ] = None,
    device: Device = DeviceName.CPU,
    threads: Threads = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Write a certificate for 'tightrope verify'."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write results and policies."),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            "--export",
            metavar="drn,explicit,umb",
            help="Also write the learned interval model into the output directory.",
            show_default=False,
        ),
    ] = None,
    states: States = None,
    columns: Columns = None,
    value_maps: Map = None,
    design: Design = None,
    planned_episodes: PlannedEpisodes = None,
    since: Since = None,
    window: Window = None,
    chosen_at: ChosenAt = None,
    data_format: DataFormatName = None,
    skip_invalid: SkipInvalid = False,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Learn a robust policy and its certified interval from data.

    With probability at least 1 - delta the policy's true value lies in its interval. What is not given is
    decided from the model and from how the data were sampled, never from what was seen; every default is
    explained. With --sets all, every kind of sets is solved and compared. With --sets coupled, nature picks
    one parameter vector for the whole run, as the true system does: the tightest interval, still certified.

    Whether the data fit the model is tested apart, at a level of its own ("model fit"). After a change that
    'watch' has found, --since leaves out what came before it.

    Example: tightrope learn 'bench:betting(50)' --data data.parquet --delta 0.001 -o results

    Example: tightrope learn model.prism --data runs/ --since 38207 --chosen-at 38206
    """
    if is_continuous(model):
        refuse_options(
            {
                "--interval": interval,
                "--intersect": intersect,
                "--policy": policy,
                "--certificate": certificate,
                "--export": export,
                "--discount": discount,
                "--terminal-reward": terminal_reward,
                "--assume-support": assume_support,
                "--coupled-gap": coupled_gap,
                "--cost-range": cost_range,
                "--cost-sd": cost_sd,
                "--states": states,
                "--columns": columns,
                "--map": value_maps or None,
                "--design": design,
                "--planned-episodes": planned_episodes,
                "--since": since,
                "--window": window,
                "--chosen-at": chosen_at,
                "--skip-invalid": skip_invalid,
                "--at": at,
            }
        )
        if sets not in (None, SetsOption.EXPRESSION):
            raise InputError(
                f"--sets {sets.value} is not there for continuous time",
                hint="leave --sets out: it is expression",
            )
        request = TimedLearning(
            model, tuple(data), data_format, delta, prop, const, param, domain, precision, region
        )
        learn_timed(request, output, json)
        return
    from tightrope.cli.learn_run import Request, run
    from tightrope.cli.log_source import LogRequest
    from tightrope.data.read_options import ReadOptions, event_number

    require_device(device)
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
                    since=event_number("since", since),
                    window=window,
                    chosen_at=event_number("chosen_at", chosen_at),
                    skip_invalid=skip_invalid,
                    format=data_format,
                    engine=engine,
                    scheduler=scheduler,
                ),
            ),
            delta=delta,
            prop=prop,
            region=region,
            sets=None if sets is None else sets.value,
            interval=interval,
            budget=budget,
            ellipsoid=ellipsoid,
            intersect=intersect,
            fallback=not no_fallback,
            policy=policy,
            at=at,
            const=const,
            param=param,
            domain=domain,
            discount=discount,
            terminal_reward=terminal_reward,
            assume_support=assume_support,
            coupled_gap=coupled_gap,
            cost_range=parse_cost_range(cost_range),
            cost_sd=cost_sd,
            precision=precision,
            time_limit=time_limit,
            device=device.value,
            threads=threads,
            certificate=certificate,
            output=output,
            export=export,
            overwrite=overwrite,
            json=json,
        )
    )
