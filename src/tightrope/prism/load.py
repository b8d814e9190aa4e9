"""From a PRISM file to a model, in one call."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tightrope.model.mdp import IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.region_text import parse_box, parse_domain
from tightrope.numerics.text_reading import reading
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.search import Progress, Warn, explore_until
from tightrope.prism.parse.parser import parse_model
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
    parameters = Parameters.unit_box(program.parameters)
    if box is not None:
        parameters = parse_box(box, program.parameters, base=parameters)
    if domain is not None:
        parameters = parse_domain(domain, program.parameters, base=parameters)
    stop = None if boundary is None else boundary(program)
    model, is_partial = explore_until(program, stop, parameters, progress, warn)
    return PrismModel(model, is_partial)


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
