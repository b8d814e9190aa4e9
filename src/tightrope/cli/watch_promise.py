"""`watch --result DIR`: the promise of a result, to be held against the returns of a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.model_source import LoadedModel
from tightrope.cli.options import parse_constants
from tightrope.cli.questions import read_properties
from tightrope.errors import InputError, Location
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.monitoring.promise import Promise
from tightrope.numerics.text import bound_text
from tightrope.prism.properties.query import Query
from tightrope.report.saved import SavedResult, load_result

if TYPE_CHECKING:
    from tightrope.cli.watch import Request


@dataclass(frozen=True)
class Promised:
    """A promise, what is said about it, and whether it holds in name only."""

    promise: Promise
    words: str
    nominal: bool


def read_promise(asked: Request, directory: Path, loaded: LoadedModel) -> Promised:
    """The promise that a result makes about its robust policy, or about the policy that it was given."""
    model = loaded.model
    assert isinstance(model, ParametricMDP)
    result = load_result(directory, model=model)
    document = result.document
    span, name = result.interval, "the robust policy"
    policy = result.policy if asked.policy is None else Policy(model, asked.policy)
    if asked.policy is not None:
        if result.value is None:
            raise InputError(
                "the result promises nothing about a given policy, only about its own",
                Location(str(result.file)),
                "leave --policy out, or learn with --policy and the same file",
            )
        span, name = result.value, f"the policy {asked.policy}"
        _refuse_another_policy(document.policy, policy.digest, result, model)
    maximises = document.maximises
    bound = span.lower if maximises else span.upper
    question = _question(asked, loaded, result)
    promise = Promise(question.objective, policy, bound, maximises, name)
    side = "at least" if maximises else "at most"
    verdict = result.verdict
    sure = f"with confidence {1 - document.delta:g}" if verdict.is_proved else verdict.word.name
    promised = f"{side} {bound_text(bound, maximises, 6)}"
    words = (
        f"promised: {document.question} of {name} is {promised} ({sure}); episodes that take another "
        "choice or are cut off count as if all had gone well from there on"
    )
    return Promised(promise, words, not verdict.is_proved)


def _question(asked: Request, loaded: LoadedModel, result: SavedResult) -> Query:
    """The result's property on the model."""
    document = result.document
    own = loaded.benchmark is not None and loaded.benchmark.property_text == document.question
    if asked.terminal_reward is None and "--terminal-reward" in document.command and not own:
        raise InputError(
            "the result was learned with a terminal reward",
            Location(str(result.file)),
            "give the same --terminal-reward",
        )
    if "--discount" in document.command:
        raise InputError(
            "discounted rewards never show in full within an episode", Location(str(result.file))
        )
    questions = read_properties(None if own else [document.question]).queries(
        loaded, parse_constants(asked.const), None, asked.terminal_reward
    )
    return questions[0]


def _refuse_another_policy(named: str | None, digest: str, result: SavedResult, model: ParametricMDP) -> None:
    """Where the file that the result was learned with is still there, the policy must be the same."""
    if named is not None and Path(named).is_file() and Policy(model, named).digest != digest:
        raise InputError(
            f"the result is about the policy {named}, and this is another",
            Location(str(result.file)),
        )
