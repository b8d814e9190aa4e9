"""`tightrope sample MODEL --at … --episodes N --seed S -o F`: data from a model at a known point.

Of a chain in continuous time it is a log with the moments of all jumps.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tightrope.cli import options, sources
from tightrope.cli.options import ModelOptions, declare, parse_constants, refuse_options, switch, takes
from tightrope.cli.output import common, group, print_facts, warn
from tightrope.cli.sources import LoadedModel, PropertyTexts
from tightrope.data.columns import StateForm
from tightrope.errors import InputError
from tightrope.loading import is_continuous
from tightrope.model.pomdp import POMDP, controller_of

if TYPE_CHECKING:
    from tightrope.data.collection import MixedEpisodes, PlannedDraws, SteeredSimulator
    from tightrope.data.costs import CostSource
    from tightrope.data.counts import Counts
    from tightrope.data.reading import Reading
    from tightrope.data.simulator import Simulator
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.structure import Structure
    from tightrope.numerics.arrays import BoolArray


DEFAULT_CAP = 1000
"""Steps after which an episode is cut off, where neither --cap nor a benchmark says otherwise."""

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
        "--append",
        "Append the episodes to this file, or write both to -o.",
        "FILE",
    )


NOT_TIMED = "observations prop bet_on raw generative draws states env convert_obs actions append"
"""Options that cannot be used with chains in continuous time."""


@takes(SampleRequest)
def sample(request: SampleRequest) -> None:
    """Simulate a model at a parameter point and write the data.

    An episode ends when the property is decided, in an absorbing state, or at the cap. The file records seed,
    policy and sampling design; 'tightrope learn --data FILE' reads it.

    Example: tightrope sample 'bench:betting(50)' --episodes 100000 --seed 1 -o data.parquet
    """
    if is_continuous(request.model):
        refuse_options(request, NOT_TIMED)
        if request.policy != UNIFORM:
            refuse_options(request, "policy")
        if request.output is None or request.episodes is None or request.watched is None:
            raise InputError(
                "a chain in continuous time is sampled with --episodes N, --time T and -o FILE",
                hint="such as --episodes 100 --time 50 -o log.csv",
            )
        sample_timed(request, request.output, request.episodes, request.watched)
        return
    if request.watched is not None:
        raise InputError(
            "--time is about chains in continuous time", hint="--cap bounds the steps of an episode"
        )
    from tightrope.data.collection import MixedEpisodes, append_episodes
    from tightrope.data.reading import read_data
    from tightrope.data.simulator import Simulator
    from tightrope.data.writing import write_counts, write_trajectories
    from tightrope.io.output import DATA, claim_file
    from tightrope.io.table.data_table import is_parquet

    output = request.output or request.append
    if output is None:
        raise InputError("no file is named to write to", hint="add -o FILE, such as -o data.parquet")
    is_parquet(output)
    claimed = claim_file(output, DATA, common.overwrite)
    if request.append is not None and (
        request.episodes is None or request.raw or request.env is not None or request.bet_on
    ):
        raise InputError("--append requires --episodes and cannot be used with --raw, --env or --bet-on")
    if sum(given is not None for given in (request.episodes, request.generative, request.draws)) != 1:
        raise InputError("give one of --episodes N, --generative N and --draws FILE")
    if request.raw and (request.episodes is None or request.env is not None):
        raise InputError("--raw is for simulated trajectories only, not for --generative, --draws or --env")
    if request.costs is not None and not request.raw:
        raise InputError("--costs requires --raw: a cost belongs to a step", hint="add --raw")
    if request.env is not None and request.episodes is None:
        raise InputError("--env is for --episodes, not for --generative or --draws")
    constants = parse_constants(request.const)
    properties = sources.read_properties([] if request.prop is None else [request.prop])
    loaded = sources.load_model(
        request.model, properties.model_constants(constants), request.param, request.domain, observed=True
    )
    loaded, pomdp, readings = sources.seen_through(loaded, request.observations)
    mixture = None if request.policy == UNIFORM else _read_mixture(request.policy, loaded)
    if mixture is not None and (request.raw or request.env is not None or request.episodes is None):
        raise InputError(
            "--policy names a plan; its policies are drawn per simulated episode, which requires "
            "--episodes without --raw and --env",
            hint=f"name one policy, such as {request.policy}/exploration-policy.json",
        )
    setting = setting_of(
        loaded, properties, constants, request.cap, UNIFORM if mixture is not None else request.policy, pomdp
    )
    planned = None if request.draws is None else _read_draws(request.draws, loaded)
    extra = {
        "source": request.model,
        "seed": request.seed,
        "policy": request.policy,
        "cap": setting.cap,
        "property": setting.text,
    }
    if setting.policy is not None:
        extra["policy_sha256"] = setting.policy.digest
        if setting.policy.has_memory and (request.append is not None or request.env is not None):
            beside = "--env" if request.append is None else "--append"
            raise InputError(f"a finite-memory policy is for simulated episodes, not for {beside}")
    begin = time.perf_counter()
    written = request.states or StateForm.INDEX
    if request.env is not None:
        counts = _plan_bets(_step_environment(request, loaded, setting), loaded, request.bet_on)
        structure, extra["env"] = loaded.model.structure, request.env
        write_counts(claimed.checked(), counts, structure, states=written, extra=extra)
    else:
        at = None if pomdp is None or readings is None else _counted_point(pomdp, readings, request.at)
        simulator, point = simulator_at(loaded, setting, at or request.at)
        extra["at"] = point
        walker: Simulator | SteeredSimulator | MixedEpisodes = simulator
        if mixture is not None:
            assert isinstance(simulator, Simulator)
            walker = MixedEpisodes(simulator, *mixture)
        if planned is not None:
            counts = simulator.generative(planned.per_choice, request.seed)
            counts = replace(counts, design=replace(counts.design, planned_from=planned.planned_from))
            extra["draws"] = str(request.draws)
        elif request.episodes is None:
            counts = simulator.generative(request.generative or 0, request.seed)
        elif request.append is not None:
            assert isinstance(walker, Simulator | MixedEpisodes)
            before = read_data(str(request.append), loaded.model).counts
            counts = append_episodes(before, walker, request.episodes, request.seed)
            extra["appended_to"] = str(request.append)
        else:
            counts = walker.episodes(request.episodes, request.seed)
            origin = setting.policy if mixture is None else mixture[1][0]
            if origin is not None:  # whoever chose it may have looked at data
                counts = replace(counts, design=replace(counts.design, planned_from=origin.digest))
        counts = _plan_bets(counts, loaded, request.bet_on)
        claimed.check()
        structure = loaded.model.structure
        if request.raw and request.episodes is not None:
            blocks = simulator.trajectories(request.episodes, request.seed)
            drawn = None
            if request.costs is not None:
                drawn = cost_source(request.costs, loaded, properties, constants, request.at, request.seed)
                extra["costs"] = request.costs
            write_trajectories(output, blocks, counts, structure, states=written, extra=extra, costs=drawn)
        else:
            write_counts(output, counts, structure, states=written, extra=extra)
    _report_walk(request, output, counts, time.perf_counter() - begin, setting)


def _counted_point(pomdp: POMDP, readings: Reading, at: str | None) -> str:
    """Where --at says for the plant, and a sensor that reports as often as in the table."""
    from tightrope.data.labelled import counted

    return ",".join(
        [*([at] if at else []), *(f"{n}={share}" for n, share in counted(pomdp, readings).items())]
    )


def _plan_bets(counts: Counts, loaded: LoadedModel, bet_on: Sequence[Path] | None) -> Counts:
    """The counts with the policies that are to be bet on in their design."""
    from tightrope.model.policy import Policy

    digests = tuple(Policy(loaded.model, path).digest for path in bet_on or ())
    return replace(counts, design=replace(counts.design, bet_on=digests)) if digests else counts


def _read_mixture(policy: str, loaded: LoadedModel) -> tuple[list[float], list[Policy]] | None:
    """The shares and policies of a plan's directory; None where the policy is a file."""
    from tightrope.io.plans import plan_file, read_plan
    from tightrope.model.policy import Policy

    folder = Path(policy)
    if not folder.is_dir():
        return None
    file = plan_file(folder)
    design = None if file is None else read_plan(file).design
    if design is None:
        raise InputError(
            f"{policy} is a directory, and no plan with a policy to explore with",
            hint="name a policy file, or a directory that 'tightrope plan -o' wrote",
        )
    names = [folder / "policies" / f"{number:02}.json" for number in range(1, len(design.shares) + 1)]
    return design.shares, [Policy(loaded.model, name) for name in names]


