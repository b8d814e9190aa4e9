"""`tightrope sample MODEL --at … --episodes N --seed S -o F`: data from a model at a known point.

Of a chain in continuous time it is a log with the moments of all jumps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

import tightrope as tr
from tightrope.benchmarks.instance import decimal_text
from tightrope.cli import late, options
from tightrope.cli.options import ModelOptions, declare, refuse_any, refuse_options, switch, takes
from tightrope.cli.output import Rows, common, group, print_facts, warn
from tightrope.cli.sources import Loaded, Question, episode_end, longest, seen_through
from tightrope.data.columns import StateForm
from tightrope.data.simulator import DEFAULT_CAP
from tightrope.data.writing import write_counts, write_trajectories
from tightrope.errors import InputError
from tightrope.io.output import DATA, claim_file
from tightrope.io.table.data_table import is_parquet, write_table
from tightrope.loading import is_continuous
from tightrope.model.pomdp import POMDP, controller_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tightrope.model.structure import Structure
    from tightrope.numerics.arrays import AnyArray, BoolArray


UNIFORM = "uniform"

TIMED_CAP = 1_000_000
"""Jumps after which an episode is cut off, where --cap does not say otherwise."""


class SampleAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`sample`: what was simulated."""

    episodes: int | None
    steps: int
    seconds: float
    design: str
    cap: int | None
    batches: int
    transitions_seen: int
    file: str


@dataclass(frozen=True, kw_only=True)
class SampleRequest(ModelOptions):
    """The options of the command."""

    output: Path | None = declare("-o --output", "A .parquet or .csv file.", "FILE")
    episodes: int | None = declare("--episodes", "Number of trajectories.", "N", min=1)
    seed: int = declare("--seed", "Same seed, same data.", "S", default=0, min=0)
    at: options.At = None
    observations: options.Observations = None
    prop: options.Prop = None
    policy: str = declare(
        "--policy",
        "The policy to simulate; for the directory of a plan, one of its policies per episode.",
        "FILE|PLAN|uniform",
        default=UNIFORM,
    )
    bet_on: list[Path] | None = declare(
        "--bet-on",
        "Record this policy, before sampling, as the one that 'learn --region slab' bets on.",
        "FILE",
    )
    cap: int | None = declare(
        "--cap",
        f"Steps after which an episode is cut off ({DEFAULT_CAP}, or a benchmark's own).",
        "STEPS",
        min=1,
    )
    watched: float | None = declare("--time", "In continuous time: the length of an episode.", "T")
    raw: bool = switch("--raw", "One row per step instead of one row per counted transition.")
    costs: str | None = declare(
        "--costs",
        "With --raw: a column 'cost' with the reward of each step, and noise around it.",
        "exact|two-point:A,B|uniform:W|normal:S",
    )
    generative: int | None = declare(
        "--generative", "Draw every choice N times, without trajectories.", "N", min=1
    )
    draws: Path | None = declare(
        "--draws", "Numbers of draws per choice, from a table of 'plan --generative'.", "FILE"
    )
    states: StateForm | None = declare(
        "--states",
        "Write states by index (the default) or by the model's variables; with --env, 'index' "
        "also states that observations are state indices.",
    )
    env: options.Env = None
    convert_obs: options.ConvertObs = None
    actions: options.Actions = None
    append: Path | None = declare(
        "--append", "Append the episodes to this file, or write both to -o.", "FILE"
    )


NOT_TIMED = "observations prop bet_on raw generative draws states env convert_obs actions append"
"""Options that cannot be used with chains in continuous time."""


