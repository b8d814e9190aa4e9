"""What `tightrope online` does: load, run, write, print.

Apart from the command's options, so that its help needs none of this.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tightrope.cli.learn_table import options_that_hold
from tightrope.cli.online_display import RunDisplay, headline, print_run
from tightrope.cli.options import parse_constants
from tightrope.cli.output import leave, peak_memory, print_json, print_verdict, warn
from tightrope.cli.subject import Subject, load_subject
from tightrope.data.reading import read_data
from tightrope.data.simulator import DEFAULT_CAP, Simulator
from tightrope.data.stopping import deciding_steps, find_decided_states
from tightrope.design.exploration import Explore, Explored, online
from tightrope.errors import CannotCertify, InputError
from tightrope.io.coding import from_plain
from tightrope.io.output import file_digest
from tightrope.io.results import AssumedFacts, read_verdict
from tightrope.learning.document import Setting, document
from tightrope.learning.online.drift_guard import drift_answer
from tightrope.learning.online.journal import LIVE, Journal, claim_run
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.run import EnvironmentEpisodes, OnlineRun, SimulatedEpisodes, Source, Truth
from tightrope.learning.products import project_counts
from tightrope.learning.result import LearningResult
from tightrope.learning.result_files import RESULT, fill_results
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.text import text_above
from tightrope.verdict import Verdict, Word

if TYPE_CHECKING:
    from tightrope.cli.online import Request


def run(asked: Request) -> None:
    """Run to the end, write what is wanted, print the records."""
    if asked.env is None and (asked.convert_obs or asked.actions or asked.states):
        raise InputError("--convert-obs, --actions and --states go with --env")
    if asked.output is not None:
        claim_run(asked.output)
    subject = load_subject(asked, temporal=True)
    if subject.product is not None and asked.env is not None:
        raise InputError(
            f"--env does not go with temporal formulas such as {subject.query.text}: what collects "
            "has a memory",
            hint="in Python tr.online takes episodes; problem.controller(learner.policy()) says how to act",
        )
    source, truth, cap = _source(asked, subject)
    learner = online(
        subject.problem,
        delta=asked.delta,
        explore=replace(asked.exploration, cap=cap),
        until_gap=asked.until_gap,
        planned_episodes=asked.episodes if asked.until_gap is None else None,
        data=None if asked.data is None else read_data(asked.data, subject.model).counts,
        on_drift=drift_answer(asked.drift_answer, asked.alpha),
        **asked.learn_options().words,
    )
    question = _question(asked, subject, learner, cap)
    records: list[dict[str, Any]] = []
    with nullcontext() if asked.output is None else Journal(asked.output, question) as journal:
        whole = OnlineRun(learner, source, asked.most_episodes, truth, journal)
        with RunDisplay(asked.most_episodes, wanted=not asked.json) as display:
            for record in whole.records():
                records.append(record)
                display.show(record)
                if asked.json:
                    print_json({**record, "peak_memory": peak_memory()})
        result = learner.result() if asked.output is not None or not asked.json else None
        _warn_about(learner)
        if result is not None and not asked.json:
            kept = None if asked.output is None else str(asked.output)
            verdict = _verdict(records, result)
            print_verdict(verdict, headline(verdict, records[-1], asked.delta))
            print_run(subject, records, result, _describe_exploration(asked.exploration, learner), kept)
            sys.stdout.flush()
        if asked.output is not None and result is not None:
            _write(asked, subject, learner, result, records)
    if learner.target is not None and not records[-1]["reached"]:
        last = records[-1]
        raise CannotCertify(
            f"the gap {learner.target.text} was not reached: it is {float(last['gap']):.6g} after "
            f"{last['episode']:,} episodes\n"
            "hint: --max-episodes allows more; 'tightrope plan' forecasts how many are needed"
        )
    leave(_verdict(records, result), asked.accept_nominal, "the last update")


def _verdict(records: list[dict[str, Any]], result: LearningResult | None) -> Verdict:
    """That of the last update; and of the test of the model, where it was made."""
    last = records[-1]
    facts = from_plain(last["assumptions"], list[AssumedFacts])
    found = read_verdict(Word(last["verdict"]), facts, last["why"])
    return found if result is None else Verdict.worst([result.verdict, found])


def _source(asked: Request, subject: Subject) -> tuple[Source, Truth | None, int]:
    """Where episodes come from, the true model where it is known, and the cap on an episode's length."""
    model, objective = subject.problem.model, subject.query.objective
    assert isinstance(model, ParametricMDP)
    benchmark = subject.loaded.benchmark
    cap = asked.cap or (benchmark.episode_cap if benchmark is not None else DEFAULT_CAP)
    steps = deciding_steps(objective)
    if steps is not None:
        cap = max(1, min(cap, steps))
    stop = find_decided_states(objective, model.states)
    if asked.env is not None:
        from tightrope.data.environments import SteppedEnvironment, load_named, make_environment

        convert = load_named(asked.convert_obs, "--convert-obs") if asked.convert_obs is not None else None
        actions = asked.actions.split(",") if asked.actions is not None else None
        environment = SteppedEnvironment(
            make_environment(asked.env), model, stop, cap, convert, actions, asked.states
        )
        known = asked.at is not None
        truth = Truth(model.instantiate(subject.loaded.point(asked.at)), objective) if known else None
        return EnvironmentEpisodes(environment, asked.seed), truth, cap
    mdp = model.instantiate(subject.loaded.point(asked.at))
    simulated = SimulatedEpisodes(Simulator(mdp, None, stop, cap, model.hash()), asked.seed)
    return simulated, Truth(mdp, objective), cap


