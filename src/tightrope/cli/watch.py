"""`tightrope watch MODEL --data LOG`: does the model still fit, with a known rate of false alarms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import (
    MODEL_HELP,
    Columns,
    Const,
    DataFormatName,
    Domain,
    Json,
    Map,
    Param,
    SkipInvalid,
    States,
    TerminalReward,
)


def watch(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)],
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            "-d",
            metavar="LOG",
            help="Files, patterns or directories, read in the order given; - takes JSON lines from "
            "standard input as they come.",
            show_default=False,
        ),
    ],
    alpha: Annotated[
        float, typer.Option("--alpha", metavar="A", help="The probability that a false alarm is ever raised.")
    ] = 0.001,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on while files grow or are added, until interrupted.")
    ] = False,
    every: Annotated[
        int,
        typer.Option(
            "--every",
            metavar="N",
            help="Report after so many events; 0: in the end, and while following what is new.",
            min=0,
        ),
    ] = 0,
    stop: Annotated[bool, typer.Option("--stop", help="Stop at the first alarm.")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Keep what is known here after every report, and go on from it where it exists.",
            show_default=False,
        ),
    ] = None,
    result: Annotated[
        Path | None,
        typer.Option(
            "--result",
            metavar="DIR",
            help="Watch as well whether returns agree with what this result promises of its policy.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="The policy that the result was given ('learn --policy'), in place of its own.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A transition that the model excludes is an error, no alarm.")
    ] = False,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    terminal_reward: TerminalReward = None,
    states: States = None,
    columns: Columns = None,
    value_maps: Map = None,
    data_format: DataFormatName = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
) -> None:
    """Say whether data still fit a model, while they come in, and what has changed where they do not.

    The evidence is an e-value: under the model, whatever its parameters are and whatever policy collects the
    data, it ever reaches 1/alpha with probability at most alpha, so it may be looked at as often as one
    likes. Against the model speak single distributions, choices that are said to be equal and are not,
    parameters that have changed, and transitions that the model excludes.

    With --result the returns of episodes under the policy are held against the bound that was promised; the
    model and the returns then have half of alpha each.

    Exit code 0: no alarm, 1: alarm, 2: wrong input.

    Example: tightrope watch model.prism --data runs/ --follow --every 10000 --checkpoint watch.npz
    """
    from tightrope.cli.watch_promise import PromiseRequest
    from tightrope.cli.watch_run import WatchRequest, run
    from tightrope.data.read_options import ReadOptions
    from tightrope.errors import InputError

    options = ReadOptions(
        states=None if states is None else states.value,
        columns=columns,
        maps=value_maps,
        skip_invalid=skip_invalid,
        format=data_format,
    )
    if result is None and (policy is not None or terminal_reward is not None):
        raise InputError(
            "--policy and --terminal-reward say whose returns are watched, but there is no promise",
            hint="add --result DIR, a result of 'tightrope learn … -o DIR'",
        )
    promise = None if result is None else PromiseRequest(result, policy, const, terminal_reward)
    subject = (model, const, param, domain)
    places = tuple(data)
    run(WatchRequest(subject, places, options, alpha, follow, every, stop, checkpoint, strict, json, promise))