@takes(SampleRequest, needs={"costs": "raw"})
def sample(request: SampleRequest) -> None:
    """Simulate a model at a parameter point and write the data.

    An episode ends when the property is decided, in an absorbing state, or at the cap. The file records seed,
    policy and sampling design; 'tightrope learn --data FILE' reads it.

    Example: tightrope sample 'bench:betting(50)' --episodes 100000 --seed 1 -o data.parquet
    """
    timed = is_continuous(request.model)
    refuse_combinations(request, timed)
    if timed:
        sample_timed(request)
        return
    output = request.output or request.append
    assert output is not None
    is_parquet(output)
    claimed = claim_file(output, DATA, common.overwrite)
    walk = Simulation.of(request)
    begin = time.perf_counter()
    counts = walk.counts()
    structure, written = walk.loaded.model.structure, request.states or StateForm.INDEX
    claimed.check()
    if request.raw and request.episodes is not None:
        blocks = walk.simulator.trajectories(request.episodes, request.seed)
        costs = None if request.costs is None else walk.cost_source(request.costs)
        write_trajectories(output, blocks, counts, structure, states=written, extra=walk.extra, costs=costs)
    else:
        write_counts(output, counts, structure, states=written, extra=walk.extra)
    _report_walk(walk, output, counts, time.perf_counter() - begin)


def refuse_combinations(request: SampleRequest, timed: bool) -> None:
    """Options that do not go with the model, or with each other."""
    one = (request.episodes, request.generative, request.draws)
    if timed:
        refuse_options(request, NOT_TIMED)
        if request.policy != UNIFORM:
            refuse_options(request, "policy")
        refuse_any(
            (
                None in (request.output, request.episodes, request.watched),
                "a chain in continuous time is sampled with --episodes N, --time T and -o FILE",
                "such as --episodes 100 --time 50 -o log.csv",
            )
        )
        return
    by_count, env = request.episodes is None, request.env is not None
    refuse_any(
        (
            request.watched is not None,
            "--time is about chains in continuous time",
            "--cap bounds the steps of an episode",
        ),
        (
            request.output is None and request.append is None,
            "no file is named to write to",
            "add -o FILE, such as -o data.parquet",
        ),
        (
            request.append is not None and (by_count or request.raw or env or request.bet_on),
            "--append requires --episodes and cannot be used with --raw, --env or --bet-on",
        ),
        (
            sum(given is not None for given in one) != 1,
            "give one of --episodes N, --generative N and --draws FILE",
        ),
        (
            request.raw and (by_count or env),
            "--raw is for simulated trajectories only, not for --generative, --draws or --env",
        ),
        (env and by_count, "--env is for --episodes, not for --generative or --draws"),
    )


Mixture = tuple[list[float], "list[tr.Policy]"]


