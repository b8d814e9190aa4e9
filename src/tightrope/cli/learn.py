"""`tightrope learn MODEL --prop P --data F --delta D`: a robust policy and its certified interval.

The options alone, so that their help needs none of what learning takes: that is `tightrope.cli.learn_run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.ambiguity.sets import SetsKind
from tightrope.cli import options
from tightrope.cli.options import declare, switch, takes
from tightrope.io.log_words import LOG_WORDS, LogWords
from tightrope.learning.options import Effort, LearnOptions, OutcomesUse
from tightrope.statistics.estimates import Budget, IntervalMethod
from tightrope.statistics.least_squares import EllipsoidVersion

if TYPE_CHECKING:
    from tightrope.cli.sources import LogRequest
    from tightrope.learning.options import LearnOptions


class SetsOption(Enum):
    """The kinds of sets, or all of them beside each other."""

    UNTIED = "untied"
    TIED = "tied"
    PARAMETER = "parameter"
    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    COUPLED = "coupled"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class LearnRequest(options.SubjectOptions):
    """The options of the command."""

    data: options.DataUnlessLabelled = None
    observations: options.Observations = None
    delta: options.Delta = 0.001
    region: options.Region = None
    sets: SetsOption | None = declare(
        "--sets",
        "What nature may pick from: independently at every choice, or once for the whole run (coupled); "
        "'all' compares.",
    )
    interval: IntervalMethod | None = declare("--interval", "The intervals of events.")
    budget: Budget = declare("--budget", "How events share δ.", default=Budget.TIED)
    ellipsoid: EllipsoidVersion = declare(
        "--ellipsoid", "'paper' is the published one, which is unsound.", default=EllipsoidVersion.SOUND
    )
    intersect: bool = switch("--intersect", "Meet parameter sets with the tied intervals.")
    no_fallback: bool = switch("--no-fallback", "Stop where the region is empty, instead of using tied sets.")
    policy: str | None = declare(
        "--policy", "Certify this policy's interval as well.", "FILE|optimal-at-truth"
    )
    at: options.At = None
    assume_support: options.AssumeSupport = None
    misfit: options.Misfit = None
    breakdown: bool = switch(
        "--breakdown", "The largest model error per step under which the guarantee holds."
    )
    breakdown_of: str | None = declare(
        "--breakdown-of", "The same for model error in this parameter or action alone.", "NAME"
    )
    threshold: float | None = declare(
        "--threshold", "The bound that the guarantee must meet; without it, half of its margin.", "VALUE"
    )
    effort: Effort = declare(
        "--effort",
        "Where neither region nor sets are chosen: rectangular sets alone (quick), coupled ones where a "
        "forecast says that they pay, or in any case (high).",
        default=Effort.NORMAL,
    )
    coupled_gap: options.CoupledGap = None
    cost_range: options.CostRange = None
    cost_sd: options.CostSd = None
    outcomes: OutcomesUse | None = declare(
        "--outcomes",
        "Observed returns, if the log shows them: beside the model (auto), alone, or not at all.",
    )
    behaviour: str | None = declare(
        "--behaviour",
        "With --policy: the policy that the log was collected by, where the data do not say it.",
        "FILE|uniform",
    )
    return_range: str | None = declare(
        "--return-range",
        "Expected range of what episodes return; refused if a path of the model leaves it.",
        "LOW,HIGH",
    )
    prior: list[str] | None = declare(
        "--prior",
        "Prior knowledge: 'p ~ beta(8,2)', repeatable, or the directory of an earlier result. "
        "A wrong one costs width, never confidence.",
        "PRIOR|DIR",
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
    overwrite: options.Overwrite = False
    accept_nominal: options.AcceptNominal = False
    json: options.Json = False
    reading: LogWords

    @property
    def log(self) -> LogRequest:
        """The log and how it is read."""
        from tightrope.cli.sources import LogRequest

        return LogRequest.of(self.reading, self.places)

    @property
    def places(self) -> list[str]:
        """Where the data are."""
        return options.places_of(self.data, self.observations)

    @property
    def compares(self) -> bool:
        """Whether all kinds of sets are asked for."""
        return self.sets is SetsOption.ALL

    @property
    def ignores_numbers(self) -> bool:
        """Whether a model of numbers alone is taken, with its probabilities as unknown."""
        return self.sets is SetsOption.UNTIED

    @property
    def is_coupled(self) -> bool:
        """Whether coupled sets are among those asked for."""
        return self.sets in (SetsOption.COUPLED, SetsOption.ALL)

    def learn_options(self) -> LearnOptions:
        """What is said about how to learn."""
        from tightrope.learning.options import LearnOptions
        from tightrope.statistics.priors import read_priors

        return LearnOptions(
            **options.words_of(self, SAME),
            sets=None if self.sets is None or self.compares else SetsKind(self.sets.value),
            fallback=not self.no_fallback,
            cost_range=options.parse_cost_range(self.cost_range),
            return_range=options.parse_cost_range(self.return_range, "--return-range"),
            prior=() if self.prior is None else read_priors(self.prior),
        )


SAME = """
    region interval budget ellipsoid intersect precision device threads assume_support misfit time_limit
    coupled_gap cost_sd outcomes behaviour effort
"""
"""Options that `LearnOptions` has as well."""


@takes(LearnRequest, {"data": LOG_WORDS, "check": options.SOLVING})
def learn(request: LearnRequest) -> None:
    """Learn a robust policy and its certified interval from data.

    With probability at least 1 - delta the policy's true value lies in its interval. What you do not choose
    is decided from the model and from how the data were collected, not from outcomes, and every default is
    explained. If you choose neither region nor sets, sets are refined while it pays (--effort). --sets all
    solves and compares every kind of sets. With --sets coupled, nature picks one parameter vector for the
    whole run, as the true system does; the interval is never wider than over rectangular sets.

    The log may show the value directly: always if no state has a choice, and for --policy if that policy
    collected the log. Then what the episodes returned is bounded, too, and the answer is what both allow. If
    they exclude each other, the model is contradicted.

    A separate test, at its own level, says whether the data fit the model ("model fit"). After a change that
    'watch' has found, --since excludes earlier rows.

    Example: tightrope learn 'bench:betting(50)' --data data.parquet --delta 0.001 -o results

    Example: tightrope learn model.prism --data runs/ --since 38207 --chosen-at 38206
    """
    from tightrope.cli.learn_run import run

    run(request)