def _read_draws(path: Path, loaded: LoadedModel) -> PlannedDraws:
    from tightrope.data.collection import read_draws
    from tightrope.model.parametric_mdp import ParametricMDP

    if not isinstance(loaded.model, ParametricMDP):
        raise InputError("--draws requires a model with parameters: the table is by signature")
    return read_draws(path, loaded.model)


def _step_environment(request: SampleRequest, loaded: LoadedModel, setting: WalkSetting) -> Counts:
    from tightrope.data.steps import count_environment, load_named, make_environment

    assert request.env is not None and request.episodes is not None
    convert = request.convert_obs
    return count_environment(
        make_environment(request.env),
        loaded.model,
        request.episodes,
        request.seed,
        policy=setting.policy,
        stop=setting.stop,
        cap=setting.cap,
        convert_obs=None if convert is None else load_named(convert, "--convert-obs"),
        actions=None if request.actions is None else request.actions.split(","),
        states=request.states,
    )


def _report_walk(
    request: SampleRequest, output: Path, counts: Counts, seconds: float, setting: WalkSetting
) -> None:
    design = counts.design
    seen = int((counts.transition > 0).sum())
    if counts.steps == 0:
        warn("no step was taken: the property is decided in the initial state, or it is absorbing")
    answer = SampleAnswer(
        episodes=design.episodes,
        steps=counts.steps,
        seconds=round(seconds, 6),
        design=design.kind.value,
        cap=setting.cap if design.episodes is not None else None,
        batches=len(counts.batches) if counts.batches is not None else 0,
        transitions_seen=seen,
        file=str(output),
    )
    facts = [
        ("steps", group(counts.steps)),
        ("transitions seen", f"{group(seen)} of {group(len(counts.transition))}"),
    ]
    if design.episodes is not None:
        ends = f"when {setting.text} is decided" if setting.text else "in absorbing states"
        caps = [("cap", f"{group(setting.cap)} steps"), ("episodes end", ends)]
        facts = [("episodes", group(design.episodes)), *facts, *caps]
    _report(request, answer, facts)


