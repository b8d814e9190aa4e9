"""`tightrope sample MODEL --at … --episodes N --seed S -o F`: data from a model at a known point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.model_source import LoadedModel, load_model
from tightrope.cli.options import At, Const, Domain, Json, Model, Overwrite, Param, Prop, parse_constants
from tightrope.cli.output import group, print_facts, print_json, warn
from tightrope.cli.questions import read_properties
from tightrope.cli.sample_setting import (
    DEFAULT_CAP,
    UNIFORM,
    Setting,
    cost_source,
    setting_of,
    simulator_at,
)
from tightrope.cli.sample_timed import TimedSample, sample_timed
from tightrope.cli.timed_model import refuse_options
from tightrope.data.state_form import StateForm
from tightrope.errors import InputError
from tightrope.loading import is_continuous

if TYPE_CHECKING:
    from tightrope.data.counts import Counts
    from tightrope.data.mixed_episodes import MixedEpisodes
    from tightrope.data.planned_draws import PlannedDraws
    from tightrope.data.simulator import Simulator
    from tightrope.data.steered_simulator import SteeredSimulator
    from tightrope.formats.policy import Policy


def sample(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="A .parquet or .csv file.", show_default=False),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", metavar="N", min=1, help="Number of trajectories.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", min=0, help="Same seed, same data.")] = 0,
    at: At = None,
    prop: Prop = None,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="FILE|PLAN|uniform",
            help="Which choices to take; of a plan's directory, one of its policies per episode.",
        ),
    ] = UNIFORM,
    bet_on: Annotated[
        list[Path] | None,
        typer.Option(
            "--bet-on",
            metavar="FILE",
            help="A policy that 'learn --region slab' shall bet on, recorded before the data come.",
            show_default=False,
        ),
    ] = None,
    cap: Annotated[
        int | None,
        typer.Option(
            "--cap",
            metavar="STEPS",
            min=1,
            help=f"Steps after which an episode is cut off ({DEFAULT_CAP}, or a benchmark's own).",
            show_default=False,
        ),
    ] = None,
    watched: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="T",
            help="In continuous time: for how long each episode is watched.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="One row per step instead of one row per counted transition.")
    ] = False,
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs",
            metavar="exact|two-point:A,B|uniform:W|normal:S",
            help="With --raw: a column 'cost' with the reward of each step, and noise around it.",
            show_default=False,
        ),
    ] = None,
    generative: Annotated[
        int | None,
        typer.Option("--generative", metavar="N", min=1, help="N draws from every choice, no trajectories."),
    ] = None,
    draws: Annotated[
        Path | None,
        typer.Option(
            "--draws",
            metavar="FILE",
            help="As many draws of each choice as this table says ('plan --generative' writes one).",
            show_default=False,
        ),
    ] = None,
    states: Annotated[
        StateForm | None,
        typer.Option(
            "--states",
            help="Write states by index (the default) or by the model's variables; with --env, 'index' also "
            "says that observed numbers are indices of states.",
            show_default=False,
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option("--env", metavar="MODULE:FACTORY", help="Step a Gymnasium environment instead."),
    ] = None,
    convert_obs: Annotated[
        str | None,
        typer.Option("--convert-obs", metavar="MODULE:FUNCTION", help="Its observations to states."),
    ] = None,
    actions: Annotated[
        str | None, typer.Option("--actions", metavar="A,B,…", help="The names of its actions 0, 1, ….")
    ] = None,
    append: Annotated[
        Path | None,
        typer.Option(
            "--append",
            metavar="FILE",
            help="Put the episodes after those of this file; both together are written to -o, or back to it.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Simulate a model at a point and write what was seen.

    An episode ends as soon as the property is decided, in an absorbing state, or at the cap. The file
    carries the seed, the policy and how it was sampled; 'tightrope learn --data FILE' reads it.

    Example: tightrope sample 'bench:betting(50)' --episodes 100000 --seed 1 -o data.parquet
    """
    if is_continuous(model):
        given: dict[str, object] = {
            "--prop": prop,
            "--bet-on": bet_on,
            "--raw": raw,
            "--generative": generative,
            "--draws": draws,
        }
        given |= {"--states": states, "--env": env, "--convert-obs": convert_obs, "--actions": actions}
        refuse_options({**given, "--append": append, "--policy": None if policy == UNIFORM else policy})
        if output is None or episodes is None or watched is None:
            raise InputError(
                "a chain in continuous time is sampled with --episodes N, --time T and -o FILE",
                hint="such as --episodes 100 --time 50 -o log.csv",
            )
        asked_for = TimedSample(model, const, param, domain, at, episodes, seed, watched, cap)
        sample_timed(asked_for, output, overwrite, json)
        return
    if watched is not None:
        raise InputError(
            "--time is about chains in continuous time", hint="--cap bounds the steps of an episode"
        )
    from tightrope.data.mixed_episodes import MixedEpisodes
    from tightrope.data.simulator import Simulator
    from tightrope.data.writing import write_counts, write_trajectories
    from tightrope.formats.output_file import claim_file
    from tightrope.formats.table.data_table import is_parquet
    from tightrope.formats.written_by import DATA

    output = output or append
    if output is None:
        raise InputError("no file is named to write to", hint="add -o FILE, such as -o data.parquet")
    is_parquet(output)
    claimed = claim_file(output, DATA, overwrite)
    if append is not None and (episodes is None or raw or env is not None or bet_on):
        raise InputError("--append goes with --episodes alone: not with --raw, --env or --bet-on")
    if sum(given is not None for given in (episodes, generative, draws)) != 1:
        raise InputError("give one of --episodes N, --generative N and --draws FILE")
    if raw and (episodes is None or env is not None):
        raise InputError(
            "--raw goes with simulated trajectories only, not with --generative, --draws or --env"
        )
    if costs is not None and not raw:
        raise InputError("--costs goes with --raw: a cost belongs to a step", hint="add --raw")
    if env is not None and episodes is None:
        raise InputError("--env goes with --episodes, not with --generative or --draws")
    constants = parse_constants(const)
    asked = read_properties([] if prop is None else [prop])
    loaded = load_model(model, asked.model_constants(constants), param, domain)
    mixture = None if policy == UNIFORM else _read_mixture(policy, loaded)
    if mixture is not None and (raw or env is not None or episodes is None):
        raise InputError(
            "--policy names a plan, one of whose policies is drawn per simulated episode: that goes with "
            "--episodes, without --raw and --env",
            hint=f"name one policy, such as {policy}/exploration-policy.json",
        )
    setting = setting_of(loaded, asked, constants, cap, UNIFORM if mixture is not None else policy)
    planned = None if draws is None else _read_draws(draws, loaded)
    extra = {"source": model, "seed": seed, "policy": policy, "cap": setting.cap, "property": setting.text}
    if setting.policy is not None:
        extra["policy_sha256"] = setting.policy.digest
    _refuse_controller(setting, append, env)
    begin = time.perf_counter()
    written = states or StateForm.INDEX
    if env is not None:
        shown = _Shown(env, convert_obs, actions, states)
        counts = _plan_bets(_step_environment(loaded, setting, shown, episodes, seed), loaded, bet_on)
        claimed.check()
        write_counts(output, counts, loaded.model.structure, states=written, extra={**extra, "env": env})
    else:
        simulator, point = simulator_at(loaded, setting, at)
        extra["at"] = point
        walker: Simulator | SteeredSimulator | MixedEpisodes = simulator
        if mixture is not None:
            assert isinstance(simulator, Simulator)
            walker = MixedEpisodes(simulator, *mixture)
        if planned is not None:
            counts = simulator.generative(planned.per_choice, seed)
            counts = replace(counts, design=replace(counts.design, planned_from=planned.planned_from))
            extra["draws"] = str(draws)
        elif episodes is None:
            counts = simulator.generative(generative or 0, seed)
        elif append is not None:
            counts = _append(append, loaded, walker, episodes, seed)
            extra["appended_to"] = str(append)
        else:
            counts = walker.episodes(episodes, seed)
            origin = setting.policy if mixture is None else mixture[1][0]
            if origin is not None:  # whoever chose it may have looked at data
                counts = replace(counts, design=replace(counts.design, planned_from=origin.digest))
        counts = _plan_bets(counts, loaded, bet_on)
        claimed.check()
        structure = loaded.model.structure
        if raw and episodes is not None:
            blocks = simulator.trajectories(episodes, seed)
            drawn = None if costs is None else cost_source(costs, loaded, asked, constants, at, seed)
            if costs is not None:
                extra["costs"] = costs
            write_trajectories(output, blocks, counts, structure, states=written, extra=extra, costs=drawn)
        else:
            write_counts(output, counts, structure, states=written, extra=extra)
    _report(model, output, counts, time.perf_counter() - begin, setting, json)


