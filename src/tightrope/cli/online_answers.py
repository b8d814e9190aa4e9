"""`tightrope online` of properties that are no single objective (`tightrope.learning.online.answers`)."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from tightrope.cli.learn_run import write_answer
from tightrope.cli.options import refuse_options
from tightrope.cli.output import leave, print_json, print_table, print_verdict
from tightrope.data.simulator import Simulator
from tightrope.errors import CannotCertify, InputError
from tightrope.io.coding import Real
from tightrope.io.output import claim
from tightrope.io.plans import Target
from tightrope.learning.learn import learn
from tightrope.learning.online.answers import EvenLearner, reaches
from tightrope.learning.online.exploration import Exploration
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.text import interval_text
from tightrope.verdict import Word

if TYPE_CHECKING:
    from tightrope.cli.online import OnlineRequest
    from tightrope.cli.sources import Subject

REFUSED = "env data cost baseline avoid at_most on_drift discount terminal_reward"


class OnlineAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """One line of `online`: what is known after so many episodes. A number lies between `lower` and `upper`,
    a property is `truth`; `reached` says that the gap that was asked for is."""

    episode: int
    steps: int
    question: str = msgspec.field(name="property")
    verdict: Word
    why: str
    lower: Real | None
    upper: Real | None
    truth: str | None
    guarantee: Real | None
    reached: bool
    seconds: float
    peak_memory: int


def collect_evenly(request: OnlineRequest, subject: Subject, cap: int) -> None:
    """Simulate, answer, repeat."""
    text = subject.query.text
    refuse_options(request, REFUSED, f"it does not go with {text}, for which episodes are collected evenly")
    if request.explore not in (None, Exploration.UNIFORM):
        raise InputError(
            f"--explore {request.explore.value} does not go with {text}",
            hint="leave --explore out: episodes are collected evenly for it",
        )
    directory = None if request.output is None else claim(request.output, "answer")
    target = None if request.until_gap is None else Target.of(request.until_gap, None, None, None)
    truth = subject.model.instantiate(subject.loaded.point(request.at))
    simulator = Simulator(truth, None, None, cap, subject.model.hash())
    learner = EvenLearner(subject.problem, request.delta, {**request.learn_options().words})
    records, counts, done, reached = [], None, 0, False
    while done < request.most_episodes and not reached:
        begin = time.perf_counter()
        more = min(max(done, 1), request.most_episodes - done)
        part = simulator.episodes(more, request.seed, done)
        counts, done = part if counts is None else counts + part, done + more
        result = learn(subject.problem, counts, delta=request.delta, **learner.words)
        interval = result.interval
        reached = target is not None and reaches(target, interval)
        verdict = result.verdict
        records.append(
            OnlineAnswer(
                episode=done,
                steps=counts.steps,
                question=text,
                verdict=verdict.word,
                why=verdict.why,
                lower=None if interval is None else interval.lower,
                upper=None if interval is None else interval.upper,
                truth=getattr(result, "truth", None),
                guarantee=result.guarantee,
                reached=reached,
                seconds=round(time.perf_counter() - begin, 6),
                peak_memory=peak_memory(),
            )
        )
        if request.json:
            print_json(records[-1])
    if not request.json:
        print_verdict(result.verdict, result.headline())
        rows = [(str(one.episode), f"{one.steps:,}", _words(one)) for one in records]
        print_table(text, ("episodes", "steps", "known"), rows)
    sys.stdout.flush()
    if directory is not None:
        write_answer(directory, result, result.document(request.model))
    if target is not None and not reached:
        raise CannotCertify(
            f"the gap {target.text} was not reached after {done:,} episodes\n"
            "hint: --max-episodes allows more; 'tightrope plan' forecasts how many are needed"
        )
    leave(result.verdict, request.accept_nominal, "the last update")


def _words(one: OnlineAnswer) -> str:
    return one.truth or interval_text(float(one.lower or 0.0), float(one.upper or 0.0))
