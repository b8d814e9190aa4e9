"""`Plan`: the record of a plan, and its directory, which appears completely or not at all.

plan.json                   forecasts and the design (`tightrope.io.results`)
exploration-policy.json     the one randomised policy to explore with
policies/01.json …          the policies that it mixes; their shares are in plan.json
draws.json                  numbers of draws per choice, if draws are planned
forecast.pdf .svg .png      gap against episodes
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from tightrope.atomic import atomic_write, path_of
from tightrope.data.collection import PlannedDraws
from tightrope.design.directions import Combination
from tightrope.design.forecast import Gap
from tightrope.errors import InputError
from tightrope.io import answers as plans
from tightrope.io.coding import record_of, to_plain, to_text
from tightrope.io.output import OutputDirectory, claim
from tightrope.io.results import Interval
from tightrope.learning.options import Decisions
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.numerics.text import bounded, sure_text
from tightrope.problem import Problem
from tightrope.verdict import Assessment

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlanStatus(Enum):
    """How planning ended.

    >>> PlanStatus.REACHED.value
    'reached already'
    """

    PLANNED = "planned"
    REACHED = "reached already"
    EXPLORE = "no guarantee is finite yet: explore everything first"
    UNREACHABLE = "no amount of data reaches it"
    UNLIKELY = "not reached if the parameters are as estimated"
    BEYOND = "beyond a thousand million episodes"

    @property
    def is_answered(self) -> bool:
        """Whether what was asked for can be reached, as far as is known."""
        return self not in (PlanStatus.UNREACHABLE, PlanStatus.UNLIKELY, PlanStatus.BEYOND)


@dataclass(frozen=True, eq=False, repr=False)
class Strategy(Record):
    """One way to collect data, and its forecast.

    `episodes` more are expected to suffice, `low` to `high` are likely; infinite beyond the forecast. An
    episode takes `steps` and costs `cost` on average. Rows of `points`: (more episodes, gap, low, high).

    >>> import numpy as np
    >>> import tightrope as tr
    >>> points = np.array([[10.0, 0.2, 0.1, 0.3], [100.0, 0.02, 0.01, 0.03]])
    >>> way = Strategy("designed", episodes=80, low=60, high=120, steps=12.0, cost=1.0, points=points)
    >>> way.total_steps, round(way.curve(100).expected, 3)
    (960.0, 0.02)
    """

    name: str
    episodes: float
    low: float
    high: float
    steps: float
    cost: float
    points: FloatArray

    def __post_init__(self) -> None:
        freeze_fields(self)

    @property
    def total_steps(self) -> float:
        """Steps of all the episodes."""
        return self.episodes * self.steps

    @property
    def total_cost(self) -> float:
        """What all the episodes cost."""
        return self.episodes * self.cost

    def curve(self, episodes: float) -> Gap:
        """The gap after so many more episodes, between the points of the forecast."""
        if not (isinstance(episodes, int | float) and episodes >= 0):
            raise InputError(f"`episodes` is {episodes!r}, not a number of episodes")
        at = np.log1p(self.points[:, 0])
        columns = (np.interp(np.log1p(episodes), at, np.log(self.points[:, k])) for k in (1, 2, 3))
        return Gap(*(float(np.exp(column)) for column in columns))

    def _title_(self) -> str:
        return f"Strategy: {self.name}"

    def _facts_(self) -> Facts:
        return [("episodes", f"{self.episodes:,.0f} ({self.low:,.0f} to {self.high:,.0f})")]


@dataclass(frozen=True, eq=False, repr=False)
class DesignedExploration(Record):
    """A design: one randomised `policy`, and the `policies` that it mixes with their `shares` of episodes.

    `optimality`: the certified share lost, at most, against the best exploration at the estimate; `loss`
    against policies drawn per episode. `certified` bounds the probability of states to avoid, with the
    confidence of the region; `certified_drawn` if a policy is drawn per episode.
    """

    policy: Policy
    policies: tuple[Policy, ...]
    shares: tuple[float, ...]
    optimality: float
    solves: int
    steps: float
    loss: float = 0.0
    certified: float | None = None
    certified_drawn: float | None = None

    def _title_(self) -> str:
        return f"DesignedExploration: {len(self.shares)} policies"


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Record):
    """Forecast of the episodes that an aim takes, and how to collect them. Not a guarantee.

    `interval`, `gap_now` and `verdict` describe the data so far, `value` the estimate, `gap_asked` the aim as
    a width. Collect `next_episodes` of `exploration`, then plan again. `hangs_on` are the combinations of
    parameters behind the gap, `unidentifiable` those that no policy shows. If `draws` are planned, forecasts
    count draws.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> pilot = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(100, seed=1)
    >>> found = tr.plan(bench.problem, pilot, delta=0.01, gap="20%", region="likelihood")
    >>> found.status.value, found.episodes > 100, found.curve(10_000).expected < found.gap_now
    ('planned', True, True)
    """

    problem: Problem
    target: plans.Target
    status: PlanStatus
    delta: float
    decisions: Decisions
    interval: Interval
    gap_now: float
    gap_asked: float | None
    value: float
    episodes_so_far: int
    steps_so_far: int
    verdict: Assessment
    strategies: tuple[Strategy, ...] = ()
    exploration: DesignedExploration | None = None
    next_episodes: int = 0
    hangs_on: tuple[Combination, ...] = ()
    unidentifiable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    draws: PlannedDraws | None = None

    @property
    def unit(self) -> str:
        """What is counted: episodes, or draws of single choices."""
        return "draws" if any(one.name == plans.EVEN for one in self.strategies) else "episodes"

    @property
    def designed(self) -> Strategy | None:
        """What to expect of designed exploration, or of data as so far where none is designed."""
        return next((one for one in self.strategies if one.name in (plans.DESIGNED, plans.AS_SO_FAR)), None)

    @property
    def episodes(self) -> float:
        """More episodes that designed exploration needs; infinite where it is not known, or too many."""
        if self.status is PlanStatus.REACHED:
            return 0.0
        return math.inf if self.designed is None else self.designed.episodes

    @property
    def policy(self) -> Policy:
        """What to explore with: one randomised policy."""
        if self.exploration is None:
            raise InputError(f"there is no policy to explore with: {self.status.value}")
        return self.exploration.policy

    def curve(self, episodes: float) -> Gap:
        """Return the forecast gap (expected, low, high) after so many more `episodes`."""
        if self.designed is None:
            raise InputError(f"there is no forecast: {self.status.value}")
        return self.designed.curve(episodes)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Return a picture of the forecast on `ax`: the gap over the number of episodes, with bands."""
        from tightrope.report.plotting import plot_forecast

        return plot_forecast(plan_document(self), ax)

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the directory of `tightrope plan -o` at `path`. Return its files."""
        return write_plan(path_of(path), self)

    def to_json(self) -> dict[str, object]:
        """Return the document that `tightrope plan --json` prints."""
        plain: dict[str, object] = to_plain(plan_document(self))
        return plain

    def headline(self) -> str:
        """Return the verdict and the present gap in one line."""
        whose = "given" if any(one.name == plans.GIVEN for one in self.strategies) else "robust"
        claim = f"gap {bounded(self.gap_now, is_lower=False)} for the {whose} policy now"
        return self.verdict.headline(claim, sure_text(self.delta))

    def _title_(self) -> str:
        return f"Plan: {self.target.text}, {self.status.value}"

    def _facts_(self) -> Facts:
        facts = [("verdict", self.headline())]
        facts.append(("now", f"in {self.interval} after {self.episodes_so_far:,} episodes"))
        for one in self.strategies:
            if self.target.aim is plans.Aim.BUDGET:
                gap = one.curve(self.target.amount)
                facts.append((one.name, f"gap {gap.expected:.4g} ({gap.low:.3g} to {gap.high:.3g})"))
            else:
                facts.append((one.name, f"{plans.round_forecast(one.episodes)} {self.unit}, {likely(one)}"))
        if self.exploration is not None:
            facts.append(("next", f"{self.next_episodes:,} episodes, then plan again"))
        return [*facts, ("label", plans.LABEL)]


def likely(strategy: Strategy) -> str:
    """The range in words."""
    return f"{plans.round_forecast(strategy.low)} to {plans.round_forecast(strategy.high)}"


POLICY_FILE = "exploration-policy.json"
DRAWS_FILE = "draws.json"


def plan_document(plan: Plan, source: str | None = None) -> plans.PlanDocument:
    """The document; `source` says where the model came from."""
    model, made = plan.problem.model, plan.exploration
    region = plan.decisions.region
    return record_of(
        plans.PlanDocument,
        plan,
        model=source or f"a model of {model.states:,} states",
        model_hash=model.hash(),
        question=plan.problem.text,
        region="" if region is None else region.value,
        sets=plan.decisions.sets.value,
        aim=plan.target.aim.value,
        asked=plan.target.amount,
        relative=plan.target.relative,
        label=plans.LABEL,
        interval=Interval.of(plan.interval.lower, plan.interval.upper),
        strategies=[_strategy(one) for one in plan.strategies],
        design=None
        if made is None
        else record_of(plans.DesignedFacts, made, policy=POLICY_FILE, steps_per_episode=made.steps),
        directions=[plans.CombinationFacts(one.text, one.share) for one in plan.hangs_on],
        next=_next(plan),
        draws=UNSET if plan.draws is None else plan.draws.table,
    )


def _next(plan: Plan) -> plans.NextFacts | None:
    if plan.draws is not None:
        return plans.NextFacts(plan.next_episodes, DRAWS_FILE)
    return None if plan.exploration is None else plans.NextFacts(plan.next_episodes, POLICY_FILE)


def _strategy(one: Strategy) -> plans.StrategyFacts:
    finite = min(one.episodes, float(one.points[-1, 0]))
    return record_of(
        plans.StrategyFacts,
        one,
        steps=one.total_steps,
        steps_per_episode=one.steps,
        cost=one.total_cost,
        gap=one.curve(finite).expected,
        curve=[(row[0], row[1], row[2], row[3]) for row in one.points.tolist()],
    )


KIND = "plan"
"""The command that such a directory belongs to."""


def claim_plan(path: Path) -> OutputDirectory:
    """Refuse a place that a plan must not be written to, before anything is computed."""
    return claim(path, KIND)


def write_plan(
    path: Path, plan: Plan, document: plans.PlanDocument | None = None, claimed: OutputDirectory | None = None
) -> list[Path]:
    """Write the directory; the paths of its files."""
    written = document or plan_document(plan)
    with (claimed or claim_plan(path)).filling(plans.PLAN_FILE) as folder:
        made = plan.exploration
        if made is not None:
            _write(plan, made.policy, folder / POLICY_FILE)
            (folder / "policies").mkdir()
            for number, policy in enumerate(made.policies, start=1):
                _write(plan, policy, folder / "policies" / f"{number:02}.json")
        if plan.draws is not None:
            with atomic_write(folder / DRAWS_FILE) as file:
                file.write(plan.draws.to_text())
        if plan.strategies:
            from tightrope.report.plan_page import write_forecast

            write_forecast(written, folder)
        with atomic_write(folder / plans.PLAN_FILE) as file:
            file.write(to_text(written) + "\n")
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return [path / name for name in names]


def _write(plan: Plan, policy: Policy, target: Path) -> None:
    policy.save(target, plan.problem.model.hash())