def _refuse_controller(setting: Setting, append: Path | None, env: str | None) -> None:
    """What a controller with memory does not go with, in words."""
    from tightrope.formats.controller import Controller

    if isinstance(setting.policy, Controller) and (append is not None or env is not None):
        raise InputError(
            f"a controller goes with simulated episodes, not with {'--env' if append is None else '--append'}"
        )


def _plan_bets(counts: Counts, loaded: LoadedModel, bet_on: Sequence[Path] | None) -> Counts:
    """The counts with the policies that are to be bet on in their design."""
    from tightrope.formats.policy import read_policy

    digests = tuple(read_policy(str(path), loaded.model.structure).digest for path in bet_on or ())
    return replace(counts, design=replace(counts.design, bet_on=digests)) if digests else counts


def _read_mixture(policy: str, loaded: LoadedModel) -> tuple[list[float], list[Policy]] | None:
    """The shares and policies of a plan's directory; None where the policy is a file."""
    from tightrope.formats.documents.plan import plan_file, read_plan
    from tightrope.formats.policy import read_policy

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
    return design.shares, [read_policy(str(name), loaded.model.structure) for name in names]


def _append(path: Path, loaded: LoadedModel, simulator: object, episodes: int, seed: int) -> Counts:
    """The counts of a file with so many episodes after them."""
    from tightrope.data.appending import append_episodes
    from tightrope.data.mixed_episodes import MixedEpisodes
    from tightrope.data.reading import read_data
    from tightrope.data.simulator import Simulator

    assert isinstance(simulator, Simulator | MixedEpisodes)
    return append_episodes(read_data(str(path), loaded.model).counts, simulator, episodes, seed)