def _report(request: SampleRequest, answer: SampleAnswer, facts: Sequence[tuple[str, str]]) -> None:
    written = [("file", answer.file), ("seconds", f"{answer.seconds:.3g}")]
    print_facts(request.model, [*facts, *written], answer)


@dataclass(frozen=True)
class WalkSetting:
    """How to walk: the policy, where and when an episode ends, and the property that decides it."""

    policy: Policy | None
    stop: BoolArray | None
    cap: int
    text: str | None


def setting_of(
    loaded: LoadedModel,
    request: PropertyTexts,
    constants: Mapping[str, str],
    cap: int | None,
    policy: str,
    pomdp: POMDP | None = None,
) -> WalkSetting:
    """What is walked: of a partially observable model the policy is a controller that sees observations."""
    from tightrope.data.design import deciding_steps, find_decided_states
    from tightrope.model.policy import Policy

    structure = loaded.model.structure
    benchmark = loaded.benchmark
    limit = cap if cap is not None else benchmark.episode_cap if benchmark is not None else DEFAULT_CAP
    used = None
    if policy != UNIFORM:
        used = Policy(structure, policy) if pomdp is None else controller_of(pomdp, policy).policy
    if not request.files and benchmark is None:
        return WalkSetting(used, None, limit, None)
    questions = request.queries(loaded, constants)
    if len(questions) != 1:
        raise InputError(f"an episode ends by one property, not {len(questions)}")
    objective = questions[0].objective if pomdp is None else pomdp.paced(questions[0].objective)
    steps = deciding_steps(objective)
    if steps is not None:
        limit = max(1, min(limit, steps))
    return WalkSetting(used, find_decided_states(objective, structure.states), limit, questions[0].text)