@dataclass(eq=False)
class Simulation:
    """How to walk: the model, its policy or the `mixture` of a plan, where and when an episode ends, and the
    property that decides it. `extra` is what the file says of all that."""

    request: SampleRequest
    question: Question
    loaded: Loaded
    at: str | None
    mixture: Mixture | None
    policy: tr.Policy | None
    stop: BoolArray | None
    cap: int
    text: str | None
    extra: dict[str, object]

    @staticmethod
    def of(request: SampleRequest) -> Simulation:
        """Load the model and the policies; of a partially observable model these see observations."""
        question = Question.of(request)
        loaded, pomdp, readings = seen_through(question.load(observed=True), request.observations)
        mixture = None if request.policy == UNIFORM else _read_mixture(request.policy, loaded)
        not_mixed = request.raw or request.env is not None or request.episodes is None
        refuse_any(
            (
                mixture is not None and not_mixed,
                "--policy names a plan; its policies are drawn per simulated episode, which requires "
                "--episodes without --raw and --env",
                f"name one policy, such as {request.policy}/exploration-policy.json",
            )
        )
        policy = _policy(request, loaded, pomdp) if mixture is None else None
        stop, cap, text = _end(request, question, loaded, pomdp)
        extra = {name: getattr(request, name) for name in ("seed", "policy")}
        extra |= {"source": request.model, "cap": cap, "property": text}
        extra |= {} if policy is None else {"policy_sha256": policy.digest}
        beside = "--env" if request.append is None else "--append"
        not_walked = request.append is not None or request.env is not None
        refuse_any(
            (
                policy is not None and policy.has_memory and not_walked,
                f"a finite-memory policy is for simulated episodes, not for {beside}",
            )
        )
        at = request.at
        if pomdp is not None and readings is not None:  # a sensor reports as often as in the table
            shares = [f"{name}={share}" for name, share in late.labelled.counted(pomdp, readings).items()]
            at = ",".join([*([at] if at else []), *shares])
        return Simulation(request, question, loaded, at, mixture, policy, stop, cap, text, extra)

    @cached_property
    def simulator(self) -> tr.Simulator:
        """The model at the point that was asked for, ready to walk."""
        model, point = self.loaded.discrete, {}
        if isinstance(model, tr.IntervalMDP):
            raise InputError("an interval model has no single set of probabilities to draw from")
        theta = self.loaded.point(self.at)
        if not isinstance(model, tr.MDP):
            point = {n: decimal_text(v) for n, v in zip(model.parameters.names, theta, strict=True)}
            model = model.instantiate(theta)
        self.extra["at"] = point
        return tr.Simulator(model, self.policy, self.stop, self.cap, self.loaded.model.hash())

    def counts(self) -> tr.Counts:
        """All that is drawn, with the policies that are to be bet on in its design."""
        request = self.request
        counts = self._stepped() if request.env is not None else self._drawn()
        digests = tuple(tr.Policy(self.loaded.model, path).digest for path in request.bet_on or ())
        return replace(counts, design=replace(counts.design, bet_on=digests)) if digests else counts

    def _drawn(self) -> tr.Counts:
        request, simulator, model = self.request, self.simulator, self.loaded.model
        walker = (
            simulator if self.mixture is None else late.collection.MixedEpisodes(simulator, *self.mixture)
        )
        if request.draws is not None:
            if not isinstance(model, tr.ParametricMDP):
                raise InputError("--draws requires a model with parameters: the table is by signature")
            planned = late.collection.read_draws(request.draws, model)
            counts = simulator.generative(planned.per_choice, request.seed)
            self.extra["draws"] = str(request.draws)
            return replace(counts, design=replace(counts.design, planned_from=planned.planned_from))
        if request.episodes is None:
            return simulator.generative(request.generative or 0, request.seed)
        if request.append is not None:
            self.extra["appended_to"] = str(request.append)
            before = tr.read_data(str(request.append), model).counts
            return late.collection.append_episodes(before, walker, request.episodes, request.seed)
        counts = walker.episodes(request.episodes, request.seed)
        origin = self.policy if self.mixture is None else self.mixture[1][0]
        if origin is None:
            return counts
        # whoever chose it may have looked at data
        return replace(counts, design=replace(counts.design, planned_from=origin.digest))

    def _stepped(self) -> tr.Counts:
        """The episodes of an environment."""
        request = self.request
        assert request.env is not None and request.episodes is not None
        convert = request.convert_obs
        self.extra["env"] = request.env
        return late.steps.count_environment(
            late.steps.make_environment(request.env),
            self.loaded.model,
            request.episodes,
            request.seed,
            policy=self.policy,
            stop=self.stop,
            cap=self.cap,
            convert_obs=None if convert is None else late.steps.load_named(convert, "--convert-obs"),
            actions=None if request.actions is None else request.actions.split(","),
            states=request.states,
        )

    def cost_source(self, text: str) -> late.costs.CostSource:
        """Costs around the rewards that the property asks for, or the only ones of the model."""
        structure, wanted = self.loaded.model.structure, None
        if self.question.files or self.loaded.benchmark is not None:
            objective = self.question.queries(self.loaded)[0].objective
            wanted = objective.reward if objective.is_reward else None
        reward = wanted if wanted is not None else late.costs.reward_of(structure.rewards)
        point = list(self.loaded.point(self.request.at))
        self.extra["costs"] = text
        return late.costs.CostSource(
            late.costs.mean_costs(reward, structure, point),
            late.costs.CostNoise.parse(text),
            self.request.seed,
        )


def _read_mixture(policy: str, loaded: Loaded) -> Mixture | None:
    """The shares and policies of a plan's directory; None where the policy is a file."""
    folder = Path(policy)
    if not folder.is_dir():
        return None
    file = late.answers.plan_file(folder)
    design = None if file is None else late.answers.read_plan(file).design
    if design is None:
        raise InputError(
            f"{policy} is a directory, and no plan with a policy to explore with",
            hint="name a policy file, or a directory that 'tightrope plan -o' wrote",
        )
    names = [folder / "policies" / f"{number:02}.json" for number in range(1, len(design.shares) + 1)]
    return design.shares, [tr.Policy(loaded.model, name) for name in names]


