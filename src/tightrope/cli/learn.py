"""`tightrope learn MODEL --prop P --data F --delta D`: a robust policy and its certified interval.

The options alone, so that their help needs none of what learning takes: that is `tightrope.cli.learn_run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import tightrope as tr
from tightrope.cli import late, options
from tightrope.cli.options import declare, switch, takes
from tightrope.errors import InputError
from tightrope.io.log_words import LOG_WORDS
from tightrope.learning.options import Effort
from tightrope.statistics.estimates import Budget, IntervalMethod
from tightrope.statistics.least_squares import EllipsoidVersion


class SetsOption(Enum):
    """The kinds of sets, all of them beside each other, or how much is spent on a choice that is open."""

    UNTIED = "untied"
    TIED = "tied"
    PARAMETER = "parameter"
    PARAMETER_WITHIN_TIED = "parameter+tied"
    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    COUPLED = "coupled"
    ALL = "all"
    ALL_WITHIN_TIED = "all+tied"
    QUICK = "quick"
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, kw_only=True)
class LearnRequest(options.StudyOptions):
    """The options of the command."""

    data: options.Data = None
    observations: options.Observations = None
    sets: SetsOption | None = declare(
        "--sets",
        "The sets nature picks from, independently at every choice or once per run (coupled); 'all' "
        "compares them; '+tied' intersects parameter sets with the tied ones. If no region is chosen either: "
        "rectangular sets only (quick), coupled sets if a forecast shows a gain (normal, the default), or "
        "always (high).",
    )
    interval: IntervalMethod | None = declare("--interval", "The intervals of events.")
    budget: Budget = declare("--budget", "How events share δ.", default=Budget.TIED)
    ellipsoid: EllipsoidVersion = declare(
        "--ellipsoid", "'paper' is the published one, whose proof has a gap.", default=EllipsoidVersion.SOUND
    )
    no_fallback: bool = switch("--no-fallback", "Stop if the region is empty, instead of using tied sets.")
    policy: str | None = declare(
        "--policy", "Certify this policy's interval as well.", "FILE|optimal-at-truth"
    )
    tree: str | None = declare(
        "--tree",
        "Find a small decision tree that loses at most this share of the guarantee (0.01, 1%).",
        "SHARE",
    )
    at: options.At = None
    assume_support: options.AssumeSupport = None
    misfit: options.Misfit = None
    breakdown: str | None = declare(
        "--breakdown",
        "The largest model error per step, in the whole model or in one parameter or action, under which "
        "the guarantee meets this value; without it, half of its margin.",
        "all|NAME[:VALUE]",
    )
    coupled_gap: options.CoupledGap = None
    cost_range: options.CostRange = None
    outcomes: list[str] | None = declare(
        "--outcomes",
        "Observed returns, if the log shows them: beside the model (auto), alone, or not at all. Repeatable, "
        "with the policy that collected the log (a file, or uniform), where the data do not say it, and the "
        "range of returns, which is refused if a path of the model leaves it.",
        "auto|only|none|behaviour=FILE|range=LOW,HIGH",
    )
    prior: list[str] | None = declare(
        "--prior",
        "A prior 'p ~ beta(8,2)', repeatable, or the directory of an earlier result. A wrong "
        "prior costs width, never confidence.",
        "PRIOR|DIR",
    )
    unit: str | None = declare(
        "--unit",
        "A column of units that differ: bounds for a share of them (0.9), the next one and the average.",
        "COLUMN[:SHARE]",
    )
    precision: options.Precision = 1e-6
    time_limit: options.TimeLimit = None
    device: options.Device = options.DeviceName.CPU
    threads: options.Threads = None
    certificate: options.CertificateFile = None
    no_verify: options.NoVerify = False
    output: Path | None = declare("-o --output", "Write results and policies.", "DIR")
    export: str | None = declare(
        "--export", "Also write the learned interval model into the output directory.", "drn,explicit,umb"
    )

    @property
    def kind(self) -> str | None:
        """The sets that are asked for, or how much is spent on the choice; without what they lie within."""
        return None if self.sets is None else self.sets.value.partition("+")[0]

    def learn_options(self) -> tr.LearnOptions:
        """What is said about how to learn."""
        words = {**options.learn_words(self), "outcomes": tr.LearnOptions.outcomes}
        words |= parse_outcomes(self.outcomes or ())
        effort = self.kind if self.kind in {level.value for level in Effort} else None
        words["sets"] = None if effort or self.kind == "all" else self.kind
        words["effort"] = effort or tr.LearnOptions.effort
        words["intersect"] = self.sets is not None and self.sets.value.endswith("+tied")
        words["prior"] = () if self.prior is None else late.priors.read_priors(self.prior)
        return tr.LearnOptions.of("learn", {**words, "fallback": not self.no_fallback})

    @property
    def breakdown_words(self) -> tuple[str | None, float | None]:
        """The part of the model that may be wrong, and the value that the guarantee must meet."""
        name, colon, value = (self.breakdown or "").rpartition(":")
        name, value = (name, value) if colon else (value, "")
        if name.startswith("-") or not name:
            raise InputError(
                f"`breakdown` is {self.breakdown!r}, neither 'all' nor a parameter or action",
                hint="write `breakdown=all`, or `breakdown=all:0.9`",
            )
        threshold = options.parse_number(value, "the value of `breakdown`") if colon else None
        return None if name == "all" else name, threshold


def parse_outcomes(given: Sequence[str]) -> dict[str, object]:
    """What `--outcomes` says, as `LearnOptions` takes it.

    >>> parse_outcomes(["only", "behaviour=uniform", "range=0,5"])
    {'outcomes': 'only', 'behaviour': 'uniform', 'return_range': (0.0, 5.0)}
    """
    words: dict[str, object] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if equals and key not in ("behaviour", "range"):
            hint = "write --outcomes only, behaviour=FILE or range=LOW,HIGH"
            raise InputError(f"--outcomes has no part {key!r}", hint=hint)
        name = {"behaviour": "behaviour", "range": "return_range"}.get(key if equals else "", "outcomes")
        if name in words:
            raise InputError(f"--outcomes is both {words[name]} and {value or text}", hint="give one of them")
        words[name] = (
            options.parse_range(value, "--outcomes range=") if name == "return_range" else value or text
        )
    return {name: words[name] for name in ("outcomes", "behaviour", "return_range") if name in words}


@takes(
    LearnRequest,
    {"data": LOG_WORDS, "check": options.SOLVING},
    {"no_verify": "certificate", "export": "output -o DIR"},
)
def learn(request: LearnRequest) -> None:
    """Learn a robust policy and its certified interval from data.

    With probability at least 1 - delta the policy's true value lies in its interval. Defaults depend on the
    model and the sampling design, not on outcomes; --verbose gives the reasons. If you choose neither region
    nor sets, sets are refined while that gains enough (--sets quick to high). --sets all compares every
    kind of sets. With --sets coupled nature picks one parameter vector for the whole run; the interval is
    never wider than over rectangular sets.

    The log may show the value directly: if no state has a choice, or if the policy of --policy collected it.
    Then the observed returns are bounded as well, and the answer is the intersection. If the two intervals
    exclude each other, the model is contradicted.

    A separate test, at its own level, checks whether the data fit the model ("model fit"). After a change
    found by 'watch', --since excludes earlier rows.

    Example: tightrope learn 'bench:betting(50)' --data data.parquet --delta 0.001 -o results

    Example: tightrope learn model.prism --data runs/ --since 38207 --chosen-at 38206
    """
    from tightrope.cli.learn_run import run

    run(request)