def simulator_at(
    loaded: LoadedModel, setting: WalkSetting, at: str | None
) -> tuple[Simulator | SteeredSimulator, dict[str, str]]:
    """The model at the point that was asked for, ready to walk, and the point in words."""
    from tightrope.data.collection import SteeredSimulator
    from tightrope.data.simulator import Simulator

    mdp, point = _at_point(loaded, at)
    if setting.policy is not None and setting.policy.has_memory:
        there = setting.policy, setting.stop, setting.cap, loaded.model.hash()
        return SteeredSimulator(mdp, *there), point
    return Simulator(mdp, setting.policy, setting.stop, setting.cap, loaded.model.hash()), point


def _at_point(loaded: LoadedModel, at: str | None) -> tuple[MDP, dict[str, str]]:
    from tightrope.benchmarks.instance import decimal_text
    from tightrope.model.mdp import MDP, IntervalMDP

    model = loaded.model
    if isinstance(model, IntervalMDP):
        raise InputError("an interval model has no single set of probabilities to draw from")
    point = loaded.point(at)
    if isinstance(model, MDP):
        return model, {}
    named = zip(model.parameters.names, point, strict=True)
    return model.instantiate(point), {name: decimal_text(value) for name, value in named}


def cost_source(
    text: str,
    loaded: LoadedModel,
    request: PropertyTexts,
    constants: Mapping[str, str],
    at: str | None,
    seed: int,
) -> CostSource:
    """Costs around the rewards that the property asks for, or the only ones of the model."""
    from tightrope.data.costs import CostNoise, CostSource, mean_costs, reward_of

    structure = loaded.model.structure
    wanted = None
    if request.files or loaded.benchmark is not None:
        objective = request.queries(loaded, constants)[0].objective
        wanted = objective.reward if objective.is_reward else None
    reward = wanted if wanted is not None else reward_of(structure.rewards)
    point = list(loaded.point(at))
    return CostSource(mean_costs(reward, structure, point), CostNoise.parse(text), seed)


def sample_timed(request: SampleRequest, output: Path, episodes: int, duration: float) -> None:
    """Simulate so many episodes of this duration, and write their jumps."""
    from tightrope.benchmarks.instance import decimal_text
    from tightrope.data.exposure import simulate_times
    from tightrope.io.output import DATA, claim_file
    from tightrope.io.table.data_table import is_parquet, write_table

    is_parquet(output)
    if not 0 < duration < float("inf"):
        raise InputError(f"--time is {duration}, not a positive time")
    claimed = claim_file(output, DATA, common.overwrite)
    loaded = sources.load_timed(request.model, request.const, request.param, request.domain, quiet=True)
    point = loaded.point(request.at)
    chain = loaded.model.instantiate(point)
    begin = time.perf_counter()
    cap = TIMED_CAP if request.cap is None else request.cap
    rows = simulate_times(chain, episodes, request.seed, duration, cap)
    types, columns = _state_columns(loaded.model.structure)
    table = {
        "episode": rows.episode,
        "time": rows.time,
        **{name: column[rows.state] for name, column in columns.items()},
    }
    names = loaded.model.parameters.names
    metadata = {
        "rows": "times",
        "source": request.model,
        "seed": request.seed,
        "time": duration,
        "cap": cap,
        "at": {name: decimal_text(value) for name, value in zip(names, point, strict=True)},
    }
    claimed.check()
    write_table(output, {"episode": int, "time": float, **types}, [table], metadata)
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
    _report(request, answer, [("episodes", watched), ("jumps", group(rows.jumps))])


def _state_columns(structure: Structure) -> tuple[dict[str, type], dict[str, Any]]:
    """States by the model's variables, or by index where it has none."""
    import numpy as np

    if not structure.valuations:
        return {"state": int}, {"state": np.arange(structure.states)}
    if clash := {"episode", "time", "duration"}.intersection(structure.valuations):
        raise InputError(f"the model's variable '{clash.pop()}' clashes with a column's name")
    kinds: dict[str, type] = {
        name: bool if column.dtype == np.bool_ else int for name, column in structure.valuations.items()
    }
    return kinds, dict(structure.valuations)