def _read_draws(path: Path, loaded: LoadedModel) -> PlannedDraws:
    from tightrope.data.planned_draws import read_draws
    from tightrope.model.parametric_mdp import ParametricMDP

    if not isinstance(loaded.model, ParametricMDP):
        raise InputError("--draws goes with a model with parameters: the table is by signature")
    return read_draws(path, loaded.model)


@dataclass(frozen=True)
class _Shown:
    """An environment by its name, and how its observations and actions are read."""

    env: str
    convert: str | None
    actions: str | None
    states: StateForm | None


def _step_environment(
    loaded: LoadedModel,
    setting: Setting,
    shown: _Shown,
    episodes: int | None,
    seed: int,
) -> Counts:
    from tightrope.data.environments import count_environment, load_named, make_environment
    from tightrope.formats.controller import Controller

    assert episodes is not None
    assert not isinstance(setting.policy, Controller)
    return count_environment(
        make_environment(shown.env),
        loaded.model,
        episodes,
        seed,
        policy=setting.policy,
        stop=setting.stop,
        cap=setting.cap,
        convert_obs=None if shown.convert is None else load_named(shown.convert, "--convert-obs"),
        actions=None if shown.actions is None else shown.actions.split(","),
        states=shown.states,
    )


def _report(
    model: str, output: Path, counts: Counts, seconds: float, setting: Setting, as_json: bool
) -> None:
    design = counts.design
    seen = int((counts.transition > 0).sum())
    if counts.steps == 0:
        warn("no step was taken: the property is decided in the initial state, or it is absorbing")
    if as_json:
        from tightrope.formats.documents.answers import SampleAnswer

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
        print_json(answer)
        return
    facts = [
        ("steps", group(counts.steps)),
        ("transitions seen", f"{group(seen)} of {group(len(counts.transition))}"),
    ]
    if design.episodes is not None:
        facts.insert(0, ("episodes", group(design.episodes)))
        facts += [
            ("cap", f"{group(setting.cap)} steps"),
            ("ends early", setting.text or "in absorbing states only"),
        ]
    facts += [("file", str(output)), ("seconds", f"{seconds:.3g}")]
    print_facts(model, facts)
