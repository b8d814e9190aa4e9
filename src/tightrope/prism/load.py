"""From a PRISM file to a model, in one call."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tightrope.errors import InputError, Location
from tightrope.model.continuous import LARGEST_RATE, ParametricCTMC
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.region_text import parse_box, parse_domain
from tightrope.numerics.text_reading import reading
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.rates import explore_rates, rate_box
from tightrope.prism.explore.search import Progress, Warn, explore_until
from tightrope.prism.parse.parser import parse_model
from tightrope.prism.parse.syntax import ModelType
from tightrope.prism.properties.boundary import Boundary


@dataclass(frozen=True, eq=False)
class PrismModel:
    """A model, which knows the constants and formulas of its file: properties may use them by name."""

    model: ParametricMDP | IntervalMDP
    is_partial: bool = False
    """Whether states beyond a boundary were left out."""


def load_prism(
    path: str | Path,
    constants: Mapping[str, str] | None = None,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> ParametricMDP | IntervalMDP:
    """The model of a PRISM file; see `read_prism`."""
    return read_prism(path, constants, box, domain, progress, warn).model


def read_prism(
    path: str | Path,
    constants: Mapping[str, str] | None = None,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    boundary: Boundary | None = None,
) -> PrismModel:
    """Read, expand and explore a PRISM file.

    `constants` are the values of `--const`. The parameters lie in [0, 1] unless `box`
    (`p=0.1:0.9`) or `domain` (`0.1<=p<=0.9, p+q<=1`) says otherwise. A model without parameters is
    a `ParametricMDP` with none. `progress(states, transitions)` is called during long builds,
    `warn(text)` for deadlocks and the like. States on the `boundary` of a question are not explored further.
    """
    file = Path(path)
    with reading(file) as opened:
        text = opened.read()
    return read_prism_text(text, str(file), constants, box, domain, progress, warn, boundary)


def load_prism_text(
    text: str,
    file: str = "model",
    constants: Mapping[str, str] | None = None,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> ParametricMDP | IntervalMDP:
    """The model of a program in a string; `file` is what messages call it."""
    return read_prism_text(text, file, constants, box, domain, progress, warn).model


def read_program(path: str | Path, constants: Mapping[str, str] | None = None) -> Program:
    """The program of a PRISM file, with its constants but not explored."""
    file = Path(path)
    with reading(file) as opened:
        text = opened.read()
    return expand(parse_model(text, str(file)), constants or {})


def read_prism_text(
    text: str,
    file: str = "model",
    constants: Mapping[str, str] | None = None,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    boundary: Boundary | None = None,
) -> PrismModel:
    """As `read_prism`, for a program in a string."""
    with _without_collection():
        program = expand(parse_model(text, file), constants or {})
    if program.type is ModelType.CTMC:
        raise InputError(
            "this is a model in continuous time (ctmc), and models in discrete time are wanted here",
            Location(file),
            hint="check, info, export, sample and learn take such models, in Python tr.load and tr.answer",
        )
    parameters = Parameters.unit_box(program.parameters)
    if box is not None:
        parameters = parse_box(box, program.parameters, base=parameters)
    if domain is not None:
        parameters = parse_domain(domain, program.parameters, base=parameters)
    stop = None if boundary is None else boundary(program)
    model, is_partial = explore_until(program, stop, parameters, progress, warn)
    return PrismModel(model, is_partial)


@dataclass(frozen=True, eq=False)
class PrismRates:
    """A chain in continuous time."""

    model: ParametricCTMC
    is_partial: bool = False


def read_rates(
    path: str | Path,
    constants: Mapping[str, str] | None = None,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    boundary: Boundary | None = None,
) -> PrismRates:
    """As `read_prism`, for a program in continuous time (`ctmc`)."""
    file = Path(path)
    with reading(file) as opened:
        text = opened.read()
    return read_rates_text(text, str(file), constants, box, domain, progress, warn, boundary)


def load_rates_text(
    text: str, file: str = "model", constants: Mapping[str, str] | None = None, box: str | None = None
) -> ParametricCTMC:
    """The chain of a program in a string."""
    return read_rates_text(text, file, constants, box).model


def read_rates_text(
    text: str,
    file: str = "model",
    constants: Mapping[str, str] | None = None,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    boundary: Boundary | None = None,
) -> PrismRates:
    """As `read_rates`, for a program in a string. Parameters of which nothing is said lie in
    [0, LARGEST_RATE], which is said in a warning."""
    with _without_collection():
        program = expand(parse_model(text, file), constants or {})
    if program.type is not ModelType.CTMC:
        raise InputError("this is no model in continuous time: its type is not ctmc", Location(file))
    if program.is_interval:
        raise InputError(
            "intervals of rates are not read",
            Location(file),
            hint="let the rates be constants without a value, and give their ranges: --param lam=0.1:0.3",
        )
    parameters = rate_box(program.parameters)
    if box is not None:
        parameters = parse_box(box, program.parameters, base=parameters)
    if domain is not None:
        parameters = parse_domain(domain, program.parameters, base=parameters)
    open_names = [
        name
        for name, low, high in zip(parameters.names, parameters.lower, parameters.upper, strict=True)
        if low == 0 and high == LARGEST_RATE
    ]
    if open_names and warn is not None:
        one = len(open_names) == 1
        warn(
            f"no range is given for {', '.join(open_names)}: taken to lie in [0, {LARGEST_RATE}] (--param "
            f"{open_names[0]}=LOW:HIGH says otherwise{'' if one else ', and so on'})"
        )
    stop = None if boundary is None else boundary(program)
    model, is_partial = explore_rates(program, stop, parameters, progress, warn)
    return PrismRates(model, is_partial)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Python's search for circles of objects stays off inside, if it was on.

    It looks through all objects again and again while they become more. Syntax trees hold no circles, so for
    a long text that is a third of the time, for nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
