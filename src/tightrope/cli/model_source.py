"""From the MODEL argument of a command to a model, with the defaults that a benchmark brings along.

What a MODEL can be: `tightrope.loading`.

Models in continuous time are loaded by their own functions.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.options import parse_constants
from tightrope.cli.output import warn
from tightrope.cli.progress import build_progress
from tightrope.errors import InputError
from tightrope.loading import BENCHMARK, ModelRequest, read_continuous, read_model
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.region_text import parse_point
from tightrope.problem import Model

if TYPE_CHECKING:
    from tightrope.benchmarks.instance import Instance
    from tightrope.model.continuous import ParametricCTMC
    from tightrope.prism.parse.property_syntax import PropertyFile
    from tightrope.prism.properties.boundary import Boundary

MANY_TRANSITIONS = 100_000
"""Transitions from which on memory that building has left is worth giving back."""


@dataclass(frozen=True)
class LoadedModel:
    """A model, the seconds it took to build, and the benchmark instance it is, if any."""

    model: Model
    seconds: float
    benchmark: Instance | None = None
    is_partial: bool = False
    """Whether only the states that a question needs were built."""

    def point(self, at: str | None) -> tuple[Fraction, ...]:
        """The point that `--at` gives; without it, a benchmark's true one."""
        names = self.model.parameters.names if isinstance(self.model, ParametricMDP) else ()
        if at is not None:
            return parse_point(at, names, "--at")
        if self.benchmark is not None:
            return self.benchmark.truth
        return _refuse_missing_point(names)

    def property_text(self, prop: str | None) -> str:
        """The property that `--prop` gives; without it, a benchmark's own."""
        if prop is not None:
            return prop
        if self.benchmark is not None:
            return self.benchmark.property_text
        hint = "say what to compute with --prop 'Pmax=? [ F \"goal\" ]'"
        raise InputError("no property is given", hint=hint)


def load_model(
    source: str,
    const: Sequence[str] | None = None,
    param: str | None = None,
    domain: str | None = None,
    boundary: Boundary | None = None,
    untimed: bool = False,
) -> LoadedModel:
    """Build the model that `source` names, under the options `--const`, `--param` and `--domain`.

    A PRISM program is not explored beyond the `boundary` of a question, if one is given. `untimed`: what is
    asked does not speak of time."""
    request = ModelRequest(source, parse_constants(const), param, domain, boundary, untimed)
    begin = time.perf_counter()
    shown = source if source.startswith(BENCHMARK) else Path(source).name
    with build_progress(shown) as progress:
        read = read_model(request, progress, warn)
    if read.model.structure.transitions >= MANY_TRANSITIONS:
        give_back_memory()
    return LoadedModel(read.model, time.perf_counter() - begin, read.benchmark, read.is_partial)


def give_back_memory() -> None:
    """Return freed memory to the operating system, where the allocator can be told to (glibc). It keeps much
    of what building took, just when solving needs as much again.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class TimedModel:
    """A chain in continuous time and the seconds it took to build."""

    source: str
    model: ParametricCTMC
    seconds: float
    is_partial: bool = False

    def point(self, at: str | None) -> tuple[Fraction, ...]:
        """The point that `--at` gives; none is needed where there are no parameters."""
        names = self.model.parameters.names
        if at is not None:
            return parse_point(at, names, "--at")
        return _refuse_missing_point(names)


def _refuse_missing_point(names: Sequence[str]) -> tuple[()]:
    """The point of a model without parameters; one with parameters needs `--at`."""
    if names:
        raise InputError(
            f"the model has parameters: {', '.join(names)}",
            hint=f"say where to look with --at {','.join(f'{name}=…' for name in names)}",
        )
    return ()


def load_timed(
    source: str,
    const: Sequence[str] | None = None,
    param: str | None = None,
    domain: str | None = None,
    boundary: Boundary | None = None,
    quiet: bool = False,
) -> TimedModel:
    """Build the chain that `source` names; `quiet`: the range of parameters does not matter."""
    request = ModelRequest(source, parse_constants(const), param, domain, boundary)
    begin = time.perf_counter()
    with build_progress(Path(source).name) as progress:
        read = read_continuous(request, progress, None if quiet else warn)
    return TimedModel(source, read.model, time.perf_counter() - begin, read.is_partial)


def load_embedded(request: ModelRequest, at: str | None, files: Sequence[PropertyFile]) -> LoadedModel:
    """The jumps of a chain at a point, which certificates are about; what speaks of time is refused."""
    from tightrope.continuous.discrete import embed
    from tightrope.prism.properties.shape import EMBEDDED, refuse_time

    for file in files:
        refuse_time(file, EMBEDDED)
    begin = time.perf_counter()
    with build_progress(Path(request.source).name) as progress:
        read = read_continuous(request, progress, None if at is not None else warn)
    timed = TimedModel(request.source, read.model, 0.0)
    chain = embed(read.model.instantiate(timed.point(at)))
    return LoadedModel(chain, time.perf_counter() - begin, None)