def _policy(request: SampleRequest, loaded: Loaded, pomdp: POMDP | None) -> tr.Policy | None:
    if request.policy == UNIFORM:
        return None
    if pomdp is not None:
        return controller_of(pomdp, request.policy).policy
    return tr.Policy(loaded.model.structure, request.policy)


def _end(
    request: SampleRequest, question: Question, loaded: Loaded, pomdp: POMDP | None
) -> tuple[BoolArray | None, int, str | None]:
    """The states in which an episode ends, its longest length, and the property that decides it."""
    limit = longest(loaded, request.cap)
    if not question.files and loaded.benchmark is None:
        return None, limit, None
    query = question.query(loaded, "an episode ends by one property")
    objective = query.objective if pomdp is None else pomdp.paced(query.objective)
    return *episode_end(loaded.model.structure.states, objective, limit), query.text


def _report_walk(walk: Simulation, output: Path, counts: tr.Counts, seconds: float) -> None:
    design, of_episodes = counts.design, counts.design.episodes is not None
    seen = int((counts.transition > 0).sum())
    if counts.steps == 0:
        warn("no step was taken: the property is decided in the initial state, or it is absorbing")
    answer = SampleAnswer(
        episodes=design.episodes,
        steps=counts.steps,
        seconds=round(seconds, 6),
        design=design.kind.value,
        cap=walk.cap if of_episodes else None,
        batches=len(counts.batches or ()),
        transitions_seen=seen,
        file=str(output),
    )
    ends = f"when {walk.text} is decided" if walk.text else "in absorbing states"
    facts: Rows = [
        ("episodes", design.episodes),
        ("steps", counts.steps),
        ("transitions seen", f"{group(seen)} of {group(len(counts.transition))}"),
        ("cap", f"{group(walk.cap)} steps" if of_episodes else None),
        ("episodes end", ends if of_episodes else None),
        ("file", answer.file),
        ("seconds", f"{answer.seconds:.3g}"),
    ]
    print_facts(walk.request.model, facts, answer)


def sample_timed(request: SampleRequest) -> None:
    """Simulate so many episodes of this duration, and write their jumps."""

    output, episodes, duration = request.output, request.episodes, request.watched
    assert output is not None and episodes is not None and duration is not None
    is_parquet(output)
    if not 0 < duration < float("inf"):
        raise InputError(f"--time is {duration}, not a positive time")
    claimed = claim_file(output, DATA, common.overwrite)
    loaded = Question.of(request).load(timed=True, quiet=True)
    model, point = loaded.model, loaded.point(request.at)
    assert isinstance(model, tr.ParametricCTMC)
    begin = time.perf_counter()
    cap = TIMED_CAP if request.cap is None else request.cap
    rows = tr.simulate_times(model.instantiate(point), episodes, request.seed, duration, cap)
    states = {name: column[rows.state] for name, column in _state_columns(model.structure).items()}
    names = model.parameters.names
    metadata = {
        "rows": "times",
        "source": request.model,
        "seed": request.seed,
        "time": duration,
        "cap": cap,
        "at": {name: decimal_text(value) for name, value in zip(names, point, strict=True)},
    }
    claimed.check()
    write_table(output, [{"episode": rows.episode, "time": rows.time, **states}], metadata)
    answer = SampleAnswer(
        episodes=episodes,
        steps=rows.jumps,
        seconds=round(time.perf_counter() - begin, 6),
        design="trajectories",
        cap=cap,
        batches=0,
        transitions_seen=rows.jumps,
        file=str(output),
    )
    watched = f"{group(episodes)}, each watched for {duration:,g}"
    facts = [("episodes", watched), ("jumps", group(rows.jumps)), ("file", answer.file)]
    print_facts(request.model, [*facts, ("seconds", f"{answer.seconds:.3g}")], answer)


def _state_columns(structure: Structure) -> Mapping[str, AnyArray]:
    """States by the model's variables, or by index where it has none."""
    if not structure.valuations:
        return {"state": np.arange(structure.states)}
    if clash := {"episode", "time", "duration"}.intersection(structure.valuations):
        raise InputError(f"the model's variable '{clash.pop()}' clashes with a column's name")
    return structure.valuations
