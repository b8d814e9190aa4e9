"""`tightrope info MODEL`: what is in a model; `tightrope questions`: which properties fit which commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import typer

from tightrope.benchmarks.instance import decimal_text
from tightrope.cli.options import ModelOptions, declare, takes
from tightrope.cli.output import Rows, claim, common, group, print_facts, print_json
from tightrope.cli.sources import Question
from tightrope.io.coding import record_of
from tightrope.io.output import MODEL_GRAPH
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP
from tightrope.numerics.jit import interpreting
from tightrope.prism.properties.capabilities import capability_rows, counted
from tightrope.problem import AnyModel


class InfoAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`info`: what is in a model.

    `expressions` counts the distinct ones, constants included; an interval model has none.
    `unproved_expressions` counts those that were not proved to stay within [0, 1] on the domain, though no
    point of it is known where they leave. `observations`: how many there are, of partially observable models.
    """

    model: str
    type: str
    states: int
    choices: int
    transitions: int
    parameters: tuple[str, ...]
    free_distributions: int
    domain: str
    expressions: int
    nonconstant_expressions: int
    degree: int
    unproved_expressions: int
    labels: tuple[str, ...]
    label_states: dict[str, int]
    rewards: tuple[str, ...]
    deadlocks: int
    seconds: float
    observations: int | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, kw_only=True)
class InfoRequest(ModelOptions):
    """The options of the command."""

    dot: Path | None = declare("--dot", "Write states, choices and probabilities for Graphviz.", "FILE")
    policy: Path | None = declare("--policy", "Mark this policy's choices in the graph.", "FILE")
    most: int = declare("--states", "The largest number of states in the graph.", "N", default=40, min=1)


@takes(InfoRequest, needs={"policy": "dot --dot FILE"})
@interpreting()
def info(request: InfoRequest) -> None:
    """Describe a model: size, parameters, labels and rewards.

    A graph of a large model shows the states that are fewest steps from the initial one.

    Example: tightrope info model.prism --const n=50 --param p=0.1:0.9 --dot model.dot
    """
    target, question = claim(request.dot, MODEL_GRAPH), Question.of(request)
    loaded = question.load(timed=True, untimed=True, observed=True)
    model = loaded.automaton or loaded.model
    facts = describe(request.model, model, loaded.seconds)
    text = None if target is None else model.to_dot(request.policy, most=request.most)
    print_facts(request.model, _rows(facts), facts)
    if target is not None and text is not None:
        target.write(text)


def describe(source: str, model: AnyModel, seconds: float) -> InfoAnswer:
    """The facts of a model that took `seconds` to build."""
    if isinstance(model, POMDP):
        behind = describe(source, model.model, seconds)
        kind = behind.type.replace("DTMC", "MDP").replace("MDP", "POMDP")
        return msgspec.structs.replace(behind, type=kind, observations=model.observations)
    structure = model.structure
    parametric = model if isinstance(model, ParametricMDP | ParametricCTMC) else None
    label_states = {name: int(members.sum()) for name, members in structure.labels.items()}
    return record_of(
        InfoAnswer,
        structure,
        model=source,
        type=_type_name(model),
        parameters=parametric.parameters.shown.names if parametric else (),
        free_distributions=len(parametric.parameters.free) if parametric else 0,
        domain=_domain_text(parametric.parameters.shown) if parametric else "",
        expressions=len(parametric.expressions) if parametric else 0,
        nonconstant_expressions=len(parametric.expressions.nonconstant) if parametric else 0,
        degree=parametric.expressions.degree if parametric else 0,
        unproved_expressions=len(model.unproved) if isinstance(model, ParametricMDP) else 0,
        labels=tuple(structure.labels),
        label_states=label_states,
        rewards=tuple(structure.rewards),
        deadlocks=label_states.get("deadlock", 0),
        seconds=round(seconds, 6),
    )


def _type_name(model: AnyModel) -> str:
    if isinstance(model, MarkovAutomaton):
        return "Markov automaton"
    if isinstance(model, ParametricCTMC):
        return "parametric CTMC" if model.parameters.names else "CTMC"
    kind = "DTMC" if model.structure.is_chain else "MDP"
    if isinstance(model, IntervalMDP):
        return f"interval {kind}"
    if isinstance(model, ParametricMDP) and model.parameters.names:
        return f"parametric {kind}"
    return kind


def _domain_text(parameters: Parameters) -> str:
    """The domain as `--domain` reads it, in decimals where they are exact."""
    bounds = zip(parameters.lower, parameters.names, parameters.upper, strict=True)
    box = [f"{decimal_text(low)}<={name}<={decimal_text(high)}" for low, name, high in bounds]
    return ", ".join([*box, *(constraint.text(parameters.names) for constraint in parameters.constraints)])


def _rows(facts: InfoAnswer) -> Rows:
    """The facts as a person reads them."""
    detail = f", degree {facts.degree}" if facts.nonconstant_expressions else ""
    expressions = f"{group(facts.expressions)} ({group(facts.nonconstant_expressions)} not constant{detail})"
    unproved = f"{group(facts.unproved_expressions)} expressions to stay within [0, 1]"
    labels = (f"{name} ({group(count)})" for name, count in facts.label_states.items())
    return [
        ("type", facts.type),
        ("states", facts.states),
        ("choices", facts.choices),
        ("transitions", facts.transitions),
        ("observations", facts.observations or None),
        ("parameters", ", ".join(facts.parameters)),
        ("domain", facts.domain if facts.parameters else None),
        ("free distributions", facts.free_distributions or None),
        ("rates" if "CTMC" in facts.type else "expressions", expressions if facts.expressions else None),
        ("not proved", unproved if facts.unproved_expressions else None),
        ("labels", ", ".join(labels) or "none"),
        ("rewards", ", ".join(name or "unnamed" for name in facts.rewards) or "none"),
        ("deadlocks", f"{group(facts.deadlocks)} (each given a self-loop)" if facts.deadlocks else None),
        ("seconds", f"{facts.seconds:.3g}"),
    ]


def questions() -> None:
    """Show which commands and kinds of models support which properties.

    For an unsupported property a command gives the reason and an alternative. docs/properties.md has the same
    table.

    Example: tightrope questions --json
    """
    rows = capability_rows()
    if common.json:
        shares = {name: {"work": work, "of": size} for name, (work, size) in counted().items()}
        print_json({"questions": rows, "cells": shares})
        return
    for row in rows:
        name, example = row["property"], row["example"]
        cells = [(task, text) for task, text in row.items() if task not in ("property", "example", "answer")]
        refused = ", ".join(task for task, text in cells if text == "–") or "nothing"
        columns = ", ".join(task for task, text in cells if text == "yes")
        facts = [("example", example), ("supported by", columns), ("not by", refused)]
        print_facts(name, facts)
    (work, size), (most, whole) = counted().values()
    typer.echo(
        f"{work} of {size} cells work ({work / size:.1%}), a column for every command; with all options "
        f"{most} of {whole} ({most / whole:.1%})"
    )