def _question(asked: Request, subject: Subject, learner: OnlineLearner, cap: int) -> dict[str, object]:
    """Everything that the records depend on, under the names that users know; not how many there are."""
    decisions = learner.decisions
    return {
        "model": asked.model,
        "model hash": subject.model.hash(),
        "property": subject.query.text,
        "discount": asked.discount,
        "terminal reward": asked.terminal_reward,
        "delta": asked.delta,
        "region": decisions.region.value if decisions.region else None,
        "sets": decisions.sets.value,
        "interval": decisions.interval.value,
        "budget": asked.budget.value,
        "assumed support": asked.assume_support,
        "precision": asked.precision,
        "exploration": asked.exploration.kind.value,
        "cost": asked.exploration.price.text,
        "states to avoid": asked.exploration.avoid,
        "allowed probability": asked.exploration.at_most,
        "data to begin with": None if asked.data is None else file_digest(asked.data),
        "gap to reach": None if learner.target is None else learner.target.text,
        "seed": asked.seed,
        "cap": cap,
        "point": None if asked.env and not asked.at else subject.point_text(asked.at),
        "environment": asked.env,
        "conversion of observations": asked.convert_obs,
        "actions": asked.actions,
        "states": asked.states.value if asked.states else None,
        "answer to drift": asked.drift_answer,
        "alpha": None if learner.guard is None else learner.guard.monitor.alpha,
    }


def _write(
    asked: Request,
    subject: Subject,
    learner: OnlineLearner,
    result: LearningResult,
    records: list[dict[str, Any]],
) -> None:
    """The result as `tightrope learn -o` writes it, and the figure."""
    from tightrope.report.learning_curve import write_curve

    assert asked.output is not None
    setting = Setting(
        model=asked.model,
        property=subject.query.text,
        delta=asked.delta,
        constants=parse_constants(asked.const),
        data={
            "source": asked.env or "simulation",
            "seed": asked.seed,
            "updates": len(records),
            **({} if learner.guard is None else {"forgotten_episodes": learner.data.before[0]}),
        },
        command=["tightrope", *sys.argv[1:]],
        truth=subject.point_text(asked.at) if asked.env is None or asked.at else None,
    )
    content = document(
        [result], project_counts(learner.problem, learner.data.counts()), learner.options, setting
    )
    about = {
        "title": f"{asked.model.removeprefix('bench:')}: {subject.query.text}",
        "value": "value",
        "sets": result.kind.value,
    }
    with claim_run(asked.output).filling(RESULT, LIVE) as folder:
        fill_results(folder, [result], content)
        write_curve(folder, records, about)


def _describe_exploration(asked: Explore, learner: OnlineLearner) -> str:
    """Who collected, and what is said of it."""
    found = learner.last_design if isinstance(learner.last_design, Explored) else None
    words = [f"{asked.kind.value} policy"]
    if not asked.price.is_by_episode:
        words.append(f"by cost ({asked.price.text})")
    if found is not None and found.design is not None:
        words.append(f"within {100 * found.design.optimality:.2g} % of the best at the estimate")
        words += ["which the robust policy is, too"] if found.greedy_is_as_good else []
    if found is not None and found.certified is not None:
        words.append(f"{asked.avoid} in at most {text_above(found.certified, 4)} of episodes, certified")
    return ", ".join(words)


def _warn_about(learner: OnlineLearner) -> None:
    ledger = learner.ledger
    if ledger is not None and not ledger.holds:
        warn(
            f"{ledger.method} assumes {ledger.assumption.value}, and these data were collected by a policy "
            "that depends on them: the guarantees are nominal\n"
            f"hint: {options_that_hold(ledger)} holds for them"
        )
