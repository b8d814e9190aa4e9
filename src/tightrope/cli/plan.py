"""`tightrope plan MODEL --data F --gap E`: how much more data, collected how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tightrope.ambiguity.sets import SetsKind
from tightrope.cli import options
from tightrope.cli.options import DeviceName, option, require_device
from tightrope.cli.records import DesignedLogOptions, SubjectOptions, takes
from tightrope.regions.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod


@dataclass(frozen=True, kw_only=True)
class Request(SubjectOptions):
    """The options of the command."""

    data: options.Data
    gap: Annotated[
        str | None,
        option(
            "--gap",
            "The width of the robust policy's interval that is wanted, or a share of its value.",
            "E|E%",
        ),
    ] = None
    optimality: Annotated[
        float | None, option("--optimality", "Guarantee and best possible value so close instead.", "E")
    ] = None
    above: Annotated[
        float | None, option("--above", "A guarantee so good instead (below T, for costs).", "T")
    ] = None
    budget: Annotated[
        int | None, option("--budget", "The gap to expect from N more episodes instead.", "N")
    ] = None
    delta: options.Delta = 0.001
    region: Annotated[RegionKind | None, option("--region", "The confidence set of parameters.")] = None
    sets: Annotated[SetsKind | None, option("--sets", "What nature may pick from.")] = None
    interval: Annotated[IntervalMethod | None, option("--interval", "The intervals of events.")] = None
    policy: Annotated[
        str | None,
        option("--policy", "Plan for the interval of this policy instead of the robust one.", "FILE"),
    ] = None
    within_cap: Annotated[
        int | None,
        option(
            "--within-cap",
            "Steps of an episode at most (benchmarks have theirs); required where it need not end.",
            "N",
            min=1,
        ),
    ] = None
    cost: options.Cost = None
    avoid: options.Avoid = None
    at_most: options.AtMost = None
    generative: Annotated[
        bool,
        option("--generative", "How many draws of which choice, where every choice can be sampled at will."),
    ] = False
    assume_support: options.AssumeSupport = None
    coupled_gap: options.CoupledGap = None
    device: options.Device = DeviceName.CPU
    threads: options.Threads = None
    output: Annotated[
        Path | None, option("-o --output", "Write the plan, policies to explore with, and the figure.", "DIR")
    ] = None
    accept_nominal: options.AcceptNominal = False
    json: options.Json = False
    reading: DesignedLogOptions

    @property
    def words(self) -> dict[str, Any]:
        """What goes to `tightrope.plan` as it is, where it is given."""
        given = {name: getattr(self, name) for name in WORDS.split()}
        given |= {"generative": self.generative or None, "device": self.device.value}
        return {name: value for name, value in given.items() if value is not None}


WORDS = """
    optimality above budget cost avoid at_most region sets interval assume_support coupled_gap threads
"""


@takes(Request)
def plan(asked: Request) -> None:
    """Forecast how many more episodes a gap takes, and design their exploration.

    From the data so far: the gap now, the episodes that designed, robust, optimistic and uniform collection
    would need with a likely range, what the gap hangs on, and a randomised policy to collect the next stage
    with. It is a forecast, not a guarantee; the guarantee is what 'tightrope learn' says about the data once
    they are there. Exit code 1: what is asked for cannot be reached.

    Example: tightrope plan 'bench:rover(10,10)' --data pilot.parquet --gap 0.015 -o plan
    """
    from tightrope.cli.plan_run import run

    require_device(asked.device)
    run(asked)
