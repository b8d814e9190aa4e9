"""`tightrope watch MODEL --data LOG`: does the model still fit, with a known rate of false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tightrope.cli import options
from tightrope.cli.options import option
from tightrope.cli.records import LogOptions, ModelOptions, takes
from tightrope.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Request(ModelOptions):
    """The options of the command."""

    data: Annotated[
        list[str],
        option(
            "--data -d",
            "Files, patterns or directories, read in the order given; - takes JSON lines from "
            "standard input as they come.",
            "LOG",
        ),
    ]
    alpha: Annotated[float, option("--alpha", "The probability that a false alarm is ever raised.", "A")] = (
        0.001
    )
    follow: Annotated[
        bool, option("--follow -f", "Go on while files grow or are added, until interrupted.")
    ] = False
    every: Annotated[
        int,
        option(
            "--every",
            "Report after so many events; 0: in the end, and while following what is new.",
            "N",
            min=0,
        ),
    ] = 0
    stop: Annotated[bool, option("--stop", "Stop at the first alarm.")] = False
    checkpoint: Annotated[
        Path | None,
        option(
            "--checkpoint",
            "Keep what is known here after every report, and go on from it where it exists.",
            "FILE",
        ),
    ] = None
    result: Annotated[
        Path | None,
        option(
            "--result",
            "Watch as well whether returns agree with what this result promises of its policy.",
            "DIR",
        ),
    ] = None
    policy: Annotated[
        str | None,
        option(
            "--policy",
            "The policy that the result was given ('learn --policy'), in place of its own.",
            "FILE",
        ),
    ] = None
    strict: Annotated[
        bool, option("--strict", "A transition that the model excludes is an error, no alarm.")
    ] = False
    terminal_reward: options.TerminalReward = None
    accept_nominal: options.AcceptNominal = False
    json: options.Json = False
    reading: LogOptions


@takes(Request)
def watch(asked: Request) -> None:
    """Say whether data still fit a model, while they come in, and what has changed where they do not.

    The evidence is an e-value: under the model, whatever its parameters are and whatever policy collects the
    data, it ever reaches 1/alpha with probability at most alpha, so it may be looked at as often as one
    likes. Against the model speak single distributions, choices that are said to be equal and are not,
    parameters that have changed, and transitions that the model excludes.

    With --result the returns of episodes under the policy are held against the bound that was promised; the
    model and the returns then have half of alpha each.

    Exit code 0: the test is valid and raised no alarm, 1: an alarm, or nothing to test, 2: wrong input.

    Example: tightrope watch model.prism --data runs/ --follow --every 10000 --checkpoint watch.npz
    """
    from tightrope.cli.watch_run import run

    if asked.result is None and (asked.policy is not None or asked.terminal_reward is not None):
        raise InputError(
            "--policy and --terminal-reward say whose returns are watched, but there is no promise",
            hint="add --result DIR, a result of 'tightrope learn … -o DIR'",
        )
    run(asked)
