"""From a PRISM file to a model: read a program, then build what it describes.

`read_program` and `read_text` parse and expand; `build_model` explores a program, in discrete or continuous
time. Programs that other front ends make (JANI) are built by it, too. `load_prism` and `load_prism_text` are
both steps in one call.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.continuous import LARGEST_RATE, MarkovAutomaton, ParametricCTMC, rate_box
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parameters import Parameters, narrow_domain
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP
from tightrope.numerics.text import read_program_text
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.explore import search
from tightrope.prism.explore.compile import decide_guard, evaluate
from tightrope.prism.parse.parser import parse_model
from tightrope.prism.parse.syntax import ModelType, SourceText
from tightrope.prism.properties.query import Boundary


class BuildWords(TypedDict, total=False):
    """What is said beside a program.

    Parameters lie in [0, 1], those of rates in [0, LARGEST_RATE], unless `box` (`p=0.1:0.9`) or `domain`
    (`0.1<=p<=0.9, p+q<=1`) says otherwise. `progress(states, transitions)` is called during long builds,
    `warn(text)` for deadlocks and the like. States on the `boundary` of a question are not explored further,
    and where there is a boundary exploration ends as soon as the `judge` has seen enough.
    """

    box: str | None
    domain: str | None
    progress: search.Progress | None
    warn: search.Warn | None
    boundary: Boundary | None
    judge: search.Judge | None


Model = ParametricMDP | IntervalMDP | POMDP | ParametricCTMC | MarkovAutomaton
"""What a program describes; in discrete time one without parameters is a `ParametricMDP` with none."""


@dataclass(frozen=True, eq=False)
class BuiltModel:
    """A model, and whether states beyond a boundary were left out."""

    model: Model
    is_partial: bool = False


def load_prism(
    path: str | Path, constants: Mapping[str, str] | None = None, **words: Unpack[BuildWords]
) -> Model:
    """The model of a PRISM file; `constants` are the values of `--const`."""
    return built(path, constants, **words).model


def load_prism_text(
    text: str, file: str = "model", constants: Mapping[str, str] | None = None, **words: Unpack[BuildWords]
) -> Model:
    """The model of a program in a string; `file` is what messages call it."""
    return build_model(read_text(text, file, constants), **words).model


def built(
    path: str | Path, constants: Mapping[str, str] | None = None, **words: Unpack[BuildWords]
) -> BuiltModel:
    """What a PRISM file describes, as far as a question needs it."""
    return build_model(read_program(path, constants), **words)


def read_program(path: str | Path, constants: Mapping[str, str] | None = None) -> Program:
    """The program of a PRISM file, with its constants but not explored."""
    return read_text(read_program_text(Path(path)), str(Path(path)), constants)


def read_text(text: str, file: str = "model", constants: Mapping[str, str] | None = None) -> Program:
    """As `read_program`, for a program in a string."""
    with _without_collection():
        return expand(parse_model(text, file), constants or {})


def build_model(program: Program, **words: Unpack[BuildWords]) -> BuiltModel:
    """Explore a program; of rates, a warning names ranges that are taken for granted."""
    kind, warn = program.type, words.get("warn")
    if kind in (ModelType.CTMC, ModelType.MA):
        _refuse_uncertain_rates(program)
    known = (rate_box if kind is ModelType.CTMC else Parameters.unit_box)(program.parameters)
    parameters = narrow_domain(known, words.get("box"), words.get("domain"))
    if kind is ModelType.CTMC and warn is not None:
        _warn_of_ranges(parameters, warn)
    program = _with_decided_guards(program, parameters)
    boundary = words.get("boundary")
    if kind in (ModelType.POMDP, ModelType.MA):  # what a boundary leaves out of a state are actions
        boundary = None
    stop = None if boundary is None else boundary(program)
    progress, judge = words.get("progress"), words.get("judge")
    model, is_partial = search.explore_until(program, stop, parameters, progress, warn, judge)
    if kind is ModelType.POMDP:
        assert isinstance(model, ParametricMDP | IntervalMDP)
        return BuiltModel(_observed(program, model))
    return BuiltModel(model, is_partial)


def _observed(program: Program, hidden: ParametricMDP | IntervalMDP) -> POMDP:
    """The model with what is observed of its states."""
    own = hidden.structure
    columns = {
        name: column if column.dtype == np.bool_ else column.astype(np.int64)
        for name, column in own.valuations.items()
    }
    with SourceText(program.source, program.file).complaints():
        seen = [np.asarray(evaluate(each.expression, columns, own.states)) for each in program.observables]
    table = np.array([column.astype(np.int64) for column in seen]).reshape(len(seen), own.states).T
    _, first, number = np.unique(table, axis=0, return_index=True, return_inverse=True)
    shown = [
        ",".join(
            f"{each.name}={str(bool(value)).lower() if column.dtype == np.bool_ else int(value)}"
            for each, column, value in zip(program.observables, seen, table[state], strict=True)
        )
        for state in first.tolist()
    ]
    try:
        return POMDP(hidden, number.reshape(-1).astype(np.int32), tuple(f"({name})" for name in shown))
    except InputError as error:
        raise InputError(error.message, Location(program.file), error.hint) from None


def _refuse_uncertain_rates(program: Program) -> None:
    """Rates are numbers, of chains also polynomials in the parameters."""
    if program.type is ModelType.MA:
        if program.free or program.is_interval:
            raise InputError("Markov automata with intervals are not supported", Location(program.file))
        if program.parameters:
            raise InputError(
                f"constant '{program.parameters[0]}' has no value, and Markov automata have no parameters",
                Location(program.file),
                hint=f"--const {program.parameters[0]}=1",
            )
    elif program.free:
        raise program.error(
            "a rate cannot be free: nothing would bound it",
            program.free[0].position,
            "let it be a constant without a value: a parameter",
        )
    elif program.is_interval:
        raise InputError(
            "intervals of rates are not read",
            Location(program.file),
            hint="let the rates be constants without a value, and give their ranges: --param lam=0.1:0.3",
        )


def _with_decided_guards(program: Program, parameters: Parameters) -> Program:
    """The program without parameters in guards: the domain decides comparisons of them, or it is refused."""
    ends = zip(parameters.names, parameters.lower, parameters.upper, strict=True)
    box = {name: (low, high) for name, low, high in ends if name in program.parameters}
    if not box:
        return program
    with SourceText(program.source, program.file).complaints():
        modules = tuple(
            replace(
                module,
                commands=tuple(
                    replace(command, guard=decide_guard(command.guard, box)) for command in module.commands
                ),
            )
            for module in program.modules
        )
    return replace(program, modules=modules)


def _warn_of_ranges(parameters: Parameters, warn: search.Warn) -> None:
    ranges = zip(parameters.names, parameters.lower, parameters.upper, strict=True)
    open_names = [name for name, low, high in ranges if low == 0 and high == LARGEST_RATE]
    if open_names:
        more = "" if len(open_names) == 1 else " of one"
        warn(
            f"{', '.join(open_names)} may have any value in [0, {LARGEST_RATE}]; --param "
            f"{open_names[0]}=LOW:HIGH narrows the range{more}"
        )


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch off the cyclic garbage collector: syntax trees hold no circles (a third of the time)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
